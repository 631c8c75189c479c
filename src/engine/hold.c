/* Holds: an owner's grant of a name each, from the grant to the end: when it counts as
 * certain, uncertain or over, when it is renewed, and what it leaves. */
#include "engine/hold.h"
#include "engine/engine_priv.h"

#include "util/buf.h"
#include "util/histogram.h"

/* --- states ----------------------------------------------------------------------- */

const struct transitions HOLD_TRANSITIONS = {
    .subject = "hold",
    .states = {
        [HOLD_HELD] = { "HELD", INTO(HOLD_UNCERTAIN) | INTO(HOLD_ENDED) },
        [HOLD_UNCERTAIN] = { "UNCERTAIN", INTO(HOLD_HELD) | INTO(HOLD_RESTORING) | INTO(HOLD_ENDED) },
        [HOLD_RESTORING] = { "RESTORING", INTO(HOLD_UNCERTAIN) | INTO(HOLD_ENDED) },
        [HOLD_ENDED] = { "ENDED", 0 },
    },
};

static bool is_in_doubt(enum hold_state state)
{
    return state == HOLD_UNCERTAIN || state == HOLD_RESTORING;
}

void hold_set_state(struct engine *eng, struct hold *h, enum hold_state state)
{
    int restoring = (state == HOLD_RESTORING) - (h->state == HOLD_RESTORING);
    int in_doubt = is_in_doubt(state) - is_in_doubt(h->state);

    transition_check(&HOLD_TRANSITIONS, h->state, state);
    eng->stats.uncertain += (uint64_t)in_doubt;
    eng->stats.restoring += (uint64_t)restoring;
    h->lock->needs_restore += (uint32_t)restoring;
    eng->put_back_count += h->is_put_back ? (size_t)restoring : 0;
    h->state = state;
}

void hold_set_put_back(struct engine *eng, struct hold *h, bool is_put_back)
{
    if (h->state == HOLD_RESTORING) {
        eng->put_back_count += (size_t)is_put_back - (size_t)h->is_put_back;
    }
    h->is_put_back = is_put_back;
}

/* --- what is known of it ---------------------------------------------------------- */

struct entry *hold_find_entry(const struct hold *h, struct span id)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (h->owner_kind != OWNER_NAMED || entry_has_id(e, id)) {
            return e;
        }
    }
    return NULL;
}

bool hold_has_one_entry(const struct hold *h)
{
    return h->entries != NULL && h->entries->next == NULL;
}

/* An owner that enters once more need not repeat it. */
struct span hold_data(const struct hold *h)
{
    struct span data = SPAN_NONE;

    for (const struct entry *e = h->entries; e != NULL && data.len == 0; e = e->next) {
        data = e->spec->terms.data;
    }
    return data;
}

uint32_t hold_permits(const struct hold *h)
{
    return h->entries == NULL ? 0 : h->entries->spec->terms.permits;
}

uint64_t hold_cost(const struct hold *h)
{
    size_t entries = 0;

    /* Of a reader each entry has a key. */
    for (const struct entry *e = h->entries;
         h->lock_kind == KIND_READ && e != NULL && entries < OP_COST_MAX; e = e->next) {
        entries++;
    }
    return op_cost(hold_permits(h), entries, lock_name(h->lock).len + h->field_len);
}

uint64_t hold_atleast_until(const struct hold *h)
{
    const struct entry *e = h->entries; /* no named owner's: it has no other */

    if (hold_is_rest(h)) {
        return h->until;
    }
    return e == NULL || e->spec->terms.atleast_ms == 0
               ? 0
               : h->began + e->spec->terms.atleast_ms;
}

uint64_t hold_atleast_left(const struct engine *eng, const struct hold *h)
{
    uint64_t until = hold_atleast_until(h);

    return until > eng->now ? until - eng->now : 0;
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

static uint64_t hold_wanted_lease(const struct engine *eng, const struct hold *h,
                                  bool kept_too)
{
    uint64_t lease_ms = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        bool kept = (kept_too && e->retained) || entry_is_attached(e);

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
    uint64_t wanted = hold_wanted_lease(eng, h, true);
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

enum lease_kind hold_lease_kind(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->lease != LEASE_FIXED) {
            return e->lease;
        }
    }
    return LEASE_FIXED;
}

