/* The traffic between daemons and servers. */
#include "backend/quorum/quorum_coordinator.h"
#include "engine/op.h"
#include "sim/quorum/quorum.h"
#include "sim/redis/sim_redis.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

#define SPAN_ARGS(s) (int)(s).len, (s).ptr

struct sim_redis *qserver_redis(struct quorum *q, unsigned server)
{
    struct qserver *s = &q->servers[server];
    uint64_t now =
        (uint64_t)((int64_t)(q->now - QUORUM_START_MS + QUORUM_WALL_MS) + s->ahead_ms);

    if (now != s->redis.now_ms) {
        s->redis.now_ms = now;
        s->redis.us = 0;
    }
    return &s->redis;
}

static uint64_t delay(struct quorum *q, size_t daemon, unsigned server)
{
    return dice_below(&q->dice, q->rtt_ms + 1) + q->servers[server].slow_ms +
           q->daemons[daemon].links[server].slow_ms;
}

static uint64_t in_order(uint64_t *last, uint64_t at)
{
    *last = at > *last ? at : *last;
    return *last;
}

static void packet_free(struct quorum *q, struct packet *p)
{
    heap_remove(&q->events, &p->event.node);
    list_del(&p->in_link);
    if (p->ran) {
        redis_reply_fini(&p->reply);
    }
    free(p->op);
    free(p);
}

void qlink_send(void *ctx, unsigned node, const struct op *op)
{
    struct qdaemon *d = ctx;
    struct quorum *q = d->all;
    struct qlink *l = &d->links[node];
    struct packet *p = xcalloc(1, sizeof(*p));

    if (!l->up) {
        quorum_fail(q, "d%zu: an op for s%u, which is down", d->index, node);
    }
    p->op = op_clone(op);
    p->times.asked_us = sim_redis_us(
        &q->servers[node].redis,
        (uint64_t)((int64_t)(q->now - QUORUM_START_MS + QUORUM_WALL_MS) + l->ahead_ms));
    p->times.deadline_us = p->times.asked_us + q->timeout_ms * 1000;
    p->event.kind = QEVENT_THERE;
    p->event.daemon = d->index;
    p->event.server = node;
    p->event.life = l->life;
    p->born = q->servers[node].born;
    list_append(&l->open, &p->in_link);
    qevent_add(q, &p->event,
               in_order(&l->last_there, q->now + delay(q, d->index, node)));
}

static void trace_run(struct quorum *q, const struct packet *p)
{
    const struct op *op = p->op;
    const struct op_result *r = &p->reply.result;
    const struct claim *claim = op_claim(op);
    const struct target *target = op->kind == OP_RELEASE  ? &op->release.target
                                  : op->kind == OP_ATTACH ? &op->attach.target
                                                          : NULL;
    struct span by = claim != NULL    ? claim->field
                     : target != NULL ? target->field
                                      : SPAN_NONE;
    struct span entry = target != NULL && target->entry.len != 0 ? target->entry
                        : op->kind == OP_ATTACH                  ? r->attach.entry
                                                                 : SPAN_NONE;

    quorum_trace(q,
                 "s%u: op %" PRIu64 " kind %d of d%zu on %.*s by %.*s (%.*s) -> %d "
                 "token %" PRIu64 " count %" PRId64,
                 p->event.server, op->id, op->kind, p->event.daemon,
                 SPAN_ARGS(op->name), SPAN_ARGS(by), SPAN_ARGS(entry), r->status,
                 r->token, r->count);
    for (size_t i = 0; op->kind == OP_RENEW && i < op->renew.count; i++) {
        quorum_trace(q, "  %.*s by %.*s for %" PRIu64 " ms -> %d",
                     SPAN_ARGS(op->renew.items[i].name),
                     SPAN_ARGS(op->renew.items[i].field), op->renew.items[i].lease_ms,
                     r->renew.count > i ? (int)r->renew.items[i] : -1);
    }
}

static void run(struct quorum *q, struct packet *p)
{
    p->ran = true;
    sim_redis_run(qserver_redis(q, p->event.server),
                  q->daemons[p->event.daemon].instance, p->op, p->times, &p->reply);
    trace_run(q, p);
}

