/* sim_redis: one Redis of a simulated world: a keyspace in which the backend's own
 * scripts run, called as the backend calls them, and whose answers it reads itself.
 *
 * There is no delay and no link here: a caller calls at the moment the script
 * runs. Time is Redis's own clock in ms, set by the caller, and may jump. What belongs
 * to a lock name is also told as a struct redis_name, for those who look on: it is read
 * from the keys after each thing that happens, and changing it changes nothing. Names
 * are few, so they are an array. The sizes are those of a simulation; more is an abort.
 */
#ifndef LATCHD_SIM_REDIS_H
#define LATCHD_SIM_REDIS_H

#include "backend/script/script_codec.h"
#include "engine/op.h"
#include "sim/redis/keyspace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RTEXT_MAX = 118,
    REDIS_NAMES_MAX = 6,
    REDIS_DAEMONS_MAX = 4,
    REDIS_FIELDS_MAX = 32,  /* in one hash; a plain lock has one owner */
    REDIS_MESSAGES_MAX = 8, /* of one script */
};

/* A short string by value. */
struct rtext {
    unsigned char len;
    char s[RTEXT_MAX + 1];
};

static inline struct span rtext_span(const struct rtext *t)
{
    return span_of(t->s, t->len);
}

static inline bool rtext_is(const struct rtext *t, struct span s)
{
    return span_eq(rtext_span(t), s);
}

struct rtext rtext_of(struct span s);
struct rtext rtext_join(struct span head, struct span middle, struct span tail);
struct rtext rtext_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* --- a name, for onlookers ------------------------------------------------ */

struct redis_hash_field {
    struct rtext owner;
    int64_t count;  /* of a semaphore: permits */
    uint64_t token; /* of a semaphore's hold only */
};

/* redisson_lock_timeout:{N} */
struct redis_score {
    struct rtext member;
    int64_t score;
};

/* The note of latchd:fair:{N} on a latchd's member once Redis has lost some: since when
 * it waits (Redis's ms), and whether it was put back. */
struct redis_wait {
    struct rtext member;
    int64_t since;
    bool put_back;
};

enum redis_mode { MODE_NONE, MODE_READ, MODE_WRITE, MODE_PERMITS };

/* {N}:<field>:rwlock_timeout:<index> */
struct redis_hold_key {
    struct rtext field;
    int64_t index;
    uint64_t token; /* Redisson's: 1 */
    uint64_t expires;
};

/* Keys beside a name. */
enum redis_key {
    REDIS_FENCE,
    REDIS_QUEUE,
    REDIS_SCORES,
    REDIS_MARKS,
    REDIS_HOLDS, /* of a semaphore */
    REDIS_ENDS,  /* Redisson's, of the same */
    REDIS_KEYS
};

struct redis_name {
    struct rtext name;
    struct rtext braced; /* `{N}` */
    struct rtext keys[REDIS_KEYS];
    struct sim_redis *redis;
    bool stale;     /* a script was called for it: what follows is to be read again */
    bool is_string; /* somebody's SET: WRONGTYPE for us */
    struct redis_hash_field fields[REDIS_FIELDS_MAX];
    size_t field_count;   /* 0: no hash */
    uint64_t expires;     /* of the hash; 0: no TTL */
    enum redis_mode mode; /* of the hash; NONE: a plain lock, or no hash */
    int64_t free;         /* permits that are free; INT64_MIN: no counter */
    size_t out;           /* permits that are out, at any holder */
    uint64_t fence_token; /* 0: no fence key */
    struct rtext fence_who;
    struct rtext *queue; /* redisson_lock_queue, the head first */
    size_t queue_count, queue_room;
    struct redis_score *scores;
    size_t score_count, score_room;
    struct redis_wait *waits;
    size_t wait_count, wait_room;
    struct redis_hold_key *hold_keys;
    size_t hold_key_count, hold_key_room;
    bool was_rw; /* only then there may be hold keys */
    bool subscribed[LOCK_CLASSES][REDIS_DAEMONS_MAX]; /* by daemons */
    unsigned foreign_subscribers[LOCK_CLASSES];       /* Redisson's waiters */
};

struct redis_message {
    struct redis_name *name;
    enum lock_class lock_class;
    struct span member; /* of the fair queue, whose own channel it is; or empty */
    char payload;       /* `0`, `1` */
};

/* --- a Redis -------------------------------------------------------------- */

struct redis_hooks {
    void *ctx;
    /* After the script that published it. */
    void (*published)(void *ctx, const struct redis_message *m);
};

