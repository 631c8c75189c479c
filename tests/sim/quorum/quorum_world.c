/* Time, and daemons. */
#include "sim/quorum/quorum.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { SPINS_MAX = 100000 };

static const char *const NAMES[] = { "a", "b", "c" };

struct span quorum_name(size_t i)
{
    return span_str(NAMES[i]);
}

size_t quorum_name_index(struct span name)
{
    return (size_t)(name.ptr[0] - 'a');
}

void quorum_trace(struct quorum *q, const char *fmt, ...)
{
    va_list ap;

    if (!q->loud) {
        return;
    }
    (void)printf("# %7" PRIu64 " ", q->now - QUORUM_START_MS);
    va_start(ap, fmt);
    (void)vprintf(fmt, ap);
    va_end(ap);
    (void)printf("\n");
}

void quorum_fail(struct quorum *q, const char *fmt, ...)
{
    va_list ap;

    if (q->failed) {
        return;
    }
    q->failed = true;
    va_start(ap, fmt);
    (void)vsnprintf(q->failure, sizeof(q->failure), fmt, ap);
    va_end(ap);
    quorum_trace(q, "VIOLATION: %s", q->failure);
}

/* --- events ------------------------------------------------------------------------
 */

/* Two of one moment come in the order in which they were made. */
void qevent_add(struct quorum *q, struct qevent *e, uint64_t at)
{
    heap_set(&q->events, &e->node, at << 20 | (q->event_seq++ & 0xfffff));
}

struct qevent *qevent_new(struct quorum *q, enum qevent_kind kind, uint64_t at)
{
    struct qevent *e = xcalloc(1, sizeof(*e));

    e->kind = kind;
    qevent_add(q, e, at);
    return e;
}

static void server_is_back(struct quorum *q, struct qserver *s)
{
    if (!s->keeps) {
        sim_redis_fini(&s->redis);
        sim_redis_init(&s->redis);
        s->redis.hooks.ctx = s;
        s->redis.hooks.published = qserver_published;
        s->weak_till = q->now + q->lease_ms;
    }
    s->dead = false;
    s->young = true;
    s->born = q->now;
    quorum_trace(q, "s%d: is back%s", (int)(s - q->servers), s->keeps ? "" : ", empty");
}

static void happen(struct quorum *q, struct qevent *e)
{
    q->happened++;
    switch (e->kind) {
    case QEVENT_DAEMON:
        qdaemon_start(q, e->daemon);
        break;
    case QEVENT_SERVER:
        server_is_back(q, &q->servers[e->server]);
        break;
    case QEVENT_LEFT:
        qclient_left(q, e);
        break;
    default:
        qlink_event(q, e); /* and frees it, or keeps it */
        return;
    }
    free(e);
}

/* --- daemons -----------------------------------------------------------------------
 */

static void on_done(void *ctx, const struct op_result *r)
{
    struct qdaemon *d = ctx;

    engine_on_op_result(d->engine, r);
}

static struct engine_config config_of(const struct quorum *q)
{
    return (struct engine_config){
        .watchdog_ms = q->lease_ms,
        .redis_timeout_ms = q->timeout_ms,
        .recheck_ms = 5000,
        .fair_wait_ms = 5000,
        .fair_window = 4,
        .handover_limit = 8,
        .handover_pause_ms = 2,
        .priority_aging_ms = 100,
        .grace_ms = -1,
        .max_waiters = 1000,
        .max_holds = 1000,
    };
}

void qdaemon_start(struct quorum *q, size_t index)
{
    struct qdaemon *d = &q->daemons[index];
    struct engine_setup engine = { .config = config_of(q),
                                   .now_ms = q->now,
                                   .quorum = true };
    struct coordinator_setup ballot = {
        .node_count = q->server_count,
        .timeout_ms = q->timeout_ms,
        .quarantine_ms = q->quarantine_ms,
        .seed = dice_u64(&q->dice),
        .now_ms = q->now,
        .events = { .ctx = d, .send = qlink_send, .done = on_done },
    };

    d->all = q;
    d->index = index;
    d->life++;
    (void)snprintf(d->instance, sizeof(d->instance), "%04zx%012" PRIx64, index,
                   d->life);
    memcpy(engine.instance, d->instance, sizeof(engine.instance));
    engine.seed = dice_u64(&q->dice);
    d->engine = engine_new(&engine);
    d->ballot = coordinator_new(&ballot);
    d->hearing = quorum_subs_new(q->server_count);
    d->ticked = q->now;
    d->told_up = false;
    memset(d->wanted, 0, sizeof(d->wanted));
    quorum_trace(q, "d%zu: starts", index);
    for (unsigned i = 0; i < q->server_count; i++) {
        d->links[i].up = false;
        d->links[i].life++;
        qlink_try(q, index, i, dice_below(&q->dice, 20));
    }
}

