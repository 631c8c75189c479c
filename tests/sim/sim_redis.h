/* sim_redis: a Redis in memory, as far as locks go. The executable form of engine/op.h:
 * every op means here exactly what the comments there say, one function per op.
 *
 * It knows no delay and no link: whoever calls, calls at the moment the script runs.
 * Time is Redis's own clock in ms, set by the caller, and may jump. Names are few, so
 * they are an array. The sizes are those of a simulation; more is an abort. */
#ifndef LATCHD_SIM_REDIS_H
#define LATCHD_SIM_REDIS_H

#include "engine/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RTEXT_MAX = 118,
    REDIS_NAMES_MAX = 6,
    REDIS_DAEMONS_MAX = 4,
    REDIS_FIELDS_MAX = 32, /* in one hash; a plain lock has one owner */
    REDIS_QUEUE_TOLD = 32, /* members of a fair queue that OP_INSPECT tells */
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

/* latchd:keeper:{N}:<field>; lives as long as the fence key. */
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

/* redisson_lock_timeout:{N}: one member; and its mark of latchd:fair:{N}. */
struct redis_score {
    struct rtext member;
    int64_t score;
    uint64_t moved_on; /* only of latchd's */
};

/* What latchd:fair:{N} says of a Redisson's: W, and how far it was from who is before
 * it then. It stays when that one leaves. */
struct redis_wait {
    struct rtext member;
    int64_t wait, apart;
};

/* From this number on latchd takes part in no counter of Redisson's. */
#define REDIS_COUNTED_END UINT64_C(9007000000000000)

enum redis_mode { MODE_NONE, MODE_READ, MODE_WRITE };

/* {N}:<field>:rwlock_timeout:<index> */
struct redis_hold_key {
    struct rtext field;
    int64_t index;
    uint64_t token; /* Redisson's: 1 */
    uint64_t expires;
};

/* latchd:reader:{N}:<token> */
struct redis_reader_key {
    uint64_t token;
    struct rtext field;
    uint64_t expires;
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
    uint64_t before_token; /* what it said before, on a quorum */
    struct rtext before_who;
    bool has_before;
    uint64_t fence_expires;
    uint64_t counted; /* redisson_lock_token:{N}; 0: it is not there */
    struct redis_entry *entries;
    size_t entry_count, entry_room;
    struct redis_keeper *keepers;
    size_t keeper_count, keeper_room;
    struct redis_mark *marks;
    size_t mark_count, mark_room;
    struct rtext *queue; /* redisson_lock_queue, the head first */
    size_t queue_count, queue_room;
    struct redis_score *scores;
    size_t score_count, score_room;
    struct redis_wait *waits;
    size_t wait_count, wait_room;
    enum redis_mode mode; /* of the hash; NONE: a plain lock, or no hash */
    struct redis_hold_key *hold_keys;
    size_t hold_key_count, hold_key_room;
    struct redis_reader_key *reader_keys;
    size_t reader_key_count, reader_key_room;
    uint64_t writer_token; /* latchd:writer, as the fence key; 0: none */
    struct rtext writer_who;
    uint64_t writer_expires;
    bool subscribed[2]
                   [REDIS_DAEMONS_MAX]; /* by daemons; [1]: the channel of rw locks */
    unsigned foreign_subscribers;       /* Redisson's waiters on the plain channel */
    unsigned foreign_rw_subscribers;
};

enum redis_channel { CHANNEL_PLAIN, CHANNEL_MEMBER, CHANNEL_RW };

struct redis_message {
    struct redis_name *name;
    enum redis_channel channel;
    struct span member; /* CHANNEL_MEMBER */
    char payload;       /* `0`, `1` */
};

struct redis_hooks {
    void *ctx;
    void (*published)(void *ctx, const struct redis_message *m);
};

struct sim_redis {
    uint64_t now_ms; /* Redis TIME; the caller moves it */
    uint64_t us;     /* its microseconds: grows with each script of one ms */
    uint64_t made;
    uint64_t scripts; /* calls that were run */
    uint64_t acquires, releases;
    struct redis_name names[REDIS_NAMES_MAX];
    size_t name_count;
    /* Instances whose daemon listens to its members' channels by pattern. */
    char patterns[REDIS_DAEMONS_MAX][OP_INSTANCE_LEN + 1];
    struct redis_hooks hooks;
};

/* A result with the memory that it points to. */
struct redis_reply {
    struct op_result result;
    struct rtext owner, entry;
    struct rtext field_texts[REDIS_FIELDS_MAX];
    struct op_field fields[REDIS_FIELDS_MAX];
    struct rtext queue_texts[REDIS_QUEUE_TOLD];
    struct span queue[REDIS_QUEUE_TOLD];
    enum renew_result *items; /* room for op->item_count, the caller's */
    struct op_result *batch;  /* room for op->batch_count, the caller's */
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

/* --- what others do; Redisson: sim_redis_foreign.h ----------------------- */

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
/* A daemon's pub/sub link greets: the pattern of its members is subscribed. */
void redis_add_subscriber(struct sim_redis *r, size_t daemon, const char *instance);
/* All subscriptions of a daemon are gone with its link. */
void redis_drop_subscriber(struct sim_redis *r, size_t daemon);
/* Does the daemon hear that message? */
bool redis_hears(const struct sim_redis *r, size_t daemon,
                 const struct redis_message *m);

/* A member of the fair queue that is that instance's. */
bool redis_member_of(struct span member, const char *instance);

/* --- for sim_redis_*.c ----------------------------------------------------- */

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
/* `0` on the channel of plain locks. */
void redis_publish(struct sim_redis *r, struct redis_name *n);
void redis_publish_rw(struct sim_redis *r, struct redis_name *n, char payload);
/* `0` to the head of the fair queue, if there is one. */
void redis_publish_head(struct sim_redis *r, struct redis_name *n);

/* Room for one more in a growing array. */
#define MAKE_ROOM(array, count, room)                                                  \
    do {                                                                               \
        if ((count) == (room)) {                                                       \
            (room) = (room) == 0 ? 8 : (room)*2;                                       \
            (array) = xrealloc((array), (room) * sizeof(*(array)));                    \
        }                                                                              \
    } while (0)

#endif
