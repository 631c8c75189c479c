#include "backend/node.h"

#include "backend/redis/redis_link.h"
#include "backend/redis/redis_relay.h"
#include "backend/redis/redis_sub.h"
#include "backend/redis/redis_watch.h"
#include "backend/replica_ack.h"
#include "backend/script/script_codec.h"
#include "util/alloc.h"

#include <stdlib.h>

struct node {
    struct redis_link *link;
    bool batches;
    struct script_batch batch;       /* for that link */
    struct replica_ack *replica_ack; /* NULL: no replica is waited for */
    struct redis_sub *sub;
    struct redis_watch *watch; /* NULL: none is wanted */
    struct redis_relay *relay; /* NULL: no lock library has waited for a message yet */
    const struct store_setup *store;
    const struct backend_url *from; /* the login and TLS */
    struct backend_url url;
    struct store_events events;
    const char *(*why_not)(void *ctx, bool same_server);
    bool hears_daemons;
    uint64_t calls, unknown, late, errors;
    struct redis_link_setup link_setup; /* for a second one */
    bool told_up;
    bool moved;              /* to another server, since it was last up */
    enum link_change change; /* since it was last up */
    bool started;
    bool closed;
    struct script_result scratch;
};

/* --- from the links -------------------------------------------------------------- */

/* The watch link may lead to the old master still, too, or to another server behind the
 * same address. */
static bool watch_must_follow(const struct node *n, enum link_change change)
{
    bool failed_over =
        change == LINK_FAILED_OVER && n->link_setup.publish == PUBLISH_PLAIN;

    return n->watch != NULL && !n->moved &&
           (failed_over || !redis_watch_is_with_first(n->watch));
}

static void tell_up(struct node *n)
{
    enum link_change change = n->change;

    if (watch_must_follow(n, change)) {
        redis_watch_move(n->watch);
    }
    if (change == LINK_FAILED_OVER && n->link_setup.publish == PUBLISH_PLAIN) {
        if (!n->moved) {
            redis_sub_move(n->sub); /* it may lead to the old master */
        }
        store_tell(&n->events, &(struct store_event){ .kind = STORE_FAILED_OVER });
    }
    n->told_up = true;
    n->moved = false;
    n->change = LINK_SAME;
    store_tell(&n->events, &(struct store_event){ .kind = STORE_UP,
                                                  .same_server = change == LINK_SAME });
}

static const char *why_not(void *ctx, bool same_server)
{
    struct node *n = ctx;

    return n->why_not == NULL ? NULL : n->why_not(n->events.ctx, same_server);
}

static void on_up(void *ctx, enum link_change change)
{
    struct node *n = ctx;

    n->change = change > n->change ? change : n->change;
    if (n->replica_ack == NULL || replica_ack_agree(n->replica_ack, false)) {
        tell_up(n);
    }
}

static void on_second_up(void *ctx)
{
    struct node *n = ctx;

    if (replica_ack_agree(n->replica_ack, true) && !n->told_up) {
        tell_up(n);
    }
}

/* From any link. */
static void on_down(void *ctx)
{
    struct node *n = ctx;

    if (n->told_up) {
        n->told_up = false;
        store_tell(&n->events, &(struct store_event){ .kind = STORE_DOWN });
    }
}

static void count_result(struct node *n, enum op_status status)
{
    switch (status) {
    case OP_UNKNOWN:
        n->unknown++;
        break;
    case OP_LATE:
        n->late++;
        break;
    case OP_ERROR:
        n->errors++;
        break;
    default:
        break;
    }
}

static void deliver_reply(void *ctx, const struct redis_call *call,
                          const redisReply *reply, bool acked)
{
    struct node *n = ctx;
    struct script_result *r = &n->scratch;

    if (reply != NULL) {
        script_reply(reply, (enum op_kind)call->op_kind, call->item_count, r);
    } else {
        r->result = (struct op_result){ .status = OP_UNKNOWN };
    }
    r->result.id = call->op_id;
    if (!acked) {
        r->result.status = OP_NOREPLICAS;
    }
    count_result(n, r->result.status);
    store_tell(&n->events,
               &(struct store_event){ .kind = STORE_RESULT, .result = &r->result });
    script_result_fini(r);
}

