#include "backend/redis/redis_sub.h"

#include "backend/redis/redis_command.h"
#include "backend/slot_map.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/log.h"
#include "util/table.h"

#include <stdlib.h>

/* One channel. The names `n` and `{n}` share theirs. `asked` and `open` are about this
 * link: only the confirmation of what was asked last counts. */
struct sub_channel {
    struct table_node in_channels;
    struct list todo;   /* on redis_sub.todo: something is to be asked */
    bool want_unbraced; /* the name is `text` without its outer braces */
    bool want_braced;   /* the name is `text` */
    bool want_member;   /* of this instance, in a fair queue: only sharded, by itself */
    enum lock_class lock_class;
    bool asked;    /* for: SUBSCRIBE */
    unsigned open; /* confirmations that have not come */
    /* Of the sharded channel of that name, if there is one: */
    bool shard_on;
    bool shard_asked;       /* an answer is to come */
    struct list in_refused; /* its slot is at another node */
    size_t len;
    char text[]; /* the channel without the prefix */
};

struct redis_sub {
    struct redis_conn *conn;
    struct store_events events;
    struct table by_class[LOCK_CLASSES]; /* struct sub_channel each */
    struct list todo;
    size_t open; /* confirmations, of all channels */
    bool greeted;
    bool closed; /* no event any more */
    /* After a refusal, as an error does not tell its channel: each channel is asked for
     * alone, once the one before is answered. */
    bool one_by_one;
    bool was_refused;          /* on this link */
    struct sub_channel *alone; /* the one that is asked for; NULL: none */
    struct log_recent told;    /* lately */
    bool hears_daemons;
    char daemons[CHANNEL_DAEMONS_MAX];
    struct channel_member member;

    bool is_clustered;
    bool has_shards; /* so this server said */
    struct list shard_refused;
};

/* --- channels -------------------------------------------------------------------- */

static bool sub_channel_is_named(const struct sub_channel *ch)
{
    return ch->want_unbraced || ch->want_braced;
}

static bool sub_channel_is_wanted(const struct sub_channel *ch)
{
    return sub_channel_is_named(ch) || ch->want_member;
}

static struct sub_channel *sub_channel_in(struct table_node *n)
{
    return container_of(n, struct sub_channel, in_channels);
}

static void sub_channel_free(struct redis_sub *s, struct sub_channel *ch)
{
    table_remove(&s->by_class[ch->lock_class], &ch->in_channels);
    list_del(&ch->todo);
    list_del(&ch->in_refused);
    free(ch);
}

static struct sub_channel *sub_channel_find(struct redis_sub *s, struct span text,
                                            enum lock_class lock_class)
{
    struct table_node *n =
        table_find(&s->by_class[lock_class], hash_bytes(text.ptr, text.len));

    for (; n != NULL; n = table_next(n)) {
        struct sub_channel *ch = sub_channel_in(n);

        if (span_eq(span_of(ch->text, ch->len), text)) {
            return ch;
        }
    }
    return NULL;
}

static struct sub_channel *sub_channel_of(struct redis_sub *s, struct span name,
                                          enum lock_class lock_class, bool make)
{
    bool tagged = channel_is_tagged(name, lock_class);
    size_t len = name.len + (tagged ? 0 : 2);
    struct sub_channel *ch = xcalloc(1, sizeof(*ch) + len);
    struct sub_channel *found;

    memcpy(ch->text + (tagged ? 0 : 1), name.ptr, name.len);
    if (!tagged) {
        ch->text[0] = '{';
        ch->text[len - 1] = '}';
    }
    found = sub_channel_find(s, span_of(ch->text, len), lock_class);
    if (found != NULL || !make) {
        free(ch);
        return found;
    }
    ch->len = len;
    ch->lock_class = lock_class;
    list_init(&ch->todo);
    list_init(&ch->in_refused);
    ch->in_channels.key = hash_bytes(ch->text, ch->len);
    table_add(&s->by_class[lock_class], &ch->in_channels);
    return ch;
}

