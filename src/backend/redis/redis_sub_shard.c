/* Sharded channels, of Redis 7 and newer in a cluster: the same names as the plain ones
 * beside them. Each is asked for by a command of its own, as all channels of one
 * command must be in one slot, and one at a time, as an error does not tell its
 * channel. */
#include "backend/redis/redis_sub_priv.h"

#include "backend/redis/redis_command.h"
#include "util/alloc.h"

#include <stdlib.h>

static const char *const MISPLACED[] = { "MOVED ", "ASK ", "TRYAGAIN ",
                                         "CLUSTERDOWN " };

void sub_shard_greet(struct redis_sub *s)
{
    s->has_shards = false;
    if (s->is_clustered) {
        command_words(redis_conn_out(s->conn), 2,
                      (const char *const[]){ "PUBSUB", "SHARDNUMSUB" });
    }
}

/* An older Redis, or one that does not let us use them, has none. */
bool sub_shard_on_greeting(struct redis_sub *s, const redisReply *reply)
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

void sub_shard_step(struct redis_sub *s, struct sub_channel *ch)
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
    if (s->events->on_moved != NULL) {
        s->events->on_moved(s->ctx);
    }
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

bool sub_shard_on_push(struct redis_sub *s, struct span word, struct span channel)
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

bool sub_shard_on_error(struct redis_sub *s, const char *text)
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

bool sub_shard_on_no_right(struct redis_sub *s)
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

void redis_sub_listen(struct redis_sub *s, struct span name, struct span member)
{
    struct span text = member_text(name, member);

    sub_channel_want_member(&s->channels, text);
    free((char *)text.ptr);
}

void redis_sub_unlisten(struct redis_sub *s, struct span name, struct span member)
{
    struct span text = member_text(name, member);
    struct sub_channel *ch = sub_channel_find(&s->channels, text, false);

    if (ch != NULL && ch->want_member) {
        ch->want_member = false;
        sub_channel_ask(&s->channels, ch);
    }
    free((char *)text.ptr);
}

void sub_shard_let_go(struct sub_channel *ch)
{
    if (ch->shard_refused) {
        ch->shard_refused = false;
        list_del(&ch->in_shard);
    }
}

void sub_shard_lost(struct sub_channel *ch)
{
    ch->shard_on = false;
    ch->shard_refused = false;
    list_del(&ch->in_shard);
}