static void on_reply(void *ctx, const struct redis_call *call, const redisReply *reply)
{
    struct node *n = ctx;

    if (n->replica_ack != NULL) {
        replica_ack_on_reply(n->replica_ack, call, reply);
    } else {
        deliver_reply(n, call, reply, true);
    }
}

static const struct redis_link_events LINK_EVENTS = {
    .why_not = why_not,
    .on_up = on_up,
    .on_down = on_down,
    .on_reply = on_reply,
};

static const struct replica_ack_events ACKED_EVENTS = {
    .why_not = why_not,
    .on_up = on_second_up,
    .on_down = on_down,
    .on_reply = deliver_reply,
};

/* --- to the first link ------------------------------------------------------------ */

static void send_ops(struct node *n, const struct op *ops, size_t count)
{
    struct op_times times;
    struct buf *out;

    if (count == 0) {
        return;
    }
    out = redis_link_call(n->link, ops, count, &times);
    if (out != NULL) {
        script_call(out, ops, count, n->store->instance, times);
    }
}

/* Has to happen before the link is flushed. */
static void flush_batch(struct node *n)
{
    send_ops(n, n->batch.releases.ops, n->batch.releases.count);
    send_ops(n, n->batch.acquires.ops, n->batch.acquires.count);
    script_batch_clear(&n->batch);
}

/* Several ops leave as one script call where that is possible. */
static void submit_to_link(struct node *n, const struct op *op)
{
    bool simple =
        n->batches && script_batch_is_simple(op) && redis_link_takes_batch(n->link);

    if (script_batch_is_in_the_way(&n->batch, op, simple)) {
        flush_batch(n);
    }
    if (simple) {
        script_batch_add(&n->batch, op);
    } else {
        send_ops(n, op, 1);
    }
}

/* --- for the store ------------------------------------------------------------- */

/* The second link comes with the first configuration that needs it. */
static void configure_acked(struct node *n)
{
    const struct store_options *options = &n->store->options;

    if (n->replica_ack == NULL && options->min_replicas > 0) {
        struct replica_ack_setup setup = {
            .link = n->link_setup,
            .first = n->link,
            .instance = n->store->instance,
            .events = &ACKED_EVENTS,
            .ctx = n,
        };

        n->replica_ack = replica_ack_new(&setup);
        if (n->started) {
            replica_ack_start(n->replica_ack);
        }
    }
    if (n->replica_ack != NULL) {
        replica_ack_configure(n->replica_ack, options);
    }
}

struct node *node_new(const struct node_setup *setup)
{
    const struct store_setup *store = setup->store;
    struct node *n = xcalloc(1, sizeof(*n));
    struct redis_conn_setup conn = {
        .io = store->io,
        .url = &n->url,
        .timeout_ms = store->options.timeout_ms,
        .seed = setup->seed,
        .backoff_max_ms = setup->backoff_max_ms,
    };
    struct redis_link_setup link = {
        .conn = conn,
        .is_replicated = setup->is_replicated,
        .publish = setup->publish,
        .round_trips = store->round_trips,
        .told = setup->events,
        .events = &LINK_EVENTS,
        .ctx = n,
    };
    struct redis_sub_setup sub = {
        .conn = conn,
        .is_clustered = setup->publish != PUBLISH_PLAIN,
        .instance = store->instance,
        .hears_daemons = setup->hears_daemons,
        .events = setup->events,
    };

