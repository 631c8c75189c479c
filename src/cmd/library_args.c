#include "cmd/library_args.h"

#include "acl/permissions.h"
#include "engine/value_hold.h"
#include "util/alloc.h"
#include "util/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char DIGITS[] = "0123456789ABCDEF";

static bool is_plain(unsigned char ch)
{
    return ch > ' ' && ch < 0x7f && ch != '%' && ch != '*' && ch != ':';
}

void value_escape(struct buf *out, struct span value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char ch = (unsigned char)value.ptr[i];
        const char escaped[] = { '%', DIGITS[ch >> 4], DIGITS[ch & 15] };

        buf_add(out, is_plain(ch) ? &value.ptr[i] : escaped,
                is_plain(ch) ? 1 : sizeof(escaped));
    }
}

static int digit_value(char ch)
{
    const char *at = ch == '\0' ? NULL : strchr(DIGITS, ch);

    return at == NULL ? -1 : (int)(at - DIGITS);
}

void value_unescape(struct buf *out, struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        int high = i + 2 < text.len ? digit_value(text.ptr[i + 1]) : -1;
        int low = i + 2 < text.len ? digit_value(text.ptr[i + 2]) : -1;
        char byte = text.ptr[i];

        if (byte == '%' && high >= 0 && low >= 0) {
            byte = (char)(high * 16 + low);
            i += 2;
        }
        buf_add(out, &byte, 1);
    }
}

void value_add_origin(struct buf *out, struct span user)
{
    struct buf hex = { 0 };
    struct secret hash;

    secret_hash(user, &hash);
    secret_add_hex(&hash, &hex);
    buf_add(out, buf_ptr(&hex), ORIGIN_DIGITS);
    buf_reset(&hex);
}

#define SECONDS 1000

struct word {
    const char *name;
    enum lock_call_end end;
    int64_t unit; /* ms */
};

/* The options of SET that give an end. */
static const struct word ENDS[] = {
    { "EX", LOCK_END_IN, SECONDS },
    { "PX", LOCK_END_IN, 1 },
    { "EXAT", LOCK_END_AT, SECONDS },
    { "PXAT", LOCK_END_AT, 1 },
};

static const struct word EXPIRES[] = {
    { "EXPIRE", LOCK_END_IN, SECONDS },
    { "PEXPIRE", LOCK_END_IN, 1 },
    { "EXPIREAT", LOCK_END_AT, SECONDS },
    { "PEXPIREAT", LOCK_END_AT, 1 },
};

static const struct word *find_word(const struct word *words, size_t count,
                                    struct span word)
{
    for (size_t i = 0; i < count; i++) {
        if (span_eq_nocase(word, span_str(words[i].name))) {
            return &words[i];
        }
    }
    return NULL;
}

#define FIND(words, word) find_word(words, sizeof(words) / sizeof((words)[0]), word)

__attribute__((format(printf, 2, 3))) static bool reject(char *reterr, const char *fmt,
                                                         ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(reterr, LIBRARY_ERROR_ROOM, fmt, ap);
    va_end(ap);
    return false;
}

static struct lock_reply reply_integer(int64_t value)
{
    return (struct lock_reply){ .kind = LOCK_REPLY_INTEGER, .integer = value };
}

static void reply_always(struct lock_call *call, struct lock_reply reply)
{
    for (int i = 0; i < LOCK_KEY_STATES; i++) {
        call->replies[i] = reply;
    }
}

/* One reply where something is done, another where nothing is. */
static void reply_done(struct lock_call *call, bool done_if_free,
                       struct lock_reply done, struct lock_reply not_done)
{
    reply_always(call, done_if_free ? not_done : done);
    call->replies[LOCK_KEY_FREE] = done_if_free ? done : not_done;
    call->replies[LOCK_KEY_OTHERS] = not_done;
}

static bool set_end(struct lock_call *call, const struct word *w, struct span number,
                    const char *command, char *reterr)
{
    int64_t value;

    if (!parse_i64(number, &value)) {
        return reject(reterr, "value is not an integer or out of range");
    }
    if (value > INT64_MAX / w->unit / 2 || value < INT64_MIN / w->unit / 2) {
        return reject(reterr, "invalid expire time in '%s' command", command);
    }
    call->end = w->end;
    call->end_ms = value * w->unit;
    return true;
}

enum set_condition { SET_ALWAYS, SET_IF_FREE, SET_IF_THERE }; /* NX, XX */

