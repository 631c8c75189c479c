/* lock_script: reads the Lua of a lock library, and says which lock operation it is.
 *
 * Scripts are read, not run. Redis's Lua can do anything, for ever; lock libraries use
 * a small part of it, and do one of a few things with it (enum lock_call_kind). That
 * part is parsed and evaluated here, without Redis, on every state that its keys may be
 * in. A script is accepted if each of its conditions is one that is understood, and if
 * in all states it leaves the same keys, and replies the same, as one operation.
 * Anything else is refused, with the line and why.
 *
 * A lock_script is plain data: nothing is evaluated when a lock is taken. Conditions
 * that compare an argument with a text choose between variants; binding decides them.
 */
#ifndef LATCHD_LOCKSCRIPT_LOCK_SCRIPT_H
#define LATCHD_LOCKSCRIPT_LOCK_SCRIPT_H

#include "util/hash.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lock_script;
struct lock_script_cache;

/* lock_call: one lock operation of a lock library, as data. A script is read once
 * (lock_script.h); each EVAL or EVALSHA of it is bound to its keys and arguments, and
 * the result is a lock_call. A plain command (SET NX, DEL, GET...) can be put as a
 * lock_call as well.
 *
 * A lock_call says what Redis would have done, for whatever state it finds its keys
 * in: what becomes of each key (kind, scope, compare, end), and the reply (replies[]).
 * The spans belong to others: to the arguments of the command, or to the lock_script.
 * Times are in ms. */

enum {
    LOCK_CALL_VALUE_MAX = 512, /* bytes of a value, which names the owner */
    LOCK_CALL_KEYS_MAX = 64,   /* keys of one call */
    LOCK_REPLY_ITEMS_MAX = 4,  /* of a list */
};

/* The state of a key. "Its value" is that of the key, "the value" that of the
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
    /* The kinds below change nothing. */
    LOCK_CALL_GET_VALUE,
    LOCK_CALL_GET_TTL,
    LOCK_CALL_EXISTS,
    LOCK_CALL_KINDS,
};

/* How several keys depend on each other. With one key both are the same. */
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

/* The effect of EXTEND on a key that is mine and endless. */
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
     * it leaves alone (cmd_library.c). */
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

enum {
    LOCK_SCRIPT_TEXT_MAX = 4096, /* bytes of a script */
    LOCK_SCRIPT_WHY_ROOM = 160,  /* bytes of a reason, with the NUL */
};

/* Why a script or a call of it was refused. */
struct lock_script_error {
    unsigned line; /* 1 and up; 0: no line, it is about the whole or the arguments */
    char why[LOCK_SCRIPT_WHY_ROOM];
};

/* Reads a script. Returns it, for lock_script_free(); NULL: see *ret_error. Takes less
 * than 1 ms, whatever the text. */
struct lock_script *lock_script_parse(struct span text,
                                      struct lock_script_error *ret_error);
void lock_script_free(struct lock_script *script);

/* Finds the script of a known lock library by the SHA1 of its text, 40 hex digits of
 * either case; NULL: not known. It lives for ever. */
const struct lock_script *lock_script_known(struct span sha1);

/* The operation that a script does for these keys and arguments; *ret points into
 * both. Keys and arguments beyond those that the script uses are ignored, as Redis
 * does. False: one is missing, or cannot be what it is used as (a time that is no
 * integer); *ret_error says which. Redis would look at the key first, and find such an
 * argument only where it uses it. */
bool lock_script_bind(const struct lock_script *script, const struct span *keys,
                      size_t key_count, const struct span *argv, size_t arg_count,
                      struct lock_call *ret, struct lock_script_error *ret_error);

/* Lock script cache: the scripts that clients of this daemon sent, by their SHA1.
 *
 * A text is read once, when it is first seen; from then on SCRIPT LOAD, EVAL and
 * EVALSHA find what it is. Known scripts need no place here. At most LOCK_SCRIPTS_MAX
 * scripts are kept, and of texts that are no lock operation the last
 * LOCK_SCRIPT_FAILURES_MAX, so that the same one costs nothing again; both forget what
 * was not used for longest. Each user may bring a number of new texts at a time:
 * LOCK_SCRIPT_TEXTS_BURST. */

enum {
    LOCK_SCRIPTS_MAX = 500,
    LOCK_SCRIPT_FAILURES_MAX = 500,
    LOCK_SCRIPT_TEXTS_BURST = 100, /* new texts of a user, at once */
    LOCK_SCRIPT_TEXTS_PER_SECOND = 10,
    LOCK_SCRIPT_USERS_MAX = 1000, /* with a rate of their own at a time */
};

struct lock_script_cache *lock_script_cache_new(void);
void lock_script_cache_free(struct lock_script_cache *c);

enum lock_script_load {
    LOCK_SCRIPT_LOADED,
    LOCK_SCRIPT_REFUSED,  /* no lock operation: *ret_error says why */
    LOCK_SCRIPT_TOO_MANY, /* the user brings too many new texts: later */
};

/* EVAL and SCRIPT LOAD: what `text` is, which is read if it is new. Sets ret_sha1 in
 * any case. *ret is the cache's, or constant: use it before the next call. */
enum lock_script_load lock_script_cache_load(struct lock_script_cache *c,
                                             struct span user, struct span text,
                                             uint64_t now_ms,
                                             char ret_sha1[SHA1_HEX_LEN + 1],
                                             const struct lock_script **ret,
                                             struct lock_script_error *ret_error);

/* EVALSHA and SCRIPT EXISTS: the script with that SHA1, 40 hex digits of either case;
 * NULL: it is neither known nor here, which Redis calls NOSCRIPT. It is the cache's, or
 * constant: use it before the next call. */
const struct lock_script *lock_script_cache_find(struct lock_script_cache *c,
                                                 struct span sha1);

/* SCRIPT FLUSH: forgets all scripts but the known ones. The failures stay. */
void lock_script_cache_flush(struct lock_script_cache *c);

/* Scripts, and failures, that are kept. */
size_t lock_script_cache_count(const struct lock_script_cache *c);
size_t lock_script_cache_failures(const struct lock_script_cache *c);

#endif
