#include "backend/cluster/cluster_discovery.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <stdlib.h>

enum { TIMEOUT_MAX_MS = 1000, BACKOFF_MAX_MS = 500 };

struct cluster_discovery {
    struct redis_conn *conn;
    struct backend_url url;
    const struct cluster_discovery_events *events;
    void *ctx;
    bool is_open;
    bool is_ready;
    bool logging_in;   /* AUTH is not answered yet */
    uint64_t asked_us; /* that is not answered yet; 0: nothing */
    bool moving;       /* by cluster_discovery_go() */
    bool closed;
};

void cluster_discovery_ask(struct cluster_discovery *s)
{
    static const char *const NODES[] = { "CLUSTER", "NODES" };

    if (!s->closed && s->is_open && s->asked_us == 0) {
        s->asked_us = clock_boot_us();
        command_words(redis_conn_out(s->conn), 2, NODES);
        redis_conn_flush(s->conn);
    }
}

/* --- the connection -------------------------------------------------------------- */

static void on_open(void *ctx)
{
    struct cluster_discovery *s = ctx;

    s->is_open = true;
    s->logging_in = redis_conn_auth(s->conn);
    cluster_discovery_ask(s);
}

static void on_gone(void *ctx)
{
    struct cluster_discovery *s = ctx;

    s->is_open = s->is_ready = s->logging_in = false;
    s->asked_us = 0;
    if (!s->moving) {
        s->events->on_failed(s->ctx, s);
    }
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct cluster_discovery *s = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(s->conn, "%s", reply->str);
        return;
    }
    if (s->logging_in) {
        s->logging_in = false;
        return;
    }
    s->asked_us = 0;
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

static void on_tick(void *ctx)
{
    struct cluster_discovery *s = ctx;

    if (s->asked_us != 0) {
        redis_conn_check_silence(s->conn, s->asked_us);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_gone,
    .on_refused = on_gone,
    .on_tick = on_tick,
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
