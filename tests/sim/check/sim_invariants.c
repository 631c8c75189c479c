/* The rules that hold after each turn of a daemon, and when all is over. */
#include "sim/world/sim_world.h"

#include "latchd/protocol.h"
#include "sim/world/sim_faults.h"
#include "util/buf.h"

#include <inttypes.h>

/* --- waits --------------------------------------------------------------- */

static bool was_lent(struct sim *s, const struct sim_daemon *d,
                     const struct sim_conn *c, const struct rtext *name)
{
    struct redis_name *n = sim_redis_name(&s->redis, rtext_span(name));

    return s->check.lent_ms[d->index][check_name_index(s, n)] >= c->asked_ms;
}

/* A LOCK that tries once waits for the end of another daemon's loan. Who waits behind
 * it, a member of an MLOCK as well, is answered when it is. */
static bool waits_for_loan(struct sim *s, const struct sim_daemon *d,
                           const struct sim_conn *c)
{
    bool lent = c->ask.kind == ASK_LOCK && was_lent(s, d, c, &c->ask.name);

    for (size_t i = 0; c->ask.kind == ASK_MLOCK && i < c->ask.name_count; i++) {
        lent = lent || was_lent(s, d, c, &c->ask.names[i]);
    }
    return lent;
}

/* The longest that an answer may take. */
static uint64_t answer_by(struct sim *s, const struct sim_daemon *d,
                          const struct sim_conn *c)
{
    uint64_t patience = d->config.redis_timeout_ms;

    if (s->calm && !s->check.draining) {
        /* Redis answers: a few round trips, for each name; and releases of one name
         * stand in line behind each other. */
        patience =
            s->profile.rtt_ms * (6 * (1 + c->ask.name_count) + 2 * s->profile.conns);
    }
    if (c->ask.kind == ASK_LEADER && c->ask.has_after) {
        /* It has as long as Redis may take, like a LOCK; a WAIT that it has not, too.
         */
        return (c->ask.has & OPT_WAIT) == 0
                   ? UINT64_MAX
                   : c->asked_ms + SIM_TICK_MS +
                         (c->ask.wait_ms > patience ? c->ask.wait_ms : patience);
    }
    if (c->ask.kind == ASK_LEADER && c->ask.wait_ms > patience) {
        patience = c->ask.wait_ms; /* for Redis */
    }
    if (c->ask.kind != ASK_LOCK && c->ask.kind != ASK_MLOCK &&
        c->ask.kind != ASK_LATCH_AWAIT) {
        /* While all is drained, unlocks stand in line behind each other. */
        return s->check.draining ? UINT64_MAX : c->asked_ms + patience + SIM_TICK_MS;
    }
    if ((c->ask.has & OPT_WAIT) == 0) {
        return UINT64_MAX;
    }
    patience += waits_for_loan(s, d, c) ? SIM_LENT_WAIT_MS : 0;
    if (s->calm && !s->check.draining) {
        return c->asked_ms + c->ask.wait_ms + patience + SIM_TICK_MS;
    }
    return c->asked_ms + (c->ask.wait_ms > patience ? c->ask.wait_ms : patience) +
           SIM_TICK_MS;
}

static void check_waits(struct sim *s, const struct sim_daemon *d)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        /* A daemon that stood still first has to read what Redis has said meanwhile. */
        if (c->open && c->asking && c->daemon == d->index &&
            s->now > d->stalled_until + 1 && s->now > answer_by(s, d, c)) {
            sim_fail(s, "c%zu has no answer after %" PRIu64 " ms: %s", i,
                     s->now - c->asked_ms, ask_text(&c->ask));
        }
    }
}

/* --- holds --------------------------------------------------------------- */

/* The hash field of a hold; empty: there is none. */
static struct rtext field_of(const struct redis_name *n, const struct record *r)
{
    struct span suffix = r->kind == KIND_WRITE ? SPAN(":write") : SPAN_NONE;
    char digits[DIGITS_MAX];

