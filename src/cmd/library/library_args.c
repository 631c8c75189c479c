#include "cmd/library/library_args.h"

#include "util/text.h"

#include <stdarg.h>
#include <stdio.h>

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
