#include "backend/sentinel/sentinel_sub.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/span.h"

#include <stdlib.h>

struct sentinel_sub {
    struct redis_conn *conn;
    const char *master;
    const struct sentinel_sub_events *events;
    void *ctx;
    uint64_t asked_us; /* SUBSCRIBE or PING is open since then; 0: none is */
};

static void on_open(void *ctx)
{
    struct sentinel_sub *n = ctx;
    const char *const words[] = { "SUBSCRIBE", "+switch-master" };

    (void)redis_conn_auth(n->conn);
    command_words(redis_conn_out(n->conn), 2, words);
    n->asked_us = clock_boot_us();
}

/* "name old-host old-port new-host new-port". The epoch is not in it, so the Sentinel
 * has to be asked. */
static void on_message(struct sentinel_sub *n, const char *text)
{
    size_t len = strlen(n->master);

    if (strncmp(text, n->master, len) == 0 && text[len] == ' ') {
        n->events->on_switch(n->ctx);
    }
}

static bool is_text(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct sentinel_sub *n = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(n->conn, "%s", reply->str);
        return;
    }
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
        return; /* AUTH's */
    }
    n->asked_us = 0;
    if (reply->elements == 3 && is_text(reply->element[0], "message") &&
        reply->element[2]->type == REDIS_REPLY_STRING) {
        on_message(n, reply->element[2]->str);
    } else if (is_text(reply->element[0], "subscribe")) {
        redis_conn_ready(n->conn, "for messages");
        n->events->on_subscribed(n->ctx);
    }
}

static void on_lost(void *ctx)
{
    struct sentinel_sub *n = ctx;

    n->asked_us = 0;
}

static void on_tick(void *ctx)
{
    struct sentinel_sub *n = ctx;

    if (n->asked_us != 0) {
        redis_conn_check_silence(n->conn, n->asked_us);
        return;
    }
    command_words(redis_conn_out(n->conn), 1, (const char *const[]){ "PING" });
    n->asked_us = clock_boot_us();
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

struct sentinel_sub *sentinel_sub_new(const struct redis_conn_setup *setup,
                                      const char *master,
                                      const struct sentinel_sub_events *events,
                                      void *ctx)
{
    struct sentinel_sub *n = xcalloc(1, sizeof(*n));
    struct redis_conn_setup conn = *setup;

    conn.is_quiet = true;
    conn.events = &CONN_EVENTS;
    conn.ctx = n;
    n->master = master;
    n->events = events;
    n->ctx = ctx;
    n->conn = redis_conn_new(&conn);
    return n;
}

void sentinel_sub_start(struct sentinel_sub *n)
{
    redis_conn_start(n->conn);
}

void sentinel_sub_set_timeout(struct sentinel_sub *n, uint64_t timeout_ms)
{
    redis_conn_set_timeout(n->conn, timeout_ms);
}

void sentinel_sub_close(struct sentinel_sub *n)
{
    redis_conn_close(n->conn);
}

void sentinel_sub_free(struct sentinel_sub *n)
{
    free(n);
}
