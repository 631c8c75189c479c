#include "support/redisson.h"
#include "support/redisson_priv.h"

#include <stdio.h>

/* --- RReadWriteLock --------------------------------------------------------------- */

static const char READ_LOCK[] =
    "local lock, hold, lease = KEYS[1], KEYS[2], tonumber(ARGV[1]) "
    "local mode = redis.call('hget', lock, 'mode') "
    "if not mode then "
    "redis.call('hset', lock, 'mode', 'read', ARGV[2], 1) "
    "redis.call('set', hold .. ':1', 1, 'px', lease) "
    "redis.call('pexpire', lock, lease) return false end "
    "if mode == 'read' or redis.call('hexists', lock, ARGV[3]) == 1 then "
    "local i = redis.call('hincrby', lock, ARGV[2], 1) "
    "redis.call('set', hold .. ':' .. i, 1, 'px', lease) "
    "redis.call('pexpire', lock, math.max(redis.call('pttl', lock), lease)) "
    "return false end "
    "return redis.call('pttl', lock)";

static const char *hold_prefix(const struct redisson *r, const char *name)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "%s:%s:rwlock_timeout", redisson_braced(name),
                   r->owner);
    return text;
}

/* The writer's field. */
static const char *writer(const struct redisson *r)
{
    char *text = redisson_text();

    (void)snprintf(text, REDISSON_TEXT, "%s:write", r->owner);
    return text;
}

int64_t redisson_read_lock(const struct redisson *r, const char *name, int64_t lease_ms)
{
    return RUN(r, READ_LOCK, 2, name, hold_prefix(r, name), redisson_number(lease_ms),
               r->owner, writer(r));
}

static const char READ_UNLOCK[] = LATCH(
    "KEYS[5]") "local lock, channel, hold, prefix = KEYS[1], KEYS[2], KEYS[3], KEYS[4] "
               "local mode = redis.call('hget', lock, 'mode') "
               "if not mode then redis.call('publish', channel, '0') last(1) return "
               "false end "
               "if redis.call('hexists', lock, ARGV[1]) == 0 then return false end "
               "local left = redis.call('hincrby', lock, ARGV[1], -1) "
               "if left == 0 then redis.call('hdel', lock, ARGV[1]) end "
               "redis.call('del', hold .. ':' .. (left + 1)) "
               "if redis.call('hlen', lock) > 1 then "
               "local longest = -3 "
               "for _, field in ipairs(redis.call('hkeys', lock)) do "
               "local count = tonumber(redis.call('hget', lock, field)) "
               "for i = count or 0, 1, -1 do longest = math.max(longest, "
               "redis.call('pttl', "
               "prefix .. ':' .. field .. ':rwlock_timeout:' .. i)) end end "
               "if longest > 0 then redis.call('pexpire', lock, longest) return "
               "last(0) end "
               "if mode == 'write' then return last(0) end end "
               "redis.call('del', lock) redis.call('publish', channel, '0') return "
               "last(1)";

int64_t redisson_read_unlock(const struct redisson *r, const char *name,
                             const char *request)
{
    int64_t answer = RUN(r, READ_UNLOCK, 5, name, redisson_key("redisson_rwlock", name),
                         hold_prefix(r, name), redisson_braced(name),
                         redisson_latch_key(name, request), r->owner);

    return redisson_unlatch(r, name, request, answer);
}

static const char READ_RENEW[] =
    "local count = redis.call('hget', KEYS[1], ARGV[2]) "
    "if not count then return 0 end "
    "for i = tonumber(count), 1, -1 do "
    "redis.call('pexpire', KEYS[2] .. ':' .. i, ARGV[1]) end "
    "redis.call('pexpire', KEYS[1], ARGV[1]) return 1";

int64_t redisson_read_renew(const struct redisson *r, const char *name,
                            int64_t lease_ms)
{
    return RUN(r, READ_RENEW, 2, name, hold_prefix(r, name), redisson_number(lease_ms),
               r->owner);
}

static const char WRITE_LOCK[] =
    "local lock, lease, me = KEYS[1], tonumber(ARGV[1]), ARGV[2] "
    "local mode = redis.call('hget', lock, 'mode') "
    "if not mode then redis.call('hset', lock, 'mode', 'write', me, 1) "
    "redis.call('pexpire', lock, lease) return false end "
    "if mode == 'write' and redis.call('hexists', lock, me) == 1 then "
    "redis.call('hincrby', lock, me, 1) "
    "redis.call('pexpire', lock, redis.call('pttl', lock) + lease) return false end "
    "return redis.call('pttl', lock)";

int64_t redisson_write_lock(const struct redisson *r, const char *name,
                            int64_t lease_ms)
{
    return RUN(r, WRITE_LOCK, 1, name, redisson_number(lease_ms), writer(r));
}

static const char WRITE_UNLOCK[] = LATCH(
    "KEYS[3]") "local lock, channel, me = KEYS[1], KEYS[2], ARGV[1] "
               "local mode = redis.call('hget', lock, 'mode') "
               "if not mode then redis.call('publish', channel, '1') last(1) return "
               "false end "
               "if mode ~= 'write' or redis.call('hexists', lock, me) == 0 then "
               "return false end "
               "if redis.call('hincrby', lock, me, -1) > 0 then "
               "redis.call('pexpire', lock, ARGV[2]) return last(0) end "
               "redis.call('hdel', lock, me) "
               "if redis.call('hlen', lock) > 1 then redis.call('hset', lock, 'mode', "
               "'read') "
               "else redis.call('del', lock) redis.call('publish', channel, '1') end "
               "return last(1)";

int64_t redisson_write_unlock(const struct redisson *r, const char *name,
                              const char *request)
{
    int64_t answer = RUN(
        r, WRITE_UNLOCK, 3, name, redisson_key("redisson_rwlock", name),
        redisson_latch_key(name, request), writer(r), redisson_number(REDISSON_LEASE));

    return redisson_unlatch(r, name, request, answer);
}

static const char RW_FORCE[] =
    "if redis.call('hget', KEYS[1], 'mode') ~= ARGV[1] then return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], ARGV[2]) return 1";

int64_t redisson_read_force_unlock(const struct redisson *r, const char *name)
{
    return RUN(r, RW_FORCE, 2, name, redisson_key("redisson_rwlock", name), "read",
               "0");
}

int64_t redisson_write_force_unlock(const struct redisson *r, const char *name)
{
    return RUN(r, RW_FORCE, 2, name, redisson_key("redisson_rwlock", name), "write",
               "1");
}