    sub.conn.seed = ~setup->seed;
    backend_url_copy(&n->url, setup->url);
    if (setup->host != NULL) {
        backend_url_set_server(&n->url, span_str(setup->host), span_str(setup->port));
    }
    if (n->url.wants_tls && n->url.tls == NULL) {
        abort(); /* or passwords would go out in the clear */
    }
    n->store = store;
    n->from = setup->url;
    n->events = setup->events;
    n->why_not = setup->why_not;
    n->hears_daemons = setup->hears_daemons;
    n->link_setup = link;
    n->link = redis_link_new(&link);
    n->batches = setup->batches;
    n->sub = redis_sub_new(&sub);
    if (setup->watches) {
        struct redis_watch_setup watch = {
            .conn = conn,
            .first = n->link,
            .instance = store->instance,
            .is_clustered = sub.is_clustered,
            .events = setup->events,
        };

        n->watch = redis_watch_new(&watch);
    }
    configure_acked(n);
    return n;
}

void node_start(struct node *n)
{
    n->started = true;
    redis_link_start(n->link);
    redis_sub_start(n->sub);
    if (n->watch != NULL) {
        redis_watch_start(n->watch);
    }
    if (n->replica_ack != NULL) {
        replica_ack_start(n->replica_ack);
    }
}

void node_move(struct node *n, const char *host, const char *port)
{
    backend_url_set_server(&n->url, span_str(host), span_str(port));
    n->started = true;
    n->moved = true;
    redis_link_move(n->link);
    redis_sub_move(n->sub);
    if (n->watch != NULL) {
        redis_watch_move(n->watch);
    }
    if (n->relay != NULL) {
        redis_relay_move(n->relay);
    }
    if (n->replica_ack != NULL) {
        replica_ack_move(n->replica_ack);
    }
}

void node_abandon(struct node *n, bool (*concerns)(void *ctx, uint32_t group),
                  void *ctx, bool sent_too)
{
    redis_link_abandon(n->link, concerns, ctx, sent_too);
    if (n->replica_ack != NULL) {
        replica_ack_abandon(n->replica_ack, concerns, ctx, sent_too);
    }
}

void node_adopt(struct node *n, struct node *from,
                bool (*concerns)(void *ctx, uint32_t group), void *ctx)
{
    redis_sub_adopt(n->sub, from->sub, concerns, ctx);
}

struct redis_link *node_link(struct node *n)
{
    return n->link;
}

void node_resubscribe(struct node *n)
{
    redis_sub_retry(n->sub);
}

void node_configure(struct node *n)
{
    uint64_t timeout_ms = n->store->options.timeout_ms;
    bool logs_in = backend_url_set_login(&n->url, n->from);

    backend_url_set_tls(&n->url, n->from->tls);
    flush_batch(n); /* before replicas count for what comes then */
    if (logs_in) {
        redis_link_log_in(n->link);
        if (n->watch != NULL && n->started) {
            redis_watch_move(n->watch); /* perhaps this user may be told */
        }
        if (n->replica_ack != NULL) {
            replica_ack_log_in(n->replica_ack);
        }
    }
    redis_link_set_timeout(n->link, timeout_ms);
    redis_sub_set_timeout(n->sub, timeout_ms);
    if (n->watch != NULL) {
        redis_watch_set_timeout(n->watch, timeout_ms);
    }
    if (n->relay != NULL) {
        redis_relay_set_timeout(n->relay, timeout_ms);
    }
    n->link_setup.conn.timeout_ms = timeout_ms;
    configure_acked(n);
}

void node_submit(struct node *n, const struct op *op)
{
    if (n->closed) {
        return;
    }
    n->calls++;
    if (n->replica_ack != NULL) {
        replica_ack_submit(n->replica_ack, op);
    } else {
        submit_to_link(n, op);
    }
}

void node_subscribe(struct node *n, struct span name, enum lock_class lock_class,
                    bool wanted)
{
    if (!n->closed) {
        redis_sub_want(n->sub, name, lock_class, wanted);
    }
}

void node_listen(struct node *n, struct span name, struct span member, bool wanted)
{
    if (!n->closed) {
        redis_sub_listen(n->sub, name, member, wanted);
    }
}