static void sub_channel_ask(struct redis_sub *s, struct sub_channel *ch)
{
    list_del(&ch->todo);
    list_append(&s->todo, &ch->todo);
}

/* The text of a member has a brace, and so is its own channel. */
static void sub_channel_want_member(struct redis_sub *s, struct span text, bool wanted)
{
    struct sub_channel *ch = sub_channel_of(s, text, CLASS_PLAIN, wanted);

    if (ch != NULL && ch->want_member != wanted) {
        ch->want_member = wanted;
        sub_channel_ask(s, ch);
    }
}

/* Sharded channels, of Redis 7 and newer in a cluster: the same names as the plain ones
 * beside them. Each is asked for by a command of its own, as all channels of one
 * command must be in one slot, and one at a time, as an error does not tell its
 * channel. */

static const char *const MISPLACED[] = { "MOVED ", "ASK ", "TRYAGAIN ",
                                         "CLUSTERDOWN " };

static redis_reply_fn on_shard_added, on_shard_dropped, on_channel;
static void sub_confirmed(struct redis_sub *s, struct sub_channel *ch);
static void sub_on_member(struct redis_sub *s, struct span channel);

/* An older Redis, or one that does not let us use them, has none. */
static void on_shards(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;

    s->has_shards = reply->type == REDIS_REPLY_ARRAY && reply->elements == 0;
    if (reply->type == REDIS_REPLY_ERROR &&
        strncasecmp(reply->str, "ERR unknown", 11) != 0 &&
        strstr(reply->str, "pubsub") == NULL) {
        redis_conn_fail(s->conn, "%s", reply->str);
    }
}

/* Asks for what is wanted of the sharded channel, unless an answer is due that leads
 * back here. */
static void sub_shard_step(struct redis_sub *s, struct sub_channel *ch)
{
    bool wanted = sub_channel_is_wanted(ch);
    struct buf *out = redis_conn_out(s->conn);
    struct span parts[] = { channel_prefix(ch->lock_class),
                            span_of(ch->text, ch->len) };

    if (!s->has_shards || ch->shard_asked || !list_empty(&ch->in_refused) ||
        wanted == ch->shard_on) {
        return;
    }
    command_begin(out, 2);
    command_word(out, wanted ? SPAN("SSUBSCRIBE") : SPAN("SUNSUBSCRIBE"));
    command_join(out, parts, 2);
    ch->shard_asked = true;
    redis_conn_expect(s->conn, 1, wanted ? on_shard_added : on_shard_dropped, ch);
}

/* Without its channel only the recheck wakes who heads a queue: slow, not wrong. */
static void log_channel_refused(struct redis_sub *s, const char *why)
{
    if (log_is_news(&s->told, why)) {
        log_warning("redis-sub",
                    "%s refuses SUBSCRIBE (%s): clients that wait for such locks are "
                    "woken late; latchd's user needs +subscribe and the channels that "
                    "latchd.conf(5) lists",
                    redis_conn_address(s->conn), why);
    }
    s->was_refused = true;
}

/* The slot has moved to another node, and the link's owner has to find out which. */
static void on_misplaced(struct redis_sub *s, struct sub_channel *ch)
{
    ch->shard_on = false;
    if (!sub_channel_is_wanted(ch)) {
        sub_confirmed(s, ch);
        return;
    }
    list_append(&s->shard_refused, &ch->in_refused);
    store_tell(&s->events, &(struct store_event){ .kind = STORE_MOVED });
}

/* The user may not listen to it. */
static void on_shard_refused(struct redis_sub *s, struct sub_channel *ch,
                             const char *why)
{
    for (size_t i = 0; i < sizeof(MISPLACED) / sizeof(MISPLACED[0]); i++) {
        if (strncmp(why, MISPLACED[i], strlen(MISPLACED[i])) == 0) {
            on_misplaced(s, ch);
            return;
        }
    }
    if (strncmp(why, "NOPERM", 6) != 0) {
        redis_conn_fail(s->conn, "%s", why);
        return;
    }
    log_channel_refused(s, why);
    ch->shard_on = false;
    sub_confirmed(s, ch);
}

