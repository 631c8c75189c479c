#include "backend/redis/redis_relay.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/log.h"
#include "util/table.h"

#include <stdlib.h>
#include <string.h>

enum { SAY_AGAIN_US = 60 * 1000000 }; /* between two log lines about refusals */

/* On the connection that is open now. A refused channel is asked for again on the next
 * one. */
enum relay_state { RELAY_UNASKED, RELAY_ASKED, RELAY_HEARD, RELAY_REFUSED };

struct relay_channel { /* or pattern */
    bool is_pattern;
    struct table_node in_channels;
    enum relay_state state;
    bool wanted;
    size_t len;
    char name[];
};

struct redis_relay {
    struct redis_conn *conn;
    struct store_events events;
    struct table channels;
    bool started;
    bool greeted;
    uint64_t said_us; /* when a refusal was logged last; 0: never */
};

static struct relay_channel *channel_in(struct table_node *n)
{
    return container_of(n, struct relay_channel, in_channels);
}

static struct span name_of(const struct relay_channel *ch)
{
    return span_of(ch->name, ch->len);
}

static struct relay_channel *find_channel(const struct redis_relay *r, bool is_pattern,
                                          struct span name)
{
    struct table_node *n = table_find(&r->channels, hash_bytes(name.ptr, name.len));

    while (n != NULL && (channel_in(n)->is_pattern != is_pattern ||
                         !span_eq(name_of(channel_in(n)), name))) {
        n = table_next(n);
    }
    return n == NULL ? NULL : channel_in(n);
}

static struct relay_channel *add_channel(struct redis_relay *r, bool is_pattern,
                                         struct span name)
{
    struct relay_channel *ch = xcalloc(1, sizeof(*ch) + name.len);

    ch->is_pattern = is_pattern;
    ch->len = name.len;
    if (name.len != 0) {
        memcpy(ch->name, name.ptr, name.len);
    }
    ch->in_channels.key = hash_bytes(name.ptr, name.len);
    table_add(&r->channels, &ch->in_channels);
    return ch;
}

static void free_channel(struct redis_relay *r, struct relay_channel *ch)
{
    table_remove(&r->channels, &ch->in_channels);
    free(ch);
}

/* --- asking ------------------------------------------------------------- */

static void send_word(struct redis_relay *r, const char *word, struct relay_channel *ch,
                      redis_reply_fn *on_reply)
{
    struct buf *out = redis_conn_out(r->conn);

    command_begin(out, 2);
    command_word(out, span_str(word));
    command_word(out, name_of(ch));
    redis_conn_expect(r->conn, 1, on_reply, ch);
}

static void on_let_go(void *ctx, void *of, const redisReply *reply)
{
}

/* The channel is not wanted, and no answer is to come. */
static void let_go(struct redis_relay *r, struct relay_channel *ch)
{
    if (ch->state == RELAY_HEARD) {
        send_word(r, ch->is_pattern ? "PUNSUBSCRIBE" : "UNSUBSCRIBE", ch, on_let_go);
    }
    free_channel(r, ch);
}

static void log_refusal(struct redis_relay *r, struct span name, const char *why)
{
    uint64_t now = clock_boot_us();

    if (r->said_us != 0 && now - r->said_us < SAY_AGAIN_US) {
        return;
    }
    r->said_us = now;
    log_warning(
        "redis-relay",
        "%s refuses to subscribe to %.*s (%s): lock libraries that wait here for that "
        "channel hear of releases through this latchd only; latchd's user at "
        "Redis needs +subscribe, +psubscribe and the channel",
        redis_conn_address(r->conn), span_quoted_len(name), name.ptr, why);
}

static void on_answered(void *ctx, void *of, const redisReply *reply)
{
    struct redis_relay *r = ctx;
    struct relay_channel *ch = of;

    ch->state = RELAY_HEARD;
    if (reply->type == REDIS_REPLY_ERROR) {
        ch->state = RELAY_REFUSED;
        log_refusal(r, name_of(ch), reply->str);
    }
    if (!ch->wanted) {
        let_go(r, ch);
    }
}

/* One command for each channel, so that a refusal is about one. */
static void ask_for(struct redis_relay *r, struct relay_channel *ch)
{
    send_word(r, ch->is_pattern ? "PSUBSCRIBE" : "SUBSCRIBE", ch, on_answered);
    ch->state = RELAY_ASKED;
}

