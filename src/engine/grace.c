#include "engine/grace.h"
#include "engine/engine_priv.h"

static void set_timer(struct engine *eng, struct entry *e, uint64_t at)
{
    timer_set(eng, &e->timer, TIMER_ENTRY, at);
}

void entry_retain(struct engine *eng, struct entry *e)
{
    entry_set_retained(eng, e, true);
    set_timer(eng, e, eng->now + e->spec->terms.keep_ms);
    hold_schedule_renewal(eng, e->hold);
}

/* Begins the grace of a watchdogged entry whose last connection closed. */
static void begin_grace(struct engine *eng, struct entry *e)
{
    struct hold *h = e->hold;
    bool has_grace = (e->spec->terms.has & OPT_GRACE) != 0;
    uint64_t grace = e->spec->terms.grace_ms;

    if (has_grace && grace == 0 && entry_is_being_renewed(e)) {
        return; /* it is looked at again when that is answered */
    }
    if (has_grace && grace == 0) {
        pending_release_end_entry(eng, e);
    } else if (has_grace) {
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
    if (e->state == ENTRY_OVERDUE && !entry_is_being_renewed(e)) {
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

void entry_detach(struct engine *eng, struct attach *a)
{
    struct entry *e = a->entry;

    attach_drop(eng, a);
    e->was_told = true;
    entry_left(eng, e);
}

void entry_take_back(struct engine *eng, struct attach *a, bool keep)
{
    struct entry *e = a->entry;

    attach_free(eng, a);
    if (entry_is_attached(e) || entry_is_ending(e)) {
        return;
    }
    if (e->was_told) {
        entry_left(eng, e); /* its client knows of it, by another connection */
    } else if (keep && e->spec->terms.keep_ms > 0) {
        entry_retain(eng, e);
    } else {
        entry_disown(eng, e);
        pending_release_end_entry(eng, e);
    }
}

void entry_on_timer(struct engine *eng, struct entry *e)
{
    if (entry_is_ending(e)) {
        return;
    }
    if (entry_is_being_renewed(e)) {
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
