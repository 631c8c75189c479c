#include "daemon/status/web.h"

#include "daemon/server_state.h"
#include "daemon/status/web_priv.h"
#include "http/http.h"
#include "latchd-config.h"
#include "util/alloc.h"
#include "util/log.h"

#include <inttypes.h>
#include <stdlib.h>

enum { NAME_ROOM = 96, TOP_GRANTED_SECOND_MS = 1000 };

/* --- health ----------------------------------------------------------- */

bool web_health(void *ctx, struct buf *out)
{
    const struct server *s = ctx;
    struct engine_stats stats;
    struct store_info info;

    engine_stats(s->engine, &stats);
    store_info(s->store, &info);
    if (s->phase >= SERVER_STOPPING) {
        buf_add_str(out, "stopping");
    } else if (info.why_not != NULL) {
        buf_printf(out, "Redis cannot be used: %s", info.why_not);
    } else if (!s->redis_answered) {
        buf_add_str(out, "starting: Redis has not answered yet");
    } else if (!stats.store_up) {
        buf_add_str(out, "Redis is out of reach");
    } else if (s->now_ms < s->no_grants_until_ms) {
        buf_printf(out, "after a power cut: locks are granted again in %" PRIu64 " s",
                   (s->no_grants_until_ms - s->now_ms + 999) / 1000);
    } else {
        buf_add_str(out, "ok");
        return true;
    }
    return false;
}

/* --- history and hot names -------------------------------------------- */

static void take_sample(const struct server *s, struct history_sample *ret)
{
    struct engine_stats stats;
    struct net_stats net;
    struct store_info info;

    engine_stats(s->engine, &stats);
    net_stats(s->net, &net);
    store_info(s->store, &info);
    *ret = (struct history_sample){
        .grants = stats.grants,
        .held = stats.holds,
        .waiting = stats.waiters + stats.awaits,
        .connections = net.open,
        .wait = &engine_timings(s->engine)->wait,
        .redis = info.round_trips,
    };
}

static bool is_watched(const struct server *s, const struct web *w)
{
    return s->now_ms < w->watched_until_ms;
}

void web_watched(struct server *s)
{
    struct web *w = s->web;

    if (w->top_granted == NULL) {
        w->top_granted = s->top_granted = top_granted_new();
        top_waited_step(&w->top_waited, s->engine, TOP_WAITED_FIRST);
        w->sweep_at_ms = w->second_at_ms = s->now_ms;
    }
    w->watched_until_ms = s->now_ms + WATCHED_MS;
}

static void forget_watch(struct server *s)
{
    struct web *w = s->web;

    s->top_granted = NULL;
    top_granted_free(w->top_granted);
    w->top_granted = NULL;
    w->top_waited = (struct top_waited){ 0 };
}

uint64_t web_next_ms(const struct server *s)
{
    const struct web *w = s->web;

    if (w == NULL) {
        return UINT64_MAX;
    }
    return w->top_granted != NULL && w->sweep_at_ms < w->history.next_ms
               ? w->sweep_at_ms
               : w->history.next_ms;
}

static void look_at_clock(struct server *s)
{
    struct web *w = s->web;

    if (!is_watched(s, w)) {
        forget_watch(s);
        return;
    }
    if (s->now_ms >= w->second_at_ms) {
        w->second_at_ms = s->now_ms + TOP_GRANTED_SECOND_MS;
        top_granted_second(w->top_granted);
    }
    top_waited_step(&w->top_waited, s->engine, TOP_WAITED_STEP);
    w->sweep_at_ms = s->now_ms + SWEEP_MS;
}

void web_tick(struct server *s)
{
    struct web *w = s->web;
    struct history_sample sample;

    if (w == NULL) {
        return;
    }
    if (s->now_ms >= w->history.next_ms) {
        take_sample(s, &sample);
        history_add(&w->history, s->now_ms, &sample);
    }
    if (w->top_granted != NULL && s->now_ms >= w->sweep_at_ms) {
        look_at_clock(s);
    }
}

/* --- open and close --------------------------------------------------- */

#if LATCHD_HTTP

static struct http *open_http(struct server *s)
{
    char name[NAME_ROOM];
    char err[CONFIG_ERROR_MAX];
    struct http_setup setup = {
        .loop = &s->loop,
        .address = s->config.http_bind,
        .port = (unsigned)s->config.http_port,
        .ctx = s,
        .health = web_health,
        .metrics = web_metrics,
        .status = web_status,
        .names = web_names,
        .name = web_name,
    };
    struct http *h = http_open(&setup, name, sizeof(name), err, sizeof(err));

    if (h == NULL) {
        log_error("http", "cannot listen on %s: %s", s->config.http_bind, err);
        return NULL;
    }
    log_notice("http", "listening on http://%s/", name);
    if (!http_is_local(h)) {
        log_warning(
            "http",
            "there is no password: every program that reaches %s sees the names of "
            "all locks, their owners and the addresses of clients: admit only those "
            "that may",
            s->config.http_bind);
    }
    return h;
}

static void close_http(struct http *h)
{
    http_close(h);
}

#else

static struct http *open_http(struct server *s)
{
    log_error("http", "http-port is set, but this latchd was built without HTTP");
    return NULL;
}

static void close_http(struct http *h)
{
}

#endif

bool web_open(struct server *s)
{
    struct history_sample sample;
    struct http *h;

    if (s->config.http_port == 0) {
        return true;
    }
    h = open_http(s);
    if (h == NULL) {
        return false;
    }
    s->web = xcalloc(1, sizeof(*s->web));
    s->web->http = h;
    take_sample(s, &sample);
    history_start(&s->web->history, s->now_ms, &sample);
    return true;
}

void web_close(struct server *s)
{
    if (s->web != NULL) {
        close_http(s->web->http);
        forget_watch(s);
        free(s->web);
        s->web = NULL;
    }
}
