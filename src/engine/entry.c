/* Entries: one LOCK's share of a hold, and the connections that keep it alive. */
#include "engine/entry.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "engine/mlock.h"
#include "engine/op.h"
#include "engine/pending_release.h"
#include "engine/pending_request.h"
#include "engine/request.h"
#include "engine/session.h"
#include "util/pool.h"

static void set_timer(struct engine *eng, struct entry *e, uint64_t at)
{
    timer_set(eng, &e->timer, TIMER_ENTRY, at);
}

struct attach *entry_attach_of(const struct entry *e, const struct session *s)
{
    struct attach *a = entry_first_attach(e);

    while (a != NULL && a->session != s) {
        a = attach_next(a);
    }
    return a;
}

bool entry_is_fresh(const struct engine *eng, const struct entry *e)
{
    bool fixed = e->spec->lease == LEASE_FIXED;
    uint64_t lease_ms = spec_lease(eng, e->spec);
    uint64_t until = fixed ? e->until : e->hold->until;
    uint64_t whole = lease_valid_until(eng->now, lease_ms); /* given now */
    uint64_t gone_ms = whole > until ? whole - until : 0;

    /* The last op that confirmed the hold may only have looked at it, and another one
     * may have cut its lease. */
    if (!fixed && eng->now - e->hold->confirmed > gone_ms) {
        gone_ms = eng->now - e->hold->confirmed;
    }
    return hold_is_certain(eng, e->hold) && gone_ms * 2 <= lease_ms;
}

uint32_t entry_heartbeat(const struct entry *e)
{
    return entry_is_ending(e) || e->lease != LEASE_WATCHDOG ? 0 : e->spec->heartbeat_ms;
}

struct attach *entry_attach(struct engine *eng, struct entry *e, struct session *s)
{
    struct attach *a = entry_attach_of(e, s);

    if (a == NULL) {
        a = e->own_attach.session == NULL ? &e->own_attach
                                          : pool_alloc(&eng->pool, sizeof(*a));
        a->entry = e;
        a->session = s;
        list_append(&e->attaches, &a->in_entry);
        list_prepend(&s->attaches, &a->in_session); /* the newest is looked for most */
        e->hold->attached++;
    }
    a->grant = ++eng->next_grant;
    /* Grace and KEEP are over: somebody is there. */
    entry_set_state(e, ENTRY_HELD);
    e->missing = false;
    entry_set_retained(eng, e, false);
    e->hold->exact_ms = 0;
    if (e->lease == LEASE_FIXED && e->hold->kind == OWNER_NAMED) {
        set_timer(eng, e, e->until);
    } else {
        timer_stop(eng, &e->timer);
    }
    /* Connections that keep the entry already were let off if it had a fixed lease. */
    for (const struct attach *each = entry_first_attach(e);
         each != NULL && entry_heartbeat(e) != 0; each = attach_next(each)) {
        emit_heartbeat(eng, each);
    }
    return a;
}

/* Leaves its session to the caller, who may be about to free that. */
static void attach_drop(struct engine *eng, struct attach *a)
{
    list_del(&a->in_session);
    list_del(&a->in_entry);
    a->entry->hold->attached--;
    a->session = NULL;
    if (a != &a->entry->own_attach) {
        pool_free_sized(&eng->pool, a, sizeof(*a));
    }
}

void attach_free(struct engine *eng, struct attach *a)
{
    struct session *s = a->session;

    attach_drop(eng, a);
    session_idle(eng, s);
}

/* In the same millisecond it is asked once more, in a later one. */
bool entry_taken_since(const struct engine *eng, const struct entry *e, uint64_t sent)
{
    return e->since > sent || (e->since == sent && eng->now > sent);
}

void entry_set_retained(struct engine *eng, struct entry *e, bool kept)
{
    eng->stats.retained_entries += (uint64_t)kept - (uint64_t)e->retained;
    e->retained = kept;
}

void entry_set_lease(struct engine *eng, struct entry *e, enum lease_kind lease)
{
    eng->stats.fixed_entries +=
        (uint64_t)(lease == LEASE_FIXED) - (uint64_t)(e->lease == LEASE_FIXED);
    e->lease = lease;
}

void entry_retain(struct engine *eng, struct entry *e)
{
    entry_set_retained(eng, e, true);
    set_timer(eng, e, eng->now + e->spec->keep_ms);
    hold_schedule_renewal(eng, e->hold);
}

