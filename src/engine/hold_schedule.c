/* When a hold is renewed, or looked at, next. */
#include "engine/engine_limits.h"
#include "engine/hold.h"
#include "engine/lease_shortening.h"
#include "engine/loan.h"
#include "engine/restore_mark.h"

/* When a hold that is left to run out is checked, so that one that its owner released
 * elsewhere is not reported lost: before the tombstone of that is gone, and shortly
 * before the end. */
static uint64_t look_at(const struct hold *h)
{
    uint64_t left = h->until > h->confirmed ? h->until - h->confirmed : 0;
    uint64_t before = left / LOOK_PART < LOOK_MS ? left / LOOK_PART : LOOK_MS;
    uint64_t next = h->confirmed + OP_ENDED_MS / 2;

    if (next < h->until - before) {
        return next;
    }
    return h->looked ? UINT64_MAX : h->until - before;
}

/* When it is to be renewed, or (*ret_looks) looked at, next, if no message says so. */
static uint64_t regular_due(const struct engine *eng, const struct hold *h,
                            bool *ret_looks)
{
    uint64_t due = h->confirmed + eng->cfg.watchdog_ms / 3;

    *ret_looks = hold_loan(h) != NULL; /* then and no sooner */
    if (*ret_looks) {
        return hold_settle_at(eng, h);
    }
    if (h->exact_ms == 0 && hold_wanted_lease(eng, h, true) == 0) {
        uint64_t look = look_at(h);

        *ret_looks = hold_lease(eng, h) == 0 || look < due;
        return *ret_looks ? look : due;
    }
    if (due >= h->until && h->until > h->confirmed &&
        hold_wanted_lease(eng, h, false) != 0) {
        /* The lease is shorter than what is wanted now. */
        due = h->confirmed + (h->until - h->confirmed) / 2;
    }
    return due;
}

/* The same, and sooner for a message that says that it is free. A renewal that was due
 * before stays due since then: it becomes overdue, however many messages come. */
static uint64_t next_due(const struct engine *eng, const struct hold *h,
                         bool *ret_looks)
{
    uint64_t due = regular_due(eng, h, ret_looks);
    uint64_t soon = h->confirmed + FREED_LOOK_MS;

    soon = soon > eng->now ? soon : eng->now;
    if (h->freed && h->renewal == NULL && list_empty(&h->in_queue) && soon < due) {
        *ret_looks = true;
        return soon;
    }
    return due;
}

/* Sets the hold's one timer to whatever comes next: a renewal, doubt, or the end. */
void hold_schedule_renewal(struct engine *eng, struct hold *h)
{
    uint64_t at = h->until;
    bool looks;

    if (h->state == HOLD_RESTORING) {
        h->due = UINT64_MAX;
        at = restore_is_idle(h) && h->not_before < at ? h->not_before : at;
    } else if (!hold_is_ending(h)) {
        h->due = next_due(eng, h, &looks);
        if (h->renewal == NULL && !hold_is_being_shortened(h) &&
            list_empty(&h->in_queue) && h->due < at) {
            at = looks ? h->due : hold_renew_at(eng, h);
            at = at < h->not_before ? h->not_before : at;
            at = at > h->until ? h->until : at; /* its end is told in time */
        }
        if (h->state == HOLD_HELD && hold_lease(eng, h) != 0 &&
            h->due + eng->cfg.redis_timeout_ms < at) {
            at = h->due + eng->cfg.redis_timeout_ms; /* and that it is overdue */
        }
    } else {
        h->due = UINT64_MAX;
    }
    timer_set(eng, &h->timer, TIMER_HOLD, at > eng->now ? at : eng->now + 1);
}
