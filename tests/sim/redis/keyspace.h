/* keyspace: the data of a Redis in memory, and the commands that the scripts call.
 *
 * Strings, hashes, lists and sorted sets as plain arrays, written to be obviously right
 * and compared with a real Redis, command by command, by tests/integration/
 * it_keyspace.c. Time is the caller's: `now_ms` and `us` are set before a call, and may
 * jump. A key that is over is gone when its keyspace is next called.
 *
 * The caller owns the struct. A zeroed one is empty and valid. */
#ifndef LATCHD_SIM_KEYSPACE_H
#define LATCHD_SIM_KEYSPACE_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    KEYSPACE_BUCKETS = 64,
    KEYSPACE_DIGITS = 32, /* room for any number as text */
};

/* Bytes that are owned. */
struct key_text {
    char *ptr;
    uint32_t len, room;
};

static inline struct span key_span(const struct key_text *t)
{
    return span_of(t->ptr, t->len);
}

enum key_type { KEY_STRING, KEY_HASH, KEY_LIST, KEY_ZSET };

/* A field with its value, an element, or a member with its score. */
struct key_item {
    struct key_text text, value;
    double score;
};

struct key {
    struct key *next; /* of its bucket */
    uint32_t hash;
    enum key_type type;
    uint64_t expires; /* ms; 0: never */
    struct key_text name, string;
    struct key_item *items; /* in Redis's order */
    size_t count, room;
};

enum key_reply_type {
    KEY_REPLY_NIL,
    KEY_REPLY_INTEGER,
    KEY_REPLY_BULK,
    KEY_REPLY_STATUS,
    KEY_REPLY_ERROR,
    KEY_REPLY_ARRAY,
};

/* Valid until the next call. */
struct key_reply {
    enum key_reply_type type;
    int64_t integer;
    struct span text;
    const struct key_reply *items;
    size_t count;
};

struct keyspace_hooks {
    void *ctx;
    /* PUBLISH. May be NULL. */
    void (*publish)(void *ctx, struct span channel, struct span payload);
    /* PUBSUB NUMSUB. May be NULL: nobody. */
    int64_t (*count_subscribers)(void *ctx, struct span channel);
};

struct keyspace {
    uint64_t now_ms, us; /* Redis's clock; `us` of that ms */
    struct keyspace_hooks hooks;
    uint64_t sweep_at; /* no key is over before; 0: no key expires */
    struct key *buckets[KEYSPACE_BUCKETS];
    /* Of the last call: */
    struct key_reply *pool;
    size_t pool_room;
    struct key_text popped;
    char digits[2][KEYSPACE_DIGITS];
};

void keyspace_fini(struct keyspace *ks);
void keyspace_clear(struct keyspace *ks);
/* *to has the data of `from` afterwards, and no other. */
void keyspace_copy(struct keyspace *to, const struct keyspace *from);
/* Removes what is over. True: something was. */
bool keyspace_sweep(struct keyspace *ks);

/* Runs a command; the first word is its name, in any case. */
struct key_reply keyspace_call(struct keyspace *ks, size_t argc,
                               const struct span *argv);

/* For onlookers: NULL if the key is not there. */
struct key *keyspace_find(const struct keyspace *ks, struct span name);
/* The value of a field, or NULL; also if the key is NULL or no hash. */
const struct key_text *keyspace_field(const struct key *hash, struct span field);
void keyspace_delete(struct keyspace *ks, struct span name);

#endif