static struct entry *find_target(const struct hold *h, const struct target *target)
{
    bool named = h->owner_kind == OWNER_NAMED;
    bool rests = hold_is_rest(h); /* the hold with that token has ended */
    bool fits = false;

    if ((target->token != 0 && h->token != target->token) ||
        (lock_kind_tells_class(target->lock_kind) &&
         h->lock_kind != target->lock_kind)) {
        return NULL;
    }
    switch (target->kind) {
    case TARGET_FIELD:
        fits = !named && span_eq(hold_field(h), target->field);
        break;
    case TARGET_REQUEST:
        fits = h->owner_kind == OWNER_ANONYMOUS; /* and its entry, below */
        break;
    case TARGET_TOKEN:
        fits = !named && !rests;
        break;
    case TARGET_ID:
        fits = named || span_eq(field_owner(hold_field(h)), field_owner(target->field));
        break;
    case TARGET_ENTRY:
        fits = named && span_eq(field_owner(hold_field(h)), field_owner(target->field));
        break;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    if (fits && target->kind == TARGET_REQUEST) {
        struct entry *e = h->entries;

        return entry_has_id(e, target->entry) ? e : NULL;
    }
    return fits ? hold_find_entry(h, target->entry) : NULL;
}

struct entry *lock_find_target(const struct lock *lock, const struct target *target)
{
    struct span owner = field_owner(target->field);
    struct hold *maybe[2] = { NULL, NULL };
    struct entry *e = NULL;
    struct hold *h;

    switch (target->kind) {
    case TARGET_FIELD:
        maybe[0] = lock_hold_of(lock, target->field);
        break;
    case TARGET_TOKEN:
        maybe[0] = lock_hold_with(lock, target->token);
        break;
    case TARGET_REQUEST:
        maybe[0] = lock->lock_class == CLASS_RW ? lock->writer : lock_hold(lock);
        break;
    case TARGET_ENTRY:
        maybe[0] = lock_held_by(lock, owner, KIND_WRITE);
        maybe[1] = lock_held_by(lock, owner, KIND_READ);
        break;
    case TARGET_ID:
        /* An ID of a named owner, who is not said. */
        LIST_EACH(h, &lock->holds, in_lock) {
            e = e != NULL ? e : find_target(h, target);
        }
        return e;
    case TARGET_OWNER:
    case TARGET_VALUE:
    case TARGET_ANY:
        break;
    }
    for (size_t i = 0; i < 2 && e == NULL; i++) {
        e = maybe[i] == NULL ? NULL : find_target(maybe[i], target);
    }
    return e;
}

struct entry *entry_of_request(const struct pending_request *c)
{
    struct entry *e = lock_find_target(c->lock, &c->target);

    return e == NULL || entry_is_ending(e) ? NULL : e;
}

bool entry_is_being_renewed(const struct entry *e)
{
    struct pending_request *c;

    LIST_EACH(c, &e->hold->lock->renews, in_lock) {
        if (entry_of_request(c) == e) {
            return true;
        }
    }
    return false;
}

/* --- leases that are being shortened ---------------------------------------------- */

static struct lease_shortening *lease_shortening_of(const struct lock *lock,
                                                    struct span field)
{
    struct lease_shortening *shortening;

