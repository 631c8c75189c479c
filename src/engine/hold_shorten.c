/* Ops in flight that may shorten a lease: until when the hold counts as held
 * meanwhile. */
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lease_shortening.h"
#include "engine/lock.h"
#include "engine/pending_request.h"
#include "engine/renew_queue.h"
#include "util/alloc.h"

/* Drops shortenings whose hold is gone and whose op is answered. */
static void drop_stale(const struct engine *eng, struct lock *lock)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->shortenings)
    {
        struct lease_shortening *shortening =
            container_of(it, struct lease_shortening, in_lock);
        struct span field = span_of(shortening->field, shortening->field_len);

        if (inflight_find(eng, shortening->op) == NULL &&
            lock_hold_of(lock, field) == NULL) {
            lease_shortening_free(shortening);
        }
    }
}

static struct lease_shortening *lease_shortening_get(struct engine *eng,
                                                     const struct hold *h)
{
    struct lease_shortening *shortening = lease_shortening_find(h);

    if (shortening == NULL) {
        drop_stale(eng, h->lock);
        shortening = xcalloc(1, sizeof(*shortening) + hold_field(h).len);
        memcpy(shortening->field, hold_field(h).ptr, hold_field(h).len);
        shortening->field_len = hold_field(h).len;
        shortening->until = UINT64_MAX;
        list_append(&h->lock->shortenings, &shortening->in_lock);
    }
    return shortening;
}

void hold_shorten_lease(struct engine *eng, struct hold *h, struct asked asked,
                        bool to_grace)
{
    struct lease_shortening *shortening = lease_shortening_get(eng, h);
    uint64_t until = lease_valid_until(asked.at, asked.lease_ms);

    list_del(&h->in_queue); /* a renewal must not overtake it */
    if (asked.op >= shortening->op) {
        shortening->op = asked.op;
        shortening->to_grace = to_grace;
    }
    if (until < shortening->until) {
        shortening->until = until; /* an earlier one may have left less */
    }
    if (shortening->until < h->until) {
        h->until = shortening->until;
        hold_schedule_renewal(eng, h);
    }
}

void hold_set_until(struct hold *h, uint64_t until)
{
    const struct lease_shortening *later = lease_shortening_find(h);

    h->until = later != NULL && later->until < until ? later->until : until;
}

void hold_shortening_failed(struct engine *eng, struct hold *h, uint64_t op_id)
{
    struct lease_shortening *shortening = lease_shortening_find(h);

    if (shortening != NULL && shortening->op == op_id) {
        lease_shortening_free(shortening);
        renew_request(eng, h);
        hold_schedule_renewal(eng, h);
    }
}

/* The op in flight of a RENEW LEASE that was sent after that one; NULL: there is none.
 */
static const struct inflight_op *call_cuts(const struct pending_request *c,
                                           uint64_t op_id)
{
    return c->in_flight != NULL && c->in_flight->exact && c->in_flight->op.key > op_id
               ? c->in_flight
               : NULL;
}

void hold_shorten_by_requests(struct engine *eng, struct entry *e, uint64_t op_id)
{
    struct hold *h = e->hold;
    struct list *it;

    LIST_FOREACH(it, &h->lock->renews)
    {
        const struct pending_request *c =
            container_of(it, struct pending_request, in_lock);
        const struct inflight_op *w = call_cuts(c, op_id);
        const struct lease_shortening *shortening = lease_shortening_find(h);

        if (w != NULL && (shortening == NULL || shortening->op < w->op.key) &&
            hold_has_one_entry(h) && lock_find_target(h->lock, &c->target) == e) {
            hold_shorten_lease(eng, h, inflight_asked(w), false);
        }
    }
}

/* Of a hold that is not known here no cut is, but the calls are. */
static bool calls_cut_since(const struct engine *eng, const struct lock *lock,
                            uint64_t op_id)
{
    struct list *it;

    LIST_FOREACH(it, &lock->renews)
    {
        const struct inflight_op *w =
            call_cuts(container_of(it, struct pending_request, in_lock), op_id);

        if (w != NULL && eng->now >= lease_valid_until(w->sent, w->lease_ms)) {
            return true;
        }
    }
    return false;
}

bool lock_shortened_since(const struct engine *eng, const struct lock *lock,
                          struct span field, uint64_t op_id)
{
    const struct lease_shortening *shortening = lease_shortening_of(lock, field);
    bool known = lock_hold_of(lock, field) != NULL;

    if (shortening != NULL && op_id < shortening->op &&
        (eng->now >= shortening->until || (shortening->to_grace && known))) {
        return true;
    }
    return !known && calls_cut_since(eng, lock, op_id);
}
