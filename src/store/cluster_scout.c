#include "store/cluster_scout.h"

#include "store/command.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <stdlib.h>

enum { TIMEOUT_MAX_MS = 1000, BACKOFF_MAX_MS = 500 };

struct cluster_scout {
    struct redis_conn *conn;
    struct store_url url;
    const struct cluster_scout_events *events;
    void *ctx;
    bool is_open;
    bool is_ready;
    bool logging_in;   /* AUTH is not answered yet */
    uint64_t asked_us; /* that is not answered yet; 0: nothing */
    bool moving;       /* by cluster_scout_go() */
    bool closed;
};

void cluster_scout_ask(struct cluster_scout *s)
{
    static const char *const NODES[] = { "CLUSTER", "NODES" };

    if (!s->closed && s->is_open && s->asked_us == 0) {
        s->asked_us = clock_boot_us();
        command_words(redis_conn_out(s->conn), 2, NODES);
        redis_conn_flush(s->conn);
    }
}

/* --- the connection -------------------------------------------------------------- */

static void on_wake(void *ctx)
{
    struct cluster_scout *s = ctx;

    s->events->on_wake(s->ctx);
}

static void on_open(void *ctx)
{
    struct cluster_scout *s = ctx;

    s->is_open = true;
    s->logging_in = redis_conn_auth(s->conn);
    cluster_scout_ask(s);
}

static void on_gone(void *ctx)
{
    struct cluster_scout *s = ctx;

    s->is_open = s->is_ready = s->logging_in = false;
    s->asked_us = 0;
    if (!s->moving) {
        s->events->on_failed(s->ctx, s);
    }
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct cluster_scout *s = ctx;

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
    struct cluster_scout *s = ctx;

    if (s->asked_us != 0) {
        redis_conn_check_silence(s->conn, s->asked_us);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_wake = on_wake,
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_gone,
    .on_refused = on_gone,
    .on_tick = on_tick,
};

/* --- for the cluster ------------------------------------------------------------- */

static uint64_t limited(uint64_t timeout_ms)
{
    return timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
}

struct cluster_scout *cluster_scout_new(const struct cluster_scout_setup *setup)
{
    struct cluster_scout *s = xcalloc(1, sizeof(*s));
    struct redis_conn_setup conn = {
        .io = setup->io,
        .url = &s->url,
        .module = "cluster",
        .is_quiet = setup->is_quiet,
        .backoff_max_ms = BACKOFF_MAX_MS,
        .timeout_ms = limited(setup->timeout_ms),
        .seed = setup->seed,
        .events = &CONN_EVENTS,
        .ctx = s,
    };

    store_url_copy(&s->url, setup->url);
    s->events = setup->events;
    s->ctx = setup->ctx;
    s->conn = redis_conn_new(&conn);
    return s;
}

void cluster_scout_go(struct cluster_scout *s, const char *host, const char *port)
{
    store_url_set_server(&s->url, span_str(host), span_str(port));
    s->moving = true;
    redis_conn_move(s->conn);
    s->moving = false;
}

void cluster_scout_set_tls(struct cluster_scout *s, struct tls *tls)
{
    store_url_set_tls(&s->url, tls);
}

void cluster_scout_set_timeout(struct cluster_scout *s, uint64_t timeout_ms)
{
    redis_conn_set_timeout(s->conn, limited(timeout_ms));
}

void cluster_scout_close(struct cluster_scout *s)
{
    s->closed = true;
    redis_conn_close(s->conn);
}

void cluster_scout_free(struct cluster_scout *s)
{
    if (s != NULL) {
        store_url_fini(&s->url);
        free(s);
    }
}