static void there(struct quorum *q, struct packet *p)
{
    struct qserver *s = &q->servers[p->event.server];
    struct qlink *l = &q->daemons[p->event.daemon].links[p->event.server];

    if (s->dead || p->born != s->born) {
        return; /* died with its connection; it stays open until the link is back */
    }
    if (q->now < s->stopped_till) {
        qevent_add(q, &p->event, s->stopped_till);
        return;
    }
    run(q, p);
    p->event.kind = QEVENT_BACK;
    qevent_add(
        q, &p->event,
        in_order(&l->last_back, q->now + delay(q, p->event.daemon, p->event.server)));
}

static void back(struct quorum *q, struct packet *p)
{
    struct qdaemon *d = &q->daemons[p->event.daemon];
    unsigned server = p->event.server;
    struct qlink *l = &d->links[server];

    if (!l->up) {
        return; /* unknown, once the link is back */
    }
    list_del(&p->in_link);
    qdaemon_begin(q, d);
    coordinator_result(d->ballot, server, &p->reply.result);
    qdaemon_end(q, d);
    packet_free(q, p);
}

/* --- up and down -------------------------------------------------------------------
 */

static void tell_up(struct qdaemon *d)
{
    bool up = coordinator_is_up(d->ballot);

    if (up && !d->told_up) {
        engine_on_store_up(d->engine, true);
    } else if (!up && d->told_up) {
        engine_on_store_down(d->engine);
    }
    d->told_up = up;
}

void qlink_try(struct quorum *q, size_t daemon, unsigned server, uint64_t in_ms)
{
    struct qevent *e = qevent_new(q, QEVENT_LINK, q->now + in_ms);

    e->daemon = daemon;
    e->server = server;
    e->life = q->daemons[daemon].life;
}

static void on_subscription(void *ctx, struct span name, enum lock_class lock_class)
{
    struct qdaemon *d = ctx;

    engine_on_subscribed(d->engine, name, lock_class);
}

void qlink_down(struct quorum *q, struct qdaemon *d, unsigned server)
{
    struct qlink *l = &d->links[server];

    if (d->engine == NULL || !l->up) {
        return;
    }
    quorum_trace(q, "d%zu: link to s%u is down", d->index, server);
    qdaemon_begin(q, d);
    l->up = false;
    memset(l->subscribed, 0, sizeof(l->subscribed));
    coordinator_node_down(d->ballot, server);
    tell_up(d);
    if (quorum_subs_off(d->hearing, server)) {
        engine_on_subscriptions_lost(d->engine);
        quorum_subs_tell(d->hearing, on_subscription, d);
    }
    qdaemon_end(q, d);
    qlink_try(q, d->index, server, dice_below(&q->dice, 200));
}

static void end_open(struct qdaemon *d, unsigned server, struct list *old)
{
    struct list *it;

    while ((it = list_first(old)) != NULL) {
        struct packet *p = container_of(it, struct packet, in_link);
        struct op_result r = { .id = p->op->id, .status = OP_UNKNOWN };

        packet_free(d->all, p);
        coordinator_result(d->ballot, server, &r);
    }
}

/* A daemon finds out that a clock was set. */
static void look_at_clock(struct quorum *q, struct qdaemon *d, unsigned server)
{
    struct qlink *l = &d->links[server];

    if (d->engine == NULL || !l->up || l->ahead_ms == q->servers[server].ahead_ms) {
        return; /* else it is seen when the link is up */
    }
    qdaemon_begin(q, d);
    l->ahead_ms = q->servers[server].ahead_ms;
    coordinator_node_lost(d->ballot, server);
    qdaemon_end(q, d);
}

