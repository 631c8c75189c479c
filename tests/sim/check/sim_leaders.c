/* Leaders: what followers are told of them, their data, and the waiters that an UNLOCK
 * names. */
#include "sim/world/sim_world.h"

#include "engine/value_hold.h"
#include "latchd/protocol.h"
#include "sim/world/sim_faults.h"

#include <inttypes.h>

/* --- who leads ------------------------------------------------------------------- */

static bool is_writer(const struct rtext *field)
{
    return field->len > 6 && strcmp(field->s + field->len - 6, ":write") == 0;
}

static const struct rtext *leader_field(const struct redis_name *n)
{
    for (size_t i = 0; i < n->field_count && n->mode != MODE_PERMITS; i++) {
        if (n->mode == MODE_NONE || is_writer(&n->fields[i].owner)) {
            return &n->fields[i].owner;
        }
    }
    return NULL;
}

/* A name that rests has an owner that nobody is, and the token of a library's hold is
 * not told. */
static bool has_token_to_tell(const struct rtext *field)
{
    struct span owner = rtext_span(field);

    return (span_starts(owner, SPAN(LATCHD_RESERVED_OWNER_PREFIX)) &&
            !span_starts(owner, SPAN(LATCHD_REST_OWNER_PREFIX)) &&
            !span_starts(owner, SPAN(VALUE_FIELD_PREFIX))) ||
           span_starts(owner, SPAN("owner-"));
}

/* Of who holds alone, as Redis has it now; 0: nobody, or a Redisson. */
static uint64_t true_leader(const struct redis_name *n)
{
    const struct rtext *field = leader_field(n);

    return field == NULL || !has_token_to_tell(field) ? 0 : redis_token_of(n, field);
}

/* A client that asks for the leader of that name at this moment may be told of the one
 * before as well. */
static void note_leader(struct sim *s, struct redis_name *n)
{
    size_t i = check_name_index(s, n);
    struct leader_seen *now = &s->check.leaders[i];
    uint64_t token = true_leader(n);

    if (token == now->token) {
        return;
    }
    for (size_t k = 0; k < s->clients.count; k++) {
        struct sim_conn *c = &s->clients.conns[k];

        if (c->open && c->asking && c->ask.kind == ASK_LEADER &&
            rtext_is(&c->ask.name, rtext_span(&n->name))) {
            c->led[c->led_count++ % LED_KEPT] = now->token;
        }
    }
    now->token = token;
    now->changes++;
}

void check_leaders(struct sim *s)
{
    (void)sim_redis_now(s);
    for (size_t i = 0; i < s->profile.names && s->profile.leaders; i++) {
        redis_refresh(s->names[i]);
        note_leader(s, s->names[i]);
    }
}

/* Nothing has happened after which Redis may know less than before, or another token.
 */
static bool tokens_only_grow(const struct sim *s)
{
    return (s->profile.faults &
            (FAULT_LOSS | FAULT_DEL | FAULT_FAILOVER | FAULT_CLOCK)) == 0;
}

/* --- data ------------------------------------------------------------------------ */

static struct span data_of(const struct sim *s, const struct redis_name *n,
                           uint64_t token)
{
    const struct sim_check *c = &s->check;

    /* The newest first: a token may be given twice where a clock was set back. */
    for (size_t i = 1; i <= c->data_count && i <= DATA_KEPT; i++) {
        const struct leader_data *d = &c->data[(c->data_count - i) % DATA_KEPT];

        if (d->name == n && d->token == token) {
            return rtext_span(&d->data);
        }
    }
    return SPAN_NONE;
}

/* Whether Redis knows that the request has ended, so that it is granted no more. */
static bool is_over(const struct sim *s, const struct redis_name *n,
                    const struct claim *cl)
{
    struct span by = cl == NULL                      ? SPAN_NONE
                     : cl->owner_kind == OWNER_NAMED ? cl->entry
                                                     : cl->field;
    struct rtext suffix = rtext_printf(":%.*s", S(by));
    struct rtext key = redis_key(n, "latchd:ended:", suffix.s);

    return by.len > 0 && keyspace_find(&s->redis.keys, rtext_span(&key)) != NULL;
}

void check_data_ran(struct sim *s, const struct flight *f)
{
    const struct claim *cl = op_claim(&f->op);
    const struct op_result *r = &f->reply.result;
    struct sim_check *c = &s->check;
    struct redis_name *n =
        f->op.name.len == 0 ? NULL : sim_redis_name(&s->redis, f->op.name);

    if (cl != NULL && f->minted && r->status == OP_OK &&
        (f->op.kind == OP_ACQUIRE || r->moved) &&
        (cl->data.len > 0 || data_of(s, n, r->token).len > 0)) {
        c->data[c->data_count++ % DATA_KEPT] = (struct leader_data){
            .name = n,
            .token = r->token,
            .data = rtext_of(cl->data),
        };
    }
    if (f->op.kind == OP_RELEASE && r->status == OP_OK &&
        ((r->release.freed && (r->fair || is_over(s, n, cl))) ||
         r->release.rest_ms > 0)) {
        size_t i = check_name_index(s, n);

        c->not_handed_ms[i] = s->now;
    }
    check_leaders(s);
}

