/* Handles the answer to an acquire: a grant, a wait that goes on, or an end. */
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/fair/fair.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/recent_asks.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/probe.h"
#include "engine/recovery/quarantine.h"
#include "engine/wait/waiter.h"
#include "util/list.h"

/* Whether the holder that a waiter's op found may be a waiter of this queue: the head's
 * grant may not be answered yet, or was not acknowledged and is about to be undone, or
 * has been since the op was sent. The head's own next answer decides then. */
static bool may_be_a_waiters(const struct lock *lock, const struct waiter *w,
                             uint64_t op)
{
    const struct lock_activity *a = lock->activity;

    return op <= a->last_answer.ungiven_op ||
           ((w == NULL || !waiter_is_head(w)) &&
            (a->asking != NULL || !list_empty(&a->releases)));
}

/* Redis, or this daemon, may have stood still since the op was sent. Its answer counts
 * for those who waited then. */
static void end_outdated_answer(struct engine *eng, struct lock *lock,
                                struct asked asked)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->activity->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (waiter_is_undecided(w) && w->since <= asked.at) {
            waiter_decide(eng, w);
        }
    }
    last_answer_over(eng, lock);
}

static int64_t foreign_look_in(struct engine *eng, struct lock *lock, int64_t ttl_ms)
{
    uint64_t least = eng->foreign_names * 1000 / FOREIGN_LOOKS_MAX;
    uint64_t in;

    lock_note_foreign(eng, lock, true);
    in = (eng->now - lock->activity->foreign_since) / FOREIGN_LOOK_PART;
    in = in < FOREIGN_LOOK_MS ? FOREIGN_LOOK_MS : in;
    in = in > FOREIGN_LOOK_MAX_MS ? FOREIGN_LOOK_MAX_MS : in;
    in = in < least ? least : in;
    return ttl_ms >= 0 && (uint64_t)ttl_ms < in ? ttl_ms : (int64_t)in;
}

static void on_acquire_busy(struct engine *eng, struct lock *lock, struct waiter *w,
                            enum lock_kind kind, const struct op_result *r,
                            struct asked asked)
{
    uint64_t age = eng->now - asked.at;
    /* Too old to tell a null from: see LOCK in latchd-protocol(7). */
    bool outdated = age > eng->cfg.redis_timeout_ms ||
                    (r->ttl_ms != -2 && age > lock_recheck_in(eng, r->ttl_ms));
    uint64_t quarantine = quarantine_until(eng, lock, kind);
    int64_t ttl_ms = r->ttl_ms;

    if (list_empty(&lock->holds) && lock->activity->loan == NULL) {
        recent_asks_others(eng, lock);
    }
    if (ttl_ms == -2 && quarantine != 0) {
        ttl_ms = (int64_t)(quarantine - eng->now);
        last_answer_withheld(eng, lock, quarantine);
    } else if (ttl_ms == -2) {
        last_answer_over(eng, lock);
    } else if (r->withheld) {
        last_answer_withheld(eng, lock, eng->now + lock_recheck_in(eng, ttl_ms));
    } else if (!may_be_a_waiters(lock, w, asked.op)) {
        last_answer_held(eng, lock, ttl_ms);
    }
    if (ttl_ms == -2) {
        lock_ask(eng, lock); /* free, but a probe may not take it: the head may */
    } else if (r->foreign) {
        lock_seen(eng, lock, r->id, foreign_look_in(eng, lock, ttl_ms), KIND_WRITE);
    } else if (lock->lock_class == CLASS_PLAIN || (w != NULL && waiter_is_head(w))) {
        /* A hold that excludes others from a read/write lock may admit the head. */
        lock_seen(eng, lock, r->id, ttl_ms, KIND_WRITE);
    }
    if (w != NULL) {
        w->maybe_granted = false;
        if ((w->once && (ttl_ms != -2 || !waiter_is_head(w))) ||
            waiter_is_expiring(w)) {
            waiter_decide(eng, w);
        }
    }
    if (outdated) {
        end_outdated_answer(eng, lock, asked);
    }
}