static bool channel_is(const struct sub_channel *ch, struct span channel)
{
    enum lock_class lock_class;
    struct span text;

    return channel_split(channel, &lock_class, &text) && lock_class == ch->lock_class &&
           span_eq(text, span_of(ch->text, ch->len));
}

/* ["ssubscribe" or "sunsubscribe", channel, count] */
static void on_shard_answer(struct redis_sub *s, struct sub_channel *ch, bool on,
                            const redisReply *reply)
{
    struct span texts[3];

    ch->shard_asked = false;
    if (reply->type == REDIS_REPLY_ERROR) {
        on_shard_refused(s, ch, reply->str);
        return;
    }
    if (redis_texts(reply, texts, 3) < 2 || !channel_is(ch, texts[1])) {
        redis_conn_fail(s->conn, "it answers for another channel than was asked for");
        return;
    }
    ch->shard_on = on;
    sub_shard_step(s, ch);
    sub_confirmed(s, ch);
}

static void on_shard_added(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;
    struct sub_channel *ch = of;
    struct span texts[3];

    if (redis_texts(reply, texts, 3) >= 2 && ch->want_member) {
        sub_on_member(s, texts[1]); /* it may have been woken before */
    }
    on_shard_answer(s, ch, true, reply);
}

static void on_shard_dropped(void *ctx, void *of, const redisReply *reply)
{
    on_shard_answer(ctx, of, false, reply);
}

/* Returns false if this was asked for. */
static bool on_shard_gone(struct redis_sub *s, struct span channel)
{
    enum lock_class lock_class;
    struct sub_channel *ch;
    struct span text;

    if (!channel_split(channel, &lock_class, &text)) {
        return true;
    }
    ch = sub_channel_find(s, text, lock_class);
    if (ch == NULL) {
        return true;
    }
    if (redis_conn_is_asked(s->conn, on_shard_dropped, ch)) {
        return false;
    }
    if (!ch->shard_asked && list_empty(&ch->in_refused)) {
        on_misplaced(s, ch); /* it was not asked for: the slot has gone */
    } else {
        ch->shard_on = false; /* and the answer to what was asked is to come */
    }
    return true;
}