/* --- the connection ----------------------------------------------------- */

static void on_lost(void *ctx)
{
    struct redis_relay *r = ctx;
    struct relay_channel *ch;

    r->greeted = false;
    TABLE_EACH(ch, &r->channels, in_channels) {
        ch->state = RELAY_UNASKED;
        if (!ch->wanted) {
            free_channel(r, ch);
        }
    }
}

static void on_pong(void *ctx, void *of, const redisReply *reply)
{
    struct redis_relay *r = ctx;
    struct relay_channel *ch;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(r->conn, "%s", reply->str);
        return;
    }
    r->greeted = true;
    redis_conn_ready(r->conn, "for messages of lock libraries");
    TABLE_EACH(ch, &r->channels, in_channels) {
        ask_for(r, ch);
    }
}

static void on_open(void *ctx)
{
    struct redis_relay *r = ctx;

    redis_conn_ask(r->conn, 1, (const char *const[]){ "PING" }, on_pong, NULL);
}

static void tell_published(const struct redis_relay *r, struct span pattern,
                           struct span channel, struct span text)
{
    store_tell(&r->events,
               &(struct store_event){ .kind = STORE_PUBLISHED,
                                      .published = { pattern, channel, text } });
}

/* ["message", channel, text], ["pmessage", pattern, channel, text] */
static bool on_push(void *ctx, const redisReply *reply)
{
    struct redis_relay *r = ctx;
    struct span texts[4] = { SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE };

    (void)redis_texts(reply, texts, 4);
    if (span_eq(texts[0], SPAN("message")) && texts[2].ptr != NULL) {
        tell_published(r, SPAN_NONE, texts[1], texts[2]);
    } else if (span_eq(texts[0], SPAN("pmessage")) && texts[3].ptr != NULL) {
        tell_published(r, texts[1], texts[2], texts[3]);
    } else {
        return false;
    }
    return true;
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_push = on_push,
    .on_lost = on_lost,
};

/* --- for the node ------------------------------------------------------- */

struct redis_relay *redis_relay_new(const struct redis_relay_setup *setup)
{
    struct redis_relay *r = xcalloc(1, sizeof(*r));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis-relay";
    conn.is_quiet = true;
    conn.pings = true;
    conn.events = &CONN_EVENTS;
    conn.ctx = r;
    r->events = setup->events;
    r->conn = redis_conn_new(&conn);
    return r;
}

void redis_relay_set_timeout(struct redis_relay *r, uint64_t timeout_ms)
{
    redis_conn_set_timeout(r->conn, timeout_ms);
}

void redis_relay_move(struct redis_relay *r)
{
    if (r->started) {
        redis_conn_move(r->conn);
    }
}

void redis_relay_hear(struct redis_relay *r, bool is_pattern, struct span name,
                      bool wanted)
{
    struct relay_channel *ch = find_channel(r, is_pattern, name);

    if (ch == NULL && !wanted) {
        return;
    }
    if (ch == NULL) {
        ch = add_channel(r, is_pattern, name);
        if (r->greeted) {
            ask_for(r, ch);
        }
    }
    ch->wanted = wanted;
    if (!wanted && ch->state != RELAY_ASKED) {
        let_go(r, ch);
    }
    if (!r->started) {
        r->started = true;
        redis_conn_start(r->conn);
    }
}

bool redis_relay_hears(const struct redis_relay *r, bool is_pattern, struct span name)
{
    const struct relay_channel *ch = find_channel(r, is_pattern, name);

    return ch != NULL && ch->state == RELAY_HEARD;
}

void redis_relay_flush(struct redis_relay *r)
{
    if (r->greeted) {
        redis_conn_flush(r->conn);
    }
}

void redis_relay_close(struct redis_relay *r)
{
    redis_conn_close(r->conn);
    r->conn = NULL;
}

void redis_relay_free(struct redis_relay *r)
{
    struct relay_channel *ch;

    if (r == NULL) {
        return;
    }
    TABLE_EACH(ch, &r->channels, in_channels) {
        free_channel(r, ch);
    }
    table_fini(&r->channels);
    free(r);
}
