#include "engine/renew/loss.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/introspect/survey_priv.h"
#include "engine/lock/entry.h"
#include "engine/lock/hold.h"
#include "engine/lock/lock.h"
#include "engine/session.h"

static void end_lost_hold(struct engine *eng, struct hold *h, enum loss_cause cause,
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
        for (const struct attach *a = e->attaches; a != NULL; a = a->next) {
            session_lost(a->session, lock);
        }
    }
    hold_forget(eng, h, false);
    lock_ask(eng, lock);
}

void hold_lost(struct engine *eng, struct hold *h)
{
    end_lost_hold(eng, h, LOSS_GONE, SPAN_NONE, 0);
}

void hold_expired(struct engine *eng, struct hold *h)
{
    end_lost_hold(eng, h, hold_is_fixed(h) ? LOSS_LEASE_OVER : LOSS_UNCONFIRMED,
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