/* Begins the grace of a watchdogged entry whose last connection closed. */
static void begin_grace(struct engine *eng, struct entry *e)
{
    struct hold *h = e->hold;
    uint64_t grace = e->spec->grace_ms < 0 ? 0 : (uint64_t)e->spec->grace_ms;

    if (e->spec->grace_ms == 0 && pending_request_renews(e)) {
        return; /* it is looked at again when that is answered */
    }
    if (e->spec->grace_ms == 0) {
        pending_release_end_entry(eng, e);
    } else if (e->spec->grace_ms > 0) {
        set_timer(eng, e, eng->now + grace);
        if (h->attached == 0 && hold_has_one_entry(h)) {
            h->exact_ms = grace + GRACE_SLACK_MS + grace / 50;
            renew_request(eng, h);
        }
    } else {
        /* The entry ends with its own lease, even if others keep the hold alive. */
        uint64_t end = eng->now + eng->cfg.watchdog_ms;

        set_timer(eng, e, end < h->until ? end : h->until);
    }
    hold_schedule_renewal(eng, h);
}

void entry_left(struct engine *eng, struct entry *e)
{
    if (e->state == ENTRY_OVERDUE && !pending_request_renews(e)) {
        entry_set_state(e, ENTRY_HELD);
        entry_on_timer(eng, e);
        return;
    }
    if (entry_is_attached(e) || entry_is_ending(e) || heap_armed(&e->timer.node)) {
        return;
    }
    if (e->retained) {
        entry_retain(eng, e);
    } else if (e->lease == LEASE_WATCHDOG && !eng->stopping) {
        begin_grace(eng, e);
    }
}

bool entry_has_run_out(const struct engine *eng, const struct entry *e)
{
    return e->lease == LEASE_FIXED && eng->now >= e->until && entry_is_attached(e);
}

void entry_detach(struct engine *eng, struct attach *a)
{
    struct entry *e = a->entry;

    attach_drop(eng, a);
    e->was_told = true;
    entry_left(eng, e);
}

void entry_untold(struct engine *eng, struct attach *a, bool keep)
{
    struct entry *e = a->entry;

    attach_free(eng, a);
    if (entry_is_attached(e) || entry_is_ending(e)) {
        return;
    }
    if (e->was_told) {
        entry_left(eng, e); /* its client knows of it, by another connection */
    } else if (keep && e->spec->keep_ms > 0) {
        entry_retain(eng, e);
    } else {
        entry_disown(eng, e);
        pending_release_end_entry(eng, e);
    }
}

void entry_over(struct engine *eng, struct entry *e, int64_t answer)
{
    struct request *r = e->request;

    if (r != NULL) {
        e->request = NULL;
        r->entry = NULL;
        request_over(eng, r, answer);
    }
}

void entry_disown(struct engine *eng, struct entry *e)
{
    struct request *r = e->request;

    if (r != NULL) {
        e->request = NULL;
        r->entry = NULL;
        request_idle(eng, r);
    }
}

void entry_on_timer(struct engine *eng, struct entry *e)
{
    if (entry_is_ending(e)) {
        return;
    }
    if (pending_request_renews(e)) {
        /* A client that came in time must not find the entry released. If its request
         * fails, grace or KEEP begin anew; a fixed lease has neither. */
        if (e->lease == LEASE_FIXED) {
            entry_set_state(e, ENTRY_OVERDUE);
        }
        return;
    }
    /* The only entry of a hold ends with the lease by itself, in Redis and here. */
    if (!e->retained && hold_has_one_entry(e->hold) && eng->now >= e->hold->until) {
        return;
    }
    if (e->retained) {
        entry_disown(eng,
                     e); /* nobody ever learnt of the grant: the ID may start anew */
    }
    pending_release_end_entry(eng, e);
}

void entry_free(struct engine *eng, struct entry *e)
{
    struct entry **at = &e->hold->entries;
    struct attach *a;

    while ((a = entry_first_attach(e)) != NULL) {
        attach_free(eng, a);
    }
    if (e->member != NULL) {
        mlock_on_entry_gone(eng, e);
    }
    entry_disown(eng, e);
    if (e->release != NULL) {
        e->release->local = NULL;
    }
    timer_stop(eng, &e->timer);
    renew_entry_gone(e);
    entry_set_retained(eng, e, false);
    entry_set_lease(eng, e, LEASE_WATCHDOG);
    eng->stats.entries--;
    if (e->spec->permits != 0) {
        e->hold->lock->permits_here -= e->spec->permits;
        eng->stats.permits -= e->spec->permits;
    }
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    spec_unref(eng, e->spec);
    pool_free_sized(&eng->pool, e, sizeof(*e));
}
