#include "backend/sentinel/sentinel_client.h"

#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/text.h"

#include <stdio.h>
#include <stdlib.h>

enum { WHY_ROOM = 160 };

struct sentinel_client {
    struct redis_conn *conn; /* for questions */
    struct redis_conn *news; /* for announcements; the other one logs for it */
    struct backend_url url;
    const char *master;
    const struct sentinel_client_events *events;
    void *ctx;
    bool closed;
    bool is_open, is_ready;
    bool news_started;
    bool is_asking;
    bool again, again_others; /* asked while an asking was open */
    bool has_epoch, has_address;
    struct sentinel_claim claim; /* as far as it has come */
    char id[SENTINEL_ID_LEN + 1];
    char why[WHY_ROOM]; /* it gave no claim; what was logged last */
};

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

static void on_others(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

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

static bool take_epoch(struct sentinel_client *p, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ERROR) {
        say_why(p, reply->str);
        return false;
    }
    if (!parse_u64(reply_field(reply, SPAN("config-epoch")), UINT64_MAX,
                   &p->claim.epoch)) {
        say_why(p, "it tells no epoch");
        return false;
    }
    return true;
}

static void on_epoch_before(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

    p->has_epoch = take_epoch(p, reply);
}

static void on_address(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    struct span host, port;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) {
        return; /* on_epoch_before() has said why */
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

    p->is_asking = false;
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

static void on_epoch_after(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    uint64_t before = p->claim.epoch;

    p->has_epoch = take_epoch(p, reply) && p->has_epoch && p->claim.epoch == before;
    if (p->has_address && !p->is_ready) {
        p->is_ready = true;
        redis_conn_ready(p->conn, "a Sentinel");
    }
    asking_is_over(p);
}

/* --- asking ---------------------------------------------------------------------- */

/* The epoch before and after, so that the address belongs to it. */
static void ask_all(struct sentinel_client *p, bool others)
{
    const char *const master[] = { "SENTINEL", "MASTER", p->master };
    const char *const where[] = { "SENTINEL", "GET-MASTER-ADDR-BY-NAME", p->master };
    const char *const peers[] = { "SENTINEL", "SENTINELS", p->master };

    p->is_asking = true;
    p->has_epoch = p->has_address = false;
    p->claim = (struct sentinel_claim){ 0 };
    if (others) {
        redis_conn_ask(p->conn, 3, peers, on_others, NULL);
    }
    redis_conn_ask(p->conn, 3, master, on_epoch_before, NULL);
    redis_conn_ask(p->conn, 3, where, on_address, NULL);
    redis_conn_ask(p->conn, 3, master, on_epoch_after, NULL);
}

void sentinel_client_ask(struct sentinel_client *p, bool others)
{
    if (!p->is_open || p->closed) {
        return;
    }
    if (p->is_asking) {
        p->again = true;
        p->again_others |= others;
        return;
    }
    ask_all(p, others);
    redis_conn_flush(p->conn);
}

/* --- the connection for questions --------------------------------------------------
 */

/* Redis before 6.2 does not know it. */
static void on_id(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    struct span id = text_of(reply);

    if (id.len == SENTINEL_ID_LEN) {
        memcpy(p->id, id.ptr, id.len);
        p->events->on_id(p->ctx, p, p->id);
    }
}

static void on_open(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = true;
    p->is_ready = false;
    redis_conn_ask(p->conn, 2, (const char *const[]){ "SENTINEL", "MYID" }, on_id,
                   NULL);
    ask_all(p, true);
    if (!p->news_started) {
        p->news_started = true;
        redis_conn_start(p->news);
    }
}

static void on_lost(void *ctx)
{
    struct sentinel_client *p = ctx;

    p->is_open = p->is_asking = p->again = p->again_others = false;
    p->events->on_claim(p->ctx, p, NULL);
}

static const struct redis_conn_events ASK_EVENTS = {
    .on_open = on_open,
    .on_lost = on_lost,
    .on_refused = on_lost,
};

/* --- the connection for announcements ----------------------------------------------
 */

static bool is_text(const redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

/* Announcements before this were missed. */
static void on_subscribed(void *ctx, void *of, const redisReply *reply)
{
    struct sentinel_client *p = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(p->news, "%s", reply->str);
        return;
    }
    redis_conn_ready(p->news, "for messages");
    sentinel_client_ask(p, false);
}

static void on_news_open(void *ctx)
{
    struct sentinel_client *p = ctx;

    redis_conn_ask(p->news, 2, (const char *const[]){ "SUBSCRIBE", "+switch-master" },
                   on_subscribed, NULL);
}

/* ["message", channel, "name old-host old-port new-host new-port"]. The epoch is not in
 * it, so the Sentinel has to be asked. */
static bool on_news(void *ctx, const redisReply *reply)
{
    struct sentinel_client *p = ctx;
    size_t len = strlen(p->master);
    const redisReply *text;

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 3 ||
        !is_text(reply->element[0], "message")) {
        return false;
    }
    text = reply->element[2];
    if (text->type == REDIS_REPLY_STRING && strncmp(text->str, p->master, len) == 0 &&
        text->str[len] == ' ') {
        p->events->on_switch(p->ctx, p);
    }
    return true;
}

static const struct redis_conn_events NEWS_EVENTS = {
    .on_open = on_news_open,
    .on_push = on_news,
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
    conn.is_quiet = true;
    conn.pings = true;
    conn.events = &NEWS_EVENTS;
    p->news = redis_conn_new(&conn);
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
    redis_conn_set_timeout(p->news, timeout_ms);
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
        redis_conn_close(p->news);
    }
}

void sentinel_client_free(struct sentinel_client *p)
{
    if (p != NULL) {
        backend_url_fini(&p->url);
        free(p);
    }
}
