/* sim_foreign: Redisson clients, each a process of its own with one thread, that use
 * the same names as latchd's clients: they take, wait, renew, release, give up, and
 * die.
 *
 * What their scripts do to Redis is in redis/sim_redisson.h. */
#ifndef LATCHD_SIM_FOREIGN_H
#define LATCHD_SIM_FOREIGN_H

#include "sim/redis/sim_redis.h"

struct sim;

enum { SIM_FOREIGNS_MAX = 6 };

enum foreign_kind {
    FOREIGN_PLAIN,
    FOREIGN_SPIN, /* never subscribes, never publishes */
    FOREIGN_FAIR,
    FOREIGN_READ,
    FOREIGN_WRITE,
};

struct sim_foreign {
    struct redis_name *name; /* NULL: it does nothing */
    enum foreign_kind kind;
    struct rtext owner;
    bool holds, waits;
    bool watched; /* it renews its lease, as Redisson's watchdog does */
    bool dies;    /* it will neither release nor give up: its process ends */
    bool excused; /* something outside may have ended its hold */
    uint64_t gen; /* of its next act; an older event is stale */
    uint64_t next_at;
    uint64_t end_at;   /* it releases; it gives up (UINT64_MAX: never) */
    uint64_t until;    /* it may believe that it holds before this */
    uint64_t lease_ms; /* of its last acquire */
    uint64_t wait_ms;  /* how far its deadlines in the fair queue are apart */
    int64_t skew_ms;   /* of its clock against Redis's */
};

/* One that does nothing yet begins to want a lock of that kind: at once, and if it
 * `waits` until `end_at`. */
struct sim_foreign *foreign_start(struct sim *s, struct redis_name *n,
                                  enum foreign_kind kind, bool waits);
/* It acts at once. */
void foreign_act_now(struct sim *s, struct sim_foreign *f);
/* A random one of the profile. */
void foreign_act_random(struct sim *s);
/* EVENT_FOREIGN */
void foreign_event(struct sim *s, size_t index, uint64_t gen);
void foreign_hears(struct sim *s, const struct redis_message *m);
/* It releases what it holds, now. */
void foreign_release(struct sim *s, struct sim_foreign *f);
/* Its process ends: what it has in Redis stays there until its time is over. */
void foreign_die(struct sim *s, struct sim_foreign *f);
/* Nobody waits any more. */
void foreign_stop(struct sim *s);
/* After each script of a daemon: what Redisson holds is still there. */
void foreign_check(struct sim *s, const struct redis_name *n, size_t daemon);
/* Something outside touched the name; NULL: all. */
void foreign_excuse(struct sim *s, const struct redis_name *n);

#endif