static bool read_set_option(struct lock_call *call, enum set_condition *when,
                            const struct span *argv, size_t argc, size_t *at,
                            char *reterr)
{
    const struct word *w = FIND(ENDS, argv[*at]);

    if (span_eq_nocase(argv[*at], SPAN("NX")) && *when != SET_IF_THERE) {
        *when = SET_IF_FREE;
        return true;
    }
    if (span_eq_nocase(argv[*at], SPAN("XX")) && *when != SET_IF_FREE) {
        *when = SET_IF_THERE;
        return true;
    }
    if (w != NULL && call->end == LOCK_END_NONE && *at + 1 < argc) {
        if (!set_end(call, w, argv[++*at], "set", reterr)) {
            return false;
        }
        return call->end_ms > 0 ||
               reject(reterr, "invalid expire time in 'set' command");
    }
    if (span_eq_nocase(argv[*at], SPAN("GET")) ||
        span_eq_nocase(argv[*at], SPAN("KEEPTTL"))) {
        return reject(reterr,
                      "latchd keeps locks, not data: SET with %.*s is not served",
                      (int)argv[*at].len, argv[*at].ptr);
    }
    return reject(reterr, "syntax error");
}

static bool parse_set(const struct span *argv, size_t argc, enum plain_set plain,
                      struct lock_call *call, char *reterr)
{
    static const enum lock_call_kind PLAIN[] = {
        [PLAIN_SET_TAKES] = LOCK_CALL_ACQUIRE,
        [PLAIN_SET_EXTENDS] = LOCK_CALL_OVERWRITE,
        [PLAIN_SET_RELEASES] = LOCK_CALL_FORCE_RELEASE,
    };
    const struct lock_reply ok = { .kind = LOCK_REPLY_STATUS, .text = SPAN("OK") };
    const struct lock_reply null = { .kind = LOCK_REPLY_NULL };
    const struct lock_reply not_mine = {
        .kind = LOCK_REPLY_ERROR,
        .text = SPAN("WRONGTYPE LOCK, Redisson or other data has this key"),
    };
    enum set_condition when = SET_ALWAYS;

    for (size_t i = 3; i < argc; i++) {
        if (!read_set_option(call, &when, argv, argc, &i, reterr)) {
            return false;
        }
    }
    if (when == SET_ALWAYS && plain == PLAIN_SET_REFUSED) {
        return reject(
            reterr, "latchd keeps locks, not data: SET without NX, which takes a free "
                    "lock, or XX is not served");
    }
    call->kind = when == SET_IF_FREE    ? LOCK_CALL_ACQUIRE
                 : when == SET_IF_THERE ? LOCK_CALL_OVERWRITE
                                        : PLAIN[plain];
    call->value = argv[2];
    reply_done(call, call->kind == LOCK_CALL_ACQUIRE, ok,
               when == SET_ALWAYS ? not_mine : null);
    return true;
}

static bool parse_expire(const struct word *w, const struct span *argv,
                         struct lock_call *call, char *reterr)
{
    call->kind = LOCK_CALL_EXTEND;
    reply_done(call, false, reply_integer(1), reply_integer(0));
    return set_end(call, w, argv[2], w->name, reterr);
}

static bool word_is(struct span word, const char *name)
{
    return span_eq_nocase(word, span_str(name));
}

bool library_args_parse(const struct span *argv, size_t argc, enum plain_set plain,
                        struct lock_call *ret, char *reterr)
{
    const struct word *expire = FIND(EXPIRES, argv[0]);

    *ret = (struct lock_call){ .keys = &argv[1], .key_count = 1 };
    if (word_is(argv[0], "SET")) {
        return parse_set(argv, argc, plain, ret, reterr);
    }
    if (expire != NULL) {
        return parse_expire(expire, argv, ret, reterr);
    }
    if (word_is(argv[0], "SETNX")) {
        ret->kind = LOCK_CALL_ACQUIRE;
        ret->value = argv[2];
        reply_done(ret, true, reply_integer(1), reply_integer(0));
    } else if (word_is(argv[0], "GET")) {
        ret->kind = LOCK_CALL_GET_VALUE;
        reply_always(ret, (struct lock_reply){ .kind = LOCK_REPLY_VALUE });
    } else if (word_is(argv[0], "TTL") || word_is(argv[0], "PTTL")) {
        ret->kind = LOCK_CALL_GET_TTL;
        reply_always(ret, (struct lock_reply){ .kind = word_is(argv[0], "TTL")
                                                           ? LOCK_REPLY_TTL_S
                                                           : LOCK_REPLY_TTL_MS });
    } else { /* EXISTS, DEL, UNLINK */
        ret->kind =
            word_is(argv[0], "EXISTS") ? LOCK_CALL_EXISTS : LOCK_CALL_FORCE_RELEASE;
        ret->scope = LOCK_CALL_EACH_KEY;
        ret->key_count = argc - 1;
        reply_always(ret, (struct lock_reply){ .kind = LOCK_REPLY_DONE_COUNT });
    }
    return true;
}

