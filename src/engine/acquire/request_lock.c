/* Carries out LOCK requests: joins the queue, finds what the ID got before, or
 * refuses. */
#include "engine/acquire/request_lock.h"
#include "engine/acquire/local_grant.h"
#include "engine/acquire_spec.h"
#include "engine/deadlock/deadlock.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/lock/probe.h"
#include "engine/multi/mlock.h"
#include "engine/recovery/quarantine.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "engine/wait/waiter.h"
#include "util/list.h"

static bool is_full(struct engine *eng, const struct lock_req *req)
{
    if (!lock_tries_once(req) && eng->waiter_count >= eng->cfg.max_waiters) {
        emit_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    if (eng->hold_count >= eng->cfg.max_holds) {
        emit_error(eng, req->from, LOCK_LIMIT, SPAN("max-holds reached"));
        return true;
    }
    return false;
}

/* Whether a waiter behind others has to ask Redis itself, because its owner or ID may
 * hold already. Not if another owner certainly holds. */
static bool needs_probe(const struct engine *eng, const struct lock *lock,
                        const struct acquire_spec *spec)
{
    bool may_hold = spec->kind == OWNER_NAMED || spec_id(spec).len != 0;

    return may_hold && !lock_excludes(eng, lock, spec);
}

/* Whether the head may sleep without asking first: a certain hold of this daemon is in
 * its way. */
static bool known_held(const struct engine *eng, const struct lock *lock,
                       const struct waiter *w)
{
    return !w->once && lock->activity->asking == NULL &&
           lock_blocks(eng, lock, w->spec) && !needs_probe(eng, lock, w->spec);
}

/* Whether all waiters ahead want to read as well, so that this reader need not wait
 * for their answers. */
static bool may_join(const struct engine *eng, const struct lock *lock,
                     const struct acquire_spec *spec)
{
    return spec->lock_kind == KIND_READ && lock->activity->writers == 0 &&
           !lock_blocks(eng, lock, spec);
}

/* Decides what a waiter that has come, or come back, does first. */
static void start_wait(struct engine *eng, struct waiter *w)
{
    struct lock *lock = w->lock;

    lock_touch(eng, lock);
    if (w->in_flight != NULL) {
        return; /* asked already: that answer counts */
    }
    if (deadlock_refuses(eng, w)) {
        return;
    }
    if (waiter_is_head(w)) {
        if (!known_held(eng, lock, w)) {
            lock_ask(eng, lock);
        }
    } else if (may_join(eng, lock, w->spec)) {
        waiter_probe_later(eng, w, PROBE_JOIN);
    } else if (needs_probe(eng, lock, w->spec)) {
        /* A reader that was to join still is. */
        waiter_probe_later(eng, w, w->probe == PROBE_JOIN ? PROBE_JOIN : PROBE_REENTER);
    } else if (w->once) {
        /* Others are ahead. With Redis out of reach even that is not sure. */
        if (eng->up) {
            waiter_decide(eng, w);
        } else if (w->queue_full) {
            waiter_end_queue_full(eng, w);
        }
    }
}

/* Puts a request into its queue. NULL: the request has been answered. */
static struct waiter *enqueue_request(struct engine *eng, const struct lock_req *req)
{
    struct lock *lock = lock_get(eng, req->name);
    struct acquire_spec *spec;
    struct waiter *w;

    if (lock->lock_class != lock_class_of(req->kind) &&
        (lock_in_use(lock) || lock->activity->latch_watch != NULL)) {
        emit_error(eng, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return NULL;
    }
    if (req->owner.len != 0 && lock_owner_is_others(lock, req->owner, req->user)) {
        emit_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
        return NULL;
    }
    lock_set_class(eng, lock, lock_class_of(req->kind));
    if (req->limit != 0 && lock->sharing->limit == 0) {
        lock_open_sharing(eng, lock)->limit = req->limit;
    }
    spec = spec_new(eng, req);
    w = waiter_new(eng, lock, session_get(eng, req->from.conn), req, spec);
    if (spec->local) {
        local_grant_note(eng, w);
    }
    if (req->id.len != 0) {
        w->request = request_new(eng, req->name, spec);
        w->request->waiter = w;
        w->maybe_granted = pending_release_cancel_undo(eng, lock, spec);
    }
    return w;
}

static void new_wait(struct engine *eng, const struct lock_req *req)
{
    struct waiter *w = enqueue_request(eng, req);

    if (w != NULL) {
        start_wait(eng, w);
    }
}

/* The ID came again while its waiter waits: the wait goes on at its place, for the
 * newest request. */
static void wait_again(struct engine *eng, struct waiter *w, const struct lock_req *req)
{
    struct session *s;

    if (w->no_room && !lock_tries_once(req)) {
        emit_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return;
    }
    s = session_get(eng, req->from.conn);
    if (w->session != NULL) {
        struct session *old = w->session;

        emit_null(eng, waiter_call(w));
        w->session = NULL;
        list_del(&w->in_session);
        if (old != s) {
            session_idle(eng, old);
        }
    }
    if (req->has & LOCK_HAS_KEEP) {
        w->spec->keep_ms = req->keep_ms;
    }
    waiter_bind(eng, w, s, req);
    start_wait(eng, w);
}

/* The ID came again after its grant. Redis is asked even so, as the request may have
 * been ended through another daemon. */
static void grant_again(struct engine *eng, struct entry *e, const struct lock_req *req)
{
    if (entry_is_ending(e)) {
        emit_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else {
        (void)pending_request_regrant(eng, e, req);
    }
}

/* Whether a LOCK of that mode may be the request that is remembered. */
static bool same_kind(const struct request *r, enum lock_kind kind)
{
    return r->lock_kind == kind ||
           (r->found && lock_class_of(r->lock_kind) == CLASS_PLAIN &&
            lock_class_of(kind) == CLASS_PLAIN);
}

/* The data that came with a request that waits or holds. */
static struct span request_data(const struct request *r)
{
    return spec_data(r->waiter != NULL ? r->waiter->spec : r->entry->spec);
}

static void known_request(struct engine *eng, struct request *r,
                          const struct lock_req *req)
{
    if (user_differs(r->user, req->user)) {
        emit_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
    } else if (r->over_at != NEVER) {
        emit_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else if (!span_eq(r->owner, req->owner)) {
        emit_error(eng, req->from, LOCK_ERR,
                   SPAN("that ID was used with another OWNER"));
    } else if (!same_kind(r, req->kind)) {
        emit_error(eng, req->from, LOCK_ERR,
                   SPAN("that ID was used with another kind"));
    } else if (mlock_uses(r) && !mlock_is_call(req->from)) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("that ID was used with MLOCK"));
    } else if (r->mlock == NULL && !span_eq(request_data(r), req->data)) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_OTHER_DATA);
    } else if (r->waiter != NULL && r->waiter->priority != req->priority) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_OTHER_PRIORITY);
    } else if (r->waiter != NULL) {
        wait_again(eng, r->waiter, req);
    } else {
        grant_again(eng, r->entry, req);
    }
}

