/* Commands that Redis has and latchd has not: what is to be done instead.
 *
 * To clients an unknown command says that this is an older Redis, and some go on
 * trying; whoever sends one of these has taken latchd for a store of data. What Redis
 * does not know either stays unknown: by that clients find out what a server can do. */
#include "cmd/redis_only.h"

#include <stdlib.h>
#include <string.h>

enum { NAME_MAX_LEN = 24 }; /* longer than any of the names */

/* Each list is sorted. */
/* clang-format off */
static const char *const SCRIPTS[] = {
    "eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro", "function",
    "script",
};

static const char *const PUBSUB[] = {
    "publish", "spublish", "ssubscribe", "sunsubscribe",
};

static const char *const SERVER[] = {
    "bgrewriteaof", "bgsave", "debug", "failover", "flushall", "flushdb", "lastsave",
    "lolwut", "migrate", "module", "psync", "replconf", "replicaof", "restore-asking",
    "save", "slaveof", "swapdb", "sync",
};

static const char *const WAITS[] = {
    "blmove", "blmpop", "blpop", "brpop", "brpoplpush",
};

static const char *const DATA[] = {
    "append", "bitcount", "bitfield", "bitfield_ro", "bitop", "bitpos", "bzmpop", "bzpopmax", "bzpopmin", "copy",
    "decr", "decrby", "del", "dump", "expire", "expireat", "expiretime", "geoadd",
    "geodist", "geohash", "geopos", "georadius", "georadius_ro", "georadiusbymember",
    "georadiusbymember_ro", "geosearch", "geosearchstore", "getbit", "getdel", "getex",
    "getrange", "getset", "hdel", "hexists", "hget", "hgetall", "hincrby",
    "hincrbyfloat", "hkeys", "hlen", "hmget", "hmset", "hrandfield", "hscan", "hset",
    "hsetnx", "hstrlen", "hvals", "incr", "incrby", "incrbyfloat", "keys", "lcs",
    "lindex", "linsert", "llen", "lmove", "lmpop", "lpop", "lpos", "lpush", "lpushx",
    "lrange", "lrem", "lset", "ltrim", "mget", "move", "mset", "msetnx", "object",
    "persist", "pexpire", "pexpireat", "pexpiretime", "pfadd", "pfcount", "pfdebug",
    "pfmerge", "pfselftest", "psetex", "pttl", "randomkey", "rename", "renamenx",
    "restore", "rpop", "rpoplpush", "rpush", "rpushx", "sadd", "scan", "scard", "sdiff",
    "sdiffstore", "set", "setbit", "setex", "setnx", "setrange", "sinter", "sintercard",
    "sinterstore", "sismember", "smembers", "smismember", "smove", "sort", "sort_ro",
    "spop", "srandmember", "srem", "sscan", "strlen", "substr", "sunion", "sunionstore",
    "touch", "ttl", "type", "unlink", "xack", "xadd", "xautoclaim", "xclaim", "xdel",
    "xgroup", "xinfo", "xlen", "xpending", "xrange", "xread", "xreadgroup", "xrevrange",
    "xsetid", "xtrim", "zadd", "zcard", "zcount", "zdiff", "zdiffstore", "zincrby",
    "zinter", "zintercard", "zinterstore", "zlexcount", "zmpop", "zmscore", "zpopmax",
    "zpopmin", "zrandmember", "zrange", "zrangebylex", "zrangebyscore", "zrangestore",
    "zrank", "zrem", "zremrangebylex", "zremrangebyrank", "zremrangebyscore",
    "zrevrange", "zrevrangebylex", "zrevrangebyscore", "zrevrank", "zscan", "zscore",
    "zunion", "zunionstore",
};
/* clang-format on */

static const struct {
    const char *const *names;
    size_t count;
    const char *advice;
} GROUPS[] = {
#define GROUP(names) names, sizeof(names) / sizeof((names)[0])
    { GROUP(SCRIPTS), "a library that brings its own scripts, such as Redisson, is to "
                      "connect to the Redis that keeps the locks" },
    { GROUP(PUBSUB), "SUBSCRIBE and PSUBSCRIBE tell what becomes of locks" },
    { GROUP(SERVER), "send it to the Redis that keeps the locks" },
    { GROUP(WAITS),
      "a library that waits for a lock by a list, such as python-redis-lock, "
      "can only try here: acquire(blocking=False), or LOCK with WAIT" },
    { GROUP(DATA), "send it to a Redis, and LOCK and UNLOCK to latchd" },
#undef GROUP
};

static int compare_name(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

const char *redis_only_advice(struct span name)
{
    char key[NAME_MAX_LEN];

    if (name.len >= sizeof(key) || memchr(name.ptr, '\0', name.len) != NULL) {
        return NULL;
    }
    for (size_t i = 0; i < name.len; i++) {
        char ch = name.ptr[i];

        key[i] = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    }
    key[name.len] = '\0';
    for (size_t i = 0; i < sizeof(GROUPS) / sizeof(GROUPS[0]); i++) {
        if (bsearch(key, GROUPS[i].names, GROUPS[i].count, sizeof(char *),
                    compare_name) != NULL) {
            return GROUPS[i].advice;
        }
    }
    return NULL;
}
