#include "backend/redis/redis_sub_priv.h"

#include "backend/cluster/slot.h"
#include "backend/redis/redis_command.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <stdlib.h>

enum {
    CHUNK = 256,      /* channels in one command */
    ASKED_MAX = 4096, /* confirmations that may be open */
};

/* Tells of a message; without payload, that the subscription is confirmed. */
static void tell_name(const struct store_listener *listener, struct span name,
                      enum lock_class lock_class, const struct span *payload)
{
    if (payload != NULL) {
        listener->on_message(listener->ctx, name, lock_class, *payload);
    } else {
        listener->on_subscribed(listener->ctx, name, lock_class);
    }
}

static void tell_channel(struct redis_sub *s, const struct sub_channel *ch,
                         const struct span *payload)
{
    bool unbraced = ch->want_unbraced;
    enum lock_class lock_class = ch->lock_class;
    struct span text = span_of(ch->text, ch->len);

    if (ch->want_braced) {
        tell_name(s->listener, text, lock_class, payload);
    }
    if (unbraced && !s->closed) {
        tell_name(s->listener, span_of(text.ptr + 1, text.len - 2), lock_class,
                  payload);
    }
}

/* --- asking ---------------------------------------------------------------------- */

static void send_subscribe(struct redis_sub *s, const char *word,
                           struct sub_channel *const *chs, size_t count, bool subscribe)
{
    struct buf *out = redis_conn_out(s->conn);

    if (count == 0) {
        return;
    }
    command_begin(out, 1 + count);
    command_word(out, span_str(word));
    for (size_t i = 0; i < count; i++) {
        struct span parts[] = { channel_prefix(chs[i]->lock_class),
                                span_of(chs[i]->text, chs[i]->len) };

        command_join(out, parts, 2);
        chs[i]->asked = subscribe;
        chs[i]->open++;
        s->open++;
    }
}

/* Nothing is wanted of it, and nothing to come. */
static bool is_over(const struct sub_channel *ch)
{
    return !sub_channel_is_wanted(ch) && !ch->asked && ch->open == 0 && !ch->shard_on &&
           list_empty(&ch->in_shard);
}

static void ask_chunk(struct redis_sub *s)
{
    struct sub_channel *add[CHUNK], *remove[CHUNK];
    size_t adds = 0, removes = 0, most = s->one_by_one ? 1 : CHUNK;

    while (adds < most && removes < most && !list_empty(&s->channels.todo)) {
        struct sub_channel *ch =
            container_of(s->channels.todo.next, struct sub_channel, todo);

        list_del(&ch->todo);
        sub_shard_step(s, ch);
        if (sub_channel_is_named(ch)) {
            add[adds++] = ch;
        } else if (ch->asked) {
            remove[removes++] = ch;
        } else if (is_over(ch)) {
            sub_channel_free(&s->channels, ch);
        }
    }
    s->alone = !s->one_by_one ? NULL
               : adds != 0    ? add[0]
               : removes != 0 ? remove[0]
                              : NULL;
    send_subscribe(s, "SUBSCRIBE", add, adds, true);
    send_subscribe(s, "UNSUBSCRIBE", remove, removes, false);
}

void redis_sub_flush(struct redis_sub *s)
{
    if (!s->greeted) {
        return;
    }
    while (!list_empty(&s->channels.todo) &&
           s->open < (s->one_by_one ? 1 : ASKED_MAX)) {
        ask_chunk(s);
    }
    redis_conn_flush(s->conn);
}

static void send_ping(struct redis_sub *s)
{
    command_words(redis_conn_out(s->conn), 1, (const char *const[]){ "PING" });
    s->ping_us = clock_boot_us();
}

/* The channels of all our members, of whatever name. */
static void ask_pattern(struct redis_sub *s)
{
    struct buf *out = redis_conn_out(s->conn);
    struct span parts[] = { channel_prefix(CLASS_PLAIN), SPAN("*"),
                            span_str(s->member.text), SPAN("*") };

    command_begin(out, 2);
    command_word(out, SPAN("PSUBSCRIBE"));
    command_join(out, parts, sizeof(parts) / sizeof(parts[0]));
    s->pattern_open = true;
}

/* --- the link -------------------------------------------------------------------- */

static void on_wake(void *ctx)
{
    struct redis_sub *s = ctx;

    s->events->on_wake(s->ctx);
}

static void on_open(void *ctx)
{
    struct redis_sub *s = ctx;

    (void)redis_conn_auth(s->conn);
    sub_shard_greet(s);
    send_ping(s);
}

static void on_lost(void *ctx)
{
    struct redis_sub *s = ctx;
    bool was_greeted = s->greeted;
    struct table_walk walk;
    struct table_node *n;

    s->greeted = false;
    s->one_by_one = s->was_refused;
    s->was_refused = false;
    s->alone = NULL;
    s->pattern_open = false;
    s->daemons_open = false;
    s->ping_us = 0;
    s->open = 0;
    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_FOREACH(n, &walk, &s->channels.by_class[lock_class])
        {
            struct sub_channel *ch = sub_channel_in(n);
            ch->open = 0;
            ch->asked = false;
            sub_shard_lost(ch);
            if (sub_channel_is_wanted(ch)) {
                sub_channel_ask(&s->channels, ch);
            } else {
                sub_channel_free(&s->channels, ch);
            }
        }
    }
    if (was_greeted) {
        s->listener->on_unsubscribed_all(s->listener->ctx);
    }
}

