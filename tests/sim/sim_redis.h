/* sim_redis: a Redis in memory, as far as locks go. The executable form of core/op.h:
 * every op means here exactly what the comments there say, one function per op.
 *
 * It knows no delay and no link: whoever calls, calls at the moment the script runs.
 * Time is Redis's own clock in ms, set by the caller, and may jump. Names are few, so
 * they are an array. The sizes are those of a simulation; more is an abort. */
#ifndef LATCHD_SIM_REDIS_H
#define LATCHD_SIM_REDIS_H

#include "core/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RTEXT_MAX = 118,
    REDIS_NAMES_MAX = 6,
    REDIS_DAEMONS_MAX = 4,
    REDIS_FIELDS_MAX = 4, /* in one hash; a plain lock has one owner */
};

/* A short string by value. */
struct rtext {
    unsigned char len;
    char s[RTEXT_MAX + 1];
};

struct rtext rtext_of(struct span s);
struct span rtext_span(const struct rtext *t);
bool rtext_is(const struct rtext *t, struct span s);
struct rtext rtext_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* latchd:entries:{N}: one hash field. */
struct redis_entry {
    struct rtext id;
    struct rtext owner;
    char keeper[OP_INSTANCE_LEN + 1];
    uint64_t since; /* when the keeper took over, ms */
    uint64_t made;  /* grows with each entry made or taken over */
};

/* latchd:keeper:{N}:<field> */
struct redis_keeper {
    struct rtext field;
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t since; /* ms */
    uint64_t expires;
};

/* latchd:ended:{N}:<field|entry> */
struct redis_mark {
    struct rtext key;
    int64_t left;
    uint64_t token;
    uint64_t expires;
};

struct redis_hash_field {
    struct rtext owner;
    int64_t count;
};

/* Everything that is there under one lock name. */
struct redis_name {
    struct rtext name;
    bool is_string; /* somebody's SET: WRONGTYPE for us */
    struct redis_hash_field fields[REDIS_FIELDS_MAX];
    size_t field_count;   /* 0: no hash */
    uint64_t expires;     /* of the hash; 0: no TTL */
    uint64_t fence_token; /* 0: no fence key */
    struct rtext fence_who;
    uint64_t fence_expires;
    struct redis_entry *entries;
    size_t entry_count, entry_room;
    struct redis_keeper *keepers;
    size_t keeper_count, keeper_room;
    struct redis_mark *marks;
    size_t mark_count, mark_room;
    bool subscribed[REDIS_DAEMONS_MAX]; /* by daemons */
    unsigned foreign_subscribers;       /* Redisson's waiters */
};

struct redis_hooks {
    void *ctx;
    /* `0` was published on the channel of that name. */
    void (*published)(void *ctx, struct redis_name *n);
};

struct sim_redis {
    uint64_t now_ms; /* Redis TIME; the caller moves it */
    uint64_t us;     /* its microseconds: grows with each script of one ms */
    uint64_t made;
    uint64_t scripts; /* calls that were run */
    uint64_t acquires, releases;
    struct redis_name names[REDIS_NAMES_MAX];
    size_t name_count;
    struct redis_hooks hooks;
};

/* A result with the memory that it points to. */
struct redis_reply {
    struct op_result result;
    struct rtext owner, entry;
    struct rtext field_texts[REDIS_FIELDS_MAX];
    struct op_field fields[REDIS_FIELDS_MAX];
    enum renew_result *items; /* room for op->item_count, the caller's */
};

void sim_redis_init(struct sim_redis *r);
void sim_redis_fini(struct sim_redis *r);

struct redis_times {
    uint64_t asked;    /* when the op was sent */
    uint64_t deadline; /* after this it does nothing */
};

/* Runs the op's script now, for the daemon `instance`; times in Redis's ms. */
void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret);

/* The name, made on first use; expired keys are gone when this returns. */
struct redis_name *sim_redis_name(struct sim_redis *r, struct span name);
struct redis_hash_field *redis_field(struct redis_name *n, struct span owner);
struct redis_entry *redis_entry(struct redis_name *n, struct span id);
/* PTTL: -1 no TTL, -2 not there. */
int64_t redis_pttl(const struct sim_redis *r, const struct redis_name *n);
/* The token of the hold of that field, 0: not known. */
uint64_t redis_token_of(const struct redis_name *n, const struct rtext *field);

/* --- what others do ------------------------------------------------------ */

/* Redisson's acquire: true when taken or re-entered. */
bool redis_foreign_take(struct sim_redis *r, struct redis_name *n, struct span owner,
                        uint64_t lease_ms);
/* Redisson's unlock; a SpinLock does not publish. */
bool redis_foreign_release(struct sim_redis *r, struct redis_name *n, struct span owner,
                           bool publish);
/* DEL of the lock's hash by an operator: nothing is published. */
void redis_operator_del(struct redis_name *n);
void redis_flushall(struct sim_redis *r);
/* A copy of all data, made in *copy (NULL: made anew); and back again, as after a
 * restart that lost the last writes. Subscriptions are not data. */
void sim_redis_save(const struct sim_redis *r, struct sim_redis **copy);
void sim_redis_restore(struct sim_redis *r, const struct sim_redis *copy);
/* SET name x / DEL name */
bool redis_set_string(struct sim_redis *r, struct redis_name *n);
void redis_del_string(struct redis_name *n);
/* All subscriptions of a daemon are gone with its link. */
void redis_drop_subscriber(struct sim_redis *r, size_t daemon);

/* --- for sim_redis_ops.c ------------------------------------------------- */

void redis_add_entry(struct sim_redis *r, struct redis_name *n, struct span id,
                     struct span owner, const char *keeper);
void redis_del_entry(struct redis_name *n, struct redis_entry *e);
void redis_set_keeper(struct sim_redis *r, struct redis_name *n,
                      const struct rtext *field, const char *instance);
void redis_prolong_keeper(struct sim_redis *r, struct redis_name *n,
                          const struct rtext *field, const char *instance);
void redis_keep_entry(struct sim_redis *r, struct redis_entry *e, const char *keeper);
struct redis_keeper *redis_keeper(struct redis_name *n, const struct rtext *field);
void redis_set_mark(struct redis_name *n, const struct rtext *key, int64_t left,
                    uint64_t token, uint64_t expires);
struct redis_mark *redis_mark(struct redis_name *n, struct span key);
/* The hash and all that belongs to its holds. */
void redis_drop_hash(struct redis_name *n);
void redis_publish(struct sim_redis *r, struct redis_name *n);

#endif
