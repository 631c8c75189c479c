#include "backend/sentinel/sentinel_client.h"

#include "backend/redis/redis_command.h"
#include "backend/sentinel/sentinel_sub.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/parse.h"

#include <stdio.h>
#include <stdlib.h>

/* The questions, in the order in which they are sent. */
enum step { STEP_AUTH, STEP_ID, STEP_OTHERS, STEP_BEFORE, STEP_WHERE, STEP_AFTER };

enum { STEPS_MAX = 8, WHY_ROOM = 160 };

struct sentinel_client {
    struct redis_conn *conn;  /* it is asked */
    struct sentinel_sub *sub; /* it tells */
    struct backend_url url;
    const char *master;
    const struct sentinel_client_events *events;
    void *ctx;
    bool closed;
    bool is_open, is_ready;
    bool news_started;
    bool again, again_others; /* asked while an asking was open */
    enum step steps[STEPS_MAX];
    size_t first, count;
    uint64_t asked_us; /* the asking that is open was sent */
    bool has_epoch, has_address;
    struct sentinel_claim claim; /* as far as it has come */
    uint64_t epoch_before;
    char id[SENTINEL_ID_LEN + 1];
    char why[WHY_ROOM]; /* it gave no claim; what was logged last */
};

/* --- asking ---------------------------------------------------------------------- */

static void send_question(struct sentinel_client *p, enum step step, size_t count,
                          const char *const *words)
{
    command_words(redis_conn_out(p->conn), count, words);
    p->steps[(p->first + p->count) % STEPS_MAX] = step;
    p->count++;
}

static void ask_all(struct sentinel_client *p, bool others)
{
    const char *const who[] = { "SENTINEL", "MASTER", p->master };
    const char *const where[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", p->master };
    const char *const peers[] = { "SENTINEL", "SENTINELS", p->master };

    p->asked_us = clock_boot_us();
    p->has_epoch = p->has_address = false;
    p->claim = (struct sentinel_claim){ 0 };
    if (others) {
        send_question(p, STEP_OTHERS, 3, peers);
    }
    send_question(p, STEP_BEFORE, 3, who);
    send_question(p, STEP_WHERE, 3, where);
    send_question(p, STEP_AFTER, 3, who);
}

void sentinel_client_ask(struct sentinel_client *p, bool others)
{
    if (!p->is_open || p->closed) {
        return;
    }
    if (p->count != 0) {
        p->again = true;
        p->again_others |= others;
        return;
    }
    ask_all(p, others);
    redis_conn_flush(p->conn);
}

/* --- what it answers ------------------------------------------------------------- */

static void say_why(struct sentinel_client *p, const char *why)
{
    if (strcmp(p->why, why) != 0) {
        (void)snprintf(p->why, sizeof(p->why), "%s", why);
        log_warning("sentinel", "Sentinel %s does not name the master \"%s\": %s",
                    redis_conn_address(p->conn), p->master, why);
    }
}

static struct span text_of(const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_STATUS) {
        return SPAN_NONE;
    }
    return span_of(reply->str, (size_t)reply->len);
}

/* The value of a name among pairs; empty: it is not there. */
static struct span reply_field(const redisReply *reply, struct span name)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return SPAN_NONE;
    }
    for (size_t i = 0; i + 1 < (size_t)reply->elements; i += 2) {
        if (span_eq(text_of(reply->element[i]), name)) {
            return text_of(reply->element[i + 1]);
        }
    }
    return SPAN_NONE;
}

/* Whether the address can be connected to. */
static bool is_address(struct span host, struct span port)
{
    uint64_t number;

    return host.len != 0 && host.len <= SENTINEL_HOST_MAX &&
           memchr(host.ptr, '\0', host.len) == NULL &&
           parse_u64(port, UINT16_MAX, &number) && number != 0;
}

static void on_others(struct sentinel_client *p, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY) {
        return; /* may not be asked */
    }
    for (size_t i = 0; i < (size_t)reply->elements && !p->closed; i++) {
        const redisReply *one = reply->element[i];
        struct span host = reply_field(one, SPAN("ip")),
                    port = reply_field(one, SPAN("port"));

        if (is_address(host, port)) {
            p->events->on_other(p->ctx, host, port, reply_field(one, SPAN("runid")));
        }
    }
}

static void on_epoch(struct sentinel_client *p, enum step step, const redisReply *reply)
{
    uint64_t epoch = 0;

    if (reply->type == REDIS_REPLY_ERROR) {
        say_why(p, reply->str);
    } else if (parse_u64(reply_field(reply, SPAN("config-epoch")), UINT64_MAX,
                         &epoch)) {
        p->has_epoch = step == STEP_BEFORE || (p->has_epoch && p->claim.epoch == epoch);
        p->claim.epoch = epoch;
    } else {
        say_why(p, "it tells no epoch");
    }
}

static void on_address(struct sentinel_client *p, const redisReply *reply)
{
    struct span host, port;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return; /* STEP_BEFORE has said why */
    }
    host = text_of(reply->element[0]);
    port = text_of(reply->element[1]);
    if (!is_address(host, port)) {
        return;
    }
    (void)snprintf(p->claim.host, sizeof(p->claim.host), "%.*s", (int)host.len,
                   host.ptr);
    (void)snprintf(p->claim.port, sizeof(p->claim.port), "%.*s", (int)port.len,
                   port.ptr);
    p->has_address = true;
}

