/* Asks Redis for the head of a queue, and for other waiters that must ask for
 * themselves. */
#include "engine/acquire/acquire.h"
#include "engine/acquire/local_grant.h"
#include "engine/acquire_spec.h"
#include "engine/fair/fair.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/probe.h"
#include "engine/recovery/quarantine.h"
#include "engine/wait/waiter.h"

static void send_acquire(struct engine *eng, enum inflight_kind kind, struct lock *lock,
                         struct waiter *w, bool reenter_only)
{
    struct inflight_op *in_flight = inflight_new(eng, kind, lock);
    struct op *op;

    in_flight->waiter = w;
    in_flight->spec = spec_ref(w->spec);
    in_flight->lease_ms = waiter_lease(eng, w);
    in_flight->asked_ago_ms = waiter_asked_ago_ms(eng, w);
    w->in_flight = in_flight;
    op = inflight_op(eng, in_flight, OP_ACQUIRE);
    op->acquire.reenter_only = reenter_only;
    op->lock_class = lock->lock_class;
    op->acquire.claim = op_make_claim(eng, w->spec, in_flight->lease_ms);
    op->acquire.claim.asked_ago_ms = in_flight->asked_ago_ms;
    op->acquire.claim.limit = lock->sharing->limit;
    fair_fill_claim(eng, op, w);
    if (kind == INFLIGHT_ASK && !reenter_only && !op->acquire.fair) {
        op->acquire.claim.block_us = local_grant_block(eng, w);
    }
    if (kind == INFLIGHT_ASK) {
        lock_open_activity(eng, lock)->asking = in_flight;
    }
}

static bool may_only_reenter(const struct engine *eng, const struct waiter *w)
{
    return eng->stopping || quarantine_until(eng, w->lock, w->spec->lock_kind) != 0;
}

void acquire_ask(struct engine *eng, struct lock *lock, struct waiter *w)
{
    lock->ask = false;
    send_acquire(eng, INFLIGHT_ASK, lock, w, may_only_reenter(eng, w));
}

void acquire_probe(struct engine *eng, struct waiter *w)
{
    waiter_set_probe(w, PROBE_NONE);
    send_acquire(eng, INFLIGHT_PROBE, w->lock, w, true);
}

void acquire_join(struct engine *eng, struct waiter *w)
{
    waiter_set_probe(w, PROBE_NONE);
    send_acquire(eng, INFLIGHT_PROBE, w->lock, w, may_only_reenter(eng, w));
}

bool acquire_may_ask(struct engine *eng, struct lock *lock)
{
    uint64_t at = lock->activity->stand_back_until;

    at = at < lock->activity->ask_after ? lock->activity->ask_after : at;
    if (eng->now < at) {
        timer_set(eng, &lock->activity->wake, TIMER_LOCK, at);
    }
    return eng->now >= at;
}
