/* Requests: LOCK comes in here. */
#include "core/parts.h"
#include "core/restore.h"

static bool full(struct locks *l, const struct lock_req *req)
{
    if (!lock_tries_once(req) && l->waiter_count >= l->cfg.max_waiters) {
        say_error(l, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    if (l->hold_count >= l->cfg.max_holds) {
        say_error(l, req->from, LOCK_LIMIT, SPAN("max-holds reached"));
        return true;
    }
    return false;
}

/* Whether it has to ask Redis itself although others are ahead: an owner or an ID may
 * hold already. Not when we know who holds. */
static bool needs_probe(const struct locks *l, const struct lock *lock,
                        const struct want *want)
{
    return want->kind != OWNER_ANONYMOUS && !lock_rules_out(l, lock, want);
}

/* Whether the head may sleep without asking first: our own certain hold is in the way.
 */
static bool known_held(const struct locks *l, const struct lock *lock,
                       const struct waiter *w)
{
    return !w->once && lock->desk->busy == NULL && lock_in_the_way(l, lock, w->want) &&
           !needs_probe(l, lock, w->want);
}

/* Those ahead of it all want to read as well: it need not wait for their answers. */
static bool may_join(const struct locks *l, const struct lock *lock,
                     const struct want *want)
{
    return want->lock_kind == KIND_READ && lock->desk->writers == 0 &&
           !lock_in_the_way(l, lock, want);
}

/* A waiter has come, or come back: what does it do first? */
static void start(struct locks *l, struct waiter *w)
{
    struct lock *lock = w->lock;

    lock_touch(l, lock);
    if (w->work != NULL) {
        return; /* asked already: that answer counts */
    }
    if (circle_refuses(l, w)) {
        return;
    }
    if (waiter_is_head(w)) {
        if (!known_held(l, lock, w)) {
            lock_ask(l, lock);
        }
    } else if (may_join(l, lock, w->want)) {
        w->join = true;
        take_probe_later(l, w);
    } else if (needs_probe(l, lock, w->want)) {
        take_probe_later(l, w);
    } else if (w->once) {
        /* Others are ahead. With Redis out of reach even that is not sure. */
        if (l->up) {
            waiter_decide(l, w);
        }
    }
}

/* NULL: it has been answered. */
static struct waiter *join(struct locks *l, const struct lock_req *req)
{
    struct lock *lock = lock_get(l, req->name);
    struct want *want;
    struct waiter *w;

    if (lock->rw != kind_is_rw(req->kind) && lock_in_use(lock)) {
        say_error(l, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return NULL;
    }
    if (req->owner.len != 0 && lock_owner_is_others(lock, req->owner, req->user)) {
        say_error(l, req->from, LOCK_NOPERM, TEXT_OTHERS);
        return NULL;
    }
    lock_set_family(l, lock, kind_is_rw(req->kind));
    want = want_new(l, req);
    w = waiter_new(l, lock, session_get(l, req->from.conn), req, want);
    if (req->id.len != 0) {
        w->request = request_new(l, req->name, want);
        w->request->waiter = w;
        w->doubt = duty_cancel_undo(l, lock, want);
    }
    return w;
}

static void new_wait(struct locks *l, const struct lock_req *req)
{
    struct waiter *w = join(l, req);

    if (w != NULL) {
        start(l, w);
    }
}

/* The same ID again, while it waits: it goes on at its place, for the newest call. */
static void wait_again(struct locks *l, struct waiter *w, const struct lock_req *req)
{
    struct session *s;

    if (w->no_room && !lock_tries_once(req)) {
        say_error(l, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return;
    }
    s = session_get(l, req->from.conn);
    if (w->session != NULL) {
        struct session *old = w->session;

        say_null(l, w->call);
        w->session = NULL;
        list_del(&w->in_session);
        if (old != s) {
            session_idle(l, old);
        }
    }
    if (req->has & LOCK_HAS_KEEP) {
        w->want->keep_ms = req->keep_ms;
    }
    waiter_bind(l, w, s, req);
    start(l, w);
}

/* The same ID again, after it was granted. Redis is asked even so: the request may have
 * been ended through another daemon. */
static void grant_again(struct locks *l, struct entry *e, const struct lock_req *req)
{
    if (e->ending) {
        say_error(l, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else {
        (void)call_regrant(l, e, req);
    }
}

/* Whether it may be the same request, as far as the kind of lock goes. */
static bool same_kind(const struct request *r, enum lock_kind kind)
{
    return r->lock_kind == kind ||
           (r->found && !kind_is_rw(r->lock_kind) && !kind_is_rw(kind));
}

static void known_request(struct locks *l, struct request *r,
                          const struct lock_req *req)
{
    if (user_differs(r->user, req->user)) {
        say_error(l, req->from, LOCK_NOPERM, TEXT_OTHERS);
    } else if (r->over_at != NEVER) {
        say_error(l, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else if (!span_eq(r->owner, req->owner)) {
        say_error(l, req->from, LOCK_ERR, SPAN("that ID was used with another OWNER"));
    } else if (!same_kind(r, req->kind)) {
        say_error(l, req->from, LOCK_ERR, SPAN("that ID was used with another kind"));
    } else if (mlock_uses(r) && !mlock_is_call(req->from)) {
        say_error(l, req->from, LOCK_ERR, SPAN("that ID was used with MLOCK"));
    } else if (r->waiter != NULL) {
        wait_again(l, r->waiter, req);
    } else {
        grant_again(l, r->entry, req);
    }
}

void lock_in(struct locks *l, const struct lock_req *req)
{
    struct request *r = request_find(l, req->name, req->id);

    if (l->quorum && req->kind != KIND_PLAIN) {
        say_error(l, req->from, LOCK_ERR, TEXT_QUORUM);
    } else if (l->stopping) {
        say_error(l, req->from, LOCK_GOAWAY, TEXT_GOING);
    } else if (r != NULL) {
        known_request(l, r, req);
    } else if (!full(l, req)) {
        new_wait(l, req);
    }
}

bool lock_untouched(const struct locks *l, struct span name, struct span id)
{
    const struct lock *lock = lock_find(l, name);

    return quarantine_of_name(l, name) == 0 && request_find(l, name, id) == NULL &&
           (lock == NULL ||
            (list_empty(&lock->holds) && list_empty(&lock->desk->queue) &&
             list_empty(&lock->desk->duties) && lock->desk->busy == NULL &&
             lock->refs == 0 && lock->desk->fair == NULL &&
             lock->desk->stand_back_until <= l->now &&
             lock->desk->ask_after <= l->now));
}

struct waiter *lock_in_queue(struct locks *l, const struct lock_req *req)
{
    return join(l, req);
}

void lock_in_start(struct locks *l, struct waiter *w)
{
    start(l, w);
}

void locks_lock(struct locks *l, const struct lock_req *req)
{
    lock_in(l, req);
    locks_settle(l);
}