    LIST_EACH(shortening, &lock->shortenings, in_lock) {
        if (span_eq(span_of(shortening->field, shortening->field_len), field)) {
            return shortening;
        }
    }
    return NULL;
}

static struct lease_shortening *lease_shortening_find(const struct hold *h)
{
    return lease_shortening_of(h->lock, hold_field(h));
}

static void lease_shortening_free(struct lease_shortening *shortening)
{
    list_del(&shortening->in_lock);
    free(shortening);
}

static bool hold_is_being_shortened(const struct hold *h)
{
    const struct lease_shortening *shortening = lease_shortening_find(h);

    return shortening != NULL && !shortening->to_grace;
}

/* --- watched holds ---------------------------------------------------------------- */

static const struct transitions WATCH_TRANSITIONS = {
    .subject = "watch of a hold",
    .states = {
        [WATCH_YOUNG] = { "young", INTO(WATCH_OFF) | INTO(WATCH_ASKED) },
        [WATCH_OFF] = { "off", INTO(WATCH_ASKED) },
        [WATCH_ASKED] = { "asked",
                          INTO(WATCH_OFF) | INTO(WATCH_ON) | INTO(WATCH_LOOKING) },
        [WATCH_ON] = { "on", INTO(WATCH_OFF) | INTO(WATCH_ASKED) | INTO(WATCH_DOUBTED) |
                                 INTO(WATCH_LOOKING) | INTO(WATCH_PROBING) },
        [WATCH_DOUBTED] = { "doubted", INTO(WATCH_OFF) | INTO(WATCH_ASKED) |
                                 INTO(WATCH_LOOKING) | INTO(WATCH_PROBING) },
        [WATCH_LOOKING] = { "looking", INTO(WATCH_OFF) },
        [WATCH_PROBING] = { "probing", INTO(WATCH_OFF) },
    },
};

static const struct transitions PROBE_TRANSITIONS = {
    .subject = "probe of watched holds",
    .states = {
        [WATCH_PROBE_IDLE] = { "idle", INTO(WATCH_PROBE_OPEN) },
        [WATCH_PROBE_OPEN] = { "open", INTO(WATCH_PROBE_AGAIN) | INTO(WATCH_PROBE_IDLE) },
        [WATCH_PROBE_AGAIN] = { "again", INTO(WATCH_PROBE_OPEN) | INTO(WATCH_PROBE_IDLE) },
    },
};

static void set_probe(struct engine *eng, enum watch_probe state)
{
    if (eng->watch_probe.state != state) {
        transition_check(&PROBE_TRANSITIONS, eng->watch_probe.state, state);
        eng->watch_probe.state = state;
    }
}

static void count_watch(struct engine *eng, enum hold_watch watch, uint64_t by)
{
    eng->watched += watch == WATCH_ON ? by : 0;
    eng->watch_asked += watch == WATCH_ASKED ? by : 0;
    eng->watch_probe.count += watch == WATCH_PROBING ? by : 0;
}

static void set_watch(struct engine *eng, struct hold *h, enum hold_watch watch)
{
    if (h->watch != watch) {
        transition_check(&WATCH_TRANSITIONS, h->watch, watch);
        count_watch(eng, watch, 1);
        count_watch(eng, h->watch, UINT64_MAX); /* less one */
        h->watch = watch;
    }
}

/* The key of a shared lock changes with each of its holders, a loan's with each window.
 */
static bool is_watchable(const struct engine *eng, const struct hold *h)
{
    return eng->watch_limit > 0 && !lock_kind_is_shared(h->lock_kind) &&
           !hold_is_rest(h) && hold_loan(h) == NULL;
}

static bool is_old_enough(const struct engine *eng, const struct hold *h)
{
    return eng->now >= h->began + WATCH_AGE_MS;
}

/* --- the next renewal ------------------------------------------------------------- */

uint64_t hold_renewal_lease(const struct engine *eng, const struct hold *h)
{
    uint64_t lease_ms = hold_lease(eng, h);

    if (lease_ms == 0 && (!hold_is_ending(h) || hold_loan(h) != NULL)) {
        return CHECK_LEASE_MS;
    }
    return lease_ms;
}

void renew_request(struct engine *eng, struct hold *h)
{
    if (h->renewal == NULL && h->state != HOLD_RESTORING &&
        !hold_is_being_shortened(h) && list_empty(&h->in_queue) &&
        hold_renewal_lease(eng, h) != 0) {
        renew_queue_add(eng, h);
    }
}

static bool restore_is_idle(const struct hold *h)
{
    return h->restoring == NULL && list_empty(&h->in_queue);
}

void restore_again(struct engine *eng, struct hold *h)
{
    list_append(&eng->restores, &h->in_queue);
}

static uint64_t hold_renew_at(const struct engine *eng, const struct hold *h)
{
    /* A third of the lease, or what is left of a short one. */
    uint64_t ahead = h->due > h->confirmed ? h->due - h->confirmed : 0;
    uint64_t third =
        eng->cfg.watchdog_ms / 3 < ahead ? eng->cfg.watchdog_ms / 3 : ahead;
    uint64_t grain = third / RENEW_GROUP_PARTS < RENEW_SLOT_MS ? 1 : RENEW_SLOT_MS;
    uint64_t early;

    if (eng->group_of != NULL && third / RENEW_GROUP_PARTS > grain) {
        /* All of a group at moments of its own, or each would have its own script. */
        grain = third / RENEW_GROUP_PARTS;
        early = h->lock->group * grain / eng->group_count;
        return (h->due + early) / grain * grain - early;
    }
    /* By a bit that differs, so that grants of one moment spread. */
    early = h->token % (third / 5 + 1);
    return (h->due - early) / grain * grain;
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

    *ret_looks = hold_loan(h) != NULL; /* then and no sooner */
    if (*ret_looks) {
        return hold_settle_at(eng, h);
    }
    if (h->exact_ms == 0 && hold_wanted_lease(eng, h, true) == 0) {
        uint64_t look = look_at(h);

        *ret_looks = hold_lease(eng, h) == 0 || look < due;
        return *ret_looks ? look : due;
    }
    if (due >= h->until && h->until > h->confirmed &&
        hold_wanted_lease(eng, h, false) != 0) {
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
    if (h->freed && h->renewal == NULL && list_empty(&h->in_queue) && soon < due) {
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
            list_empty(&h->in_queue) && h->due < at) {
            at = looks ? h->due : hold_renew_at(eng, h);
            at = at < h->not_before ? h->not_before : at;
            at = at > h->until ? h->until : at; /* the client hears in time */
        }
        if (h->state == HOLD_HELD && hold_lease(eng, h) != 0 &&
            h->due + eng->cfg.redis_timeout_ms < at) {
            at = h->due + eng->cfg.redis_timeout_ms; /* and that it is overdue */
        }
    } else {
        h->due = UINT64_MAX;
    }
    if (h->watch == WATCH_YOUNG && is_watchable(eng, h) &&
        h->began + WATCH_AGE_MS < at) {
        at = h->began + WATCH_AGE_MS;
    }
    timer_set(eng, &h->timer, TIMER_HOLD, at > eng->now ? at : eng->now + 1);
}

/* --- grant, confirmation, doubt --------------------------------------------------- */

struct hold *hold_new(struct engine *eng, struct lock *lock, enum lock_kind lock_kind,
                      struct span field, uint64_t token)
{
    struct hold *h = pool_alloc(&eng->pool, offsetof(struct hold, field) + field.len);

