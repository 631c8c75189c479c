#include "backend/cluster/cluster_discovery.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { TIMEOUT_MAX_MS = 1000, BACKOFF_MAX_MS = 500 };

struct cluster_discovery {
    struct redis_conn *conn;
    struct backend_url url;
    const struct cluster_discovery_events *events;
    void *ctx;
    bool is_open;
    bool is_ready;
    bool is_asking;
    bool moving; /* by cluster_discovery_go() */
    bool closed;
};

static void on_nodes(void *ctx, void *of, const redisReply *reply)
{
    struct cluster_discovery *s = ctx;

    s->is_asking = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(s->conn, "%s", reply->str);
        return;
    }
    if (reply->type != REDIS_REPLY_STRING ||
        !s->events->on_view(s->ctx, span_of(reply->str, (size_t)reply->len),
                            s->url.host)) {
        redis_conn_fail(s->conn, "it gives no map of a cluster");
        return;
    }
    if (!s->is_ready && !s->closed) {
        s->is_ready = true;
        redis_conn_ready(s->conn, "for the map");
    }
}

void cluster_discovery_ask(struct cluster_discovery *s)
{
    if (!s->closed && s->is_open && !s->is_asking) {
        s->is_asking = true;
        redis_conn_ask(s->conn, 2, (const char *const[]){ "CLUSTER", "NODES" },
                       on_nodes, NULL);
        redis_conn_flush(s->conn);
    }
}

/* --- the connection -------------------------------------------------------------- */

static void on_open(void *ctx)
{
    struct cluster_discovery *s = ctx;

    s->is_open = true;
    cluster_discovery_ask(s);
}

static void on_gone(void *ctx)
{
    struct cluster_discovery *s = ctx;

    s->is_open = s->is_ready = s->is_asking = false;
    if (!s->moving) {
        s->events->on_failed(s->ctx, s);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_lost = on_gone,
    .on_refused = on_gone,
};

/* --- for the cluster ------------------------------------------------------------- */

static uint64_t limit_timeout(uint64_t timeout_ms)
{
    return timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
}

struct cluster_discovery *
cluster_discovery_new(const struct cluster_discovery_setup *setup)
{
    struct cluster_discovery *s = xcalloc(1, sizeof(*s));
    struct redis_conn_setup conn = {
        .io = setup->io,
        .url = &s->url,
        .module = "cluster",
        .is_quiet = setup->is_quiet,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .timeout_ms = limit_timeout(setup->timeout_ms),
        .seed = setup->seed,
        .events = &CONN_EVENTS,
        .ctx = s,
    };

    backend_url_copy(&s->url, setup->url);
    s->events = setup->events;
    s->ctx = setup->ctx;
    s->conn = redis_conn_new(&conn);
    return s;
}

void cluster_discovery_go(struct cluster_discovery *s, const char *host,
                          const char *port)
{
    backend_url_set_server(&s->url, span_str(host), span_str(port));
    s->moving = true;
    redis_conn_move(s->conn);
    s->moving = false;
}

void cluster_discovery_configure(struct cluster_discovery *s,
                                 const struct backend_url *from, uint64_t timeout_ms)
{
    backend_url_set_tls(&s->url, from->tls);
    (void)backend_url_set_login(&s->url, from);
    redis_conn_set_timeout(s->conn, limit_timeout(timeout_ms));
}

void cluster_discovery_close(struct cluster_discovery *s)
{
    s->closed = true;
    redis_conn_close(s->conn);
}

void cluster_discovery_free(struct cluster_discovery *s)
{
    if (s != NULL) {
        backend_url_fini(&s->url);
        free(s);
    }
}
