#include "engine/hold/loss.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/rest.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_mode.h"
#include "engine/session.h"

static void tell_loss(struct engine *eng, struct hold *h, enum loss_cause cause,
                      struct span taker, uint64_t forced_by)
{
    struct lock *lock = h->lock;
    struct span copy = effects_copy(&eng->fx, taker);
    struct effect_notice *notice = emit_notice(eng, NOTICE_LOST, h);

    eng->stats.lost++;
    notice->cause = cause;
    notice->taker = copy;
    notice->forced_by = forced_by;
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        entry_over(eng, e, -1);
        for (const struct attach *a = entry_first_attach(e); a != NULL;
             a = attach_next(a)) {
            session_lost(a->session, lock);
        }
    }
}

/* The end of a rest is nobody's loss. A hold that ran out, and was not taken away,
 * still leaves a rest. */
static void end_lost_hold(struct engine *eng, struct hold *h, enum loss_cause cause,
                          struct span taker, uint64_t forced_by)
{
    struct lock *lock = h->lock;
    bool ran_out = cause == LOSS_LEASE_OVER || cause == LOSS_UNCONFIRMED;
    bool may_be_lost = hold_may_be_lost(h);
    uint64_t token = h->token;
    uint64_t rest_ms = 0;

    if (!hold_is_rest(h)) {
        rest_ms = ran_out ? hold_atleast_left(eng, h) : 0;
        tell_loss(eng, h, cause, taker, forced_by);
    }
    hold_forget(eng, h, false);
    if (rest_ms > 0) {
        rest_put_back(eng, lock, token, rest_ms, may_be_lost, REST_RAN_OUT);
    }
    lock_ask(eng, lock);
}

void hold_lost(struct engine *eng, struct hold *h)
{
    end_lost_hold(eng, h, LOSS_GONE, SPAN_NONE, 0);
}

void hold_expired(struct engine *eng, struct hold *h)
{
    end_lost_hold(
        eng, h, hold_lease_kind(h) == LEASE_FIXED ? LOSS_LEASE_OVER : LOSS_UNCONFIRMED,
        SPAN_NONE, 0);
}

void hold_lost_to(struct engine *eng, struct hold *h, struct span taker)
{
    end_lost_hold(eng, h, LOSS_TAKEN, taker, 0);
}

void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn)
{
    end_lost_hold(eng, h, LOSS_FORCED, SPAN_NONE, conn);
}

struct hold *lock_accept_holder(struct engine *eng, struct lock *lock,
                                enum lock_kind kind, struct span field, uint64_t token)
{
    struct hold *denied[16];
    size_t count;

    while ((count = lock_contradicted_holds(lock, kind, field, token, denied, 16)) >
           0) {
        for (size_t i = 0; i < count; i++) {
            hold_lost_to(eng, denied[i], field_owner(field));
        }
    }
    return lock_hold_of(lock, field);
}