void redis_sub_retry(struct redis_sub *s)
{
    struct sub_channel *ch;

    LIST_EACH_SAFE(ch, &s->shard_refused, in_refused) {
        list_del(&ch->in_refused);
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

    sub_channel_want_member(s, text, wanted);
    free((char *)text.ptr);
}

/* The channel on which daemons announce themselves to each other. */

static void on_daemons(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;

    if (reply->type != REDIS_REPLY_ERROR) {
        store_tell(&s->events, &(struct store_event){ .kind = STORE_LISTENING });
    } else if (log_is_news(&s->told, s->daemons)) {
        log_warning(
            "redis-sub",
            "%s refuses SUBSCRIBE %s (%s): latchd does not wait for other daemons "
            "when Redis has lost its data; its user needs +subscribe and "
            "allchannels",
            redis_conn_address(s->conn), s->daemons, reply->str);
    }
}

/* Subscribes to the daemons' channel. If that is refused, this daemon acts as if it
 * were alone. */
static void sub_ask_daemons(struct redis_sub *s)
{
    if (s->hears_daemons) {
        redis_conn_ask(s->conn, 2, (const char *const[]){ "SUBSCRIBE", s->daemons },
                       on_daemons, NULL);
    }
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
    redis_conn_expect(s->conn, (unsigned)count, on_channel, NULL);
}

/* Nothing is wanted of it, and nothing to come. */
static bool is_over(const struct sub_channel *ch)
{
    return !sub_channel_is_wanted(ch) && !ch->asked && ch->open == 0 && !ch->shard_on &&
           !ch->shard_asked && list_empty(&ch->in_refused);
}

static void ask_chunk(struct redis_sub *s)
{
    struct sub_channel *add[CHUNK], *remove[CHUNK];
    size_t adds = 0, removes = 0, most = s->one_by_one ? 1 : CHUNK;

    while (adds < most && removes < most && !list_empty(&s->todo)) {
        struct sub_channel *ch = container_of(s->todo.next, struct sub_channel, todo);

        list_del(&ch->todo);
        sub_shard_step(s, ch);
        if (sub_channel_is_named(ch)) {
            add[adds++] = ch;
        } else if (ch->asked) {
            remove[removes++] = ch;
        } else if (is_over(ch)) {
            sub_channel_free(s, ch);
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
    while (!list_empty(&s->todo) && s->open < (s->one_by_one ? 1 : ASKED_MAX)) {
        ask_chunk(s);
    }
    redis_conn_flush(s->conn);
}

/* Without the pattern only the recheck wakes who heads a fair queue: slow, not wrong.
 * A pattern has to be allowed to the letter, and this one changes with each start. */
static void on_pattern(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;

    if (reply->type == REDIS_REPLY_ERROR && log_is_news(&s->told, s->member.text)) {
        log_warning("redis-sub",
                    "%s refuses PSUBSCRIBE %s*%s* (%s): clients that wait for a FAIR "
                    "lock are woken late; its user needs +psubscribe and allchannels",
                    redis_conn_address(s->conn), channel_prefix(CLASS_PLAIN).ptr,
                    s->member.text, reply->str);
    }
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
    redis_conn_expect(s->conn, 1, on_pattern, NULL);
}

/* --- the link -------------------------------------------------------------------- */

static void on_lost(void *ctx)
{
    struct redis_sub *s = ctx;
    bool was_greeted = s->greeted;
    struct sub_channel *ch;

    s->greeted = false;
    s->one_by_one = s->was_refused;
    s->was_refused = false;
    s->alone = NULL;
    s->open = 0;
    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_EACH(ch, &s->by_class[lock_class], in_channels) {
            ch->open = 0;
            ch->asked = false;
            ch->shard_on = ch->shard_asked = false;
            list_del(&ch->in_refused);
            if (sub_channel_is_wanted(ch)) {
                sub_channel_ask(s, ch);
            } else {
                sub_channel_free(s, ch);
            }
        }
    }
    if (was_greeted) {
        store_tell(&s->events, &(struct store_event){ .kind = STORE_UNSUBSCRIBED_ALL });
    }
}

static void on_greeted(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(s->conn, "%s", reply->str);
        return;
    }
    s->greeted = true;
    redis_conn_ready(s->conn, "for messages");
    ask_pattern(s);
    sub_ask_daemons(s);
    redis_sub_flush(s);
}

static void on_open(void *ctx)
{
    struct redis_sub *s = ctx;

    s->has_shards = false;
    if (s->is_clustered) {
        redis_conn_ask(s->conn, 2, (const char *const[]){ "PUBSUB", "SHARDNUMSUB" },
                       on_shards, NULL);
    }
    redis_conn_ask(s->conn, 1, (const char *const[]){ "PING" }, on_greeted, NULL);
}

/* All channels of the name are confirmed. */
static void sub_confirmed(struct redis_sub *s, struct sub_channel *ch)
{
    if (ch->open == 0 && ch->asked && (ch->shard_on || !s->has_shards)) {
        tell_channel(s, ch, NULL);
    } else if (is_over(ch)) {
        sub_channel_free(s, ch);
    }
}

static void on_confirmed(struct redis_sub *s, struct sub_channel *ch)
{
    s->open--;
    ch->open--;
    s->alone = NULL;
    sub_confirmed(s, ch);
    if (!list_empty(&s->todo)) {
        redis_sub_flush(s);
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

static void on_channel_refused(struct redis_sub *s, const char *why)
{
    struct sub_channel *ch = s->alone;

    if (strncmp(why, "NOPERM", 6) != 0) {
        redis_conn_fail(s->conn, "%s", why);
        return;
    }
    log_channel_refused(s, why);
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

/* ["subscribe" or "unsubscribe", channel, count] */
static void on_channel(void *ctx, void *of, const redisReply *reply)
{
    struct redis_sub *s = ctx;
    struct sub_channel *ch = NULL;
    enum lock_class lock_class;
    struct span texts[3], name;

    if (reply->type == REDIS_REPLY_ERROR) {
        on_channel_refused(s, reply->str);
        return;
    }
    if (redis_texts(reply, texts, 3) >= 2 &&
        channel_split(texts[1], &lock_class, &name)) {
        ch = sub_channel_find(s, name, lock_class);
    }
    if (ch != NULL && ch->open > 0) {
        on_confirmed(s, ch);
    }
}

static void on_message(struct redis_sub *s, struct span channel, struct span payload)
{
    struct sub_channel *ch = NULL;
    enum lock_class lock_class;
    struct span name;

    if (s->hears_daemons && span_eq(channel, span_str(s->daemons))) {
        store_tell(&s->events,
                   &(struct store_event){ .kind = STORE_ANNOUNCED, .text = payload });
        return;
    }
    if (channel_split(channel, &lock_class, &name)) {
        ch = sub_channel_find(s, name, lock_class);
    }
    if (ch != NULL && ch->want_member) {
        sub_on_member(s, channel);
    }
    if (ch != NULL) {
        tell_channel(s, ch, &payload);
    }
}

/* ["message" or "smessage", channel, payload], ["pmessage", pattern, channel, payload],
 * and an "sunsubscribe" that was not asked for */
static bool on_push(void *ctx, const redisReply *reply)
{
    struct redis_sub *s = ctx;
    struct span texts[3];
    size_t count = redis_texts(reply, texts, 3);

    if (count == 3 && span_eq(texts[0], SPAN("pmessage"))) {
        sub_on_member(s, texts[2]);
    } else if (count == 3 && (span_eq(texts[0], SPAN("message")) ||
                              span_eq(texts[0], SPAN("smessage")))) {
        on_message(s, texts[1], texts[2]);
    } else if (count >= 2 && span_eq(texts[0], SPAN("sunsubscribe"))) {
        return on_shard_gone(s, texts[1]);
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

/* --- for the store --------------------------------------------------------------- */

struct redis_sub *redis_sub_new(const struct redis_sub_setup *setup)
{
    struct redis_sub *s = xcalloc(1, sizeof(*s));
    struct redis_conn_setup conn = setup->conn;

    conn.module = "redis-sub";
    conn.pings = true;
    conn.events = &CONN_EVENTS;
    conn.ctx = s;
    s->events = setup->events;
    s->is_clustered = setup->is_clustered;
    s->hears_daemons = setup->hears_daemons;
    (void)channel_daemons(s->daemons, conn.url->db);
    list_init(&s->shard_refused);
    channel_member_init(&s->member, setup->instance);
    list_init(&s->todo);
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
    struct sub_channel *ch = sub_channel_of(s, name, lock_class, wanted);

    if (ch == NULL) {
        return;
    }
    if (channel_is_tagged(name, lock_class)) {
        ch->want_braced = wanted;
    } else {
        ch->want_unbraced = wanted;
    }
    if (wanted || !sub_channel_is_named(ch)) {
        sub_channel_ask(s, ch);
    }
}

void redis_sub_adopt(struct redis_sub *s, struct redis_sub *from,
                     bool (*concerns)(void *ctx, uint32_t group), void *ctx)
{
    struct sub_channel *ch;

    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_EACH(ch, &from->by_class[lock_class], in_channels) {
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
                sub_channel_want_member(s, text, true);
            }
            ch->want_unbraced = ch->want_braced = ch->want_member = false;
            list_del(&ch->in_refused);
            sub_channel_ask(from, ch);
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
    struct sub_channel *ch;

    if (s == NULL) {
        return;
    }
    for (enum lock_class lock_class = 0; lock_class < LOCK_CLASSES; lock_class++) {
        TABLE_EACH(ch, &s->by_class[lock_class], in_channels) {
            sub_channel_free(s, ch);
        }
        table_fini(&s->by_class[lock_class]);
    }
    free(s);
}
