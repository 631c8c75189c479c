/* LOCKs that came together on one connection: as many of them as can be are asked for
 * by one op, which stops at the first that is not granted. */
#include "core/parts.h"
#include "core/restore.h"

static size_t left_of(uint64_t max, uint64_t used)
{
    return max > used ? (size_t)(max - used) : 0;
}

bool locks_has_room(const struct locks *l)
{
    return l->waiter_count < l->cfg.max_waiters && l->hold_count < l->cfg.max_holds;
}

/* How many there could be at most. */
static size_t run_max(const struct locks *l)
{
    size_t waiters = left_of(l->cfg.max_waiters, l->waiter_count);
    size_t holds = left_of(l->cfg.max_holds, l->hold_count);
    size_t max = waiters < holds ? waiters : holds;

    if (!l->up || l->quorum || l->stopping) {
        return 0;
    }
    return max < OP_MANY_MAX ? max : OP_MANY_MAX;
}

static bool may_join(const struct locks *l, const struct lock_req *first,
                     const struct lock_req *req)
{
    return req->kind == KIND_PLAIN &&
           lock_group(l, first->name) == lock_group(l, req->name) &&
           lock_untouched(l, req->name, req->id);
}

size_t locks_lock_run(struct locks *l, const struct lock_req *reqs, size_t count)
{
    struct waiter *waiters[OP_MANY_MAX];
    size_t max = run_max(l);
    size_t n = 0;

    while (n < count && n < max && may_join(l, reqs, &reqs[n])) {
        waiters[n] = lock_in_queue(l, &reqs[n]);
        waiters[n]->in_run = true;
        n++;
    }
    if (n > 1) {
        take_many(l, waiters, n);
    } else if (n == 1) {
        waiters[0]->in_run = false;
        lock_in_start(l, waiters[0]);
    } else {
        lock_in(l, reqs);
        n = 1;
    }
    locks_settle(l);
    return n;
}