    memcpy(h->field, field.ptr, field.len);
    h->field_len = (uint16_t)field.len;
    h->lock = lock;
    h->lock_kind = lock_kind;
    h->owner_kind = field_kind(field);
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

    /* granted before, found again; or new */
    return e != NULL ? e : entry_new(eng, h, spec);
}

static void ask_watch(struct engine *eng, struct hold *h)
{
    struct effect *effect;

    set_watch(eng, h, WATCH_OFF); /* and counts for nothing */
    if (!is_watchable(eng, h) || hold_is_ending(h) ||
        eng->watched + eng->watch_asked >= eng->watch_limit) {
        return;
    }
    set_watch(eng, h, WATCH_ASKED);
    effect = effects_add(&eng->fx, EFFECT_WATCH);
    effect->channel.name = effects_copy(&eng->fx, lock_name(h->lock));
    effect->channel.lock_class = lock_class_of(h->lock_kind);
}

void hold_renewal_sent(struct engine *eng, struct hold *h)
{
    if (h->watch == WATCH_ASKED || h->watch == WATCH_ON || h->watch == WATCH_DOUBTED) {
        set_watch(eng, h, WATCH_OFF);
    }
}

static void look_at_hold(struct engine *eng, struct hold *h, enum hold_watch as)
{
    if (hold_is_ending(h) || h->exact_ms != 0) {
        return; /* it ends soon, and is not to be prolonged */
    }
    if (!list_empty(&h->lock->renews)) {
        set_watch(eng, h, WATCH_OFF); /* a RENEW, whose answer tells as well */
        return;
    }
    set_watch(eng, h, as);
    eng->stats.watch_looks++;
    renew_request(eng, h);
    hold_schedule_renewal(eng, h);
}

void hold_touched(struct engine *eng, struct hold *h)
{
    look_at_hold(eng, h, WATCH_LOOKING);
}

void holds_touched(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    size_t most = WATCH_PROBES;
    struct hold *h;

    if (eng->watch_probe.state != WATCH_PROBE_IDLE && eng->watch_probe.count > 0 &&
        eng->now < eng->watch_probe.wait_until && eng->watch_probe.ctx == ctx) {
        set_probe(eng, WATCH_PROBE_AGAIN); /* perhaps after Redis answered these */
        return;
    }
    if (eng->watch_probe.state == WATCH_PROBE_IDLE) {
        set_probe(eng, WATCH_PROBE_OPEN);
    }
    eng->watch_probe.wait_until = eng->now + eng->cfg.redis_timeout_ms;
    eng->watch_probe.ctx = ctx;
    LIST_EACH(h, &eng->holds, in_all) {
        if ((h->watch != WATCH_ON && h->watch != WATCH_DOUBTED) ||
            (concerns != NULL && !concerns(ctx, h->lock->group))) {
            continue;
        }
        if (most > 0) {
            most--;
            look_at_hold(eng, h, WATCH_PROBING);
        } else {
            set_watch(eng, h, WATCH_DOUBTED);
        }
    }
}

/* One of the few was gone, or none. */
static void end_probe(struct engine *eng, bool gone)
{
    struct hold *h;

    set_probe(eng, WATCH_PROBE_IDLE);
    LIST_EACH(h, &eng->holds, in_all) {
        if (gone && (h->watch == WATCH_ON || h->watch == WATCH_DOUBTED)) {
            hold_touched(eng, h);
        } else if (h->watch == WATCH_DOUBTED) {
            set_watch(eng, h, WATCH_OFF);
        }
    }
}

void holds_on_looks(struct engine *eng, bool gone)
{
    if (eng->watch_probe.state == WATCH_PROBE_IDLE) {
        return;
    }
    if (!gone && eng->watch_probe.count == 0 &&
        eng->watch_probe.state == WATCH_PROBE_AGAIN) {
        set_probe(eng, WATCH_PROBE_OPEN);
        holds_touched(eng, NULL, NULL);
    } else if (gone || eng->watch_probe.count == 0) {
        end_probe(eng, gone);
    }
}

void holds_not_watched(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    struct hold *h;

    LIST_EACH(h, &eng->holds, in_all) {
        if ((h->watch == WATCH_ASKED || h->watch == WATCH_ON ||
             h->watch == WATCH_DOUBTED) &&
            (concerns == NULL || concerns(ctx, h->lock->group))) {
            set_watch(eng, h, WATCH_OFF);
        }
    }
}

void hold_watched(struct engine *eng, struct hold *h, bool missing)
{
    if (h->watch == WATCH_ASKED && missing) {
        hold_touched(eng, h);
    } else if (h->watch == WATCH_ASKED) {
        set_watch(eng, h, WATCH_ON);
    }
}

/* An op has confirmed the hold. */
static void watch_again(struct engine *eng, struct hold *h)
{
    if (h->watch == WATCH_LOOKING || h->watch == WATCH_PROBING) {
        set_watch(eng, h, WATCH_OFF);
    } else if (is_old_enough(eng, h)) {
        ask_watch(eng, h);
    }
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
    watch_again(eng, h);
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

void holds_set_uncertain(struct engine *eng)
{
    struct hold *h;

    LIST_EACH(h, &eng->holds, in_all) {
        hold_set_uncertain(eng, h);
        renew_request(eng, h);
    }
}

void hold_freed(struct engine *eng, struct hold *h)
{
    if (h->exact_ms == 0) { /* else it ends soon, and is not to be prolonged */
        h->freed = true;
        hold_schedule_renewal(eng, h);
    }
}

void hold_mark_restored(struct engine *eng, struct hold *h)
{
    if (h->state == HOLD_RESTORING) {
        hold_set_state(eng, h, HOLD_UNCERTAIN);
        lock_touch(eng, h->lock);
    }
}

/* --- RENEW LEASE and grace, which shorten a lease --------------------------------- */

void lock_drop_shortenings(struct lock *lock)
{
    struct lease_shortening *shortening;

    LIST_EACH_SAFE(shortening, &lock->shortenings, in_lock) {
        lease_shortening_free(shortening);
    }
}

/* Drops shortenings whose hold is gone and whose op is answered. */
static void drop_stale(const struct engine *eng, struct lock *lock)
{
    struct lease_shortening *shortening;

    LIST_EACH_SAFE(shortening, &lock->shortenings, in_lock) {
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
    return c->in_flight != NULL && c->in_flight->request.exact &&
                   c->in_flight->op.key > op_id
               ? c->in_flight
               : NULL;
}

void hold_shorten_by_requests(struct engine *eng, struct entry *e, uint64_t op_id)
{
    struct hold *h = e->hold;
    const struct pending_request *c;

    LIST_EACH(c, &h->lock->renews, in_lock) {
        const struct inflight_op *o = call_cuts(c, op_id);
        const struct lease_shortening *shortening = lease_shortening_find(h);

        if (o != NULL && (shortening == NULL || shortening->op < o->op.key) &&
            hold_has_one_entry(h) && lock_find_target(h->lock, &c->target) == e) {
            hold_shorten_lease(eng, h, inflight_asked(o), false);
        }
    }
}

/* Of a hold that is not known here no cut is, but the calls are. */
static bool calls_cut_since(const struct engine *eng, const struct lock *lock,
                            uint64_t op_id)
{
    struct pending_request *c;

    LIST_EACH(c, &lock->renews, in_lock) {
        const struct inflight_op *o = call_cuts(c, op_id);

        if (o != NULL && eng->now >= lease_valid_until(o->sent, o->lease_ms)) {
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

/* --- the end ---------------------------------------------------------------------- */

static void restore_forget(struct engine *eng, struct hold *h)
{
    hold_mark_restored(eng, h);
    if (h->restoring != NULL) {
        h->restoring->restore.hold = NULL;
    }
}

static void hold_free(struct engine *eng, struct hold *h)
{
    struct lock *lock = h->lock;

    while (h->entries != NULL) {
        entry_free(eng, h->entries);
    }
    if (h->renewal != NULL) {
        h->renewal->renew.items[h->renewal_slot].hold = NULL;
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
    count_watch(eng, h->watch, UINT64_MAX);
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
            emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
        }
    }
    hold_free(eng, h);
}

/* --- rests ------------------------------------------------------------------------ */

enum { REST_FIELD_MAX = DIGITS_MAX + sizeof(LATCHD_REST_OWNER_PREFIX) };

uint64_t rest_field_token(struct span field)
{
    const struct span prefix = SPAN(LATCHD_REST_OWNER_PREFIX);
    uint64_t token;

    return span_starts(field, prefix) &&
                   parse_u64(span_after(field, prefix.len), LATCHD_TOKEN_MAX, &token)
               ? token
               : 0;
}

static struct span rest_field(char out[static REST_FIELD_MAX], uint64_t token)
{
    const struct span prefix = SPAN(LATCHD_REST_OWNER_PREFIX);
    char *end = out + REST_FIELD_MAX;
    char *at = digits_before(end, token) - prefix.len;

    memcpy(at, prefix.ptr, prefix.len);
    return span_of(at, (size_t)(end - at));
}

/* The hold of the rest, which lasts until `until`; NULL: somebody has had the name
 * since. */
static struct hold *rest_hold(struct engine *eng, struct lock *lock, uint64_t token,
                              uint64_t until, uint64_t confirmed)
{
    char buf[REST_FIELD_MAX];
    struct span field = rest_field(buf, token);
    struct hold *h = lock_hold_of(lock, field);

    if (h == NULL && lock_hold(lock) != NULL) {
        return NULL;
    }
    if (h == NULL) {
        struct acquire_spec *spec =
            spec_found(eng, field, SPAN_NONE, &(struct lock_terms){ 0 });

        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, CLASS_PLAIN);
        }
        spec->lease = LEASE_FIXED;
        h = hold_new(eng, lock, KIND_PLAIN, field, token);
        h->confirmed = confirmed;
        (void)hold_add_entry(eng, h, spec);
        spec_unref(eng, spec);
        h->until = until;
    }
    h->confirmed = confirmed;
    h->until = until < h->until ? until : h->until;
    h->entries->until = h->until;
    return h;
}

void rest_begin(struct engine *eng, struct lock *lock, uint64_t token, uint64_t left_ms,
                struct asked asked)
{
    struct hold *h = rest_hold(eng, lock, token, eng->now + left_ms, asked.at);

    if (h != NULL) {
        h->origin = REST_RELEASED;
        lock_seen(eng, lock, asked.op, (int64_t)left_ms, KIND_PLAIN);
        hold_schedule_renewal(eng, h);
    }
}

/* The answers to requests in flight do not count: the rest takes the hold's place. */
static void cut_requests(const struct lock *lock)
{
    struct pending_request *c;

    LIST_EACH(c, &lock->renews, in_lock) {
        struct inflight_op *o = c->in_flight;

        if (o != NULL) {
            o->request.cut = true;
        }
    }
}

void rest_put_back(struct engine *eng, struct lock *lock, uint64_t token,
                   uint64_t left_ms, bool may_be_lost, enum rest_origin origin)
{
    struct hold *h = rest_hold(eng, lock, token, eng->now + left_ms, eng->now);

    if (h == NULL || h->state == HOLD_RESTORING) {
        return;
    }
    cut_requests(lock);
    h->origin = origin;
    hold_set_uncertain(eng, h);
    entry_set_restore(h->entries, ENTRY_MUST_RESTORE);
    hold_set_put_back(eng, h, !may_be_lost);
    hold_set_state(eng, h, HOLD_RESTORING);
    list_del(&h->in_queue);
    restore_again(eng, h);
    hold_schedule_renewal(eng, h);
}

void hold_forget_unanswered(struct engine *eng, struct hold *h, bool over)
{
    const struct entry *e = h->entries;
    bool skips_rest = e != NULL && e->release != NULL && e->release->skips_rest;
    bool may_be_lost = hold_may_be_lost(h);
    struct lock *lock = h->lock;
    uint64_t token = h->token;
    uint64_t left_ms = skips_rest || hold_is_rest(h) ? 0 : hold_atleast_left(eng, h);

    hold_forget(eng, h, over);
    if (left_ms > 0) {
        rest_put_back(eng, lock, token, left_ms, may_be_lost, REST_GIVEN_UP);
    }
}

/* --- losses ----------------------------------------------------------------------- */

/* How a hold came to its end. */
struct hold_end {
    enum notice_kind notice; /* LOST or EXPIRED */
    enum loss_cause cause;   /* LOST */
    struct span taker;
    uint64_t forced_by;
};

static void tell_end(struct engine *eng, struct hold *h, const struct hold_end *end)
{
    struct lock *lock = h->lock;
    struct span taker = effects_copy(&eng->fx, end->taker);
    struct effect_notice *notice = emit_notice(eng, end->notice, h);

    eng->stats.lost += end->notice == NOTICE_LOST;
    eng->stats.expired += end->notice == NOTICE_EXPIRED;
    notice->cause = end->cause;
    notice->taker = taker;
    notice->forced_by = end->forced_by;
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        entry_over(eng, e, -1);
        emit_held_end(eng, e, end->notice == NOTICE_LOST ? HELD_LOST : HELD_EXPIRED,
                      end->cause);
        for (const struct attach *a = entry_first_attach(e); a != NULL;
             a = attach_next(a)) {
            session_lost(a->session, lock);
        }
    }
}

/* The end of a rest is nobody's loss. A hold that ran out, and was not taken away,
 * still leaves a rest. */
static void end_hold(struct engine *eng, struct hold *h, const struct hold_end *end)
{
    struct lock *lock = h->lock;
    bool ran_out = end->notice == NOTICE_EXPIRED || end->cause == LOSS_UNCONFIRMED;
    bool may_be_lost = hold_may_be_lost(h);
    uint64_t token = h->token;
    uint64_t rest_ms = 0;

    if (!hold_is_rest(h)) {
        rest_ms = ran_out ? hold_atleast_left(eng, h) : 0;
        tell_end(eng, h, end);
    }
    hold_forget(eng, h, false);
    if (rest_ms > 0) {
        rest_put_back(eng, lock, token, rest_ms, may_be_lost, REST_RAN_OUT);
    }
    lock_ask(eng, lock);
}

void hold_lost(struct engine *eng, struct hold *h)
{
    end_hold(eng, h, &(struct hold_end){ NOTICE_LOST, .cause = LOSS_GONE });
}

void hold_expired(struct engine *eng, struct hold *h)
{
    bool agreed = h->state == HOLD_HELD && hold_wanted_lease(eng, h, true) == 0;

    end_hold(eng, h,
             &(struct hold_end){ agreed ? NOTICE_EXPIRED : NOTICE_LOST,
                                 .cause = LOSS_UNCONFIRMED });
}

void hold_lost_to(struct engine *eng, struct hold *h, struct span taker)
{
    end_hold(eng, h,
             &(struct hold_end){ NOTICE_LOST, .cause = LOSS_TAKEN, .taker = taker });
}

void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn)
{
    end_hold(
        eng, h,
        &(struct hold_end){ NOTICE_LOST, .cause = LOSS_FORCED, .forced_by = conn });
}

struct hold *lock_accept_holder(struct engine *eng, struct lock *lock,
                                enum lock_kind lock_kind, struct span field,
                                uint64_t token)
{
    struct hold *denied[16];
    size_t count;

    while ((count = lock_contradicted_holds(lock, lock_kind, field, token, denied,
                                            16)) > 0) {
        for (size_t i = 0; i < count; i++) {
            hold_lost_to(eng, denied[i], field_owner(field));
        }
    }
    return lock_hold_of(lock, field);
}

/* --- the timer -------------------------------------------------------------------- */

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
    struct pending_request *c;

    LIST_EACH(c, &h->lock->renews, in_lock) {
        const struct inflight_op *o = c->in_flight;

        if (o != NULL && o->request.renewed_token == h->token && !o->request.cut &&
            !answer_predates_store(eng, h->lock, o->op.key) &&
            !lock_shortened_since(eng, h->lock, hold_field(h), o->op.key)) {
            until = later_of(until, lease_valid_until(o->sent, o->lease_ms));
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
    if (h->watch == WATCH_YOUNG && is_watchable(eng, h) && is_old_enough(eng, h)) {
        ask_watch(eng, h);
        if (eng->now < h->due) {
            hold_schedule_renewal(eng, h);
            return;
        }
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
