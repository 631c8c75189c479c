/* MLOCK: its end, and giving back what it has taken. */
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/timer.h"
#include "engine/user_check.h"
#include "engine/wait/wait_graph.h"
#include "engine/wait/waiter.h"

#include <stdlib.h>

/* --- giving back ------------------------------------------------------------------ */

/* Redis would let a fixed lease end before KEEP does. */
static void outlast_keep(struct engine *eng, struct entry *e)
{
    struct hold *h = e->hold;
    uint64_t keep = e->spec->keep_ms;

    if (e->retained && e->lease == LEASE_FIXED && h->attached == 0 &&
        hold_has_one_entry(h) && h->until < eng->now + keep) {
        hold_open_upkeep(eng, h)->exact_ms = keep + GRACE_SLACK_MS + keep / 50;
        renew_request(eng, h);
    }
}

static void leave_entry(struct engine *eng, struct mlock_member *p, bool keep)
{
    struct entry *e = p->entry;
    struct session *s = p->mlock->session;
    struct attach *a = s == NULL ? NULL : entry_attach_of(e, s);
    bool told = p->token_sent, joined = p->joined;

    p->joined = false;
    if (!keep) {
        mlock_unlink_entry(p);
    }
    if (told) {
        /* By an answer before: it is its client's, but not by this connection. */
        if (joined && a != NULL) {
            entry_untold(eng, a, keep);
        }
        return;
    }
    if (a != NULL) {
        entry_untold(eng, a, keep);
    } else if (!keep && e->retained && !entry_is_ending(e) && !entry_is_attached(e)) {
        entry_disown(eng, e);
        pending_release_end_entry(eng, e);
    }
    if (keep) {
        outlast_keep(eng, e);
    }
}

void mlock_drop_requests(struct engine *eng, struct mlock *ml, size_t first)
{
    struct list *it, *tmp;

    for (size_t i = first; i < ml->count; i++) {
        mlock_set_asked(&ml->members[i], false);
    }
    LIST_FOREACH_SAFE(it, tmp, &ml->session->pending_requests)
    {
        struct pending_request *c =
            container_of(it, struct pending_request, in_session);
        struct mlock_member *p = mlock_find_member(eng, c->ref);

        if (p != NULL && p->mlock == ml && p >= &ml->members[first]) {
            pending_request_free(eng, c);
        }
    }
}

void mlock_rewind(struct engine *eng, struct mlock *ml, size_t first)
{
    mlock_drop_requests(eng, ml, first);
    for (size_t i = first; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];

        if (p->waiter != NULL) {
            waiter_remove(eng, p->waiter);
        }
        if (p->entry != NULL) {
            leave_entry(eng, p, false);
        }
        p->stale = false;
    }
    ml->next = first;
    ml->lost = SIZE_MAX;
}

void mlock_free(struct engine *eng, struct mlock *ml)
{
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];

        if (p->waiter != NULL) {
            p->waiter->member = NULL;
        }
        if (p->entry != NULL) {
            mlock_unlink_entry(p);
        }
    }
    if (ml->request != NULL) {
        ml->request->mlock = NULL;
        request_idle(eng, ml->request);
    }
    timer_stop(eng, &ml->timer);
    list_del(&ml->in_dirty);
    list_del(&ml->in_session);
    table_remove(&eng->mlocks, &ml->in_mlocks);
    free(ml->data);
    free(ml);
}

void mlock_unbind(struct engine *eng, struct mlock *ml)
{
    struct session *s = ml->session;

    list_del(&ml->in_session);
    ml->session = NULL;
    session_idle(eng, s);
}

void mlock_end(struct engine *eng, struct mlock *ml, bool keep)
{
    keep = keep && ml->request != NULL && ml->terms.keep_ms > 0 && !eng->stopping;
    if (ml->session != NULL) {
        mlock_drop_requests(eng, ml, 0);
    }
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];

        if (p->waiter != NULL && !keep) {
            waiter_remove(eng, p->waiter);
        } else if (p->waiter != NULL && p->waiter->session != NULL) {
            waiter_detach(eng, p->waiter);
        }
        if (p->entry != NULL) {
            leave_entry(eng, p, keep);
        }
    }
    if (ml->session != NULL) {
        mlock_unbind(eng, ml);
    }
    if (!keep) {
        mlock_free(eng, ml);
        return;
    }
    mlock_set_state(ml, MLOCK_RETAINED);
    ml->outcome = MLOCK_OPEN;
    timer_set(eng, &ml->timer, TIMER_MLOCK, eng->now + ml->terms.keep_ms);
}

/* --- ends from outside ------------------------------------------------------------ */

void mlock_conn_closed(struct engine *eng, struct session *s)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->mlocks)
    {
        mlock_end(eng, container_of(it, struct mlock, in_session), true);
    }
}

bool mlock_unblock(struct engine *eng, struct session *s, bool with_error)
{
    struct list *first = list_first(&s->mlocks);
    struct mlock *ml;

    if (first == NULL) {
        return false;
    }
    ml = container_of(first, struct mlock, in_session);
    if (with_error) {
        emit_error(eng, ml->call, LOCK_UNBLOCKED, TEXT_UNBLOCKED);
    } else {
        emit_null(eng, ml->call);
    }
    mlock_end(eng, ml, true);
    return true;
}

void mlock_stop(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &eng->mlocks)
    {
        struct mlock *ml = container_of(n, struct mlock, in_mlocks);

        if (ml->state == MLOCK_ACQUIRING) {
            emit_error(eng, ml->call, LOCK_GOAWAY, TEXT_GOING);
        }
        if (ml->state != MLOCK_ANSWERED) {
            mlock_end(eng, ml, false);
        }
    }
}

void mlocks_free(struct engine *eng)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &eng->mlocks)
    {
        mlock_free(eng, container_of(n, struct mlock, in_mlocks));
    }
    table_fini(&eng->mlocks);
}
