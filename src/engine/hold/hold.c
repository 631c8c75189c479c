/* Holds: one owner's grant of one name each, and when it counts as certain, uncertain
 * or over. */
#include "engine/hold/hold.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/lease_shortening.h"
#include "engine/hold/loss.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/renew_queue.h"
#include "engine/hold/restore_mark.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_mode.h"
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
    h->began = h->fence_at = eng->now;
    list_prepend(&lock->holds, &h->in_lock);
    list_init(&h->in_renew_queue);
    list_append(&eng->holds, &h->in_all);
    eng->hold_count++;
    index_add(h);
    if (!heap_armed(&eng->pulse.node)) {
        timer_set(eng, &eng->pulse, TIMER_PULSE, eng->now + PULSE_MS);
    }
    return h;
}

struct entry *hold_find_entry(const struct hold *h, struct span id)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (h->kind != OWNER_NAMED || span_eq(spec_entry(e->spec), id)) {
            return e;
        }
    }
    return NULL;
}

bool hold_has_one_entry(const struct hold *h)
{
    return h->entries != NULL && h->entries->next == NULL;
}

static struct entry *find_target(const struct hold *h, const struct target *t)
{
    bool named = h->kind == OWNER_NAMED;
    bool fits = false;

    if ((t->token != 0 && h->token != t->token) ||
        (lock_mode_is_rw(t->lock_kind) && h->lock_kind != t->lock_kind)) {
        return NULL;
    }
    switch (t->kind) {
    case TARGET_FIELD:
        fits = !named && span_eq(hold_field(h), t->field);
        break;
    case TARGET_REQUEST:
        fits = h->kind == OWNER_ANONYMOUS; /* and its entry, below */
        break;
    case TARGET_TOKEN:
        fits = !named;
        break;
    case TARGET_ID:
        fits = named || span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_ENTRY:
        fits = named && span_eq(field_owner(hold_field(h)), field_owner(t->field));
        break;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    if (fits && t->kind == TARGET_REQUEST) {
        struct entry *e = h->entries;

        return span_eq(spec_entry(e->spec), t->entry) ? e : NULL;
    }
    return fits ? hold_find_entry(h, t->entry) : NULL;
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
    e->since = e->asked = h->confirmed;
    e->spec = spec_ref(spec);
    entry_set_lease(eng, e, spec->lease);
    eng->stats.entries++;
    e->next = h->entries;
    h->entries = e;
    if (e->lease == LEASE_FIXED) {
        e->until = lease_valid_until(h->confirmed, spec->lease_ms);
        if (h->kind == OWNER_NAMED) {
            timer_set(eng, &e->timer, TIMER_ENTRY, e->until);
        }
    }
    return e;
}

struct entry *lock_find_target(const struct lock *lock, const struct target *t)
{
    struct span owner = field_owner(t->field);
    struct hold *maybe[2] = { NULL, NULL };
    struct entry *e = NULL;
    struct list *it;

    switch (t->kind) {
    case TARGET_FIELD:
        maybe[0] = lock_hold_of(lock, t->field);
        break;
    case TARGET_TOKEN:
        maybe[0] = lock_hold_with(lock, t->token);
        break;
    case TARGET_REQUEST:
        maybe[0] = lock->rw ? lock->writer : lock_hold(lock);
        break;
    case TARGET_ENTRY:
        maybe[0] = lock_held_by(lock, owner, KIND_WRITE);
        maybe[1] = lock_held_by(lock, owner, KIND_READ);
        break;
    case TARGET_ID:
        /* An ID of a named owner, who is not said. */
        LIST_FOREACH(it, &lock->holds)
        {
            e = e != NULL ? e : find_target(container_of(it, struct hold, in_lock), t);
        }
        return e;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    for (size_t i = 0; i < 2 && e == NULL; i++) {
        e = maybe[i] == NULL ? NULL : find_target(maybe[i], t);
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
        if (!eng->stopping) {
            emit_notice(eng, NOTICE_CERTAIN, h);
        }
    }
    hold_schedule_renewal(eng, h);
}

bool hold_is_ending(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e)) {
            return false;
        }
    }
    return true;
}

/* The lease that the watchdog is to give the hold, as an entry is endless, or a
 * connection keeps one without a fixed lease; or, if `kept_too`, KEEP does. 0: none. */
static uint64_t wanted_lease(const struct engine *eng, const struct hold *h,
                             bool kept_too)
{
    uint64_t lease_ms = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        bool kept = (kept_too && e->retained) || e->attaches != NULL;

        if (entry_is_ending(e) || e->lease == LEASE_FIXED) {
            continue;
        }
        if (e->lease == LEASE_ENDLESS) {
            return eng->cfg.endless_lease_ms;
        }
        lease_ms = kept ? eng->cfg.watchdog_ms : lease_ms;
    }
    return lease_ms;
}

uint64_t hold_lease(const struct engine *eng, const struct hold *h)
{
    uint64_t wanted = wanted_lease(eng, h, true);
    uint64_t until = 0;

    if (hold_is_ending(h)) {
        return 0;
    }
    if (h->exact_ms != 0) {
        return h->exact_ms;
    }
    if (wanted != 0) {
        return wanted;
    }
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->lease == LEASE_FIXED && !entry_is_ending(e) && e->until > until) {
            until = e->until;
        }
    }
    return until > eng->now ? until - eng->now : 0;
}

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

    *ret_looks = false;
    if (h->exact_ms == 0 && wanted_lease(eng, h, true) == 0) {
        uint64_t look = look_at(h);

        *ret_looks = hold_lease(eng, h) == 0 || look < due;
        return *ret_looks ? look : due;
    }
    if (due >= h->until && h->until > h->confirmed &&
        wanted_lease(eng, h, false) != 0) {
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
    if (h->freed && h->renewal == NULL && list_empty(&h->in_renew_queue) &&
        soon < due) {
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
            list_empty(&h->in_renew_queue) && h->due < at) {
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

void hold_set_uncertain(struct engine *eng, struct hold *h)
{
    if (h->state != HOLD_HELD) {
        return;
    }
    hold_set_state(eng, h, HOLD_UNCERTAIN);
    eng->stats.doubts++;
    eng->hold_became_uncertain = true;
    emit_notice(eng, NOTICE_UNCERTAIN, h);
    hold_schedule_renewal(eng, h);
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

void hold_freed(struct engine *eng, struct hold *h)
{
    if (h->exact_ms == 0) { /* else it ends soon, and is not to be prolonged */
        h->freed = true;
        hold_schedule_renewal(eng, h);
    }
}

void hold_on_timer(struct engine *eng, struct hold *h)
{
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
    hold_set_state(eng, h, HOLD_ENDED);
    histogram_add(&eng->timings.hold, (eng->now - h->began) * 1000);
    timer_stop(eng, &h->timer);
    index_remove(h);
    list_del(&h->in_lock);
    list_del(&h->in_renew_queue);
    list_del(&h->in_all);
    eng->hold_count--;
    last_answer_hold_gone(eng, lock);
    lock_touch(eng, lock);
    pool_free(&eng->pool, h);
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

enum lease_kind hold_lease_kind(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->lease != LEASE_FIXED) {
            return e->lease;
        }
    }
    return LEASE_FIXED;
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
