#include "sim/world/sim_world.h"

#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CONN_INDEX_BITS = 16 }; /* a connection's id: serial, then its index */

void clients_fini(struct sim_clients *cl)
{
    free(cl->conns);
    cl->conns = NULL;
    cl->count = 0;
}

uint64_t conn_bit(const struct sim_conn *c)
{
    return (uint64_t)1 << (c->id & 63);
}

size_t sim_connect(struct sim *s, size_t daemon)
{
    struct sim_clients *cl = &s->clients;
    struct sim_conn *c = NULL;
    size_t i = 0;

    while (i < cl->count && cl->conns[i].open) {
        i++;
    }
    if (i == cl->count) {
        cl->conns = xrealloc(cl->conns, ++cl->count * sizeof(*cl->conns));
        memset(&cl->conns[i], 0, sizeof(cl->conns[i]));
    }
    c = &cl->conns[i];
    c->id = ++cl->serial << CONN_INDEX_BITS | i;
    c->daemon = daemon;
    c->open = true;
    c->asking = c->unreached = false;
    c->ahead_arrival = 0;
    c->has_heartbeat = false;
    c->led_count = 0;
    memset(c->seen_leader, 0, sizeof(c->seen_leader));
    memset(c->newest_leader, 0, sizeof(c->newest_leader));
    TRACE(s, "c%zu: connects to d%zu", i, daemon);
    return i;
}

void sim_close(struct sim *s, size_t index)
{
    struct sim_conn *c = &s->clients.conns[index];
    struct sim_daemon *d = &s->daemons[c->daemon];
    struct engine *l;

    if (!c->open) {
        return;
    }
    TRACE(s, "c%zu: closes", index);
    c->open = false;
    c->asking = c->unreached = false;
    check_closed(s, c);
    if (d->engine != NULL) {
        l = sim_turn_begin(s, d);
        engine_on_conn_closed(l, c->id);
        sim_turn_end(s, d);
    }
}

void clients_daemon_died(struct sim *s, size_t daemon)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        struct sim_conn *c = &s->clients.conns[i];

        if (c->open && c->daemon == daemon) {
            c->open = c->asking = c->unreached = false;
            check_closed(s, c);
        }
    }
    s->clients.undelivered_count = 0;
}

static bool waits(const struct ask *a)
{
    return a->kind == ASK_LOCK || a->kind == ASK_MLOCK;
}

bool ask_wants(const struct ask *ask, const struct redis_name *n)
{
    if (ask->kind == ASK_LOCK) {
        return rtext_is(&n->name, rtext_span(&ask->name));
    }
    for (size_t i = 0; ask->kind == ASK_MLOCK && i < ask->name_count; i++) {
        if (rtext_is(&n->name, rtext_span(&ask->names[i]))) {
            return true;
        }
    }
    return false;
}

/* Two LOCKs of one request. */
static bool same_request(const struct ask *a, const struct ask *b)
{
    return waits(a) && waits(b) && a->id.len > 0 &&
           rtext_is(&a->id, rtext_span(&b->id));
}

/* Whether a RENEW may mean what that LOCK with an ID was granted already. An owner's
 * RENEW without an ID means the newest entry; a bare one, or one with a token, what its
 * client was granted under the same ID. */
static bool may_renew(const struct sim *s, const struct sim_conn *me,
                      const struct ask *lock)
{
    const struct ask *ask = &me->ask;

    if (ask->id.len > 0) {
        return rtext_is(&lock->id, rtext_span(&ask->id));
    }
    return (ask->owner.len > 0 && rtext_is(&lock->owner, rtext_span(&ask->owner))) ||
           check_means_id(s, me, rtext_span(&lock->id));
}

/* The effect of this asking on the waits of others. */
static void touch_others(struct sim *s, struct sim_conn *me)
{
    const struct ask *ask = &me->ask;

    for (size_t i = 0; i < s->clients.count; i++) {
        struct sim_conn *c = &s->clients.conns[i];
        bool cancels =
            ask->kind == ASK_CANCEL && waits(&c->ask) &&
            (ask->id.len == 0 || rtext_is(&c->ask.id, rtext_span(&ask->id))) &&
            (ask->owner.len == 0 || rtext_is(&c->ask.owner, rtext_span(&ask->owner)));

        bool renews = ask->kind == ASK_RENEW && c->ask.id.len > 0 && waits(&c->ask) &&
                      may_renew(s, me, &c->ask);

        if (c != me && c->asking && (cancels || renews || same_request(&c->ask, ask))) {
            c->may_be_null = true;
            /* Which of two daemons was asked later, a ms does not tell. */
            me->may_be_null = me->may_be_null ||
                              (same_request(&c->ask, ask) && c->asked_ms == s->now);
        }
        if (c != me && c->asking &&
            (ask->kind == ASK_UNLOCK || ask->kind == ASK_FORCE ||
             ask->kind == ASK_CANCEL ||
             (ask->kind == ASK_RENEW && ask->lease_ms > 0))) {
            c->expect_held = false;
        }
    }
}