    if (r->owner.len > 0) {
        return rtext_join(SPAN_NONE, rtext_span(&r->owner), suffix);
    }
    if (r->id.len > 0) {
        return rtext_join(SPAN("latchd:id:"), rtext_span(&r->id), suffix);
    }
    if (r->value.len > 0) {
        bool there =
            n->field_count > 0 && redis_token_of(n, &n->fields[0].owner) == r->token;

        return there ? n->fields[0].owner : rtext_of(SPAN_NONE);
    }
    if (r->kind == KIND_PERMITS) {
        for (size_t i = 0; i < n->field_count; i++) {
            if (n->fields[i].token == r->token) {
                return n->fields[i].owner;
            }
        }
        return rtext_of(SPAN_NONE);
    }
    if (r->kind != KIND_READ) {
        const char *first = digits_before(digits + DIGITS_MAX, r->token);

        return rtext_join(SPAN("latchd:"),
                          span_of(first, (size_t)(digits + DIGITS_MAX - first)),
                          suffix);
    }
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (n->hold_keys[i].token == r->token) {
            return n->hold_keys[i].field;
        }
    }
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (n->hold_keys[i].token == 1 &&
            span_starts(rtext_span(&n->hold_keys[i].field), SPAN("latchd:"))) {
            return n->hold_keys[i].field; /* its key had expired, and was made anew */
        }
    }
    return rtext_of(SPAN_NONE);
}

/* A reader needs its hold key as well, and nobody else may write beside it. */
static bool knows_of_family(const struct redis_name *n, const struct record *r,
                            const struct rtext *field)
{
    struct rtext writer;

    if (r->kind == KIND_PERMITS) {
        return n->mode == MODE_PERMITS;
    }
    if (r->kind == KIND_PLAIN || r->kind == KIND_WRITE) {
        return n->mode == (r->kind == KIND_WRITE ? MODE_WRITE : MODE_NONE);
    }
    writer = rtext_join(SPAN_NONE, rtext_span(field), SPAN(":write"));
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (rtext_is(&n->hold_keys[i].field, rtext_span(field))) {
            return n->mode == MODE_READ ||
                   redis_field((struct redis_name *)n, rtext_span(&writer)) != NULL;
        }
    }
    return false;
}

/* Does Redis know this hold, or entry? */
static bool redis_knows(struct sim *s, const struct record *r)
{
    struct redis_name *n = r->name;
    struct rtext field;

    redis_refresh(n);
    field = field_of(n, r);
    if (check_stands_in_loan(s, r)) {
        return true;
    }
    if (redis_field(n, rtext_span(&field)) == NULL || !knows_of_family(n, r, &field)) {
        return false;
    }
    if (r->owner.len > 0 && r->id.len > 0 && !s->check.resurrected) {
        struct rtext entry = rtext_join(SPAN("id:"), rtext_span(&r->id), SPAN_NONE);

        return redis_has_entry(n, rtext_span(&entry));
    }
    return true;
}

/* A renewal that was asked for is overdue a timeout after it was due. Not when the
 * fixed lease that it was to reach is over: what was confirmed before may last longer.
 * A daemon that stood still first reads what Redis has said meanwhile. */
static bool overdue(const struct sim *s, const struct sim_daemon *d,
                    const struct belief *b)
{
    uint64_t due = b->sent_ms + d->config.watchdog_ms / 3;

    due = b->renewing > due ? b->renewing : due;
    return b->renewing != 0 && s->now < b->wanted && s->now > d->stalled_until + 1 &&
           s->now > due + d->config.redis_timeout_ms + SIM_TICK_MS;
}

/* When the end of that belief must have been told. The margin of 1 % and 50 ms counts
 * from the first grant of a fixed lease: what is confirmed later is what was left. */
static uint64_t told_by(const struct sim_daemon *d, const struct belief *b)
{
    bool watched = b->full_until - b->sent_ms == d->config.watchdog_ms;
    uint64_t early = b->full_until - d->config.watchdog_ms / 100 - 50;

    /* `until` is less where Redis may have less, for all that the daemon knows. */
    return !watched ? b->full_until : early > b->until ? early : b->until;
}

/* Whether somebody has removed the entry from Redis of late: its owner has the hold
 * again, under the same token, by another entry, and which entries are there shows at
 * the next renewal. */
static bool may_be_removed(struct sim *s, const struct sim_daemon *d,
                           const struct record *r)
{
    uint64_t removed_ms = s->check.external_ms[check_name_index(s, r->name)];

    return r->owner.len > 0 && removed_ms != 0 && r->granted_ms <= removed_ms &&
           s->now < removed_ms + d->config.watchdog_ms / 3 +
                        d->config.redis_timeout_ms + SIM_TICK_MS;
}