static void asking_is_over(struct sentinel_client *p)
{
    bool again = p->again, others = p->again_others;

    p->again = p->again_others = false;
    if (p->has_epoch && p->has_address) {
        p->why[0] = '\0';
        p->claim.heard_ms = clock_boot_ms();
        p->events->on_claim(p->ctx, p, &p->claim);
    } else if (!p->has_address) {
        p->events->on_claim(p->ctx, p, NULL);
    } /* else it switched in between: the next asking finds out */
    if (again) {
        sentinel_client_ask(p, others);
    }
}

static void on_id(struct sentinel_client *p, const redisReply *reply)
{
    struct span id = text_of(reply);

    if (id.len == SENTINEL_ID_LEN) {
        memcpy(p->id, id.ptr, id.len);
        p->events->on_id(p->ctx, p, p->id);
    }
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    enum step step = p->steps[p->first];

    if (p->count == 0) {
        redis_conn_fail(p->conn, "it answers what was not asked");
        return;
    }
    p->first = (p->first + 1) % STEPS_MAX;
    p->count--;
    switch (step) {
    case STEP_AUTH:
        if (reply->type == REDIS_REPLY_ERROR) {
            redis_conn_fail(p->conn, "%s", reply->str);
        }
        break;
    case STEP_ID:
        on_id(p, reply); /* Redis before 6.2 does not know it */
        break;
    case STEP_OTHERS:
        on_others(p, reply);
        break;
    case STEP_WHERE:
        on_address(p, reply);
        break;
    case STEP_BEFORE:
        on_epoch(p, step, reply);
        break;
    case STEP_AFTER:
        on_epoch(p, step, reply);
        if (p->has_address && !p->is_ready) {
            p->is_ready = true;
            redis_conn_ready(p->conn, "a Sentinel");
        }
        asking_is_over(p);
        break;
    }
}

static void on_open(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = true;
    p->is_ready = false;
    p->first = p->count = 0;
    if (redis_conn_auth(p->conn)) {
        p->steps[p->count++] = STEP_AUTH;
    }
    send_question(p, STEP_ID, 2, (const char *const[]){ "SENTINEL", "MYID" });
    ask_all(p, true);
    if (!p->news_started) {
        p->news_started = true;
        sentinel_sub_start(p->sub);
    }
}

static void on_lost(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = p->again = p->again_others = false;
    p->count = 0;
    p->events->on_claim(p->ctx, p, NULL);
}

static void on_tick(void *ctx)
{
    struct sentinel_client *p = ctx;

    if (p->count != 0) {
        redis_conn_check_silence(p->conn, p->asked_us);
    }
}

static void on_refused(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->events->on_claim(p->ctx, p, NULL);
}

static const struct redis_conn_events ASK_EVENTS = {
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_lost,
    .on_refused = on_refused,
    .on_tick = on_tick,
};

/* --- what it announces ----------------------------------------------------------- */

static void sub_on_switch(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->events->on_switch(p->ctx, p);
}

/* Announcements before this were missed. */
static void sub_on_subscribed(void *ctx)
{
    sentinel_client_ask(ctx, false);
}

static const struct sentinel_sub_events NEWS_EVENTS = {
    .on_subscribed = sub_on_subscribed,
    .on_switch = sub_on_switch,
};

/* --- for the watch --------------------------------------------------------------- */

struct sentinel_client *sentinel_client_new(const struct sentinel_client_setup *setup)
{
    struct sentinel_client *p = xcalloc(1, sizeof(*p));
    struct redis_conn_setup conn = {
        .io = setup->io,
        .url = &p->url,
        .module = "sentinel",
        .what = "the Sentinel",
        .timeout_ms = setup->timeout_ms,
        .seed = setup->seed,
        .events = &ASK_EVENTS,
        .ctx = p,
    };

    backend_url_copy(&p->url, setup->url);
    p->master = setup->master;
    p->events = setup->events;
    p->ctx = setup->ctx;
    p->conn = redis_conn_new(&conn);
    conn.seed = ~setup->seed;
    p->sub = sentinel_sub_new(&conn, setup->master, &NEWS_EVENTS, p);
    return p;
}

void sentinel_client_start(struct sentinel_client *p)
{
    redis_conn_start(p->conn);
}

void sentinel_client_configure(struct sentinel_client *p,
                               const struct backend_url *from, uint64_t timeout_ms)
{
    backend_url_set_tls(&p->url, from->tls);
    (void)backend_url_set_login(&p->url, from);
    redis_conn_set_timeout(p->conn, timeout_ms);
    sentinel_sub_set_timeout(p->sub, timeout_ms);
}

bool sentinel_client_is_at(const struct sentinel_client *p, struct span host,
                           struct span port)
{
    return span_eq(span_str(p->url.host), host) && span_eq(span_str(p->url.port), port);
}

const char *sentinel_client_id(const struct sentinel_client *p)
{
    return p->id;
}

const char *sentinel_client_address(const struct sentinel_client *p)
{
    return redis_conn_address(p->conn);
}

void sentinel_client_close(struct sentinel_client *p)
{
    if (!p->closed) {
        p->closed = true;
        redis_conn_close(p->conn);
        sentinel_sub_close(p->sub);
    }
}

void sentinel_client_free(struct sentinel_client *p)
{
    if (p != NULL) {
        sentinel_sub_free(p->sub);
        backend_url_fini(&p->url);
        free(p);
    }
}