void request_lock(struct engine *eng, const struct lock_req *req)
{
    struct request *r = request_find(eng, req->name, req->id);

    if (eng->quorum && req->kind != KIND_PLAIN) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_QUORUM);
    } else if (eng->quorum && req->data.len != 0) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum keeps no DATA"));
    } else if (eng->quorum && req->atleast_ms != 0) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum keeps no ATLEAST"));
    } else if (eng->stopping) {
        emit_error(eng, req->from, LOCK_GOAWAY, TEXT_GOING);
    } else if (r != NULL) {
        known_request(eng, r, req);
    } else if (!is_full(eng, req)) {
        new_wait(eng, req);
    }
}

bool lock_untouched(const struct engine *eng, struct span name, struct span id)
{
    const struct lock *lock = lock_find(eng, name);

    return quarantine_of_name(eng, name) == 0 && request_find(eng, name, id) == NULL &&
           (lock == NULL ||
            (list_empty(&lock->holds) && list_empty(&lock->activity->queue) &&
             list_empty(&lock->activity->releases) && lock->activity->asking == NULL &&
             lock->refs == 0 && lock->activity->fair == NULL &&
             lock->activity->loan == NULL &&
             lock->activity->stand_back_until <= eng->now &&
             lock->activity->ask_after <= eng->now));
}

struct waiter *request_lock_enqueue(struct engine *eng, const struct lock_req *req)
{
    return enqueue_request(eng, req);
}

void request_lock_start(struct engine *eng, struct waiter *w)
{
    start_wait(eng, w);
}