void node_watch(struct node *n, struct span name)
{
    if (!n->closed && n->watch != NULL) {
        redis_watch_name(n->watch, name);
    }
}

bool node_announce(struct node *n, struct span text)
{
    return n->hears_daemons && !n->closed && redis_link_announce(n->link, text);
}

void node_hear(struct node *n, bool is_pattern, struct span name, bool wanted)
{
    if (n->closed || (n->relay == NULL && !wanted)) {
        return;
    }
    if (n->relay == NULL) {
        struct redis_relay_setup setup = {
            .conn = n->link_setup.conn,
            .events = n->events,
        };

        n->relay = redis_relay_new(&setup);
    }
    redis_relay_hear(n->relay, is_pattern, name, wanted);
}

bool node_hears(const struct node *n, bool is_pattern, struct span name)
{
    return !n->closed && n->relay != NULL &&
           redis_relay_hears(n->relay, is_pattern, name);
}

bool node_publish(struct node *n, struct span channel, struct span text)
{
    return !n->closed && redis_link_publish(n->link, channel, text);
}

void node_begin_turn(struct node *n)
{
    /* The node waited for a second link only, which is not wanted any more. */
    if (!n->told_up && n->replica_ack == NULL && !n->closed &&
        redis_link_is_ready(n->link)) {
        tell_up(n);
    }
}

void node_end_turn(struct node *n)
{
    if (n->closed) {
        return;
    }
    flush_batch(n);
    if (n->replica_ack != NULL) {
        replica_ack_end_turn(n->replica_ack);
        if (replica_ack_is_over(n->replica_ack)) {
            replica_ack_close(n->replica_ack);
            replica_ack_free(n->replica_ack);
            n->replica_ack = NULL;
        }
    }
    redis_link_flush(n->link);
    redis_sub_flush(n->sub);
    if (n->watch != NULL) {
        redis_watch_flush(n->watch);
    }
    if (n->relay != NULL) {
        redis_relay_flush(n->relay);
    }
}

void node_info(const struct node *n, struct store_info *ret)
{
    ret->calls += n->calls;
    ret->unknown += n->unknown;
    ret->late += n->late;
    ret->errors += n->errors;
    if (!n->closed) {
        redis_link_info(n->link, ret);
    }
    if (!n->closed && n->replica_ack != NULL) {
        replica_ack_info(n->replica_ack, ret);
    }
    if (!n->closed && n->watch != NULL) {
        const char *why_not = redis_watch_why_not(n->watch);

        ret->watchable++;
        ret->watches += why_not == NULL;
        ret->watch_why_not = why_not == NULL ? ret->watch_why_not : why_not;
    }
}

void node_tell(const struct node *n, const char *role, store_node_fn *fn, void *ctx)
{
    struct store_info info = { 0 };

    node_info(n, &info);
    fn(ctx, &(struct store_node_info){
                .address = info.address,
                .role = role,
                .up = info.up,
                .reconnects = info.reconnects,
                .in_flight = info.in_flight,
                .round_trip_us = info.round_trip_us,
            });
}

void node_close(struct node *n)
{
    if (n != NULL && !n->closed) {
        n->closed = true;
        redis_link_close(n->link);
        redis_sub_close(n->sub);
        if (n->watch != NULL) {
            redis_watch_close(n->watch);
        }
        if (n->relay != NULL) {
            redis_relay_close(n->relay);
        }
        if (n->replica_ack != NULL) {
            replica_ack_close(n->replica_ack);
        }
    }
}

void node_free(struct node *n)
{
    if (n == NULL) {
        return;
    }
    replica_ack_free(n->replica_ack);
    redis_link_free(n->link);
    redis_sub_free(n->sub);
    redis_watch_free(n->watch);
    redis_relay_free(n->relay);
    backend_url_fini(&n->url);
    free(n);
}