static void on_tick(void *ctx)
{
    struct redis_sub *s = ctx;

    if (s->ping_us != 0) {
        redis_conn_check_silence(s->conn, s->ping_us);
    } else if (s->greeted) {
        send_ping(s);
    }
}

static void on_pong(struct redis_sub *s)
{
    s->ping_us = 0;
    if (!s->greeted) {
        s->greeted = true;
        redis_conn_ready(s->conn, "for messages");
        ask_pattern(s);
        sub_ask_daemons(s);
        redis_sub_flush(s);
    }
}

void sub_confirmed(struct redis_sub *s, struct sub_channel *ch)
{
    if (ch->open == 0 && ch->asked && (ch->shard_on || !s->has_shards)) {
        tell_channel(s, ch, NULL);
    } else if (is_over(ch)) {
        sub_channel_free(&s->channels, ch);
    }
}

static void on_confirmed(struct redis_sub *s, struct sub_channel *ch)
{
    s->open--;
    ch->open--;
    s->alone = NULL;
    sub_confirmed(s, ch);
    if (!list_empty(&s->channels.todo)) {
        redis_sub_flush(s);
    }
}

/* ["message", channel, payload], ["subscribe" or "unsubscribe", channel, count], and
 * the same of sharded channels, with an s before the word */
static void on_push(struct redis_sub *s, struct span word, struct span text,
                    struct span payload)
{
    struct sub_channel *ch = NULL;
    enum lock_class lock_class;
    struct span name;

    if (sub_shard_on_push(s, word, text)) {
        return;
    }
    if (channel_split(text, &lock_class, &name)) {
        ch = sub_channel_find(&s->channels, name, lock_class);
    }
    if (ch == NULL) {
        return;
    }
    if (span_eq(word, SPAN("message")) || span_eq(word, SPAN("smessage"))) {
        if (ch->want_member) {
            sub_on_member(s, text);
        }
        tell_channel(s, ch, &payload);
    } else if (ch->open > 0 && (span_eq(word, SPAN("subscribe")) ||
                                span_eq(word, SPAN("unsubscribe")))) {
        on_confirmed(s, ch);
    }
}

/* ["pmessage", pattern, channel, payload] */
void sub_on_member(struct redis_sub *s, struct span channel)
{
    struct channel_names names = channel_member_names(&s->member, channel);
    const struct span freed = SPAN("0");

    if (names.braced.len != 0) {
        tell_name(s->listener, names.braced, CLASS_PLAIN, &freed);
    }
    if (names.unbraced.len != 0 && !s->closed) {
        tell_name(s->listener, names.unbraced, CLASS_PLAIN, &freed);
    }
}

/* Without the pattern only the recheck wakes who heads a fair queue: slow, not wrong.
 * A pattern has to be allowed to the letter, and this one changes with each start. */
static void on_pattern_refused(struct redis_sub *s, const char *why)
{
    s->pattern_open = false;
    if (!log_is_news(&s->told, s->member.text)) {
        return;
    }
    log_warning("redis-sub",
                "%s refuses PSUBSCRIBE %s*%s* (%s): clients that wait for a FAIR lock "
                "are woken late; its user needs +psubscribe and allchannels",
                redis_conn_address(s->conn), channel_prefix(CLASS_PLAIN).ptr,
                s->member.text, why);
}

/* Without its channel only the recheck wakes who heads a queue: slow, not wrong. */
static void on_channel_refused(struct redis_sub *s, const char *why)
{
    struct sub_channel *ch = s->alone;

    if (log_is_news(&s->told, why)) {
        log_warning("redis-sub",
                    "%s refuses SUBSCRIBE (%s): clients that wait for such locks are "
                    "woken late; latchd's user needs +subscribe and the channels that "
                    "latchd.conf(5) lists",
                    redis_conn_address(s->conn), why);
    }
    s->was_refused = true;
    if (sub_shard_on_no_right(s)) {
        return;
    }
    if (ch == NULL) {
        redis_conn_fail(s->conn,
                        "it refuses SUBSCRIBE: each channel is asked for alone");
        return;
    }
    s->alone = NULL;
    s->open--;
    ch->open--;
    ch->asked = false;
    sub_confirmed(s, ch);
    redis_sub_flush(s);
}

static void on_error(struct redis_sub *s, const redisReply *reply)
{
    if (sub_shard_on_error(s, reply->str)) {
        return;
    }
    if (s->pattern_open) {
        on_pattern_refused(s, reply->str);
    } else if (s->daemons_open) {
        sub_on_daemons_refused(s, reply->str);
    } else if (s->greeted && strncmp(reply->str, "NOPERM", 6) == 0) {
        on_channel_refused(s, reply->str);
    } else {
        redis_conn_fail(s->conn, "%s", reply->str);
    }
}

