#include "engine/loss.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/rest.h"
#include "engine/session.h"

/* How a hold came to its end. */
struct hold_end {
    enum notice_kind notice; /* LOST or EXPIRED */
    enum loss_cause cause;   /* LOST */
    struct span taker;
    uint64_t forced_by;
};

static void tell_end(struct engine *eng, struct hold *h, const struct hold_end *end)
{
    struct lock *lock = h->lock;
    struct span taker = effects_copy(&eng->fx, end->taker);
    struct effect_notice *notice = emit_notice(eng, end->notice, h);

    eng->stats.lost += end->notice == NOTICE_LOST;
    eng->stats.expired += end->notice == NOTICE_EXPIRED;
    notice->cause = end->cause;
    notice->taker = taker;
    notice->forced_by = end->forced_by;
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
static void end_hold(struct engine *eng, struct hold *h, const struct hold_end *end)
{
    struct lock *lock = h->lock;
    bool ran_out = end->notice == NOTICE_EXPIRED || end->cause == LOSS_UNCONFIRMED;
    bool may_be_lost = hold_may_be_lost(h);
    uint64_t token = h->token;
    uint64_t rest_ms = 0;

    if (!hold_is_rest(h)) {
        rest_ms = ran_out ? hold_atleast_left(eng, h) : 0;
        tell_end(eng, h, end);
    }
    hold_forget(eng, h, false);
    if (rest_ms > 0) {
        rest_put_back(eng, lock, token, rest_ms, may_be_lost, REST_RAN_OUT);
    }
    lock_ask(eng, lock);
}

void hold_lost(struct engine *eng, struct hold *h)
{
    end_hold(eng, h, &(struct hold_end){ NOTICE_LOST, .cause = LOSS_GONE });
}

void hold_expired(struct engine *eng, struct hold *h)
{
    bool agreed = h->state == HOLD_HELD && hold_wanted_lease(eng, h, true) == 0;

    end_hold(eng, h,
             &(struct hold_end){ agreed ? NOTICE_EXPIRED : NOTICE_LOST,
                                 .cause = LOSS_UNCONFIRMED });
}

void hold_lost_to(struct engine *eng, struct hold *h, struct span taker)
{
    end_hold(eng, h,
             &(struct hold_end){ NOTICE_LOST, .cause = LOSS_TAKEN, .taker = taker });
}

void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn)
{
    end_hold(
        eng, h,
        &(struct hold_end){ NOTICE_LOST, .cause = LOSS_FORCED, .forced_by = conn });
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