static void answer_int(struct sim_conn *c, int64_t value)
{
    c->asking = false;
    c->answers++;
    c->answer.kind = REPLY_INT;
    c->answer.value = value;
}

static void cancel(struct engine *l, struct sim_conn *c)
{
    const struct hold_req req = { .name = rtext_span(&c->ask.name),
                                  .owner = rtext_span(&c->ask.owner),
                                  .id = rtext_span(&c->ask.id) };
    bool others;

    answer_int(c, (int64_t)engine_cancel(l, &req, &others));
}

/* The value, without the origin that all clients share. */
static const char *value_word(const struct ask *ask)
{
    return ask->value.len > 0 ? ask->value.s + strlen(ASK_ORIGIN) : "";
}

static void call_hold(struct engine *l, const struct sim_conn *c)
{
    const struct ask *ask = &c->ask;
    struct rtext pattern = rtext_printf("*:%s", value_word(ask));
    struct hold_req req = {
        .from = { c->id, c->call },
        .lock_kind = ask->lock_kind,
        .name = rtext_span(&ask->name),
        .owner = rtext_span(&ask->owner),
        .id = rtext_span(&ask->id),
        .to = rtext_span(&ask->to),
        .value = ask->value.len > 0 ? rtext_span(&pattern) : SPAN_NONE,
        .token = ask->token,
        .lease_ms = ask->lease_ms,
        .any = ask->any,
    };

    if (ask->kind == ASK_UNLOCK) {
        engine_unlock(l, &req);
    } else if (ask->kind == ASK_RENEW) {
        engine_renew(l, &req);
    } else {
        engine_force_unlock(l, &req);
    }
}

struct lock_req lock_req_of(const struct sim_conn *c)
{
    const struct ask *ask = &c->ask;

    return (struct lock_req){
        .from = { c->id, c->call },
        .name = rtext_span(&ask->name),
        .terms = {
        .lock_kind = ask->lock_kind,
        .owner = rtext_span(&ask->owner),
        .id = rtext_span(&ask->id),
        .value = rtext_span(&ask->value),
        .data = rtext_span(&ask->data),
        .heartbeat_ms = ask->heartbeat_ms,
        .permits = ask->permits,
        .limit = ask->limit,
        .queue_max = ask->queue_max,
        .priority = ask->priority,
        .wait_ms = ask->wait_ms,
        .lease_ms = ask->lease_ms,
        .atleast_ms = ask->atleast_ms,
        .keep_ms = ask->keep_ms,
        .grace_ms = ask->grace_ms,
        .has = ask->has,
        },
        .polls_since = ask->polls_for_ms == 0 ? 0 : c->asked_ms - ask->polls_for_ms,
    };
}

static void call_lock(struct engine *l, const struct sim_conn *c)
{
    struct lock_req req = lock_req_of(c);

    engine_lock(l, &req);
}

static void call_leader(struct engine *l, const struct sim_conn *c)
{
    const struct leader_req req = {
        .from = { c->id, c->call },
        .name = rtext_span(&c->ask.name),
        .after = c->ask.after,
        .wait_ms = c->ask.wait_ms,
        .has_after = c->ask.has_after,
        .has_wait = (c->ask.has & OPT_WAIT) != 0,
    };

    engine_leader(l, &req);
}

static void call_mlock(struct engine *l, const struct sim_conn *c)
{
    struct span names[ASK_NAMES_MAX];
    struct lock_req one = lock_req_of(c);
    struct mlock_req req = { one.from,          one.terms,       names,
                             c->ask.name_count, one.polls_since, SPAN_NONE };

    for (size_t i = 0; i < c->ask.name_count; i++) {
        names[i] = rtext_span(&c->ask.names[i]);
    }
    engine_mlock(l, &req);
}

static void call_latch(struct engine *l, const struct sim_conn *c)
{
    static const enum latch_word WORDS[] = {
        [ASK_LATCH_SET] = LATCH_SETS,
        [ASK_LATCH_COUNT] = LATCH_COUNTS,
        [ASK_LATCH_AWAIT] = LATCH_AWAITS,
        [ASK_LATCH_DELETE] = LATCH_DELETES,
    };
    const struct latch_req req = {
        .from = { c->id, c->call },
        .word = WORDS[c->ask.kind],
        .name = rtext_span(&c->ask.name),
        .id = rtext_span(&c->ask.id),
        .count = c->ask.limit,
        .wait_ms = c->ask.wait_ms,
        .has_wait = (c->ask.has & OPT_WAIT) != 0,
    };

    engine_latch(l, &req);
}

