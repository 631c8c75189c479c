#include "backend/redis/redis_sub.h"

#include "backend/cluster/slot.h"
#include "backend/redis/channel_name.h"
#include "backend/redis/redis_command.h"
#include "backend/redis/sub_channel.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/log.h"

#include <stdlib.h>

struct redis_sub {
    struct redis_conn *conn;
    struct store_events events;
    struct sub_channels channels;
    size_t open; /* confirmations, of all channels */
    bool greeted;
    bool closed; /* no event any more */
    /* After a refusal, as an error does not tell its channel: each channel is asked for
     * alone, once the one before is answered. */
    bool one_by_one;
    bool was_refused;          /* on this link */
    struct sub_channel *alone; /* the one that is asked for; NULL: none */
    struct log_recent told;    /* lately */
    bool pattern_open;         /* PSUBSCRIBE was asked, and is not answered yet */
    uint64_t ping_us;          /* when the open PING was sent; 0: none */
    bool hears_daemons;
    bool daemons_open; /* its SUBSCRIBE was asked behind that, the same */
    char daemons[CHANNEL_DAEMONS_MAX];
    struct channel_member member;

    bool is_clustered;
    bool has_shards; /* so this server said */
    struct list shard_asked;
    struct list shard_refused;
};

/* Sharded channels, of Redis 7 and newer in a cluster: the same names as the plain ones
 * beside them. Each is asked for by a command of its own, as all channels of one
 * command must be in one slot, and one at a time, as an error does not tell its
 * channel. */

static const char *const MISPLACED[] = { "MOVED ", "ASK ", "TRYAGAIN ",
                                         "CLUSTERDOWN " };

static void sub_shard_let_go(struct sub_channel *ch);
static void sub_confirmed(struct redis_sub *s, struct sub_channel *ch);
static void sub_on_member(struct redis_sub *s, struct span channel);

/* While greeting: asks whether there are sharded channels; takes the answer, if it is
 * one. */
static void sub_shard_greet(struct redis_sub *s)
{
    s->has_shards = false;
    if (s->is_clustered) {
        command_words(redis_conn_out(s->conn), 2,
                      (const char *const[]){ "PUBSUB", "SHARDNUMSUB" });
    }
}

/* An older Redis, or one that does not let us use them, has none. */
static bool sub_shard_on_greeting(struct redis_sub *s, const redisReply *reply)
{
    if (!s->is_clustered || s->greeted) {
        return false;
    }
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0) {
        s->has_shards = true;
        return true;
    }
    return reply->type == REDIS_REPLY_ERROR &&
           (strncasecmp(reply->str, "ERR unknown", 11) == 0 ||
            strstr(reply->str, "pubsub") != NULL);
}

/* Asks for what is wanted of the sharded channel, unless an answer is due that leads
 * back here. */
static void sub_shard_step(struct redis_sub *s, struct sub_channel *ch)
{
    bool wanted = sub_channel_is_wanted(ch);
    struct buf *out = redis_conn_out(s->conn);
    struct span parts[] = { channel_prefix(ch->lock_class),
                            span_of(ch->text, ch->len) };

    if (!s->has_shards || !list_empty(&ch->in_shard) || wanted == ch->shard_on) {
        return;
    }
    command_begin(out, 2);
    command_word(out, wanted ? SPAN("SSUBSCRIBE") : SPAN("SUNSUBSCRIBE"));
    command_join(out, parts, 2);
    ch->shard_adds = wanted;
    list_append(&s->shard_asked, &ch->in_shard);
}

/* The oldest question is answered. */
static struct sub_channel *pop_channel(struct redis_sub *s)
{
    struct list *first = list_first(&s->shard_asked);

    if (first == NULL) {
        return NULL;
    }
    list_del(first);
    return container_of(first, struct sub_channel, in_shard);
}

static void on_answered(struct redis_sub *s, struct sub_channel *ch, bool on)
{
    ch->shard_on = on;
    sub_shard_step(s, ch);
    redis_conn_flush(s->conn);
    sub_confirmed(s, ch);
}

/* The slot has moved to another node, and the link's owner has to find out which. */
static void on_misplaced(struct redis_sub *s, struct sub_channel *ch)
{
    ch->shard_on = false;
    if (!sub_channel_is_wanted(ch)) {
        sub_confirmed(s, ch);
        return;
    }
    ch->shard_refused = true;
    list_append(&s->shard_refused, &ch->in_shard);
    store_tell(&s->events, &(struct store_event){ .kind = STORE_MOVED });
}