/* Whether a grant under that token brought these data. */
static bool was_brought(const struct sim *s, const struct redis_name *n, uint64_t token,
                        struct span data)
{
    const struct sim_check *c = &s->check;

    for (size_t i = 0; i < c->data_count && i < DATA_KEPT; i++) {
        if (c->data[i].name == n && c->data[i].token == token &&
            rtext_is(&c->data[i].data, data)) {
            return true;
        }
    }
    return false;
}

/* Of an owner's hold, latchd puts back the data only while the entry that brought them
 * is held; and where a lost grant's token was given again, to another entry of the same
 * owner, both are one hold, with the data of either. Where the token of one leader may
 * have been given to the next, the answer about the first may come when the second
 * leads. */
static bool may_have_other_data(const struct sim *s, const struct redis_name *n,
                                uint64_t token, struct span owner, struct span data)
{
    bool brought = was_brought(s, n, token, data);

    return (brought && check_tokens_may_repeat(s)) ||
           (!tokens_only_grow(s) && span_starts(owner, SPAN("owner-")) &&
            (data.len == 0 || brought));
}

static void check_data(struct sim *s, const struct redis_name *n, uint64_t token,
                       struct span owner, struct span data)
{
    if (!span_eq(data, data_of(s, n, token)) &&
        !may_have_other_data(s, n, token, owner, data)) {
        sim_fail(s, "the leader of %s %" PRIu64 " has the data '%.*s', not '%.*s'",
                 n->name.s, token, S(data_of(s, n, token)), S(data));
    }
}

/* --- what is told ---------------------------------------------------------------- */

static bool is_older(const struct sim *s, uint64_t token, uint64_t than)
{
    uint64_t slack = tokens_only_grow(s) ? 0 : OP_BLOCK_MAX;

    return token != 0 && token + slack < than;
}

/* The token of a loan is nobody's. */
static void check_leads(struct sim *s, const struct redis_name *n, uint64_t token)
{
    const struct sim_check *c = &s->check;

    for (size_t i = 0; i < c->loan_count && i < LOANS_KEPT; i++) {
        if (c->loans[i].name == n && c->loans[i].token == token &&
            !check_tokens_may_repeat(s)) {
            sim_fail(s, "told that %" PRIu64 " leads %s, which is the token of a loan",
                     token, n->name.s);
        }
    }
}

static void check_answer(struct sim *s, const struct sim_conn *c, uint64_t token)
{
    bool over = (c->ask.has & OPT_WAIT) != 0 && s->now >= c->asked_ms + c->ask.wait_ms;

    if (c->ask.has_after && token == c->ask.after && !over) {
        sim_fail(s, "told of the leader %" PRIu64 " before another one leads", token);
    }
    if (c->ask.has_after && is_older(s, token, c->ask.after)) {
        sim_fail(s, "told of the leader %" PRIu64 " after %" PRIu64, token,
                 c->ask.after);
    }
}

/* The answer is what Redis said after the question. */
static void check_fresh(struct sim *s, const struct sim_conn *c,
                        const struct redis_name *n, uint64_t token)
{
    bool true_then = token == true_leader(n) || c->led_count > LED_KEPT;

    for (size_t i = 0; i < c->led_count && i < LED_KEPT; i++) {
        true_then = true_then || token == c->led[i];
    }
    if (s->calm && !s->profile.local && !true_then) {
        sim_fail(s, "told of the leader %" PRIu64 " of %s, who did not lead by then",
                 token, n->name.s);
    }
}

void check_leader_answer(struct sim *s, struct sim_conn *c,
                         const struct effect_reply *r)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), rtext_span(&c->ask.name));
    uint64_t *seen = &c->seen_leader[check_name_index(s, n)];

    check_leads(s, n, r->token);
    check_data(s, n, r->token, r->text, r->data);
    check_answer(s, c, r->token);
    check_fresh(s, c, n, r->token);
    if (is_older(s, r->token, c->newest_leader[check_name_index(s, n)]) &&
        tokens_only_grow(s)) {
        sim_fail(s, "told of an older leader of %s than before", n->name.s);
    }
    *seen = r->token;
    if (r->token > c->newest_leader[check_name_index(s, n)]) {
        c->newest_leader[check_name_index(s, n)] = r->token;
    }
}

void check_leader_told(struct sim *s, struct sim_daemon *d,
                       const struct effect_leader *change)
{
    struct redis_name *n = sim_redis_name(sim_redis_now(s), change->name);
    struct leader_told *told = &s->check.leaders_told[d->index][check_name_index(s, n)];
    const struct leader *l = &change->leader;

    TRACE(s, "d%zu: the leader of %s is %" PRIu64 " %.*s", d->index, n->name.s,
          l->token, S(l->owner));
    check_leads(s, n, l->token);
    check_data(s, n, l->token, l->owner, l->data);
    if (told->ever && told->token == l->token && rtext_is(&told->owner, l->owner)) {
        sim_fail(s, "d%zu told twice of the leader %" PRIu64, d->index, l->token);
    }
    if (is_older(s, l->token, told->token)) {
        sim_fail(s, "d%zu told of the leader %" PRIu64 " after %" PRIu64, d->index,
                 l->token, told->token);
    }
    *told = (struct leader_told){ true, l->token, rtext_of(l->owner) };
}

