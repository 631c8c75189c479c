/* The end of a schedule: nobody asks for more, all holders release, so everybody who
 * waits must be served. */
#include "sim/schedule/sim_schedule.h"

#include "sim/world/sim_faults.h"

#include <inttypes.h>

enum {
    DRAIN_MS = 240000, /* the longest outage, then the longest lease, then some */
    DRAIN_CALM_MS = 75000,
};

static uint64_t token_of(const struct redis_name *n, const struct rtext *field)
{
    for (size_t i = 0; i < n->hold_key_count; i++) {
        if (rtext_is(&n->hold_keys[i].field, rtext_span(field))) {
            return n->hold_keys[i].token;
        }
    }
    return redis_token_of(n, field);
}

/* UNLOCK of what Redis says: whatever the clients know of it. */
static bool unlock_of(const struct redis_name *n, const struct rtext *field,
                      struct ask *a)
{
    size_t end = field->len;

    *a = (struct ask){ .kind = ASK_UNLOCK, .name = n->name };
    if (n->mode == MODE_READ || n->mode == MODE_WRITE) {
        a->lock_kind = KIND_READ;
    }
    if (end > 6 && strcmp(field->s + end - 6, ":write") == 0) {
        a->lock_kind = KIND_WRITE;
        end -= 6;
    }
    if (strncmp(field->s, "latchd:id:", 10) == 0) {
        a->id = rtext_of(span_of(field->s + 10, end - 10));
    } else if (strncmp(field->s, "latchd:value:", 13) == 0) {
        a->value = rtext_printf(ASK_ORIGIN "%s", strrchr(field->s, ':') + 1);
    } else if (strncmp(field->s, "latchd:", 7) == 0) {
        a->token = token_of(n, field);
    } else {
        a->owner = rtext_of(span_of(field->s, end));
    }
    return strncmp(field->s, "owner", 5) == 0 || a->owner.len == 0;
}

/* Whether the hold is by another ID than that request's, which may have none. */
static bool is_of_another_id(const struct ask *a, const struct rtext *field)
{
    const struct span prefix = SPAN("latchd:id:");
    struct span text = rtext_span(field);

    return span_starts(text, prefix) &&
           !span_eq(span_after(text, prefix.len), rtext_span(&a->id));
}

/* Whether that MLOCK may be collecting this hold: not one of another named owner or of
 * another ID, nor a value hold unless it asks for values. */
static bool may_collect(const struct sim_conn *c, const struct redis_name *n,
                        const struct rtext *field)
{
    bool owned = strncmp(field->s, "owner", 5) == 0;
    bool valued = strncmp(field->s, "latchd:value:", 13) == 0;

    return c->open && c->asking && c->ask.kind == ASK_MLOCK && ask_wants(&c->ask, n) &&
           (!owned || rtext_is(field, rtext_span(&c->ask.owner))) &&
           !is_of_another_id(&c->ask, field) && valued == (c->ask.value.len > 0);
}

/* The holds that an MLOCK collects are its own. */
static bool told(struct sim *s, const struct redis_name *n, const struct rtext *field)
{
    bool batch = false;

    for (size_t i = 0; i < s->clients.count; i++) {
        batch = batch || may_collect(&s->clients.conns[i], n, field);
    }
    for (size_t i = 0; i < s->check.record_count && batch; i++) {
        const struct record *r = &s->check.records[i];

        batch = r->name != n || r->token != redis_token_of(n, field);
    }
    return !batch;
}

/* A loan of a daemon goes back by itself; a holder from it has another token. */
static bool is_loan(const struct sim *s, const struct redis_name *n, uint64_t token)
{
    const struct sim_loan *l = token == 0 ? NULL : loan_with_field(s, n, token - 1);

    return l != NULL && l->token == token;
}