static bool is_of(const struct list *it, struct span text, enum lock_class lock_class)
{
    const struct sub_channel *ch;

    if (it == NULL) {
        return false;
    }
    ch = container_of(it, struct sub_channel, in_shard);
    return ch->lock_class == lock_class && span_eq(span_of(ch->text, ch->len), text);
}

/* Returns true if the push, or the error, was about sharded channels. */
static bool sub_shard_on_push(struct redis_sub *s, struct span word,
                              struct span channel)
{
    bool added = span_eq(word, SPAN("ssubscribe"));
    struct list *first = list_first(&s->shard_asked);
    enum lock_class lock_class;
    struct sub_channel *ch;
    struct span text;

    if (!added && !span_eq(word, SPAN("sunsubscribe"))) {
        return false;
    }
    if (!channel_split(channel, &lock_class, &text)) {
        return true;
    }
    if (is_of(first, text, lock_class) &&
        container_of(first, struct sub_channel, in_shard)->shard_adds == added) {
        ch = container_of(first, struct sub_channel, in_shard);
        list_del(first);
        if (added && ch->want_member) {
            sub_on_member(s, channel); /* it may have been woken before */
        }
        on_answered(s, ch, added);
        return true;
    }
    ch = sub_channel_find(&s->channels, text, lock_class);
    if (ch != NULL && !added && list_empty(&ch->in_shard)) {
        on_misplaced(s, ch); /* it was not asked for: the slot has gone */
    } else if (ch != NULL && !added) {
        ch->shard_on = false; /* and the answer to what was asked is to come */
    }
    return true;
}

static bool sub_shard_on_error(struct redis_sub *s, const char *text)
{
    struct sub_channel *ch;

    for (size_t i = 0; i < sizeof(MISPLACED) / sizeof(MISPLACED[0]); i++) {
        if (strncmp(text, MISPLACED[i], strlen(MISPLACED[i])) == 0) {
            ch = pop_channel(s);
            if (ch != NULL) {
                on_misplaced(s, ch);
            }
            return ch != NULL;
        }
    }
    return false;
}

/* The user may not listen to the sharded channel that was asked for first. False: none
 * was. */
static bool sub_shard_on_no_right(struct redis_sub *s)
{
    struct sub_channel *ch = pop_channel(s);

    if (ch == NULL) {
        return false;
    }
    ch->shard_on = false;
    sub_confirmed(s, ch);
    return true;
}

void redis_sub_retry(struct redis_sub *s)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &s->shard_refused)
    {
        struct sub_channel *ch = container_of(it, struct sub_channel, in_shard);

        sub_shard_let_go(ch);
        if (!sub_channel_is_wanted(ch)) {
            sub_confirmed(s, ch);
        } else if (s->greeted) {
            sub_shard_step(s, ch);
        }
    }
    redis_conn_flush(s->conn);
}

/* Returns the part of a member's channel after the prefix, to be freed. */
static struct span member_text(struct span name, struct span member)
{
    bool tagged = channel_is_tagged(name, CLASS_PLAIN);
    struct span parts[] = { tagged ? SPAN_NONE : SPAN("{"), name,
                            tagged ? SPAN(":") : SPAN("}:"), member };
    char *text = xmalloc(name.len + member.len + 3);
    size_t len = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].len != 0) {
            memcpy(text + len, parts[i].ptr, parts[i].len);
        }
        len += parts[i].len;
    }
    return span_of(text, len);
}

void redis_sub_listen(struct redis_sub *s, struct span name, struct span member,
                      bool wanted)
{
    struct span text = member_text(name, member);

    sub_channel_want_member(&s->channels, text, wanted);
    free((char *)text.ptr);
}

/* Forgets that the sharded channel was refused. */
static void sub_shard_let_go(struct sub_channel *ch)
{
    if (ch->shard_refused) {
        ch->shard_refused = false;
        list_del(&ch->in_shard);
    }
}

/* The link was lost. */
static void sub_shard_lost(struct sub_channel *ch)
{
    ch->shard_on = false;
    ch->shard_refused = false;
    list_del(&ch->in_shard);
}