struct sim_redis {
    uint64_t now_ms;  /* Redis TIME; the caller moves it */
    uint64_t us;      /* its microseconds: grows with each script of one ms */
    uint64_t scripts; /* calls that were run */
    uint64_t acquires, releases;
    struct keyspace keys;
    struct redis_name names[REDIS_NAMES_MAX];
    size_t name_count;
    struct redis_message messages[REDIS_MESSAGES_MAX]; /* of the running script */
    struct rtext members[REDIS_MESSAGES_MAX];          /* of those */
    size_t message_count;
    /* Instances whose daemon listens to its members' channels by pattern. */
    char patterns[REDIS_DAEMONS_MAX][OP_INSTANCE_LEN + 1];
    struct redis_hooks hooks;
};

/* A result with the memory that it points to. */
struct redis_reply {
    struct op_result result;
    struct script_result script;
    redisReply *raw;
};

void sim_redis_init(struct sim_redis *r);
void sim_redis_fini(struct sim_redis *r);

/* Redis's time in us, at that ms of it: after all scripts that have run by now. */
uint64_t sim_redis_us(const struct sim_redis *r, uint64_t ms);

struct redis_times {
    uint64_t asked_us;    /* when the op was sent */
    uint64_t deadline_us; /* after this it does nothing */
};

/* Runs the op's script now, for the daemon `instance`. *ret is filled anew. */
void sim_redis_run(struct sim_redis *r, const char *instance, const struct op *op,
                   struct redis_times times, struct redis_reply *ret);
void redis_reply_fini(struct redis_reply *reply);

/* The name, made on first use; expired keys are gone when this returns. */
struct redis_name *sim_redis_name(struct sim_redis *r, struct span name);
/* The same of a name that is known. */
void redis_refresh(struct redis_name *n);
struct redis_hash_field *redis_field(struct redis_name *n, struct span owner);
/* PTTL: -1 no TTL, -2 not there. */
int64_t redis_pttl(const struct sim_redis *r, const struct redis_name *n);
/* The token of the hold of that field, 0: not known. */
uint64_t redis_token_of(const struct redis_name *n, const struct rtext *field);
/* There is an entry of that ID. */
bool redis_has_entry(const struct redis_name *n, struct span id);
/* NULL: it is not there. */
struct redis_score *redis_score(const struct redis_name *n, struct span member);
struct redis_hold_key *redis_hold_key(const struct redis_name *n, struct span field,
                                      int64_t index);

/* --- what others do; Redisson: sim_redisson.h ----------------------------- */

/* One command, as somebody with redis-cli sends it. */
void sim_redis_command(struct sim_redis *r, size_t argc, const struct span *argv);
/* The keys beside a name: DEL of the fair queue's list, of its scores. */
void redis_del_queue(struct redis_name *n);
void redis_del_scores(struct redis_name *n);
/* DEL of the lock's hash by an operator: nothing is published. */
void redis_operator_del(struct redis_name *n);
void redis_flushall(struct sim_redis *r);
/* PUBLISH of `0` on the channel of plain locks. */
void redis_publish(struct sim_redis *r, struct redis_name *n);
/* A copy of all data, made in *copy (NULL: made anew); and back again, as after a
 * restart that lost the last writes. Subscriptions are not data. */
void sim_redis_save(const struct sim_redis *r, struct sim_redis **copy);
void sim_redis_restore(struct sim_redis *r, const struct sim_redis *copy);
/* SET name x, if nothing is there / DEL name, if that is what is there. */
bool redis_set_string(struct sim_redis *r, struct redis_name *n);
void redis_del_string(struct redis_name *n);
/* A daemon's pub/sub link greets: the pattern of its members is subscribed. */
void redis_add_subscriber(struct sim_redis *r, size_t daemon, const char *instance);
/* All subscriptions of a daemon are gone with its link. */
void redis_drop_subscriber(struct sim_redis *r, size_t daemon);
/* Does the daemon hear that message? */
bool redis_hears(const struct sim_redis *r, size_t daemon,
                 const struct redis_message *m);

/* A member of the fair queue that is that instance's; any latchd's. */
bool redis_member_of(struct span member, const char *instance);
bool redis_is_ours(struct span member);

/* --- for sim_redis*.c ----------------------------------------------------- */

/* Reads the keys of a name, or of all names, again. */
void redis_read_name(struct redis_name *n);
void redis_read_all(struct sim_redis *r);
/* Made on first use, and not read. */
struct redis_name *redis_find_name(struct sim_redis *r, struct span name);
void redis_name_fini(struct redis_name *n);
/* `<prefix>{N}<suffix>` */
struct rtext redis_key(const struct redis_name *n, const char *prefix,
                       const char *suffix);
/* Sets the clock of the keys, before anything is done to them. */
struct keyspace *redis_begin(struct sim_redis *r);
/* The messages published since go out. */
void redis_end(struct sim_redis *r);

#endif