static void check_record(struct sim *s, const struct sim_daemon *d,
                         const struct record *r)
{
    struct belief *b = belief_get(s, r->daemon, r->name, r->token);

    if (check_tokens_may_repeat(s)) {
        return; /* one token may have been given twice */
    }
    if (b == NULL || (s->now > told_by(d, b) + 1 && s->now > b->heard_ms + 1)) {
        sim_fail(s, "d%zu: the lease of %s %" PRIu64 " is over, and nobody said so",
                 d->index, r->name->name.s, r->token);
    } else if (overdue(s, d, b)) {
        sim_fail(s,
                 "d%zu: the renewal of %s %" PRIu64 " is overdue, and nobody said so",
                 d->index, r->name->name.s, r->token);
    } else if (s->now < b->until && !b->excused && !redis_knows(s, r) &&
               !check_tokens_may_repeat(s) && !may_be_removed(s, d, r)) {
        sim_fail(s, "d%zu vouches for %s %" PRIu64 ", but Redis does not know it",
                 d->index, r->name->name.s, r->token);
    }
}

static void check_holds(struct sim *s, const struct sim_daemon *d)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (r->daemon == d->index && record_believed(s, r)) {
            check_record(s, d, r);
            check_told_certain(s, d, r);
        }
    }
}

void check_all_uncertain(struct sim *s, struct sim_daemon *d, const char *why)
{
    for (size_t i = 0; i < s->check.record_count && !check_tokens_may_repeat(s); i++) {
        const struct record *r = &s->check.records[i];

        if (r->daemon == d->index && record_believed(s, r)) {
            sim_fail(s, "d%zu: nothing was said of %s %" PRIu64 " after %s", d->index,
                     r->name->name.s, r->token, why);
        }
    }
}

/* --- what nobody wants --------------------------------------------------- */

/* While an MLOCK collects, it holds names that no client knows of. */
static void note_many(struct sim *s)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        if (s->clients.conns[i].open && s->clients.conns[i].asking) {
            check_many(s, &s->clients.conns[i]);
        }
    }
}

void check_many(struct sim *s, const struct sim_conn *c)
{
    for (size_t k = 0; c->ask.kind == ASK_MLOCK && k < s->redis.name_count; k++) {
        if (ask_wants(&c->ask, &s->redis.names[k])) {
            s->check.many_ms[k] = s->now;
        }
    }
}

/* A loan lends for a window, and its last holder is settled a window later. */
static bool may_be_lent(const struct sim *s, const struct redis_name *n, uint64_t token)
{
    const struct sim_loan *l = loan_with_field(s, n, token);

    if (l == NULL) {
        l = loan_with_field(s, n, token - 1);
    }
    return l != NULL && token >= l->first && token <= l->token &&
           s->now < l->sent_ms + 2 * s->daemons[l->daemon].config.local_window_ms +
                        8 * s->profile.rtt_ms + SIM_TICK_MS;
}

/* With no fault about, an anonymous grant that no client ever got is gone at once. */
static void check_ghosts(struct sim *s)
{
    note_many(s);
    for (size_t i = 0; i < s->redis.name_count; i++) {
        struct redis_name *n = &s->redis.names[i];
        bool known = s->now < s->check.many_ms[i] + 8 * s->profile.rtt_ms + SIM_TICK_MS;
        uint64_t token;
        uint64_t since;

        redis_refresh(n);
        token = n->field_count == 0 ? 0 : redis_token_of(n, &n->fields[0].owner);
        since = token / 1000 - SIM_REDIS_START_MS + SIM_START_MS;
        if (token == 0 || n->mode != MODE_NONE || n->fence_who.s[0] != 'a' ||
            strncmp(n->fields[0].owner.s, "latchd:", 7) != 0 ||
            span_starts(rtext_span(&n->fields[0].owner),
                        SPAN(LATCHD_REST_OWNER_PREFIX)) ||
            s->now < since + 8 * s->profile.rtt_ms + SIM_TICK_MS) {
            continue;
        }
        for (size_t k = 0; k < s->check.record_count && !known; k++) {
            known = s->check.records[k].name == n && s->check.records[k].token == token;
        }
        known = known || may_be_lent(s, n, token);
        if (!known) {
            sim_fail(s, "%s is held under %" PRIu64 ", and no client knows it",
                     n->name.s, token);
        }
    }
}