static void add_key(struct watch *watch, struct span name)
{
    if (watch_find(watch, name) == NULL) {
        struct watched_key *key = &watch->keys[watch->count++];

        *key = (struct watched_key){ .state = WATCH_UNKNOWN };
        buf_add_span(&key->name, name);
    }
}

static size_t count_new(struct watch *watch, const struct span *keys, size_t count)
{
    size_t added = 0;

    for (size_t i = 0; i < count && added <= WATCH_KEYS_MAX; i++) {
        bool twice = watch != NULL && watch_find(watch, keys[i]) != NULL;

        for (size_t j = 0; j < i && !twice; j++) {
            twice = span_eq(keys[i], keys[j]);
        }
        added += !twice;
    }
    return added;
}

bool watch_add(struct watch **watch, const struct span *keys, size_t count)
{
    size_t added = count_new(*watch, keys, count);

    if (added + (*watch == NULL ? 0 : (*watch)->count) > WATCH_KEYS_MAX) {
        return false;
    }
    if (*watch == NULL) {
        *watch = xcalloc(1, sizeof(**watch));
    }
    for (size_t i = 0; i < count; i++) {
        add_key(*watch, keys[i]);
    }
    return true;
}

void watch_free(struct watch *watch)
{
    if (watch == NULL) {
        return;
    }
    for (size_t i = 0; i < watch->count; i++) {
        buf_reset(&watch->keys[i].name);
        buf_reset(&watch->keys[i].holder);
    }
    free(watch);
}

size_t watch_bytes(const struct watch *watch)
{
    size_t bytes = 0;

    if (watch == NULL) {
        return 0;
    }
    for (size_t i = 0; i < watch->count; i++) {
        bytes += watch->keys[i].name.room + watch->keys[i].holder.room;
    }
    return sizeof(*watch) + bytes;
}

struct watched_key *watch_find(struct watch *watch, struct span name)
{
    for (size_t i = 0; i < watch->count; i++) {
        if (span_eq(watched_name(&watch->keys[i]), name)) {
            return &watch->keys[i];
        }
    }
    return NULL;
}

enum plain_set watch_plain_set(struct watch *watch, struct span name, struct span value)
{
    const struct watched_key *key = watch_find(watch, name);
    struct span origin, held = key == NULL ? SPAN_NONE : buf_span(&key->holder);
    struct buf text = { 0 };
    bool same;

    if (key == NULL) {
        return PLAIN_SET_REFUSED;
    }
    if (key->state != WATCH_VALUE_HOLD) {
        return PLAIN_SET_TAKES; /* or finds that the key has changed */
    }
    value_escape(&text, value);
    same = span_cut(&held, ':', &origin) && span_eq(held, buf_span(&text));
    buf_reset(&text);
    if (same) {
        return PLAIN_SET_EXTENDS;
    }
    return span_eq(held, SPAN("1")) && span_eq(value, SPAN("0")) ? PLAIN_SET_RELEASES
                                                                 : PLAIN_SET_REFUSED;
}

/* --- who holds -------------------------------------------------------------- */

/* Reads the holder from an answer, and appends it. */
static enum watch_state read_holder(const struct effect_reply *reply,
                                    struct buf *holder, uint64_t *ret_token)
{
    const struct hold_view *hold;
    struct span origin, value;

    *ret_token = 0;
    if (reply->kind != REPLY_INFO) {
        return reply->kind == REPLY_ERROR && reply->error == LOCK_WRONGTYPE
                   ? WATCH_OTHERS
                   : WATCH_UNKNOWN;
    }
    if (reply->info->state == INFO_STATE_LENT_ELSEWHERE) {
        return WATCH_OTHERS;
    }
    if (reply->info->hold_count == 0) {
        return WATCH_FREE;
    }
    hold = &reply->info->holds[0];
    *ret_token = hold->token;
    if (!value_field_split(hold->owner, &origin, &value)) {
        buf_add_span(holder, hold->owner);
        return WATCH_OTHERS;
    }
    buf_add_span(holder, origin);
    buf_add_str(holder, ":");
    buf_add_span(holder, value);
    return WATCH_VALUE_HOLD;
}

void watched_key_remember(struct watched_key *key, const struct effect_reply *reply)
{
    if (key->state == WATCH_UNKNOWN) {
        key->state = read_holder(reply, &key->holder, &key->token);
    }
}

bool watched_key_is_same(const struct watched_key *key,
                         const struct effect_reply *reply)
{
    struct buf holder = { 0 };
    uint64_t token;
    bool same = read_holder(reply, &holder, &token) == key->state &&
                key->state != WATCH_UNKNOWN && token == key->token &&
                span_eq(buf_span(&holder), buf_span(&key->holder));

    buf_reset(&holder);
    return same;
}
