/* What falls due for a hold: a check, a renewal, doubt, or its end. */
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/loss.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/restore_mark.h"
#include "engine/renew/loss_check.h"

/* Whether this daemon took the hold back because its client's time was over. */
static bool ran_out(const struct engine *eng, const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->release != NULL && release_is_if_keeper(e->release) &&
            entry_has_run_out(eng, e)) {
            return true;
        }
    }
    return false;
}

void hold_on_timer(struct engine *eng, struct hold *h)
{
    if (eng->now >= h->until && loss_check_renewed_until(eng, h) > eng->now) {
        h->until = loss_check_renewed_until(eng, h); /* its client will hear of it */
    }
    if (eng->now >= h->until) {
        if (!hold_is_ending(h) || ran_out(eng, h)) {
            hold_expired(eng, h);
        } else {
            emit_if_heard(eng, NOTICE_RELEASED,
                          h); /* its owner had given it up already */
            hold_forget(eng, h, true);
        }
        return;
    }
    if (h->state == HOLD_RESTORING && restore_is_idle(h) && eng->now >= h->not_before) {
        restore_again(eng, h);
    }
    if (h->due != UINT64_MAX) {
        if (eng->now >= h->not_before) {
            renew_request(eng, h);
            h->looked = eng->now + LOOK_MS >= h->until;
            h->freed = h->freed && list_empty(&h->in_renew_queue);
        }
        if (eng->now >= h->due + eng->cfg.redis_timeout_ms && hold_lease(eng, h) != 0) {
            hold_set_uncertain(eng, h);
        }
    }
    hold_schedule_renewal(eng, h);
}