/* How many texts the reply begins with, at most three. */
static size_t texts_of(const redisReply *reply, struct span texts[static 3])
{
    size_t count = 0;

    while (reply->type == REDIS_REPLY_ARRAY && count < 3 &&
           count < (size_t)reply->elements &&
           reply->element[count]->type == REDIS_REPLY_STRING) {
        texts[count] =
            span_of(reply->element[count]->str, (size_t)reply->element[count]->len);
        count++;
    }
    return count;
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct redis_sub *s = ctx;
    struct span texts[3];
    size_t count = texts_of(reply, texts);

    if (sub_shard_on_greeting(s, reply)) {
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        on_error(s, reply);
    } else if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0) {
        on_pong(s);
    } else if (count >= 2 && span_eq(texts[0], SPAN("pong"))) {
        on_pong(s);
    } else if (count == 3 && reply->elements == 4) {
        sub_on_member(s, texts[2]);
    } else if (count >= 2 && span_eq(texts[0], SPAN("psubscribe"))) {
        s->pattern_open = false;
    } else if (reply->elements == 3 && sub_on_daemons(s, texts, count)) {
        ;
    } else if (count >= 2 && reply->elements == 3) {
        on_push(s, texts[0], texts[1], count > 2 ? texts[2] : SPAN_NONE);
    }
}

static const struct redis_conn_events CONN_EVENTS = {
    .on_wake = on_wake,
    .on_open = on_open,
    .on_reply = on_reply,
    .on_lost = on_lost,
    .on_tick = on_tick,
};

/* --- for the store --------------------------------------------------------------- */

struct redis_sub *redis_sub_new(const struct redis_sub_setup *setup)
{
    struct redis_sub *s = xcalloc(1, sizeof(*s));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis-sub";
    conn.events = &CONN_EVENTS;
    conn.ctx = s;
    s->events = setup->events;
    s->ctx = setup->ctx;
    s->is_clustered = setup->is_clustered;
    s->listener = setup->listener;
    s->hears_daemons = setup->hears_daemons;
    (void)channel_daemons(s->daemons, conn.url->db);
    list_init(&s->shard_asked);
    list_init(&s->shard_refused);
    channel_member_init(&s->member, setup->instance);
    sub_channels_init(&s->channels);
    s->conn = redis_conn_new(&conn);
    return s;
}

void redis_sub_start(struct redis_sub *s)
{
    redis_conn_start(s->conn);
}

void redis_sub_move(struct redis_sub *s)
{
    redis_conn_move(s->conn);
}

void redis_sub_set_timeout(struct redis_sub *s, uint64_t timeout_ms)
{
    redis_conn_set_timeout(s->conn, timeout_ms);
}

void redis_sub_add(struct redis_sub *s, struct span name, enum lock_class lock_class)
{
    struct sub_channel *ch = sub_channel_of(&s->channels, name, lock_class, true);

    if (channel_is_tagged(name, lock_class)) {
        ch->want_braced = true;
    } else {
        ch->want_unbraced = true;
    }
    sub_channel_ask(&s->channels, ch);
}

void redis_sub_remove(struct redis_sub *s, struct span name, enum lock_class lock_class)
{
    struct sub_channel *ch = sub_channel_of(&s->channels, name, lock_class, false);

    if (ch == NULL) {
        return;
    }
    if (channel_is_tagged(name, lock_class)) {
        ch->want_braced = false;
    } else {
        ch->want_unbraced = false;
    }
    if (!sub_channel_is_named(ch)) {
        sub_channel_ask(&s->channels, ch);
    }
}

void redis_sub_adopt(struct redis_sub *s, struct redis_sub *from,
                     bool (*concerns)(void *ctx, uint32_t group), void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_FOREACH(n, &walk, &from->channels.by_class[lock_class])
        {
            struct sub_channel *ch = sub_channel_in(n);
            struct span text = span_of(ch->text, ch->len);

            if (!sub_channel_is_wanted(ch) || !concerns(ctx, slot_of(text))) {
                continue;
            }
            if (ch->want_braced) {
                redis_sub_add(s, text, lock_class);
            }
            if (ch->want_unbraced) {
                redis_sub_add(s, span_of(text.ptr + 1, text.len - 2), lock_class);
            }
            if (ch->want_member) {
                sub_channel_want_member(&s->channels, text);
            }
            ch->want_unbraced = ch->want_braced = ch->want_member = false;
            sub_shard_let_go(ch);
            sub_channel_ask(&from->channels, ch);
        }
    }
    redis_sub_flush(s);
    redis_sub_flush(from);
}

void redis_sub_close(struct redis_sub *s)
{
    s->closed = true;
    s->greeted = false;
    redis_conn_close(s->conn);
}

void redis_sub_free(struct redis_sub *s)
{
    if (s == NULL) {
        return;
    }
    sub_channels_fini(&s->channels);
    free(s);
}
