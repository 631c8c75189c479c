/* watch: the keys that a connection WATCHes, and who held each of them then. Pure: the
 * engine's answers in, whether they differ out.
 *
 * A key changes when somebody else holds it: its holder is known by owner and token, so
 * that neither a lease that was extended nor a SET NX that failed is a change. A key
 * whose holder could not be told counts as changed. A transaction owns its watch. */
#ifndef LATCHD_CMD_LIBRARY_WATCH_H
#define LATCHD_CMD_LIBRARY_WATCH_H

#include "cmd/library/library_args.h"
#include "engine/effect.h"
#include "util/buf.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* What a SET of that key to that value does, without NX and XX. */
enum plain_set watch_plain_set(struct watch *watch, struct span name,
                               struct span value);

/* Takes in what a LOCKINFO of the key was answered, if the key is unknown. */
void watched_key_remember(struct watched_key *key, const struct effect_reply *reply);
/* Whether a later answer says the same. */
bool watched_key_is_same(const struct watched_key *key,
                         const struct effect_reply *reply);

#endif