void qdaemon_kill(struct quorum *q, size_t index)
{
    struct qdaemon *d = &q->daemons[index];

    if (d->engine == NULL) {
        return;
    }
    quorum_trace(q, "d%zu: killed", index);
    qlink_forget(q, d);
    engine_free(d->engine);
    coordinator_free(d->ballot);
    quorum_subs_free(d->hearing);
    d->engine = NULL;
    d->ballot = NULL;
    d->hearing = NULL;
    qclient_daemon_died(q, index);
}

void qdaemon_begin(struct quorum *q, struct qdaemon *d)
{
    uint64_t wall_ms = q->now - QUORUM_START_MS + QUORUM_WALL_MS;

    d->ticked = q->now;
    engine_tick(d->engine, q->now);
    coordinator_tick(d->ballot, q->now, (wall_ms + (uint64_t)d->wall_ahead_ms) * 1000);
}

static void effect(struct quorum *q, struct qdaemon *d, const struct effect *e)
{
    switch (e->kind) {
    case EFFECT_OP:
        coordinator_submit(d->ballot, &e->op);
        break;
    case EFFECT_REPLY:
        qclient_reply(q, d, &e->reply);
        break;
    case EFFECT_NOTICE:
        qclient_notice(q, d, &e->notice);
        break;
    case EFFECT_SUBSCRIBE:
        d->wanted[quorum_name_index(e->channel.name)] = true;
        quorum_subs_add(d->hearing, e->channel.name, e->channel.lock_class);
        qlink_subscribe(q, d, quorum_name_index(e->channel.name));
        break;
    case EFFECT_UNSUBSCRIBE:
        d->wanted[quorum_name_index(e->channel.name)] = false;
        quorum_subs_remove(d->hearing, e->channel.name, e->channel.lock_class);
        break;
    case EFFECT_WAITED:
    case EFFECT_HELD:
    case EFFECT_HEARTBEAT:
    case EFFECT_LEADER:
    case EFFECT_ANNOUNCE:
    case EFFECT_WATCH: /* a quorum has none */
        break;
    }
}

void qdaemon_end(struct quorum *q, struct qdaemon *d)
{
    struct effects *fx = engine_effects(d->engine);

    while (fx->count > 0) {
        for (size_t i = 0; i < fx->count; i++) {
            struct effect e = *fx->list[i];

            effect(q, d, &e);
        }
        effects_reset(fx);
    }
    quorum_check(q);
}

/* --- time --------------------------------------------------------------------------
 */

static uint64_t wakes_at(const struct quorum *q, const struct qdaemon *d)
{
    uint64_t at, other;

    if (d->engine == NULL) {
        return UINT64_MAX;
    }
    at = engine_next_deadline(d->engine);
    other = coordinator_next_deadline(d->ballot);
    at = other < at ? other : at;
    return at < q->now ? q->now : at;
}

/* The next event, and its time. */
struct next {
    uint64_t at;
    struct qdaemon *daemon;
    struct qclient *client;
};

static struct next next_of(struct quorum *q)
{
    struct heap_node *first = heap_min(&q->events);
    struct next n = { first == NULL ? UINT64_MAX : first->at >> 20, NULL, NULL };

    for (size_t i = 0; i < q->daemon_count; i++) {
        uint64_t at = wakes_at(q, &q->daemons[i]);

        if (at < n.at) {
            n = (struct next){ at, &q->daemons[i], NULL };
        }
    }
    for (size_t i = 0; i < q->client_count; i++) {
        if (q->clients[i].next_at < n.at) {
            n = (struct next){ q->clients[i].next_at, NULL, &q->clients[i] };
        }
    }
    return n;
}

void quorum_advance(struct quorum *q, uint64_t ms)
{
    uint64_t end = q->now + ms;
    unsigned spins = 0;

    while (!q->failed) {
        struct next n = next_of(q);

        if (n.at > end) {
            break;
        }
        spins = n.at > q->now ? 0 : spins + 1;
        q->now = n.at > q->now ? n.at : q->now;
        if (spins > SPINS_MAX) {
            quorum_fail(q, "it spins");
        } else if (n.daemon != NULL) {
            qdaemon_begin(q, n.daemon);
            qdaemon_end(q, n.daemon);
        } else if (n.client != NULL) {
            qclient_act(q, n.client);
        } else {
            struct heap_node *first = heap_min(&q->events);

            heap_remove(&q->events, first);
            happen(q, container_of(first, struct qevent, node));
        }
    }
    q->now = end;
}
