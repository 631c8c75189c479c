#include "lock_call_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LATE_MS = 3000 }; /* the test may take so long between two looks */

/* --- what can be seen -------------------------------------------------- */

/* Adds an item to what a list says. Times, which are nearly the same, are added up. */
static void add_item(struct seen_reply *list, const struct seen_reply *item)
{
    size_t at = strlen(list->text);
    bool is_time = item->kind == ':' && item->integer > LATE_MS;

    list->integer += is_time ? item->integer : 0;
    (void)snprintf(list->text + at, sizeof(list->text) - at, " %c%lld%s", item->kind,
                   is_time ? -3LL : (long long)item->integer, item->text);
}

void seen_reply_read(const redisReply *reply, struct seen_reply *ret)
{
    static const char KINDS[] = {
        [REDIS_REPLY_STRING] = '$', [REDIS_REPLY_INTEGER] = ':',
        [REDIS_REPLY_NIL] = '_',    [REDIS_REPLY_STATUS] = '+',
        [REDIS_REPLY_ERROR] = '-',  [REDIS_REPLY_ARRAY] = '*',
    };

    memset(ret, 0, sizeof(*ret));
    ret->kind = KINDS[reply->type];
    for (size_t i = 0; i < reply->elements; i++) {
        struct seen_reply item;

        seen_reply_read(reply->element[i], &item);
        add_item(ret, &item);
    }
    if (reply->type == REDIS_REPLY_INTEGER) {
        ret->integer = reply->integer;
    } else if (reply->str != NULL) {
        /* An error that a script raised ends with its place. */
        const char *end = strstr(reply->str, " script: ");
        int len = end == NULL ? (int)strlen(reply->str) : (int)(end - reply->str);

        (void)snprintf(ret->text, sizeof(ret->text), "%.*s", len, reply->str);
    }
}

void seen_keys_read(redisContext *link, const struct span *keys, size_t count,
                    struct seen *ret)
{
    for (size_t i = 0; i < count; i++) {
        struct seen_key *k = &ret->keys[i];
        redisReply *value = redisCommand(link, "GET %b", keys[i].ptr, keys[i].len);
        redisReply *ttl = redisCommand(link, "PTTL %b", keys[i].ptr, keys[i].len);

        ck_assert(value != NULL && ttl != NULL);
        (void)snprintf(k->text, sizeof(k->text), "%s%s",
                       value->type == REDIS_REPLY_STRING  ? "string "
                       : value->type == REDIS_REPLY_ERROR ? "data"
                                                          : "none",
                       value->type == REDIS_REPLY_STRING ? value->str : "");
        k->ttl_ms = ttl->integer;
        freeReplyObject(value);
        freeReplyObject(ttl);
    }
}

/* Numbers are the same, or both are times that are nearly the same. */
static bool is_near(int64_t a, int64_t b)
{
    return a == b || (a > LATE_MS && b > LATE_MS && llabs(a - b) < LATE_MS);
}

bool seen_is_equal(const struct seen *a, const struct seen *b, size_t key_count)
{
    for (size_t i = 0; i < key_count; i++) {
        if (strcmp(a->keys[i].text, b->keys[i].text) != 0 ||
            !is_near(a->keys[i].ttl_ms, b->keys[i].ttl_ms)) {
            return false;
        }
    }
    return a->reply.kind == b->reply.kind &&
           is_near(a->reply.integer, b->reply.integer) &&
           strcmp(a->reply.text, b->reply.text) == 0;
}

void seen_print(const struct seen *s, size_t key_count, char *ret, size_t room)
{
    int at = snprintf(ret, room, "%c%lld%s", s->reply.kind, (long long)s->reply.integer,
                      s->reply.text);

    for (size_t i = 0; i < key_count; i++) {
        at += snprintf(ret + at, room - (size_t)at, "; %s for %lld ms", s->keys[i].text,
                       (long long)s->keys[i].ttl_ms);
    }
}

/* --- doing it ---------------------------------------------------------- */

static bool is_mine(const struct lock_call *c, struct span value)
{
    size_t most = c->prefix_len;

    if (c->compare == LOCK_COMPARE_PREFIX) {
        return span_eq(
            span_of(value.ptr, value.len < most ? value.len : most),
            span_of(c->value.ptr, c->value.len < most ? c->value.len : most));
    }
    return c->compare == LOCK_COMPARE_NONE || span_eq(value, c->value);
}

static enum lock_call_state state_of(struct test_redis *r, const struct lock_call *c,
                                     struct span key)
{
    redisReply *reply = redis_ask(r, "GET %b", key.ptr, key.len);
    enum lock_call_state state = LOCK_KEY_FREE;

    if (reply->type == REDIS_REPLY_ERROR) {
        state = LOCK_KEY_NOT_A_STRING;
    } else if (reply->type == REDIS_REPLY_STRING) {
        state = LOCK_KEY_OTHERS;
        if (is_mine(c, span_of(reply->str, reply->len))) {
            state = redis_ask_int(r, "PTTL %b", key.ptr, key.len) == -1
                        ? LOCK_KEY_MINE_ENDLESS
                        : LOCK_KEY_MINE;
        }
    }
    freeReplyObject(reply);
    return state;
}