static void link_up(struct quorum *q, struct qdaemon *d, unsigned server)
{
    struct qlink *l = &d->links[server];
    struct qserver *s = &q->servers[server];
    bool same = l->born == s->born && l->life > 1;
    /* A daemon that has not seen its clock before could not know: that is not tried. */
    bool jumped = q->now < s->jumped_till || (same && l->ahead_ms != s->ahead_ms);
    struct list old;

    if (d->engine == NULL || l->up) {
        return;
    }
    if (s->dead || l->cut || q->now < s->stopped_till) {
        qlink_try(q, d->index, server, 50 + dice_below(&q->dice, 200));
        return;
    }
    quorum_trace(q, "d%zu: link to s%u is up", d->index, server);
    l->up = true;
    l->life++;
    l->born = s->born;
    l->ahead_ms = s->ahead_ms;
    list_init(&old);
    list_splice(&old, &l->open);
    qdaemon_begin(q, d);
    coordinator_node_up(d->ballot, server, same,
                        s->young ? q->now - s->born : UINT64_MAX);
    if (jumped) {
        coordinator_node_lost(d->ballot, server);
    }
    tell_up(d);
    end_open(d, server, &old);
    qdaemon_end(q, d);
    for (size_t i = 0; i < q->name_count; i++) {
        if (d->wanted[i]) {
            struct qevent *e =
                qevent_new(q, QEVENT_SUBSCRIBED, q->now + delay(q, d->index, server));

            e->daemon = d->index;
            e->server = server;
            e->life = l->life;
            e->name = i;
        }
    }
}

void qlink_forget(struct quorum *q, struct qdaemon *d)
{
    for (unsigned i = 0; i < q->server_count; i++) {
        struct qlink *l = &d->links[i];
        struct list *it;

        while ((it = list_first(&l->open)) != NULL) {
            struct packet *p = container_of(it, struct packet, in_link);

            if (!p->ran && !q->servers[i].dead && dice_chance(&q->dice, 500)) {
                run(q, p);
            }
            packet_free(q, p);
        }
        l->up = false;
        l->life++;
        memset(l->subscribed, 0, sizeof(l->subscribed));
    }
}

/* --- messages ----------------------------------------------------------------------
 */

void qlink_subscribe(struct quorum *q, struct qdaemon *d, size_t name)
{
    for (unsigned i = 0; i < q->server_count; i++) {
        if (d->links[i].up) {
            struct qevent *e =
                qevent_new(q, QEVENT_SUBSCRIBED, q->now + delay(q, d->index, i));

            d->links[i].subscribed[name] = false;
            e->daemon = d->index;
            e->server = i;
            e->life = d->links[i].life;
            e->name = name;
        }
    }
}

void qserver_published(void *ctx, const struct redis_message *m)
{
    struct qserver *s = ctx;
    struct quorum *q = s->all;
    unsigned server = (unsigned)(s - q->servers);
    size_t name = quorum_name_index(rtext_span(&m->name->name));

    if (m->lock_class != CLASS_PLAIN || m->member.len > 0) {
        return;
    }
    for (size_t i = 0; i < q->daemon_count; i++) {
        struct qlink *l = &q->daemons[i].links[server];

        if (q->daemons[i].engine != NULL && l->up && l->subscribed[name]) {
            struct qevent *e =
                qevent_new(q, QEVENT_MESSAGE, q->now + delay(q, i, server));

            e->daemon = i;
            e->server = server;
            e->life = l->life;
            e->name = name;
        }
    }
}

static void heard(struct quorum *q, const struct qevent *e)
{
    struct qdaemon *d = &q->daemons[e->daemon];
    struct qlink *l = &d->links[e->server];
    struct span name = quorum_name(e->name);

    if (d->engine == NULL || !l->up || l->life != e->life || !d->wanted[e->name]) {
        return;
    }
    qdaemon_begin(q, d);
    if (e->kind == QEVENT_MESSAGE) {
        engine_on_message(d->engine, name, false, SPAN("0"));
    } else {
        l->subscribed[e->name] = true;
        if (quorum_subs_on(d->hearing, e->server, name, false)) {
            engine_on_subscribed(d->engine, name, false);
        }
    }
    qdaemon_end(q, d);
}

void qlink_event(struct quorum *q, struct qevent *e)
{
    struct qdaemon *d = &q->daemons[e->daemon];

    switch (e->kind) {
    case QEVENT_THERE:
        there(q, container_of(e, struct packet, event));
        return;
    case QEVENT_BACK:
        back(q, container_of(e, struct packet, event));
        return;
    case QEVENT_LINK:
        if (e->life == d->life) {
            link_up(q, d, e->server);
        }
        break;
    case QEVENT_SILENT:
        if (q->now < q->servers[e->server].stopped_till) {
            qlink_down(q, d, e->server);
        }
        break;
    case QEVENT_CLOCK:
        look_at_clock(q, d, e->server);
        break;
    default:
        heard(q, e);
        break;
    }
    free(e);
}
