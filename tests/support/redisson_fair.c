#include "support/redisson.h"
#include "support/redisson_priv.h"

/* --- RFairLock -------------------------------------------------------------------- */

#define FAIR_KEYS(name)                                                                \
    name, redisson_key("redisson_lock_queue", name),                                   \
        redisson_key("redisson_lock_timeout", name)

/* A waiter that is overdue at the head is dead. */
#define PURGE(now)                                                                     \
    "local lock, queue, due = KEYS[1], KEYS[2], KEYS[3] "                              \
    "local now = tonumber(" now ") "                                                   \
    "local function head() return redis.call('lindex', queue, 0) end "                 \
    "while head() do "                                                                 \
    "local at = redis.call('zscore', due, head()) "                                    \
    "if not at or tonumber(at) > now then break end "                                  \
    "redis.call('zrem', due, head()) redis.call('lpop', queue) end "

#define FAIR_TAKE                                                                      \
    PURGE("ARGV[4]")                                                                   \
    "local lease, me, wait = ARGV[1], ARGV[2], tonumber(ARGV[3]) "                     \
    "if redis.call('exists', lock) == 0 and (not head() or head() == me) then "        \
    "redis.call('lpop', queue) redis.call('zrem', due, me) "                           \
    "for _, other in ipairs(redis.call('zrange', due, 0, -1)) do "                     \
    "redis.call('zincrby', due, -wait, other) end "                                    \
    "redis.call('hset', lock, me, 1) redis.call('pexpire', lock, lease) "              \
    "return false end "                                                                \
    "if redis.call('hexists', lock, me) == 1 then "                                    \
    "redis.call('hincrby', lock, me, 1) redis.call('pexpire', lock, lease) "           \
    "return false end "

static const char FAIR_LOCK[] = FAIR_TAKE
    "if redis.call('zscore', due, me) then "
    "return math.max(0, redis.call('pttl', lock)) end "
    "local tail, left = redis.call('lindex', queue, -1), nil "
    "local at = tail and tail ~= me and redis.call('zscore', due, tail) "
    "if at then left = tonumber(at) - now else left = redis.call('pttl', lock) end "
    "if redis.call('zadd', due, left + wait + now, me) == 1 then "
    "redis.call('rpush', queue, me) end "
    "return left";

int64_t redisson_fair_lock(const struct redisson *r, const char *name, int64_t lease_ms,
                           int64_t wait_ms)
{
    return RUN(r, FAIR_LOCK, 3, FAIR_KEYS(name), redisson_number(lease_ms), r->owner,
               redisson_number(wait_ms), redisson_now(r));
}

static const char FAIR_TRY[] = FAIR_TAKE "return 1";

int64_t redisson_fair_try(const struct redisson *r, const char *name, int64_t lease_ms,
                          int64_t wait_ms)
{
    return RUN(r, FAIR_TRY, 3, FAIR_KEYS(name), redisson_number(lease_ms), r->owner,
               redisson_number(wait_ms), redisson_now(r));
}

#define FAIR_TELL                                                                      \
    "local function tell() if head() then "                                            \
    "redis.call('publish', KEYS[4] .. ':' .. head(), '0') end end "

static const char FAIR_UNLOCK[] = LATCH("KEYS[5]") PURGE("ARGV[2]") FAIR_TELL
    "if redis.call('exists', lock) == 0 then tell() return last(1) end "
    "if redis.call('hexists', lock, ARGV[1]) == 0 then return false end "
    "if redis.call('hincrby', lock, ARGV[1], -1) > 0 then "
    "redis.call('pexpire', lock, ARGV[3]) return last(0) end "
    "redis.call('del', lock) tell() return last(1)";

int64_t redisson_fair_unlock(const struct redisson *r, const char *name,
                             const char *request)
{
    int64_t answer = RUN(r, FAIR_UNLOCK, 5, FAIR_KEYS(name),
                         redisson_key("redisson_lock__channel", name),
                         redisson_latch_key(name, request), r->owner, redisson_now(r),
                         redisson_number(REDISSON_LEASE));

    return redisson_unlatch(r, name, request, answer);
}

static const char FAIR_FORCE[] = PURGE("ARGV[1]") FAIR_TELL
    "if redis.call('del', lock) == 0 then return 0 end tell() return 1";

int64_t redisson_fair_force_unlock(const struct redisson *r, const char *name)
{
    return RUN(r, FAIR_FORCE, 4, FAIR_KEYS(name),
               redisson_key("redisson_lock__channel", name), redisson_now(r));
}

static const char FAIR_LEAVE[] =
    "local behind = false "
    "for _, other in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do "
    "if behind then redis.call('zincrby', KEYS[2], -tonumber(ARGV[2]), other) end "
    "behind = behind or other == ARGV[1] end "
    "redis.call('zrem', KEYS[2], ARGV[1]) redis.call('lrem', KEYS[1], 0, ARGV[1])";

void redisson_fair_leave(const struct redisson *r, const char *name, int64_t wait_ms)
{
    (void)RUN(r, FAIR_LEAVE, 2, redisson_key("redisson_lock_queue", name),
              redisson_key("redisson_lock_timeout", name), r->owner,
              redisson_number(wait_ms));
}
