#include "core/loss.h"

#include "core/parts.h"

static void lose(struct locks *l, struct hold *h, enum loss_cause cause,
                 struct span taker, uint64_t forced_by)
{
    struct lock *lock = h->lock;
    struct span copy = effects_copy(&l->fx, taker);
    struct effect_notice *notice = say_notice(l, NOTICE_LOST, h);

    l->stats.lost++;
    notice->cause = cause;
    notice->taker = copy;
    notice->forced_by = forced_by;
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        entry_over(l, e, -1);
        for (const struct attach *a = e->attaches; a != NULL; a = a->next) {
            session_lost(a->session, lock);
        }
    }
    hold_forget(l, h, false);
    lock_ask(l, lock);
}

void hold_lost(struct locks *l, struct hold *h)
{
    lose(l, h, LOSS_GONE, SPAN_NONE, 0);
}

void hold_expired(struct locks *l, struct hold *h)
{
    lose(l, h, hold_is_fixed(h) ? LOSS_LEASE_OVER : LOSS_UNCONFIRMED, SPAN_NONE, 0);
}

void hold_lost_to(struct locks *l, struct hold *h, struct span taker)
{
    lose(l, h, LOSS_TAKEN, taker, 0);
}

void hold_lost_by_force(struct locks *l, struct hold *h, uint64_t conn)
{
    lose(l, h, LOSS_FORCED, SPAN_NONE, conn);
}
