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
    struct list in_asked; /* by when they were asked for: answers come in that order */
    enum relay_state state;
    bool wanted;
    size_t len;
    char name[];
};

struct redis_relay {
    struct redis_conn *conn;
    struct store_events events;
    struct table channels;
    struct list asked;
    bool started;
    bool greeted;
    uint64_t ping_us; /* when the open PING was sent; 0: none */
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

    list_init(&ch->in_asked);
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
    list_del(&ch->in_asked);
    table_remove(&r->channels, &ch->in_channels);
    free(ch);
}

/* --- asking ------------------------------------------------------------- */

static void send_word(struct redis_relay *r, const char *word, struct span name)
{
    struct buf *out = redis_conn_out(r->conn);

    command_begin(out, 2);
    command_word(out, span_str(word));
    command_word(out, name);
}

/* One command for each channel, so that a refusal is about one. */
static void ask_for(struct redis_relay *r, struct relay_channel *ch)
{
    send_word(r, ch->is_pattern ? "PSUBSCRIBE" : "SUBSCRIBE", name_of(ch));
    ch->state = RELAY_ASKED;
    list_append(&r->asked, &ch->in_asked);
}

/* The channel is not wanted, and no answer is to come. */
static void let_go(struct redis_relay *r, struct relay_channel *ch)
{
    if (ch->state == RELAY_HEARD) {
        send_word(r, ch->is_pattern ? "PUNSUBSCRIBE" : "UNSUBSCRIBE", name_of(ch));
    }
    free_channel(r, ch);
}

static void send_ping(struct redis_relay *r)
{
    command_words(redis_conn_out(r->conn), 1, (const char *const[]){ "PING" });
    r->ping_us = clock_boot_us();
}

/* --- the connection ----------------------------------------------------- */

static void on_open(void *ctx)
{
    struct redis_relay *r = ctx;

    (void)redis_conn_auth(r->conn);
    send_ping(r);
    redis_conn_flush(r->conn);
}

static void on_lost(void *ctx)
{
    struct redis_relay *r = ctx;
    struct table_walk walk;
    struct table_node *n;

    r->greeted = false;
    r->ping_us = 0;
    TABLE_FOREACH(n, &walk, &r->channels)
    {
        struct relay_channel *ch = channel_in(n);

        list_del(&ch->in_asked);
        ch->state = RELAY_UNASKED;
        if (!ch->wanted) {
            free_channel(r, ch);
        }
    }
}

static void on_tick(void *ctx)
{
    struct redis_relay *r = ctx;

    if (r->ping_us != 0) {
        redis_conn_check_silence(r->conn, r->ping_us);
    } else if (r->greeted) {
        send_ping(r);
        redis_conn_flush(r->conn);
    }
}

static void on_pong(struct redis_relay *r)
{
    struct table_walk walk;
    struct table_node *n;

    r->ping_us = 0;
    if (r->greeted) {
        return;
    }
    r->greeted = true;
    redis_conn_ready(r->conn, "for messages of lock libraries");
    TABLE_FOREACH(n, &walk, &r->channels)
    {
        ask_for(r, channel_in(n));
    }
    redis_conn_flush(r->conn);
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

/* Redis has answered the SUBSCRIBE that was sent first. */
static void on_answered(struct redis_relay *r, const char *refusal)
{
    struct list *first = list_first(&r->asked);
    struct relay_channel *ch;

    if (first == NULL) {
        if (refusal != NULL) {
            redis_conn_fail(r->conn, "%s", refusal);
        }
        return;
    }
    ch = container_of(first, struct relay_channel, in_asked);
    list_del(&ch->in_asked);
    ch->state = refusal == NULL ? RELAY_HEARD : RELAY_REFUSED;
    if (refusal != NULL) {
        log_refusal(r, name_of(ch), refusal);
    }
    if (!ch->wanted) {
        let_go(r, ch);
        redis_conn_flush(r->conn);
    }
}

static void tell_published(const struct redis_relay *r, struct span pattern,
                           struct span channel, struct span text)
{
    store_tell(&r->events,
               &(struct store_event){ .kind = STORE_PUBLISHED,
                                      .published = { pattern, channel, text } });
}

/* ["message", channel, text], ["pmessage", pattern, channel, text], ["subscribe" or
 * "psubscribe", name, count], the same of what ended, ["pong", ""] */
static void on_push(struct redis_relay *r, const redisReply *reply)
{
    struct span texts[4] = { SPAN_NONE, SPAN_NONE, SPAN_NONE, SPAN_NONE };

    for (size_t i = 0; i < 4 && i < (size_t)reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_STRING) {
            texts[i] = span_of(reply->element[i]->str, (size_t)reply->element[i]->len);
        }
    }
    if (span_eq(texts[0], SPAN("pong"))) {
        on_pong(r);
    } else if (span_eq(texts[0], SPAN("subscribe")) ||
               span_eq(texts[0], SPAN("psubscribe"))) {
        on_answered(r, NULL);
    } else if (span_eq(texts[0], SPAN("message")) && texts[2].ptr != NULL) {
        tell_published(r, SPAN_NONE, texts[1], texts[2]);
    } else if (span_eq(texts[0], SPAN("pmessage")) && texts[3].ptr != NULL) {
        tell_published(r, texts[1], texts[2], texts[3]);
    }
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct redis_relay *r = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        on_answered(r, reply->str);
    } else if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0) {
        on_pong(r);
    } else if (reply->type == REDIS_REPLY_ARRAY) {
        on_push(r, reply);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

/* --- for the node ------------------------------------------------------- */

struct redis_relay *redis_relay_new(const struct redis_relay_setup *setup)
{
    struct redis_relay *r = xcalloc(1, sizeof(*r));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis-relay";
    conn.is_quiet = true;
    conn.events = &CONN_EVENTS;
    conn.ctx = r;
    r->events = setup->events;
    list_init(&r->asked);
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
    struct table_walk walk;
    struct table_node *n;

    if (r == NULL) {
        return;
    }
    TABLE_FOREACH(n, &walk, &r->channels)
    {
        free_channel(r, channel_in(n));
    }
    table_fini(&r->channels);
    free(r);
}
