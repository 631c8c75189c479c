/* MLOCK: its end, and giving back what it has taken. */
#include "core/parts.h"
#include "core/waits.h"
#include "util/alloc.h"

#include <stdlib.h>

/* --- giving back ------------------------------------------------------------------ */

void mlock_let_go(struct piece *p)
{
    p->entry->piece = NULL;
    p->entry = NULL;
    p->told = false;
    p->mlock->taken--;
}

/* Redis would let a fixed lease end before KEEP does. */
static void outlast_keep(struct locks *l, struct entry *e)
{
    struct hold *h = e->hold;
    uint64_t keep = e->want->keep_ms;

    if (e->kept && e->fixed && h->attached == 0 && hold_alone(h) &&
        h->until < l->now + keep) {
        h->exact_ms = keep + GRACE_SLACK_MS + keep / 50;
        renew_want(l, h);
    }
}

static void leave_entry(struct locks *l, struct piece *p, bool keep)
{
    struct entry *e = p->entry;
    struct session *s = p->mlock->session;
    struct attach *a = s == NULL ? NULL : entry_attach_of(e, s);
    bool told = p->told;

    if (!keep) {
        mlock_let_go(p);
    }
    if (told) {
        return; /* by an answer before: it is its client's */
    }
    if (a != NULL) {
        entry_untold(l, a, keep);
    } else if (!keep && e->kept && !e->ending && e->attaches == NULL) {
        entry_disown(l, e);
        duty_end_entry(l, e);
    }
    if (keep) {
        outlast_keep(l, e);
    }
}

void mlock_drop_calls(struct locks *l, struct mlock *ml, size_t first)
{
    struct list *it, *tmp;

    for (size_t i = first; i < ml->count; i++) {
        mlock_set_asked(&ml->pieces[i], false);
    }
    LIST_FOREACH_SAFE(it, tmp, &ml->session->calls)
    {
        struct call *c = container_of(it, struct call, in_session);
        struct piece *p = mlock_piece(l, c->ref);

        if (p != NULL && p->mlock == ml && p >= &ml->pieces[first]) {
            call_free(l, c);
        }
    }
}

void mlock_rewind(struct locks *l, struct mlock *ml, size_t first)
{
    mlock_drop_calls(l, ml, first);
    for (size_t i = first; i < ml->count; i++) {
        struct piece *p = &ml->pieces[i];

        if (p->waiter != NULL) {
            waiter_remove(l, p->waiter);
        }
        if (p->entry != NULL) {
            leave_entry(l, p, false);
        }
        p->stale = false;
    }
    ml->next = first;
    ml->lost = SIZE_MAX;
}

void mlock_free(struct locks *l, struct mlock *ml)
{
    for (size_t i = 0; i < ml->count; i++) {
        struct piece *p = &ml->pieces[i];

        if (p->waiter != NULL) {
            p->waiter->piece = NULL;
        }
        if (p->entry != NULL) {
            mlock_let_go(p);
        }
    }
    if (ml->request != NULL) {
        ml->request->mlock = NULL;
        request_idle(l, ml->request);
    }
    timer_stop(l, &ml->timer);
    list_del(&ml->in_dirty);
    list_del(&ml->in_session);
    table_remove(&l->mlocks, &ml->in_mlocks);
    free(ml->data);
    free(ml);
}

void mlock_unbind(struct locks *l, struct mlock *ml)
{
    struct session *s = ml->session;

    list_del(&ml->in_session);
    ml->session = NULL;
    session_idle(l, s);
}

void mlock_end(struct locks *l, struct mlock *ml, bool keep)
{
    keep = keep && ml->request != NULL && ml->terms.keep_ms > 0 && !l->stopping;
    if (ml->session != NULL) {
        mlock_drop_calls(l, ml, 0);
    }
    for (size_t i = 0; i < ml->count; i++) {
        struct piece *p = &ml->pieces[i];

        if (p->waiter != NULL && !keep) {
            waiter_remove(l, p->waiter);
        } else if (p->waiter != NULL && p->waiter->session != NULL) {
            waiter_detach(l, p->waiter);
        }
        if (p->entry != NULL) {
            leave_entry(l, p, keep);
        }
    }
    if (ml->session != NULL) {
        mlock_unbind(l, ml);
    }
    if (!keep) {
        mlock_free(l, ml);
        return;
    }
    ml->state = MLOCK_KEPT;
    ml->ended = false;
    timer_set(l, &ml->timer, TIMER_MLOCK, l->now + ml->terms.keep_ms);
}