/* Its holder, as far as clients know, is unlocked by its own token. */
static bool aim_at_holder(const struct sim *s, const struct redis_name *n,
                          struct ask *a)
{
    for (size_t i = s->check.record_count; i-- > 0;) {
        const struct record *r = &s->check.records[i];
        const struct sim_loan *l = loan_of(s, r->daemon, n, r->token);

        if (r->name == n && l != NULL && l->token == a->token && r->held && !r->over) {
            a->token = r->token;
            return true;
        }
    }
    return false;
}

/* Each holder of that name is unlocked, over a connection of its own. */
static void unlock_all(struct sim *s, size_t daemon, struct span name)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), name);
    struct ask asks[REDIS_FIELDS_MAX];
    uint64_t *next = &s->check.unlock_at[check_name_index(s, n)];
    size_t count = 0;

    if (s->now < *next) {
        return;
    }
    *next = s->now + SIM_TICK_MS + 10 * s->profile.rtt_ms; /* one after the other */
    for (size_t i = 0; i < n->field_count; i++) {
        struct ask *a = &asks[count];

        count += told(s, n, &n->fields[i].owner) &&
                         unlock_of(n, &n->fields[i].owner, a) &&
                         (!is_loan(s, n, a->token) || aim_at_holder(s, n, a))
                     ? 1
                     : 0;
    }
    for (size_t i = 0; i < count && !s->failed; i++) {
        sim_ask(s, sim_connect(s, daemon), &asks[i]);
    }
}

static bool waits(const struct sim_conn *c)
{
    return c->open && c->asking &&
           (c->ask.kind == ASK_LOCK || c->ask.kind == ASK_MLOCK ||
            c->ask.kind == ASK_LATCH_AWAIT);
}

/* Waiters for the latch are let go on by as many counts as are left. */
static void count_down(struct sim *s, size_t daemon)
{
    const struct ask a = { .kind = ASK_LATCH_COUNT, .name = s->latches.name->name };

    if (latches_is_set(s) && s->now >= s->latches.count_at) {
        s->latches.count_at = s->now + SIM_TICK_MS + 10 * s->profile.rtt_ms;
        sim_ask(s, sim_connect(s, daemon), &a);
    }
}

static void free_for(struct sim *s, size_t index)
{
    const struct ask ask = s->clients.conns[index].ask;
    size_t daemon = dice_below(&s->dice, s->daemon_count);

    if (s->daemons[daemon].engine == NULL ||
        s->daemons[daemon].stalled_until > s->now) {
        return;
    }
    if (ask.kind == ASK_LATCH_AWAIT) {
        count_down(s, daemon);
        return;
    }
    /* Through any: one of them may take the request for over. */
    unlock_all(s, daemon, rtext_span(&ask.name));
    for (size_t i = 1; ask.kind == ASK_MLOCK && i < ask.name_count; i++) {
        unlock_all(s, daemon, rtext_span(&ask.names[i]));
    }
}

/* True when somebody waits still. */
static bool leave_all(struct sim *s)
{
    size_t count = s->clients.count;
    bool there = false;

    for (size_t i = 0; i < count && !s->failed; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (s->daemons[c->daemon].stalled_until > s->now) {
            there = true;
        } else if (waits(c)) {
            there = true;
            free_for(s, i);
        } else if (c->open && !sim_is_busy(c)) {
            sim_close(s, i);
        }
    }
    return there;
}

/* True when one was there. */
static bool free_values(struct sim *s)
{
    struct sim_redis *r = sim_redis_now(s);
    bool there = false;

    for (size_t i = 0; i < r->name_count && !s->failed; i++) {
        const struct redis_name *n = &r->names[i];
        size_t up = 0;

        while (up < s->daemon_count && s->daemons[up].engine == NULL) {
            up++;
        }
        if (n->field_count > 0 && up < s->daemon_count &&
            strncmp(n->fields[0].owner.s, "latchd:value:", 13) == 0) {
            there = true;
            unlock_all(s, up, rtext_span(&n->name));
        }
    }
    return there;
}