/* --- what followers have learnt in the end ------------------------------------------
 */

/* A leader older than the one that was told is one that Redis has brought back: nobody
 * is told of it, however little older it is. */
static bool is_brought_back(uint64_t token, uint64_t told)
{
    return token != 0 && token < told;
}

static void check_follower(struct sim *s, const struct sim_conn *c,
                           const struct redis_name *n)
{
    uint64_t token = true_leader(n);

    if (c->open && c->asking && c->ask.kind == ASK_LEADER && c->ask.has_after &&
        !s->daemons[c->daemon].isolated &&
        rtext_is(&c->ask.name, rtext_span(&n->name)) && c->ask.after != token &&
        !is_brought_back(token, c->ask.after)) {
        sim_fail(s, "c%zu is not told that %" PRIu64 " leads %s: %s",
                 (size_t)(c - s->clients.conns), token, n->name.s, ask_text(&c->ask));
    }
}

void check_followers_know(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        check_follower(s, &s->clients.conns[i], n);
    }
    for (size_t d = 0; d < s->daemon_count; d++) {
        const struct leader_told *told =
            &s->check.leaders_told[d][check_name_index(s, n)];

        if (told->ever && s->daemons[d].follows[check_name_index(s, n)] &&
            !s->daemons[d].isolated && told->token != true_leader(n) &&
            !is_brought_back(true_leader(n), told->token)) {
            sim_fail(s, "d%zu told last that %" PRIu64 " leads %s, not %" PRIu64, d,
                     told->token, n->name.s, true_leader(n));
        }
    }
}

/* --- UNLOCK TO ------------------------------------------------------------------- */

/* A reader may hold through another daemon: this one cannot tell, and other readers may
 * go on. */
static bool is_readers(const struct sim *s, const struct ask *ask)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (r->kind == KIND_READ && rtext_is(&r->name->name, rtext_span(&ask->name)) &&
            (ask->token != 0 ? r->token == ask->token
                             : rtext_is(&r->id, rtext_span(&ask->id)) &&
                                   rtext_is(&r->owner, rtext_span(&ask->owner)))) {
            return true;
        }
    }
    return false;
}

/* Since it was asked for, a release has left the lock to a fair queue, or the name
 * rests, or the request that it named had ended. */
static bool was_not_handed(struct sim *s, const struct sim_conn *c)
{
    size_t i =
        check_name_index(s, sim_redis_name(sim_redis_now(s), rtext_span(&c->ask.name)));

    return s->check.not_handed_ms[i] != 0 && s->check.not_handed_ms[i] >= c->asked_ms;
}

/* No client gets a lease of which less than half is left: the daemon asks again. */
static bool comes_too_late(const struct sim *s, const struct sim_conn *unlocker,
                           const struct ask *ask)
{
    return (ask->has & OPT_LEASE) != 0 &&
           (s->now - unlocker->asked_ms) * 2 > ask->lease_ms;
}

/* An UNLOCK that names a waiter was answered: that one has the lock in the same turn.
 */
void check_handed(struct sim *s, const struct sim_conn *c)
{
    if (c->expect_held && was_not_handed(s, c)) {
        return;
    }
    for (size_t i = 0; i < s->clients.count && s->calm && s->profile.undelivered == 0;
         i++) {
        const struct sim_conn *w = &s->clients.conns[i];

        if (c->expect_held && !is_readers(s, &c->ask) && w->open && w->asking &&
            w->ask.kind == ASK_LOCK && w->daemon == c->daemon &&
            w->asked_ms < c->asked_ms && !w->may_be_null &&
            !comes_too_late(s, c, &w->ask) &&
            rtext_is(&w->ask.name, rtext_span(&c->ask.name)) &&
            rtext_is(&w->ask.id, rtext_span(&c->ask.to))) {
            s->check.handed_to = w->id;
            s->check.handed_call = w->call;
        }
    }
}

void check_handed_over(struct sim *s)
{
    for (size_t i = 0; i < s->clients.count && s->check.handed_to != 0; i++) {
        const struct sim_conn *w = &s->clients.conns[i];

        if (w->id == s->check.handed_to && w->call == s->check.handed_call && w->open &&
            w->asking) {
            sim_fail(s, "c%zu waits, and an UNLOCK has named it: %s", i,
                     ask_text(&w->ask));
        }
    }
    s->check.handed_to = 0;
}

/* --- HEARTBEAT ------------------------------------------------------------------- */

void check_heartbeats(struct sim *s, const struct sim_daemon *d)
{
    for (size_t i = 0; i < s->clients.count && s->profile.leaders; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (c->open && c->daemon == d->index && !c->has_heartbeat &&
            engine_conn_heartbeat(d->engine, c->id) != 0) {
            sim_fail(s, "c%zu has to be heard, and its net was not told", i);
        }
    }
}
