/* Holds: one owner's grant of one name each, and when it counts as certain, uncertain
 * or over. */
#include "engine/hold.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/lease_shortening.h"
#include "engine/loan.h"
#include "engine/lock.h"
#include "engine/renew_queue.h"
#include "engine/rest.h"
#include "engine/restore_mark.h"
#include "util/histogram.h"
#include "util/pool.h"

struct hold *hold_new(struct engine *eng, struct lock *lock, enum lock_kind kind,
                      struct span field, uint64_t token)
{
    struct hold *h = pool_alloc(&eng->pool, offsetof(struct hold, field) + field.len);

    memcpy(h->field, field.ptr, field.len);
    h->field_len = (uint16_t)field.len;
    h->lock = lock;
    h->lock_kind = kind;
    h->kind = field_kind(field);
    h->token = token;
    h->began = eng->now;
    list_prepend(&lock->holds, &h->in_lock);
    list_init(&h->in_queue);
    list_append(&eng->holds, &h->in_all);
    eng->hold_count++;
    eng->stats.resting += hold_is_rest(h);
    index_add(eng, h);
    if (!heap_armed(&eng->pulse.node)) {
        timer_set(eng, &eng->pulse, TIMER_PULSE, eng->now + PULSE_MS);
    }
    return h;
}

struct entry *hold_add_entry(struct engine *eng, struct hold *h,
                             struct acquire_spec *spec)
{
    struct entry *e = hold_find_entry(h, spec_entry(spec));

    if (e != NULL) {
        return e; /* granted before, found again */
    }
    e = pool_alloc(&eng->pool, sizeof(*e));
    e->hold = h;
    list_init(&e->attaches);
    e->since = e->asked = h->confirmed;
    e->spec = spec_ref(spec);
    entry_set_lease(eng, e, spec->lease);
    eng->stats.entries++;
    e->next = h->entries;
    h->entries = e;
    if (spec->permits != 0) {
        h->lock->permits_here += spec->permits;
        eng->stats.permits += spec->permits;
    }
    if (e->lease == LEASE_FIXED) {
        e->until = lease_valid_until(h->confirmed, spec->lease_ms);
        if (h->kind == OWNER_NAMED) {
            timer_set(eng, &e->timer, TIMER_ENTRY, e->until);
        }
    }
    return e;
}

void hold_confirm(struct engine *eng, struct hold *h, struct asked asked)
{
    uint64_t until = lease_valid_until(asked.at, asked.lease_ms);
    struct lease_shortening *shortening = lease_shortening_find(h);

    if (shortening != NULL && asked.op >= shortening->op) {
        lease_shortening_free(
            shortening); /* it has run, and this confirms what came of it */
    } else if (shortening != NULL && until > shortening->until) {
        until = shortening->until;
    }
    if (asked.at > h->confirmed) {
        h->confirmed = asked.at;
    }
    if (until > h->until) {
        h->until = until;
        h->looked = false;
    }
    /* An answer that comes too late to make the hold certain leaves it uncertain. */
    if (h->state == HOLD_UNCERTAIN && eng->now < h->until) {
        hold_set_state(eng, h, HOLD_HELD);
        /* A daemon that goes leaves it at what it said: come back with RENEW. */
        if (!eng->stopping && !hold_is_rest(h)) {
            emit_notice(eng, NOTICE_CERTAIN, h);
        }
    }
    hold_schedule_renewal(eng, h);
}

void hold_set_uncertain(struct engine *eng, struct hold *h)
{
    if (h->state != HOLD_HELD) {
        return;
    }
    hold_set_state(eng, h, HOLD_UNCERTAIN);
    eng->hold_became_uncertain = true;
    if (!hold_is_rest(h)) { /* which is nobody's */
        eng->stats.doubts++;
        emit_notice(eng, NOTICE_UNCERTAIN, h);
    }
    hold_schedule_renewal(eng, h);
}

void hold_freed(struct engine *eng, struct hold *h)
{
    if (h->exact_ms == 0) { /* else it ends soon, and is not to be prolonged */
        h->freed = true;
        hold_schedule_renewal(eng, h);
    }
}

static void hold_free(struct engine *eng, struct hold *h)
{
    struct lock *lock = h->lock;

    while (h->entries != NULL) {
        entry_free(eng, h->entries);
    }
    if (h->renewal != NULL) {
        h->renewal->renewing[h->renewal_slot].hold = NULL;
    }
    restore_forget(eng, h);
    if (hold_loan(h) != NULL) {
        loan_drop(eng, lock);
    }
    hold_set_state(eng, h, HOLD_ENDED);
    if (!hold_is_rest(h)) {
        histogram_add(&eng->timings.hold, (eng->now - h->began) * 1000);
    }
    eng->stats.resting -= hold_is_rest(h);
    timer_stop(eng, &h->timer);
    index_remove(h);
    list_del(&h->in_lock);
    list_del(&h->in_queue);
    list_del(&h->in_all);
    eng->hold_count--;
    last_answer_hold_gone(eng, lock);
    lock_touch(eng, lock);
    pool_free_sized(&eng->pool, h, offsetof(struct hold, field) + h->field_len);
}

void hold_forget(struct engine *eng, struct hold *h, bool over)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (over) {
            entry_over(eng, e, -1);
        }
    }
    hold_free(eng, h);
}

void holds_set_uncertain(struct engine *eng)
{
    struct list *it;

    LIST_FOREACH(it, &eng->holds)
    {
        struct hold *h = container_of(it, struct hold, in_all);

        hold_set_uncertain(eng, h);
        renew_request(eng, h);
    }
}
