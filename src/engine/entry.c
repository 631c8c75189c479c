/* Entries: one LOCK's share of a hold, and the connections that keep it alive. */
#include "engine/entry.h"
#include "engine/engine_priv.h"
#include "engine/mlock_member.h"

const struct transitions ENTRY_TRANSITIONS = {
    .subject = "entry",
    .states = {
        [ENTRY_HELD] = { "HELD", INTO(ENTRY_OVERDUE) | INTO(ENTRY_ENDING) },
        [ENTRY_OVERDUE] = { "OVERDUE", INTO(ENTRY_HELD) | INTO(ENTRY_ENDING) },
        [ENTRY_ENDING] = { "ENDING", INTO(ENTRY_HELD) },
    },
};

/* An answer is only for what its op has named. */
const struct transitions ENTRY_RESTORE_TRANSITIONS = {
    .subject = "restore of an entry",
    .states = {
        [ENTRY_KEPT] = { "KEPT", INTO(ENTRY_MUST_RESTORE) },
        [ENTRY_MUST_RESTORE] = { "MUST_RESTORE", INTO(ENTRY_RESTORING) | INTO(ENTRY_KEPT) },
        [ENTRY_RESTORING] = { "RESTORING", INTO(ENTRY_KEPT) | INTO(ENTRY_MUST_RESTORE) },
    },
};

void entry_set_state(struct entry *e, enum entry_state state)
{
    if (e->state != state) {
        transition_check(&ENTRY_TRANSITIONS, e->state, state);
        e->state = state;
    }
}

void entry_set_restore(struct entry *e, enum entry_restore restore)
{
    if (e->restore != restore) {
        transition_check(&ENTRY_RESTORE_TRANSITIONS, e->restore, restore);
        e->restore = restore;
    }
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

struct entry *entry_new(struct engine *eng, struct hold *h, struct acquire_spec *spec)
{
    struct entry *e = pool_alloc(&eng->pool, sizeof(*e));

    e->hold = h;
    list_init(&e->attaches);
    e->since = e->asked = h->confirmed;
    e->spec = spec_ref(spec);
    entry_set_lease(eng, e, spec->lease);
    eng->stats.entries++;
    e->next = h->entries;
    h->entries = e;
    if (spec->terms.permits != 0) {
        h->lock->permits_here += spec->terms.permits;
        eng->stats.permits += spec->terms.permits;
    }
    if (e->lease == LEASE_FIXED) {
        e->until = lease_valid_until(h->confirmed, spec->terms.lease_ms);
        if (h->owner_kind == OWNER_NAMED) {
            timer_set(eng, &e->timer, TIMER_ENTRY, e->until);
        }
    }
    return e;
}

bool entry_has_id(const struct entry *e, struct span id)
{
    return span_eq(spec_entry(e->spec), id);
}

uint32_t entry_heartbeat(const struct entry *e)
{
    return entry_is_ending(e) || e->lease != LEASE_WATCHDOG
               ? 0
               : e->spec->terms.heartbeat_ms;
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

bool entry_has_run_out(const struct engine *eng, const struct entry *e)
{
    return e->lease == LEASE_FIXED && eng->now >= e->until && entry_is_attached(e);
}

/* In the same millisecond it is asked once more, in a later one. */
bool entry_taken_since(const struct engine *eng, const struct entry *e, uint64_t sent)
{
    return e->since > sent || (e->since == sent && eng->now > sent);
}

struct attach *entry_attach_of(const struct entry *e, const struct session *s)
{
    struct attach *a = entry_first_attach(e);

    while (a != NULL && a->session != s) {
        a = attach_next(a);
    }
    return a;
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
    if (e->lease == LEASE_FIXED && e->hold->owner_kind == OWNER_NAMED) {
        timer_set(eng, &e->timer, TIMER_ENTRY, e->until);
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
void attach_drop(struct engine *eng, struct attach *a)
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

void entry_over(struct engine *eng, struct entry *e, int64_t answer)
{
    struct request *request = e->request;

    if (request != NULL) {
        e->request = NULL;
        request->entry = NULL;
        request_over(eng, request, answer);
    }
}

void entry_disown(struct engine *eng, struct entry *e)
{
    struct request *request = e->request;

    if (request != NULL) {
        e->request = NULL;
        request->entry = NULL;
        request_idle(eng, request);
    }
}

/* Removes the entry from the renewal in flight. */
static void leave_renewal(const struct entry *e)
{
    const struct hold *h = e->hold;
    struct renewal_item *item =
        h->renewal == NULL ? NULL : &h->renewal->renew.items[h->renewal_slot];

    if (item != NULL && item->checked == e) {
        item->checked = NULL;
    }
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
    leave_renewal(e);
    entry_set_retained(eng, e, false);
    entry_set_lease(eng, e, LEASE_WATCHDOG);
    eng->stats.entries--;
    if (e->spec->terms.permits != 0) {
        e->hold->lock->permits_here -= e->spec->terms.permits;
        eng->stats.permits -= e->spec->terms.permits;
    }
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    spec_unref(eng, e->spec);
    pool_free_sized(&eng->pool, e, sizeof(*e));
}
