/* sim_redisson: what Redisson clients do to the Redis of sim_redis.h: the scripts of
 * support/redisson.h, defects included. `owner` is theirs, `<uuid>:<thread>`; `clock`
 * is the time in ms that the client believes in (a fair lock's deadlines are its own).
 * The name is to come from sim_redis_name(), so that nothing in it is expired.
 *
 * Each returns what the client hears: what it means is in struct redisson_reply. */
#ifndef LATCHD_SIM_REDISSON_H
#define LATCHD_SIM_REDISSON_H

#include "sim/redis/sim_redis.h"

enum {
    REDISSON_FAIR_WAIT_MS = 300000, /* its default for waiting without end */
    REDISSON_WATCHDOG_MS = 30000,
};

/* An acquire: `taken`, or how long to sleep (a PTTL, -1: for ever). */
struct redisson_wait {
    bool taken;
    bool wrongtype; /* an error: the name is of another kind */
    int64_t ttl_ms;
};

/* RLock, RFencedLock, SpinLock: true when taken or re-entered. */
bool redis_foreign_take(struct sim_redis *r, struct redis_name *n, struct span owner,
                        uint64_t lease_ms);
/* Redisson's unlock; a SpinLock does not publish. */
bool redis_foreign_release(struct sim_redis *r, struct redis_name *n, struct span owner,
                           bool publish);
/* The watchdog of all but read locks (a writer: with `:write`). False: not there. */
bool redis_foreign_renew(struct sim_redis *r, struct redis_name *n, struct span owner,
                         uint64_t lease_ms);

/* RCountDownLatch. */
void redis_foreign_latch_set(struct sim_redis *r, struct redis_name *n, int64_t count);
void redis_foreign_latch_count(struct sim_redis *r, struct redis_name *n);
void redis_foreign_latch_delete(struct sim_redis *r, struct redis_name *n);

/* --- fair ----------------------------------------------------------------- */

struct redisson_fair {
    struct span owner;
    uint64_t lease_ms;
    uint64_t wait_ms; /* how far the deadlines are apart */
    uint64_t clock;
};

/* tryLock() without a wait: never queues. */
bool redis_foreign_fair_try(struct sim_redis *r, struct redis_name *n,
                            const struct redisson_fair *f);
/* lock(), tryLock(wait): takes, or stands in the queue. */
struct redisson_wait redis_foreign_fair_take(struct sim_redis *r, struct redis_name *n,
                                             const struct redisson_fair *f);
/* The end of a wait in vain. */
void redis_foreign_fair_failed(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f);
/* 1 released, 0 still held, -1 not the owner's. */
int redis_foreign_fair_release(struct sim_redis *r, struct redis_name *n,
                               const struct redisson_fair *f);

/* --- read and write ------------------------------------------------------- */

struct redisson_wait redis_foreign_read(struct sim_redis *r, struct redis_name *n,
                                        struct span owner, uint64_t lease_ms);
/* 1 the lock is free, 0 it is not, -1 not the owner's. */
int redis_foreign_unread(struct sim_redis *r, struct redis_name *n, struct span owner);
struct redisson_wait redis_foreign_write(struct sim_redis *r, struct redis_name *n,
                                         struct span owner, uint64_t lease_ms);
/* 1 the writer is gone, 0 it is not, -1 not the owner's. `owner` without `:write`. */
int redis_foreign_unwrite(struct sim_redis *r, struct redis_name *n, struct span owner);
/* The watchdog of a reader: sets, and may cut, the lease of all. */
bool redis_foreign_renew_reads(struct sim_redis *r, struct redis_name *n,
                               struct span owner, uint64_t lease_ms);

#endif
