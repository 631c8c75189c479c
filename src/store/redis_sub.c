#include "store/redis_sub.h"

#include "store/command.h"
#include "util/alloc.h"
#include "util/clock.h"
#include "util/list.h"
#include "util/map.h"

#include <stdlib.h>

enum {
    CHUNK = 256,      /* channels in one command */
    ASKED_MAX = 4096, /* confirmations that may be open */
};

static const char PREFIX[] = "redisson_lock__channel:";
enum { PREFIX_LEN = sizeof(PREFIX) - 1 };

/* One channel. The names `n` and `{n}` share theirs. `asked` and `open` are about this
 * link: only the confirmation of what was asked last counts. */
struct channel {
    UT_hash_handle hh;
    struct list todo; /* on redis_sub.todo: something is to be asked */
    bool want_bare;   /* the name is `text` without its outer braces */
    bool want_braced; /* the name is `text` */
    bool asked;       /* for: SUBSCRIBE */
    unsigned open;    /* confirmations that have not come */
    size_t len;
    char text[]; /* the channel without the prefix */
};

struct redis_sub {
    struct redis_conn *conn;
    const struct redis_sub_events *events;
    void *ctx;
    struct channel *channels;
    struct list todo;
    size_t open; /* confirmations, of all channels */
    bool greeted;
    bool closed;      /* no event any more */
    uint64_t ping_us; /* when the open PING was sent; 0: none */
};

/* --- channels -------------------------------------------------------------------- */

static bool is_wanted(const struct channel *ch)
{
    return ch->want_bare || ch->want_braced;
}

static void channel_free(struct redis_sub *s, struct channel *ch)
{
    HASH_DEL(s->channels, ch);
    list_del(&ch->todo);
    free(ch);
}

static struct channel *channel_find(struct redis_sub *s, struct span text)
{
    struct channel *ch;

    HASH_FIND(hh, s->channels, text.ptr, text.len, ch);
    return ch;
}

static bool is_tagged(struct span name)
{
    return memchr(name.ptr, '{', name.len) != NULL;
}

/* The channel of a name, made if `make`. */
static struct channel *channel_of(struct redis_sub *s, struct span name, bool make)
{
    bool tagged = is_tagged(name);
    size_t len = name.len + (tagged ? 0 : 2);
    struct channel *ch = xcalloc(1, sizeof(*ch) + len);
    struct channel *found;

    memcpy(ch->text + (tagged ? 0 : 1), name.ptr, name.len);
    if (!tagged) {
        ch->text[0] = '{';
        ch->text[len - 1] = '}';
    }
    found = channel_find(s, span_of(ch->text, len));
    if (found != NULL || !make) {
        free(ch);
        return found;
    }
    ch->len = len;
    list_init(&ch->todo);
    HASH_ADD_KEYPTR(hh, s->channels, ch->text, ch->len, ch);
    return ch;
}

static void put_on_todo(struct redis_sub *s, struct channel *ch)
{
    list_del(&ch->todo);
    list_append(&s->todo, &ch->todo);
}

/* Tells each wanted name of a channel. */
static void tell(struct redis_sub *s, const struct channel *ch,
                 void (*fn)(void *ctx, struct span name, bool rw))
{
    bool bare = ch->want_bare;
    struct span text = span_of(ch->text, ch->len);

    if (ch->want_braced) {
        fn(s->ctx, text, false);
    }
    if (bare && !s->closed) {
        fn(s->ctx, span_of(text.ptr + 1, text.len - 2), false);
    }
}

/* --- asking ---------------------------------------------------------------------- */

static void ask(struct redis_sub *s, const char *word, struct channel *const *chs,
                size_t count, bool subscribe)
{
    struct buf *out = redis_conn_out(s->conn);

    if (count == 0) {
        return;
    }
    command_begin(out, 1 + count);
    command_word(out, span_str(word));
    for (size_t i = 0; i < count; i++) {
        struct span parts[] = { span_of(PREFIX, PREFIX_LEN),
                                span_of(chs[i]->text, chs[i]->len) };

        command_join(out, parts, 2);
        chs[i]->asked = subscribe;
        chs[i]->open++;
        s->open++;
    }
}

static void ask_chunk(struct redis_sub *s)
{
    struct channel *add[CHUNK], *remove[CHUNK];
    size_t adds = 0, removes = 0;

    while (adds < CHUNK && removes < CHUNK && !list_empty(&s->todo)) {
        struct channel *ch = container_of(s->todo.next, struct channel, todo);

        list_del(&ch->todo);
        if (is_wanted(ch)) {
            add[adds++] = ch;
        } else if (ch->asked) {
            remove[removes++] = ch;
        } else if (ch->open == 0) {
            channel_free(s, ch);
        }
    }
    ask(s, "SUBSCRIBE", add, adds, true);
    ask(s, "UNSUBSCRIBE", remove, removes, false);
}

void redis_sub_flush(struct redis_sub *s)
{
    if (!s->greeted) {
        return;
    }
    while (!list_empty(&s->todo) && s->open < ASKED_MAX) {
        ask_chunk(s);
    }
    redis_conn_flush(s->conn);
}