bool schedule_free_values(struct sim *s)
{
    bool any = false;

    for (int i = 0; i < 100 && !s->failed && free_values(s); i++) {
        sim_run(s, 1000);
        any = true;
    }
    return any;
}

/* For how long a Redisson that is dead by now keeps its place in a queue, by its own
 * score: nobody may throw it out earlier. */
static uint64_t places_of_the_dead(struct sim *s)
{
    struct sim_redis *r = sim_redis_now(s);
    int64_t last = 0;

    for (size_t i = 0; i < r->name_count; i++) {
        struct redis_name *n = &r->names[i];

        for (size_t k = 0; k < n->queue_count; k++) {
            const struct redis_score *score = redis_score(n, rtext_span(&n->queue[k]));

            if (score != NULL && !redis_is_ours(rtext_span(&n->queue[k])) &&
                score->score - (int64_t)r->now_ms > last) {
                last = score->score - (int64_t)r->now_ms;
            }
        }
    }
    return (uint64_t)last;
}

void schedule_drain(struct sim *s)
{
    uint64_t until = s->now + s->set_back_ms + places_of_the_dead(s) +
                     (s->calm ? DRAIN_CALM_MS : DRAIN_MS);

    TRACE(s, "--- whoever holds releases");
    s->profile.undelivered = 0;
    s->check.draining = true;
    while (!s->failed && leave_all(s) && s->now < until) {
        sim_run(s, dice_between(&s->dice, 1, 200));
    }
    for (size_t i = 0; i < s->clients.count && !s->failed; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (waits(c)) {
            sim_fail(s, "c%zu waits since %" PRIu64 " ms, and everybody released: %s",
                     i, s->now - c->asked_ms, ask_text(&c->ask));
        }
    }
}

static void poke(struct sim *s, struct redis_name *n)
{
    size_t c = sim_connect(s, 0);

    s->profile.undelivered = 0;
    TRACE(s, "--- who was left in the queue of %s is dead", n->name.s);
    sim_say(s, c, "LOCK %s FAIR", n->name.s);
    sim_run(s, s->daemons[0].config.redis_timeout_ms);
    if (!s->failed && sim_token(s, c) == 0) {
        sim_fail(s, "the queue of %s keeps the places of the dead", n->name.s);
    }
    sim_say(s, c, "UNLOCK %s", n->name.s);
    sim_run(s, s->daemons[0].config.redis_timeout_ms);
    sim_close(s, c);
    if (!s->failed && n->queue_count > 0 && !s->check.resurrected) {
        sim_fail(s, "%s is left in the queue of %s", n->queue[0].s, n->name.s);
    }
}

/* A queue has no time to live: what stands there would stay for ever, unless somebody
 * asks for the name. What a failover brought back that long after stays until then: see
 * poke(). While others' data stands under the name, no script looks at the queue. */
static void check_no_place_is_left(struct sim *s, const struct redis_name *n)
{
    bool ours = n->queue_count > 0;

    for (size_t i = 0; i < n->queue_count; i++) {
        ours = ours && redis_is_ours(rtext_span(&n->queue[i]));
    }
    if (ours && !s->check.resurrected && s->failovers == 0 &&
        (s->profile.faults & FAULT_STRING) == 0) {
        sim_fail(s, "%s is left in the queue of %s, and its daemon lives",
                 n->queue[0].s, n->name.s);
    }
}

void schedule_poke(struct sim *s)
{
    sim_run(s, places_of_the_dead(s));
    for (size_t i = 0;
         i < s->redis.name_count && (s->profile.faults & FAULT_DEATH) == 0; i++) {
        check_no_place_is_left(s, &s->redis.names[i]);
    }
    for (size_t i = 0; i < s->redis.name_count && !s->failed; i++) {
        if (s->redis.names[i].queue_count > 0 && s->daemons[0].engine != NULL) {
            poke(s, &s->redis.names[i]);
        }
    }
}