/* --- ends from outside ------------------------------------------------------------ */

void mlock_conn_closed(struct locks *l, struct session *s)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->mlocks)
    {
        mlock_end(l, container_of(it, struct mlock, in_session), true);
    }
}

bool mlock_unblock(struct locks *l, struct session *s, bool with_error)
{
    struct list *first = list_first(&s->mlocks);
    struct mlock *ml;

    if (first == NULL) {
        return false;
    }
    ml = container_of(first, struct mlock, in_session);
    if (with_error) {
        say_error(l, ml->call, LOCK_UNBLOCKED, TEXT_UNBLOCKED);
    } else {
        say_null(l, ml->call);
    }
    mlock_end(l, ml, true);
    return true;
}

void mlock_stop(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &l->mlocks)
    {
        struct mlock *ml = container_of(n, struct mlock, in_mlocks);

        if (ml->state == MLOCK_TAKING) {
            say_error(l, ml->call, LOCK_GOAWAY, TEXT_GOING);
        }
        if (ml->state != MLOCK_ANSWERED) {
            mlock_end(l, ml, false);
        }
    }
}

void mlocks_free(struct locks *l)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &l->mlocks)
    {
        mlock_free(l, container_of(n, struct mlock, in_mlocks));
    }
    table_fini(&l->mlocks);
}

static bool may_cancel(const struct mlock *ml, const struct hold_req *req,
                       bool *ret_others)
{
    bool others = !req->overrides && user_differs(ml->terms.user, req->user);

    if (ml->state == MLOCK_ANSWERED || !mlock_has_name(ml, req->name)) {
        return false;
    }
    *ret_others = *ret_others || others;
    return !others;
}

/* One that `owner` has under way, and that has this name among its own. */
static struct mlock *find_of_owner(const struct locks *l, const struct hold_req *req,
                                   bool *ret_others)
{
    const struct lock *lock = lock_find(l, req->name);
    const struct hold *h = lock == NULL ? NULL : lock_hold_of(lock, req->owner);
    const struct waits *waits = waits_find(l, req->owner);
    struct list *it;

    if (waits != NULL) {
        LIST_FOREACH(it, &waits->waiters)
        {
            struct waiter *w = container_of(it, struct waiter, in_waits);

            if (w->piece != NULL && may_cancel(w->piece->mlock, req, ret_others)) {
                return w->piece->mlock;
            }
        }
    }
    if (h != NULL) {
        for (struct entry *e = h->entries; e != NULL; e = e->next) {
            if (e->piece != NULL && may_cancel(e->piece->mlock, req, ret_others)) {
                return e->piece->mlock;
            }
        }
    }
    return NULL;
}

static struct mlock *find_of_id(const struct locks *l, const struct hold_req *req,
                                bool *ret_others)
{
    struct mlock *ml = mlock_of_id(l, req->id);

    return ml != NULL && may_cancel(ml, req, ret_others) ? ml : NULL;
}

size_t mlock_cancel(struct locks *l, const struct hold_req *req, bool *ret_others)
{
    size_t count = 0;
    struct mlock *ml;

    while ((ml = req->id.len != 0 ? find_of_id(l, req, ret_others)
                                  : find_of_owner(l, req, ret_others)) != NULL) {
        struct request *r = ml->request;

        if (ml->state == MLOCK_TAKING) {
            say_null(l, ml->call);
        }
        if (r != NULL) {
            ml->request = NULL;
            r->mlock = NULL;
            request_over(l, r, -1);
        }
        mlock_end(l, ml, false);
        count++;
    }
    return count;
}