/* The channel on which daemons announce themselves to each other. */

/* Subscribes to the daemons' channel. If that is refused, this daemon acts as if it
 * were alone. */
static void sub_ask_daemons(struct redis_sub *s)
{
    struct buf *out = redis_conn_out(s->conn);

    if (!s->hears_daemons) {
        return;
    }
    command_begin(out, 2);
    command_word(out, SPAN("SUBSCRIBE"));
    command_word(out, span_str(s->daemons));
    s->daemons_open = true;
}

static void sub_on_daemons_refused(struct redis_sub *s, const char *why)
{
    s->daemons_open = false;
    if (!log_is_news(&s->told, s->daemons)) {
        return;
    }
    log_warning("redis-sub",
                "%s refuses SUBSCRIBE %s (%s): latchd does not wait for other daemons "
                "when Redis has lost its data; its user needs +subscribe and "
                "allchannels",
                redis_conn_address(s->conn), s->daemons, why);
}

/* Returns true if the push was about that channel. */
static bool sub_on_daemons(struct redis_sub *s, const struct span *texts, size_t count)
{
    if (!s->hears_daemons || count < 2 || !span_eq(texts[1], span_str(s->daemons))) {
        return false;
    }
    if (count == 3 && span_eq(texts[0], SPAN("message"))) {
        store_tell(&s->events,
                   &(struct store_event){ .kind = STORE_ANNOUNCED, .text = texts[2] });
    } else if (span_eq(texts[0], SPAN("subscribe"))) {
        s->daemons_open = false;
        store_tell(&s->events, &(struct store_event){ .kind = STORE_LISTENING });
    }
    return true;
}

enum {
    CHUNK = 256,      /* channels in one command */
    ASKED_MAX = 4096, /* confirmations that may be open */
};

/* Tells of a message; without payload, that the subscription is confirmed. */
static void tell_name(const struct redis_sub *s, struct span name,
                      enum lock_class lock_class, const struct span *payload)
{
    struct store_event ev = {
        .kind = payload != NULL ? STORE_MESSAGE : STORE_SUBSCRIBED,
        .channel = { name, lock_class, payload != NULL ? *payload : SPAN_NONE }
    };

    store_tell(&s->events, &ev);
}

static void tell_channel(struct redis_sub *s, const struct sub_channel *ch,
                         const struct span *payload)
{
    bool unbraced = ch->want_unbraced;
    enum lock_class lock_class = ch->lock_class;
    struct span text = span_of(ch->text, ch->len);

    if (ch->want_braced) {
        tell_name(s, text, lock_class, payload);
    }
    if (unbraced && !s->closed) {
        tell_name(s, span_of(text.ptr + 1, text.len - 2), lock_class, payload);
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
        store_tell(&s->events, &(struct store_event){ .kind = STORE_UNSUBSCRIBED_ALL });
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

/* All channels of the name are confirmed. */
static void sub_confirmed(struct redis_sub *s, struct sub_channel *ch)
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

/* Reports a message of a member's channel to the names that it is of. */
/* ["pmessage", pattern, channel, payload] */
static void sub_on_member(struct redis_sub *s, struct span channel)
{
    struct channel_names names = channel_member_names(&s->member, channel);
    const struct span freed = SPAN("0");

    if (names.braced.len != 0) {
        tell_name(s, names.braced, CLASS_PLAIN, &freed);
    }
    if (names.unbraced.len != 0 && !s->closed) {
        tell_name(s, names.unbraced, CLASS_PLAIN, &freed);
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
    s->is_clustered = setup->is_clustered;
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

void redis_sub_want(struct redis_sub *s, struct span name, enum lock_class lock_class,
                    bool wanted)
{
    struct sub_channel *ch = sub_channel_of(&s->channels, name, lock_class, wanted);

    if (ch == NULL) {
        return;
    }
    if (channel_is_tagged(name, lock_class)) {
        ch->want_braced = wanted;
    } else {
        ch->want_unbraced = wanted;
    }
    if (wanted || !sub_channel_is_named(ch)) {
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
                redis_sub_want(s, text, lock_class, true);
            }
            if (ch->want_unbraced) {
                redis_sub_want(s, span_of(text.ptr + 1, text.len - 2), lock_class,
                               true);
            }
            if (ch->want_member) {
                sub_channel_want_member(&s->channels, text, true);
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