static void on_acquire_failed(struct engine *eng, struct lock *lock, struct waiter *w,
                              const struct acquire_spec *spec,
                              const struct op_result *r)
{
    lock_pause(eng, lock, ERROR_PAUSE_MS);
    lock->ask = true;
    if (w == NULL) {
        (void)pending_release_undo(eng, lock, spec);
        return;
    }
    w->maybe_granted = true;
    if (waiter_is_head(w)) {
        last_answer_refused(eng, lock, r->text);
    }
    if (waiter_ends_next(w)) {
        waiter_end_error(eng, w, LOCK_BACKEND, r->text, true);
    } else {
        waiter_ask_again(eng, w);
    }
}

/* Whether an op that found its hold at another daemon was sent long after its LOCK:
 * then the client has sent the LOCK to that daemon since. */
static bool is_asked_again_elsewhere(const struct waiter *w, struct asked asked)
{
    return w->session != NULL && asked.ago_ms > 0 && asked.at > w->since;
}

/* Redis grants nothing for a reason that asking again does not change. */
static void refuse_waiter(struct engine *eng, struct waiter *w, enum lock_error error,
                          struct span text)
{
    if (w != NULL) {
        w->maybe_granted = false;
        waiter_end_error(eng, w, error, text, false);
    }
}

/* Takes the answer to one ACQUIRE. `w` is NULL when its waiter is gone. */
static void on_acquire_answer(struct engine *eng, struct lock *lock,
                              struct acquire_spec *spec, struct waiter *w,
                              const struct op_result *r, struct asked asked)
{
    if (r->status == OP_LATE || r->status == OP_ELSEWHERE) {
        lock_pause(eng, lock, RETRY_PAUSE_MS);
    }
    fair_on_result(eng, lock, w, r);
    if (r->status == OP_OK || (r->status == OP_BUSY && !r->foreign)) {
        lock_note_foreign(eng, lock, false);
    }
    switch (r->status) {
    case OP_OK:
        acquire_granted(eng, lock, spec, w, r, asked);
        break;
    case OP_BUSY:
        on_acquire_busy(eng, lock, w, spec->lock_kind, r, asked);
        break;
    case OP_WRONGTYPE:
        refuse_waiter(eng, w, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_NOSEMAPHORE:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_NO_SEMAPHORE);
        break;
    case OP_BEYOND:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_BEYOND);
        break;
    case OP_OTHER_DATA:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_OTHER_DATA);
        break;
    case OP_UPGRADE:
        refuse_waiter(eng, w, LOCK_DEADLOCK, TEXT_UPGRADE);
        break;
    case OP_OVER:
        refuse_waiter(eng, w, LOCK_NOTHELD, TEXT_OVER);
        break;
    case OP_ELSEWHERE:
        if (w != NULL && w->session == NULL) {
            w->maybe_granted =
                false; /* its client has gone on through another daemon */
            waiter_remove(eng, w);
        } else if (w != NULL && is_asked_again_elsewhere(w, asked)) {
            w->maybe_granted = false;
            waiter_end_null(eng, w, false);
        } else if (w != NULL) {
            waiter_ask_again(eng, w); /* a newer op will do */
        }
        break;
    case OP_LATE:
    case OP_UNKNOWN:
        if (w == NULL && (r->status == OP_UNKNOWN || asked.claimed_before)) {
            (void)pending_release_undo(eng, lock, spec);
        } else if (w != NULL) {
            w->maybe_granted = w->maybe_granted || r->status == OP_UNKNOWN;
            waiter_ask_again(eng, w);
        }
        break;
    case OP_NOREPLICAS:
        acquire_unacked(eng, lock, spec, w, r, asked);
        break;
    case OP_ERROR:
    default:
        on_acquire_failed(eng, lock, w, spec, r);
        break;
    }
}

void on_acquire_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct waiter *waiter = w->waiter;
    struct acquire_spec *spec = spec_ref(w->spec);
    struct asked asked = inflight_asked(w);

    inflight_free(eng, w);
    on_acquire_answer(eng, lock, spec, waiter, r, asked);
    spec_unref(eng, spec);
}
