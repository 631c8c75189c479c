/* What falls due for a hold: a check, a renewal, doubt, or its end. */
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/inflight_op.h"
#include "engine/lease_shortening.h"
#include "engine/lock.h"
#include "engine/loss.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "engine/rest.h"
#include "engine/restore_mark.h"

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

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

/* Until when the hold lasts by an answer to RENEW that is here, and waits for the check
 * of another hold; 0: there is none. */
static uint64_t renewed_until(const struct engine *eng, const struct hold *h)
{
    uint64_t until = 0;
    struct list *it;

    LIST_FOREACH(it, &h->lock->renews)
    {
        const struct inflight_op *w =
            container_of(it, struct pending_request, in_lock)->in_flight;

        if (w != NULL && w->renewed_token == h->token && !w->cut &&
            !asked_before(eng, h->lock, w->op.key) &&
            !lock_shortened_since(eng, h->lock, hold_field(h), w->op.key)) {
            until = later_of(until, lease_valid_until(w->sent, w->lease_ms));
        }
    }
    return until;
}

void hold_on_timer(struct engine *eng, struct hold *h)
{
    if (eng->now >= h->until) {
        h->until = later_of(h->until, renewed_until(eng, h));
    }
    if (eng->now >= h->until) {
        if (!hold_is_ending(h) || ran_out(eng, h)) {
            hold_expired(eng, h);
        } else {
            emit_if_heard(eng, NOTICE_RELEASED,
                          h); /* its owner had given it up already */
            hold_forget_unanswered(eng, h, true);
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
            h->freed = h->freed && list_empty(&h->in_queue);
        }
        if (eng->now >= h->due + eng->cfg.redis_timeout_ms && hold_lease(eng, h) != 0) {
            hold_set_uncertain(eng, h);
        }
    }
    hold_schedule_renewal(eng, h);
}