static void ping(struct redis_sub *s)
{
    command_words(redis_conn_out(s->conn), 1, (const char *const[]){ "PING" });
    s->ping_us = clock_boot_us();
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
    ping(s);
}

static void on_lost(void *ctx)
{
    struct redis_sub *s = ctx;
    bool was_greeted = s->greeted;
    struct channel *ch, *tmp;

    s->greeted = false;
    s->ping_us = 0;
    s->open = 0;
    HASH_ITER(hh, s->channels, ch, tmp)
    {
        ch->open = 0;
        ch->asked = false;
        if (is_wanted(ch)) {
            put_on_todo(s, ch);
        } else {
            channel_free(s, ch);
        }
    }
    if (was_greeted) {
        s->events->on_unsubscribed_all(s->ctx);
    }
}

static void on_tick(void *ctx)
{
    struct redis_sub *s = ctx;

    if (s->ping_us != 0) {
        redis_conn_check_silence(s->conn, s->ping_us);
    } else if (s->greeted) {
        ping(s);
    }
}

static void on_pong(struct redis_sub *s)
{
    s->ping_us = 0;
    if (!s->greeted) {
        s->greeted = true;
        redis_conn_ready(s->conn, "for messages");
        redis_sub_flush(s);
    }
}

static void on_confirmed(struct redis_sub *s, struct channel *ch)
{
    s->open--;
    ch->open--;
    if (ch->open == 0 && ch->asked) {
        tell(s, ch, s->events->on_subscribed);
    } else if (ch->open == 0 && !is_wanted(ch)) {
        channel_free(s, ch);
    }
    if (!list_empty(&s->todo)) {
        redis_sub_flush(s);
    }
}

/* ["message", channel, payload], ["subscribe" or "unsubscribe", channel, count] */
static void on_push(struct redis_sub *s, const redisReply *reply)
{
    const char *word = reply->element[0]->str;
    struct span text = span_of(reply->element[1]->str, (size_t)reply->element[1]->len);
    struct channel *ch = NULL;

    if (span_starts(text, span_of(PREFIX, PREFIX_LEN))) {
        ch = channel_find(s, span_of(text.ptr + PREFIX_LEN, text.len - PREFIX_LEN));
    }
    if (ch == NULL) {
        return;
    }
    if (strcmp(word, "message") == 0) {
        tell(s, ch, s->events->on_message);
    } else if (ch->open > 0 &&
               (strcmp(word, "subscribe") == 0 || strcmp(word, "unsubscribe") == 0)) {
        on_confirmed(s, ch);
    }
}

static void on_reply(void *ctx, const redisReply *reply)
{
    struct redis_sub *s = ctx;
    bool texts = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2 &&
                 reply->element[0]->type == REDIS_REPLY_STRING &&
                 reply->element[1]->type == REDIS_REPLY_STRING;

    if (reply->type == REDIS_REPLY_ERROR) {
        redis_conn_fail(s->conn, "%s", reply->str);
    } else if (reply->type == REDIS_REPLY_STATUS && strcmp(reply->str, "PONG") == 0) {
        on_pong(s);
    } else if (texts && strcmp(reply->element[0]->str, "pong") == 0) {
        on_pong(s);
    } else if (texts && reply->elements == 3) {
        on_push(s, reply);
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
    struct redis_conn_setup conn = {
        .io = setup->io,
        .url = setup->url,
        .module = "redis-sub",
        .timeout_ms = setup->timeout_ms,
        .seed = setup->seed,
        .events = &CONN_EVENTS,
        .ctx = s,
    };

    s->events = setup->events;
    s->ctx = setup->ctx;
    list_init(&s->todo);
    s->conn = redis_conn_new(&conn);
    return s;
}

void redis_sub_start(struct redis_sub *s)
{
    redis_conn_start(s->conn);
}

void redis_sub_set_timeout(struct redis_sub *s, uint64_t timeout_ms)
{
    redis_conn_set_timeout(s->conn, timeout_ms);
}

void redis_sub_add(struct redis_sub *s, struct span name, bool rw)
{
    struct channel *ch = channel_of(s, name, true);

    (void)rw;

    if (is_tagged(name)) {
        ch->want_braced = true;
    } else {
        ch->want_bare = true;
    }
    put_on_todo(s, ch);
}

void redis_sub_remove(struct redis_sub *s, struct span name, bool rw)
{
    struct channel *ch = channel_of(s, name, false);

    (void)rw;
    if (ch == NULL) {
        return;
    }
    if (is_tagged(name)) {
        ch->want_braced = false;
    } else {
        ch->want_bare = false;
    }
    if (!is_wanted(ch)) {
        put_on_todo(s, ch);
    }
}

void redis_sub_close(struct redis_sub *s)
{
    s->closed = true;
    s->greeted = false;
    redis_conn_close(s->conn);
}

void redis_sub_free(struct redis_sub *s)
{
    struct channel *ch, *tmp;

    if (s == NULL) {
        return;
    }
    HASH_ITER(hh, s->channels, ch, tmp)
    {
        channel_free(s, ch);
    }
    free(s);
}
