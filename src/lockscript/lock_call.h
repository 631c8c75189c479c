/* lock_call: one lock operation of a lock library, as data. A script is read once
 * (lock_script.h); each EVAL or EVALSHA of it is bound to its keys and arguments, and
 * the result is a lock_call. A plain command (SET NX, DEL, GET...) can be put as a
 * lock_call as well.
 *
 * A lock_call says what Redis would have done, for whatever state it finds its keys
 * in: what becomes of each key (kind, scope, compare, end), and the reply (replies[]).
 * The spans belong to others: to the arguments of the command, or to the lock_script.
 * Times are in ms. */
#ifndef LATCHD_LOCKSCRIPT_LOCK_CALL_H
#define LATCHD_LOCKSCRIPT_LOCK_CALL_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LOCK_CALL_VALUE_MAX = 512, /* bytes of a value, which names the owner */
    LOCK_CALL_KEYS_MAX = 64,   /* keys of one call */
    LOCK_REPLY_ITEMS_MAX = 4,  /* of a list */
};

/* What a key is found to be. "Its value" is that of the key, "the value" that of the
 * call. */
enum lock_call_state {
    LOCK_KEY_FREE,         /* there is no such key */
    LOCK_KEY_MINE,         /* compares equal: see enum lock_call_compare */
    LOCK_KEY_MINE_ENDLESS, /* the same, and it has no time to live */
    LOCK_KEY_OTHERS,       /* a string with another value */
    LOCK_KEY_NOT_A_STRING, /* a hash, a list... (a LOCK's hold the caller may call
                              other's) */
    LOCK_KEY_STATES,
};

enum lock_call_kind {
    /* Sets the keys that are free. */
    LOCK_CALL_ACQUIRE,
    /* Sets the keys that are free, and again those that are mine, which get the value
     * and the end anew. */
    LOCK_CALL_ACQUIRE_OR_EXTEND,
    /* Gives the keys that are mine the end. */
    LOCK_CALL_EXTEND,
    /* Sets the keys that are there, whatever they are: SET ... XX. */
    LOCK_CALL_OVERWRITE,
    /* Deletes the keys that are mine. */
    LOCK_CALL_RELEASE,
    /* Deletes the keys that are there, whatever they are: DEL. */
    LOCK_CALL_FORCE_RELEASE,
    /* What follows changes nothing. */
    LOCK_CALL_GET_VALUE,
    LOCK_CALL_GET_TTL,
    LOCK_CALL_EXISTS,
    LOCK_CALL_KINDS,
};

/* What several keys have to do with each other. With one key both are the same. */
enum lock_call_scope {
    /* Nothing is done unless all keys are in a state in which it can be done. */
    LOCK_CALL_ALL_OR_NONE,
    /* Each key is done for itself. The reply is LOCK_REPLY_DONE_COUNT. */
    LOCK_CALL_EACH_KEY,
};

/* When a key is mine. */
enum lock_call_compare {
    LOCK_COMPARE_NONE,   /* not asked: whatever is there counts as mine */
    LOCK_COMPARE_VALUE,  /* its value is the value */
    LOCK_COMPARE_PREFIX, /* the first prefix_len bytes of both values are the same */
};

/* When the key expires afterwards. */
enum lock_call_end {
    LOCK_END_NONE,  /* never: the key has no time to live */
    LOCK_END_IN,    /* end_ms from now; 0 and less: at once, for EXTEND only */
    LOCK_END_AT,    /* at end_ms of the Unix clock; may be in the past */
    LOCK_END_ADDED, /* end_ms later than it would have; EXTEND only */
};

/* What EXTEND makes of a key that is mine and endless. */
enum lock_call_endless {
    LOCK_ENDLESS_GETS_END, /* it gets the end, as any other */
    LOCK_ENDLESS_REFUSED,  /* nothing; the reply is that of LOCK_KEY_MINE_ENDLESS */
};

enum lock_reply_kind {
    LOCK_REPLY_NULL,
    LOCK_REPLY_INTEGER,     /* integer */
    LOCK_REPLY_STATUS,      /* text: +OK */
    LOCK_REPLY_BULK,        /* text */
    LOCK_REPLY_ERROR,       /* text, which begins with a code: -text */
    LOCK_REPLY_PLAIN_ERROR, /* text, a single word: -ERR text, as Redis 7 has it */
    LOCK_REPLY_WRONG_TYPE,  /* Redis's -WRONGTYPE */
    LOCK_REPLY_KEY_COUNT,   /* the number of keys of the call, as an integer */
    LOCK_REPLY_DONE_COUNT,  /* the number of keys that were changed, as an integer */
    LOCK_REPLY_VALUE,       /* the value that the key has after the call */
    LOCK_REPLY_TTL_MS,      /* as PTTL: ms left; -1 endless, -2 not there */
    LOCK_REPLY_TTL_S,       /* as TTL: the same in s, rounded to the nearest */
    LOCK_REPLY_LIST,        /* items: an array */
    LOCK_REPLY_KINDS,
};

/* One of a list: null, an integer, a text, the value or the time to live. */
struct lock_reply_item {
    enum lock_reply_kind kind;
    int64_t integer;
    struct span text;
};

struct lock_reply {
    enum lock_reply_kind kind;
    int64_t integer;
    struct span text;
    unsigned item_count;
    struct lock_reply_item items[LOCK_REPLY_ITEMS_MAX];
};

/* A PUBLISH beside a release of one key, sent if the key was deleted; how many receive
 * it is in no reply. channel.ptr NULL: none. */
struct lock_publish {
    struct span channel;
    struct span message;
};

struct lock_call {
    enum lock_call_kind kind;
    enum lock_call_scope scope;
    enum lock_call_compare compare;
    enum lock_call_end end;
    enum lock_call_endless endless;
    const struct span *keys; /* the first `key_count` of the command's keys */
    size_t key_count;        /* at least 1; a key may be there twice */
    /* at most LOCK_CALL_VALUE_MAX bytes, for LOCK_COMPARE_PREFIX at least one;
     * SPAN_NONE: none */
    struct span value;
    size_t prefix_len; /* for LOCK_COMPARE_PREFIX, at least 1 */
    int64_t end_ms;
    struct lock_publish publish;
    int64_t database; /* that a script selects; 0 also if it selects none */
    /* By the state of the key before the call. Of several keys the first one in which
     * nothing can be done decides; if there is none, the first key.
     *
     * Without a comparison no key is others', and Redis changes any. latchd does not:
     * of a call that changes keys, the reply for others' is then that for a lock which
     * it leaves alone (cmd_script.c). */
    struct lock_reply replies[LOCK_KEY_STATES];
};

/* Whether it takes keys that are free. */
static inline bool lock_call_takes(enum lock_call_kind kind)
{
    return kind == LOCK_CALL_ACQUIRE || kind == LOCK_CALL_ACQUIRE_OR_EXTEND;
}

/* Whether it changes nothing. */
static inline bool lock_call_is_query(enum lock_call_kind kind)
{
    return kind == LOCK_CALL_GET_VALUE || kind == LOCK_CALL_GET_TTL ||
           kind == LOCK_CALL_EXISTS;
}

/* An item of a list, as if it were the reply. */
struct lock_reply lock_reply_item_at(const struct lock_reply *list, unsigned index);
bool lock_reply_eq(const struct lock_reply *a, const struct lock_reply *b);
/* Whether a reply is of that kind, or has an item that is. */
bool lock_reply_has(const struct lock_reply *r, enum lock_reply_kind kind);

/* The word for a log line or an error text: "acquire", "release"... */
const char *lock_call_kind_name(enum lock_call_kind kind);

#endif
