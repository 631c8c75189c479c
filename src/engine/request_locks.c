/* LOCK, MLOCK, and LOCKs that came together on one connection: one op asks for as many
 * as possible, and stops at the first that is not granted. */
#include "engine/acquire/acquire_batch.h"
#include "engine/acquire/request_lock.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/loan.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/schedule/schedule.h"
#include "engine/wait/waiter.h"

static size_t left_of(uint64_t max, uint64_t used)
{
    return max > used ? (size_t)(max - used) : 0;
}

bool engine_has_room(const struct engine *eng)
{
    return eng->waiter_count < eng->cfg.max_waiters &&
           eng->hold_count < eng->cfg.max_holds;
}

/* How many LOCKs of a batch the limits leave room for. */
static size_t run_max(const struct engine *eng)
{
    size_t waiters = left_of(eng->cfg.max_waiters, eng->waiter_count);
    size_t holds = left_of(eng->cfg.max_holds, eng->hold_count);
    size_t max = waiters < holds ? waiters : holds;

    if (!eng->up || eng->quorum || eng->stopping) {
        return 0;
    }
    return max < OP_BATCH_MAX ? max : OP_BATCH_MAX;
}

static bool may_join(const struct engine *eng, const struct lock_req *first,
                     const struct lock_req *req)
{
    return req->kind == KIND_PLAIN && req->data.len == 0 && req->atleast_ms == 0 &&
           lock_group(eng, first->name) == lock_group(eng, req->name) &&
           lock_untouched(eng, req->name, req->id);
}

/* Whether the LOCK is for a name whose loan is in that state. */
static bool is_lent(const struct engine *eng, const struct lock_req *req,
                    enum loan_state state)
{
    const struct lock *lock =
        (req->has & LOCK_IS_LOCAL) != 0 ? lock_find(eng, req->name) : NULL;

    return lock != NULL && lock->activity->loan != NULL &&
           lock->activity->loan->state == state;
}

/* The first of them whose names are lent are granted one after the other, up to one
 * that Redis has to be asked for. How many have begun. */
static size_t lock_lent_names(struct engine *eng, const struct lock_req *reqs,
                              size_t count)
{
    bool granted = true;
    size_t n = 0;

    while (n < count && granted && is_lent(eng, &reqs[n], LOAN_IDLE)) {
        request_lock(eng, &reqs[n]);
        engine_settle(eng);
        granted = is_lent(eng, &reqs[n], LOAN_HELD);
        n++;
    }
    return n;
}

size_t engine_lock_batch(struct engine *eng, const struct lock_req *reqs, size_t count)
{
    struct waiter *waiters[OP_BATCH_MAX];
    size_t max = run_max(eng);
    size_t lent = lock_lent_names(eng, reqs, count);
    size_t n = 0;

    if (lent > 0) {
        return lent;
    }
    while (n < count && n < max && may_join(eng, reqs, &reqs[n])) {
        waiters[n] = request_lock_enqueue(eng, &reqs[n]);
        waiters[n]->in_run = true;
        n++;
    }
    if (n > 1) {
        acquire_ask_batch(eng, waiters, n, false);
    } else if (n == 1) {
        waiters[0]->in_run = false;
        request_lock_start(eng, waiters[0]);
    } else {
        request_lock(eng, reqs);
        n = 1;
    }
    engine_settle(eng);
    return n;
}

void engine_lock(struct engine *eng, const struct lock_req *req)
{
    request_lock(eng, req);
    engine_settle(eng);
}

void engine_mlock(struct engine *eng, const struct mlock_req *req)
{
    request_mlock(eng, req);
    engine_settle(eng);
}