void clients_asks(struct sim *s, size_t index, const struct ask *ask)
{
    struct sim_conn *c = &s->clients.conns[index];

    c->ask = *ask;
    c->asking = true;
    c->call = ++s->clients.calls;
    c->asked_ms = s->now;
    c->asked_happened = s->happened;
    c->arrival = ++s->clients.arrivals;
    c->may_be_null = false;
    c->expect_held = false;
    c->led_count = 0;
    TRACE(s, "c%zu: %s", index, ask_text(ask));
    if (ask_is_of_latch(ask)) {
        return;
    }
    touch_others(s, c);
    check_asked(s, c);
    check_queue_asked(s, c);
    check_cycle_asked(s, c);
}

void sim_ask(struct sim *s, size_t index, const struct ask *ask)
{
    struct sim_conn *c = &s->clients.conns[index];
    struct sim_daemon *d = &s->daemons[c->daemon];
    struct engine *l = sim_turn_begin(s, d);

    c->ahead_arrival = 0;
    clients_asks(s, index, ask);
    switch (ask->kind) {
    case ASK_LOCK:
        call_lock(l, c);
        break;
    case ASK_MLOCK:
        call_mlock(l, c);
        break;
    case ASK_UNLOCK:
    case ASK_RENEW:
    case ASK_FORCE:
        call_hold(l, c);
        break;
    case ASK_INFO:
        engine_lock_info(l, (struct call_ref){ c->id, c->call },
                         rtext_span(&ask->name));
        break;
    case ASK_CANCEL:
        cancel(l, c);
        break;
    case ASK_LEADER:
        call_leader(l, c);
        break;
    case ASK_LATCH_SET:
    case ASK_LATCH_COUNT:
    case ASK_LATCH_AWAIT:
    case ASK_LATCH_DELETE:
        call_latch(l, c);
        break;
    }
    sim_turn_end(s, d);
}

static void undelivered(struct sim *s, struct sim_conn *c, const struct effect_reply *r)
{
    struct sim_clients *cl = &s->clients;

    if (cl->undelivered_count == sizeof(cl->undelivered) / sizeof(cl->undelivered[0])) {
        return;
    }
    TRACE(s, "c%zu: is gone, %" PRId64 " was not delivered",
          (size_t)(c->id & ((1U << CONN_INDEX_BITS) - 1)), r->value);
    cl->undelivered[cl->undelivered_count].conn = c->id;
    cl->undelivered[cl->undelivered_count++].grant = r->grant;
    c->open = c->asking = false;
    check_closed(s, c);
}

void clients_heartbeat(struct sim *s, const struct effect_heartbeat *h)
{
    struct sim_conn *c =
        &s->clients.conns[h->conn & (((uint64_t)1 << CONN_INDEX_BITS) - 1)];

    c->has_heartbeat = c->has_heartbeat || c->id == h->conn;
}

void clients_reply(struct sim *s, struct sim_daemon *d, const struct effect_reply *r)
{
    size_t index = (size_t)(r->to.conn & ((1U << CONN_INDEX_BITS) - 1));
    struct sim_conn *c = index < s->clients.count ? &s->clients.conns[index] : NULL;

    if (c == NULL || c->id != r->to.conn || !c->open || !c->asking ||
        c->call != r->to.call || c->daemon != d->index) {
        sim_fail(s, "d%zu answers c%zu (call %" PRIu64 "), which asks nothing",
                 d->index, index, r->to.call);
        return;
    }
    if (r->kind == REPLY_TOKEN) {
        check_run(s, c);
    }
    if (r->kind == REPLY_LEADER) {
        check_leaders(s); /* while it asks still */
    }
    if (r->kind == REPLY_UNREACHED) {
        TRACE(s, "c%zu: was not reached", index);
        c->asking = false;
        c->unreached = true;
        s->clients.unreached++;
        return;
    }
    if ((r->kind == REPLY_TOKEN || r->kind == REPLY_TOKENS) &&
        dice_chance(&s->dice, s->profile.undelivered)) {
        undelivered(s, c, r);
        return;
    }
    c->asking = false;
    c->answers++;
    c->answer.kind = r->kind;
    c->answer.value = r->kind == REPLY_LEADER ? (int64_t)r->token : r->value;
    c->answer.error = r->error;
    for (size_t i = 0; i < r->token_count && i < ASK_NAMES_MAX; i++) {
        c->answer.tokens[i] = r->tokens[i];
    }
    c->answer.text =
        r->kind == REPLY_ERROR
            ? rtext_of(span_of(r->text.ptr,
                               r->text.len < RTEXT_MAX ? r->text.len : RTEXT_MAX))
            : rtext_of(r->kind == REPLY_LEADER ? r->data : SPAN_NONE);
    TRACE(s, "c%zu: hears %s %" PRId64 " %s", index, sim_heard(s, index),
          c->answer.value, c->answer.text.s);
    check_replied(s, c, r);
}