/* With no fault about, nobody waits for a lock that was released before their eyes. */
static void check_idle_locks(struct sim *s)
{
    /* Releases of what is not there stand in line before those who ask. */
    uint64_t patience = (10 + 2 * s->profile.conns) * s->profile.rtt_ms + SIM_TICK_MS;

    if (s->profile.mixed) {
        return; /* each family has a channel of its own: till the next recheck */
    }
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];
        struct redis_name *n;
        uint64_t since;

        if (!c->open || !c->asking || c->ask.kind != ASK_LOCK) {
            continue;
        }
        n = sim_redis_name(&s->redis, rtext_span(&c->ask.name));
        since = s->check.freed_ms[check_name_index(s, n)];
        if (since != 0 && n->field_count == 0 && s->now > since + patience &&
            s->now > c->asked_ms + patience) {
            sim_fail(s, "c%zu waits for %s, which is free since %" PRIu64 " ms", i,
                     n->name.s, s->now - since);
        }
    }
}

/* No permit is made, and none is lost: what is free and what is out are all that there
 * are. */
static void check_permits(struct sim *s)
{
    for (size_t i = 0; i < s->profile.names; i++) {
        const struct redis_name *n = s->names[i];

        if (s->profile.limit[i] != 0 && n->mode == MODE_PERMITS &&
            n->free != INT64_MIN &&
            (n->free < 0 || n->free + (int64_t)n->out != s->profile.limit[i])) {
            sim_fail(s, "%s has %" PRId64 " free and %zu out of %" PRIu32, n->name.s,
                     n->free, n->out, s->profile.limit[i]);
        }
    }
}

void check_turn(struct sim *s, struct sim_daemon *d)
{
    (void)sim_redis_now(s);
    check_permits(s);
    check_rests(s);
    check_waits(s, d);
    check_holds(s, d);
    check_handed_over(s);
    check_heartbeats(s, d);
    if (s->calm) {
        check_ghosts(s);
        check_cycles(s, d);
    }
    if (s->orderly) {
        check_idle_locks(s);
        check_queues(s, d);
    }
}

static void check_daemon_empty(struct sim *s, const struct sim_daemon *d)
{
    struct engine_stats st;

    engine_stats(d->engine, &st);
    if (st.locks + st.holds + st.waiters + st.ops_in_flight > 0) {
        sim_fail(s,
                 "d%zu is left with %" PRIu64 " locks, %" PRIu64 " holds, %" PRIu64
                 " waiters, %" PRIu64 " ops",
                 d->index, st.locks, st.holds, st.waiters, st.ops_in_flight);
    }
    if (st.uncertain + st.entries + st.fixed_entries + st.retained_entries +
            st.retained_waiters + st.oldest_wait_ms >
        0) {
        sim_fail(s, "d%zu is left with numbers of what is not there", d->index);
    }
    if (engine_next_deadline(d->engine) != UINT64_MAX) {
        sim_fail(s, "d%zu is left with a deadline in %" PRId64 " ms", d->index,
                 (int64_t)(engine_next_deadline(d->engine) - s->now));
    }
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (d->wanted[CLASS_PLAIN][i] || d->wanted[CLASS_RW][i] ||
            d->wanted[CLASS_SEMAPHORE][i]) {
            sim_fail(s, "d%zu is left with a subscription of %s", d->index,
                     s->redis.names[i].name.s);
        }
    }
}

void check_end(struct sim *s)
{
    for (size_t i = 0; i < s->daemon_count; i++) {
        if (s->daemons[i].engine != NULL) {
            check_daemon_empty(s, &s->daemons[i]);
        }
    }
    for (size_t i = 0; i < s->redis.name_count; i++) {
        struct redis_name *n =
            sim_redis_name(sim_redis_now(s), rtext_span(&s->redis.names[i].name));

        check_queue_end(s, n);
        if (n->field_count > 0) {
            sim_fail(s, "%s is left in Redis, held by %s", n->name.s,
                     n->fields[0].owner.s);
        }
    }
}
