/* Sends a pending release, with the hand-over to a waiter of this daemon. */
#include "engine/release/release.h"
#include "engine/acquire/local_grant.h"
#include "engine/acquire_spec.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/rest.h"
#include "engine/inflight_op.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/op.h"
#include "engine/release/successor.h"
#include "engine/wait/waiter.h"
#include "util/list.h"
#include "util/span.h"

/* Whether others get their chance now, instead of our next waiter. */
static enum yield choose_yield(struct engine *eng, struct lock *lock)
{
    struct lock_activity *a = lock->activity;
    uint64_t since_ms;

    if (a->handovers_since == NEVER) {
        a->handovers_since = eng->now;
        a->checked_after_ms = 0;
    }
    since_ms = eng->now - a->handovers_since;
    if (since_ms >= HANDOVER_ALWAYS_MS) {
        return YIELD_ALWAYS;
    }
    if (a->handovers >= eng->cfg.handover_limit ||
        since_ms - a->checked_after_ms >= HANDOVER_WINDOW_MS) {
        a->checked_after_ms = (uint32_t)since_ms;
        a->handovers = 0;
        return YIELD_IF_OTHERS;
    }
    return YIELD_NEVER;
}

struct hold *release_find_forced(const struct lock *lock,
                                 const struct pending_release *d)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (release_forces(d, h)) {
            return h;
        }
    }
    return NULL;
}

/* How long a tombstone lives. Another daemon that believes in the hold must find the
 * tombstone when it renews, or it reports a loss to its client: so the tombstone lives
 * for a third of the lease, and for all that may hold up that renewal. The other daemon
 * is taken to have our configuration. */
static uint64_t tombstone_ms(const struct engine *eng)
{
    return eng->cfg.watchdog_ms / 3 + ENDED_RENEWALS * eng->cfg.redis_timeout_ms +
           ENGINE_STALL_MS;
}

/* After which the hold has ended by itself: longer than its lease can be, as renewals
 * may have run that nobody confirmed. 0: its lease is over. */
static uint64_t ends_in_ms(const struct engine *eng, const struct hold *h)
{
    uint64_t left = h->until > eng->now ? h->until - eng->now : 0;
    uint64_t most = left > eng->cfg.watchdog_ms ? left : eng->cfg.watchdog_ms;

    return left == 0 ? 0 : 2 * most;
}

/* What a client of this daemon was granted is known here. */
static bool may_leave_rest(const struct pending_release *d)
{
    return d->lock_class == CLASS_PLAIN && !d->returns_loan &&
           (d->local == NULL || hold_atleast_until(d->local->hold) != 0);
}

/* Redis may have lost the hold since its client's release was sent first, and another
 * daemon, at which the client has it too, may be about to put it back. */
static bool leaves_tombstone_if_missing(const struct pending_release *d)
{
    if (release_is_replay(d)) {
        return d->leave_tombstone;
    }
    return d->state == RELEASE_SENT_AGAIN && d->call != NULL && d->local != NULL &&
           d->local->hold->kind == OWNER_ANONYMOUS && d->target.kind == TARGET_FIELD &&
           d->lock_class != CLASS_SEMAPHORE && !release_is_if_keeper(d) &&
           !release_is_forced(d);
}

/* Whether what the release ends is held for certain. */
static bool is_held(const struct engine *eng, struct lock *lock,
                    const struct pending_release *d)
{
    const struct hold *h =
        d->local != NULL ? d->local->hold : release_find_forced(lock, d);

    return h != NULL && hold_is_certain(eng, h);
}

void release_send(struct engine *eng, struct lock *lock, struct pending_release *d)
{
    bool parallel = d->state == RELEASE_PARALLEL;
    struct waiter *next =
        release_is_forced(d) || parallel ? NULL : successor_find(eng, lock, d);
    struct inflight_op *w = inflight_new(eng, INFLIGHT_RELEASE, lock);
    struct op *op;
    struct op_release *r;

    if (d->next == NULL && next != NULL) {
        d->next = spec_ref(next->spec);
    }
    w->release = d;
    if (!parallel) {
        pending_release_set_state(d, d->state == RELEASE_MAYBE_RUN ? RELEASE_SENT_AGAIN
                                                                   : RELEASE_SENT);
        lock->activity->asking = w;
        /* it looks for the head as well */
        lock->ask = lock->ask && (next == NULL || next != lock_head(lock));
    }
    if (d->tries++ == 0) {
        d->was_held = is_held(eng, lock, d);
    }
    op = inflight_op(eng, w, OP_RELEASE);
    op->lock_class = d->lock_class;
    r = &op->release;
    r->target = op_make_target(eng, &d->target);
    r->if_keeper = release_is_if_keeper(d);
    r->force = release_is_forced(d);
    r->leave_tombstone = d->leave_tombstone;
    r->untold = d->untold;
    r->was_held = d->was_held;
    r->may_rest = may_leave_rest(d);
    r->tombstone_if_missing = leaves_tombstone_if_missing(d);
    r->tombstone_ms = tombstone_ms(eng);
    r->subscribed = lock->sub != SUB_NONE;
    r->ends_in_ms = d->local == NULL ? 0 : ends_in_ms(eng, d->local->hold);
    if (d->next == NULL) {
        d->may_free = true;
        return;
    }
    w->spec = spec_ref(d->next);
    w->lease_ms = next != NULL ? waiter_lease(eng, next) : spec_lease(eng, d->next);
    if (next != NULL) {
        w->waiter = next;
        next->in_flight = w;
        d->next_asked = eng->now - waiter_asked_ago_ms(eng, next);
    }
    w->asked_ago_ms = eng->now - d->next_asked;
    w->claimed_before = d->tries > 1; /* the lock may have moved to it */
    r->has_next = true;
    /* A repetition only finds out: it must not give the lock away otherwise. */
    r->yield = d->tries > 1 && next == NULL             ? YIELD_ALWAYS
               : successor_is_named(eng, lock, d, next) ? YIELD_NEVER
                                                        : choose_yield(eng, lock);
    d->may_free = d->may_free || r->yield != YIELD_NEVER ||
                  lock->activity->fair != NULL || d->lock_class != CLASS_PLAIN;
    r->next = op_make_claim(eng, d->next, w->lease_ms);
    r->next.asked_ago_ms = w->asked_ago_ms;
    r->next.block_us = next != NULL ? local_grant_block(eng, next) : 0;
}