static bool can_be_done(const struct lock_call *c, enum lock_call_state state)
{
    bool mine = state == LOCK_KEY_MINE || state == LOCK_KEY_MINE_ENDLESS ||
                (state == LOCK_KEY_NOT_A_STRING && c->compare == LOCK_COMPARE_NONE);

    switch (c->kind) {
    case LOCK_CALL_ACQUIRE:
        return state == LOCK_KEY_FREE;
    case LOCK_CALL_ACQUIRE_OR_EXTEND:
        return state == LOCK_KEY_FREE || mine;
    case LOCK_CALL_EXTEND:
        return mine &&
               !(state == LOCK_KEY_MINE_ENDLESS && c->endless == LOCK_ENDLESS_REFUSED);
    case LOCK_CALL_RELEASE:
        return mine;
    case LOCK_CALL_OVERWRITE:
    case LOCK_CALL_FORCE_RELEASE:
        return state != LOCK_KEY_FREE;
    default:
        return false;
    }
}

static void give_end(struct test_redis *r, const struct lock_call *c, struct span key)
{
    int64_t ms = c->end_ms;

    switch (c->end) {
    case LOCK_END_NONE:
        freeReplyObject(redis_ask(r, "PERSIST %b", key.ptr, key.len));
        break;
    case LOCK_END_AT:
        freeReplyObject(
            redis_ask(r, "PEXPIREAT %b %lld", key.ptr, key.len, (long long)ms));
        break;
    case LOCK_END_ADDED:
        ms += redis_ask_int(r, "PTTL %b", key.ptr, key.len);
        /* fall through */
    case LOCK_END_IN:
        freeReplyObject(
            redis_ask(r, "PEXPIRE %b %lld", key.ptr, key.len, (long long)ms));
        break;
    }
}

static void do_with_key(struct test_redis *r, const struct lock_call *c,
                        struct span key)
{
    if (c->kind == LOCK_CALL_RELEASE || c->kind == LOCK_CALL_FORCE_RELEASE) {
        freeReplyObject(redis_ask(r, "DEL %b", key.ptr, key.len));
        return;
    }
    if (c->kind != LOCK_CALL_EXTEND) {
        freeReplyObject(
            redis_ask(r, "SET %b %b", key.ptr, key.len, c->value.ptr, c->value.len));
    }
    give_end(r, c, key);
}

static void read_reply(struct test_redis *r, const struct lock_call *c,
                       const struct lock_reply *reply, int64_t done,
                       struct seen_reply *ret)
{
    static const char KINDS[LOCK_REPLY_KINDS] = {
        [LOCK_REPLY_NULL] = '_',      [LOCK_REPLY_INTEGER] = ':',
        [LOCK_REPLY_STATUS] = '+',    [LOCK_REPLY_BULK] = '$',
        [LOCK_REPLY_ERROR] = '-',     [LOCK_REPLY_PLAIN_ERROR] = '-',
        [LOCK_REPLY_KEY_COUNT] = ':', [LOCK_REPLY_DONE_COUNT] = ':',
        [LOCK_REPLY_LIST] = '*',
    };
    struct span key = c->keys[0];
    const char *ask = reply->kind == LOCK_REPLY_VALUE    ? "GET %b"
                      : reply->kind == LOCK_REPLY_TTL_MS ? "PTTL %b"
                      : reply->kind == LOCK_REPLY_TTL_S  ? "TTL %b"
                                                         : NULL;

    if (reply->kind == LOCK_REPLY_WRONG_TYPE) {
        ask = "LLEN %b";
        key = SPAN("a string");
        freeReplyObject(redis_ask(r, "SET %b x", key.ptr, key.len));
    }
    if (ask != NULL) {
        redisReply *answer = redis_ask(r, ask, key.ptr, key.len);

        seen_reply_read(answer, ret);
        freeReplyObject(answer);
        return;
    }
    memset(ret, 0, sizeof(*ret));
    ret->kind = KINDS[reply->kind];
    ret->integer = reply->kind == LOCK_REPLY_KEY_COUNT    ? (int64_t)c->key_count
                   : reply->kind == LOCK_REPLY_DONE_COUNT ? done
                                                          : reply->integer;
    (void)snprintf(ret->text, sizeof(ret->text), "%s%.*s",
                   reply->kind == LOCK_REPLY_PLAIN_ERROR ? "ERR " : "",
                   (int)reply->text.len, reply->text.ptr);
    for (unsigned i = 0; i < reply->item_count; i++) {
        struct lock_reply item = lock_reply_item_at(reply, i);
        struct seen_reply said;

        read_reply(r, c, &item, done, &said);
        add_item(ret, &said);
    }
}

static void run_each(struct test_redis *r, const struct lock_call *c,
                     struct seen_reply *ret)
{
    static const struct lock_reply COUNT = { .kind = LOCK_REPLY_DONE_COUNT };
    int64_t done = 0;

    for (size_t i = 0; i < c->key_count; i++) {
        enum lock_call_state state = state_of(r, c, c->keys[i]);

        if (c->replies[state].kind == LOCK_REPLY_WRONG_TYPE) {
            read_reply(r, c, &c->replies[state], 0, ret);
            return;
        }
        if (can_be_done(c, state)) {
            do_with_key(r, c, c->keys[i]);
            done++;
        }
    }
    read_reply(r, c, &COUNT, done, ret);
}

void lock_call_run(struct test_redis *r, const struct lock_call *c,
                   struct seen_reply *ret)
{
    enum lock_call_state decides = LOCK_KEY_STATES;
    bool all = true;

    if (c->scope == LOCK_CALL_EACH_KEY) {
        run_each(r, c, ret);
        return;
    }
    for (size_t i = 0; i < c->key_count && all; i++) {
        enum lock_call_state state = state_of(r, c, c->keys[i]);

        all = can_be_done(c, state);
        decides = i == 0 || !all ? state : decides;
    }
    for (size_t i = 0; i < c->key_count && all; i++) {
        do_with_key(r, c, c->keys[i]);
    }
    read_reply(r, c, &c->replies[decides], all ? (int64_t)c->key_count : 0, ret);
}
