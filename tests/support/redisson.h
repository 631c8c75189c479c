/* redisson: a Redisson client played by hand: what its scripts do to Redis, step by
 * step, told in words of our own. One struct is one thread of one JVM.
 *
 * Calls run over redis_side(), or at a host. What a script answers with nil is
 * REDISSON_NIL: a lock taken, or an unlock by somebody who does not hold. */
#ifndef LATCHD_TESTS_REDISSON_H
#define LATCHD_TESTS_REDISSON_H

#include "support/redis.h"

#define REDISSON_NIL INT64_MIN
#define REDISSON_LEASE 30000
#define REDISSON_FAIR_WAIT 300000

/* In the place of a Redis: somebody else who runs scripts. */
struct redisson_host {
    void *ctx;
    int64_t now_ms; /* the client's clock */
    /* `words`: as many keys as said, then the arguments, NULL. What is no integer is
     * REDISSON_NIL. */
    int64_t (*run)(void *ctx, const char *script, int keys, const char *const *words);
};

struct redisson {
    struct test_redis *redis;
    const char *owner;                /* `<uuid>:<thread>` */
    int64_t skew_ms;                  /* what its clock is ahead of ours */
    const struct redisson_host *host; /* NULL: `redis`, and the machine's clock */
};

/* `<prefix>:{name}`, or `<prefix>:name` if the name has a brace. The text is one of a
 * few that are used in turn. */
const char *redisson_key(const char *prefix, const char *name);
/* Of a reader's `i`-th hold. */
const char *redisson_hold_key(const char *name, const char *owner, int i);

/* RLock, RFencedLock without token, SpinLock: NIL taken, else the TTL of the holder. */
int64_t redisson_lock(const struct redisson *r, const char *name, int64_t lease_ms);
/* 1 free, 0 still held, NIL not the owner. `request`: its id, so that the same one can
 * be sent again; NULL: a fresh one, whose latch is removed afterwards. */
int64_t redisson_unlock(const struct redisson *r, const char *name,
                        const char *request);
/* The same without a message: SpinLock. */
int64_t redisson_spin_unlock(const struct redisson *r, const char *name);
int64_t redisson_force_unlock(const struct redisson *r, const char *name);
/* The watchdog of all but readers: 1 renewed, 0 not held by it. */
int64_t redisson_renew_lock(const struct redisson *r, const char *name,
                            int64_t lease_ms);
/* RFencedLock's lockAndGetToken(): NIL taken. */
int64_t redisson_fenced_lock(const struct redisson *r, const char *name,
                             int64_t lease_ms, int64_t *ret_token);

/* RFairLock. `wait_ms`: what it adds to the queue's deadlines. */
int64_t redisson_fair_lock(const struct redisson *r, const char *name, int64_t lease_ms,
                           int64_t wait_ms);
int64_t redisson_fair_try(const struct redisson *r, const char *name, int64_t lease_ms,
                          int64_t wait_ms); /* without a place in the queue: 1 */
int64_t redisson_fair_unlock(const struct redisson *r, const char *name,
                             const char *request);
int64_t redisson_fair_force_unlock(const struct redisson *r, const char *name);
/* A wait that ended without the lock. */
void redisson_fair_leave(const struct redisson *r, const char *name, int64_t wait_ms);

/* RReadWriteLock. Unlocks: 1 free or downgraded, 0 still held, NIL not the owner. */
int64_t redisson_read_lock(const struct redisson *r, const char *name,
                           int64_t lease_ms);
int64_t redisson_read_unlock(const struct redisson *r, const char *name,
                             const char *request);
int64_t redisson_read_renew(const struct redisson *r, const char *name,
                            int64_t lease_ms);
int64_t redisson_read_force_unlock(const struct redisson *r, const char *name);
int64_t redisson_write_lock(const struct redisson *r, const char *name,
                            int64_t lease_ms);
int64_t redisson_write_unlock(const struct redisson *r, const char *name,
                              const char *request);
int64_t redisson_write_force_unlock(const struct redisson *r, const char *name);

/* RCountDownLatch. */
/* 1: it is set now, 0: one is there. */
int64_t redisson_latch_set(const struct redisson *r, const char *name, int64_t count);
void redisson_latch_count(const struct redisson *r, const char *name);
int64_t redisson_latch_left(const struct redisson *r, const char *name);
int64_t redisson_latch_delete(const struct redisson *r, const char *name);

/* A connection that listens to one channel. */
redisContext *redisson_listen(const struct redisson *r, const char *channel);
/* The next message there is that payload; within 10 s. */
void redisson_hear(redisContext *c, const char *payload);
/* None has come by now: a message published before this call would have. */
void redisson_hear_nothing(redisContext *c);

#endif
