/* library_args: the plain commands of lock libraries, as lock_calls: SET, SETNX, GET,
 * EXISTS, TTL, PTTL, DEL, UNLINK, EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT. Pure. */
#ifndef LATCHD_CMD_LIBRARY_ARGS_H
#define LATCHD_CMD_LIBRARY_ARGS_H

#include "engine/effect.h"
#include "lockscript/lock_script.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LIBRARY_ERROR_ROOM = 256 }; /* bytes of an error text */

/* The effect of a SET without NX and XX, which a transaction that watches may have. */
enum plain_set {
    PLAIN_SET_REFUSED,
    PLAIN_SET_TAKES,    /* the key was no library's when it was watched */
    PLAIN_SET_EXTENDS,  /* it had the same value */
    PLAIN_SET_RELEASES, /* it had 1, and gets 0: a counter that is back at the start */
};

/* Puts the words of a command, whose number fits, as a lock_call that points into
 * them. False: reterr (LIBRARY_ERROR_ROOM bytes) says what is wrong, or not served. */
bool library_args_parse(const struct span *argv, size_t argc, enum plain_set plain,
                        struct lock_call *ret, char *reterr)
    __attribute__((warn_unused_result));

/* value_text: the values of lock libraries, and who set them, as words of the engine
 * (engine/value_hold.h). Pure: bytes in, text out. */

enum { ORIGIN_DIGITS = 16 };

/* A pattern for values of any origin begins so. */
#define VALUE_ANY_ORIGIN "*:"

/* Appends the value with all bytes escaped that are no printable ASCII, or mean
 * something in a pattern: `%` and two hex digits. At most 3 bytes for each. */
void value_escape(struct buf *out, struct span value);
/* The reverse. An escape that is none stays as it is. */
void value_unescape(struct buf *out, struct span text);

/* Appends a word for a user, the same in every daemon: a hash, as a name has any bytes.
 * The address is no part: what a web server took, its worker may delete. */
void value_add_origin(struct buf *out, struct span user);

/* watch: the keys that a connection WATCHes, and who held each of them then. Pure: the
 * engine's answers in, whether they differ out.
 *
 * A key changes when somebody else holds it: its holder is known by owner and token, so
 * that neither a lease that was extended nor a SET NX that failed is a change. A key
 * whose holder could not be told counts as changed. A transaction owns its watch. */

enum { WATCH_KEYS_MAX = 64 }; /* of one connection */

enum watch_state {
    WATCH_UNKNOWN,    /* not asked yet, or nobody could say */
    WATCH_FREE,       /* nobody held the key */
    WATCH_VALUE_HOLD, /* a lock library: holder is `<origin>:<value>` */
    WATCH_OTHERS,     /* anybody else, or other data */
};

struct watched_key {
    enum watch_state state;
    struct buf name;
    struct buf holder;
    uint64_t token; /* 0: not known */
};

struct watch {
    bool changed; /* EXEC found that a key is no more what it was */
    size_t count;
    struct watched_key keys[WATCH_KEYS_MAX];
};

/* Adds the keys to *watch, which is made if it is NULL. A key that is there already
 * stays what it was. False: they are too many, and none was added. */
bool watch_add(struct watch **watch, const struct span *keys, size_t count)
    __attribute__((warn_unused_result));
/* Accepts NULL. */
void watch_free(struct watch *watch);
/* The memory of a watch in bytes. Accepts NULL. */
size_t watch_bytes(const struct watch *watch);

/* The watched key of that name, or NULL. */
struct watched_key *watch_find(struct watch *watch, struct span name);

static inline struct span watched_name(const struct watched_key *key)
{
    return buf_span(&key->name);
}

/* The effect of a SET of that key to that value, without NX and XX. */
enum plain_set watch_plain_set(struct watch *watch, struct span name,
                               struct span value);

/* Takes in what a LOCKINFO of the key was answered, if the key is unknown. */
void watched_key_remember(struct watched_key *key, const struct effect_reply *reply);
/* Whether a later answer says the same. */
bool watched_key_is_same(const struct watched_key *key,
                         const struct effect_reply *reply);

#endif
