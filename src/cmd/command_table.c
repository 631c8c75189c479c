#include "cmd/command_table.h"

#include "cmd/cmd_priv.h"
#include "terms-usage.h"

#include <endian.h>

const char *const ACL_CATEGORY_NAMES[ACL_CATEGORY_COUNT] = {
    "@lock", "@keyspace", "@read",     "@write",     "@pubsub",     "@admin",
    "@fast", "@slow",     "@blocking", "@dangerous", "@connection", "@transaction",
};

/* Flags that several rows have in common. */
enum {
    ACL_CONN = ACL_FAST | ACL_CONNECTION,
    ACL_CLIENT = ACL_SLOW | ACL_CONNECTION,
    ACL_OPERATOR = ACL_ADMIN | ACL_SLOW | ACL_DANGEROUS,
    ACL_TRANSACT = ACL_FAST | ACL_TRANSACTION,
    ACL_SCRIPT = ACL_LOCK | ACL_SLOW, /* without it EVALSHA is of little use */
    ACL_LISTEN = ACL_PUBSUB | ACL_SLOW,
    ACL_HOLD = ACL_LOCK | ACL_KEYSPACE | ACL_WRITE | ACL_FAST,
    ACL_LOOK = ACL_LOCK | ACL_KEYSPACE | ACL_READ,
    CMD_LIBRARY = CMD_WRITE | CMD_FAST, /* of lock libraries; the engine answers */
};

const struct command COMMANDS[] = {
#define COMMAND(name, run, arity, keys, flags, acl, group, since, usage, summary,      \
                complexity)                                                            \
    { name, run, arity, keys, flags, acl, group, since, usage, summary, complexity },
#include "cmd/commands.def"
};

const size_t COMMAND_COUNT = sizeof(COMMANDS) / sizeof(COMMANDS[0]);

static const struct acl_command ACL_COMMANDS[] = {
#define COMMAND(name, run, arity, keys, flags, categories, ...)                        \
    { name, categories, ((flags)&CMD_NO_AUTH) != 0 },
#include "cmd/commands.def"
};

_Static_assert(sizeof(ACL_COMMANDS) / sizeof(ACL_COMMANDS[0]) <= ACL_COMMANDS_MAX,
               "ACL_COMMANDS_MAX is too small");

const struct acl_catalog COMMAND_CATALOG = {
    .commands = ACL_COMMANDS,
    .command_count = sizeof(ACL_COMMANDS) / sizeof(ACL_COMMANDS[0]),
    .categories = ACL_CATEGORY_NAMES,
    .category_count = ACL_CATEGORY_COUNT,
};

/* Finds a command in the table, and the names of locks in its arguments. */

/* Appends in lower case to a key of NULs. False: longer than any name. */
static bool add_lower(char *key, size_t *len, struct span text)
{
    if (*len + text.len >= COMMAND_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char ch = text.ptr[i];

        if (ch == '\0') {
            return false;
        }
        key[(*len)++] = (char)(ch >= 'A' && ch <= 'Z' ? ch - 'A' + 'a' : ch);
    }
    return true;
}

/* The first bytes of a name, as a number that sorts as they do. */
static uint64_t read_head(const char *name)
{
    uint64_t head;

    memcpy(&head, name, sizeof(head));
    return be64toh(head);
}

/* Whether a row has the name of a key with the same head. */
static bool has_tail(const struct command *row, const char *key)
{
    enum { HEAD = sizeof(uint64_t) };

    return memcmp(row->name + HEAD, key + HEAD, COMMAND_NAME_MAX - HEAD) == 0;
}

/* Every request is looked up, so the search compares heads, up to the last row that has
 * this one or a smaller one. */
static const struct command *find_command(const char *key)
{
    uint64_t head = read_head(key);
    size_t at = 0;

    for (size_t count = COMMAND_COUNT, half; count > 1; count -= half) {
        half = count / 2;
        at += read_head(COMMANDS[at + half].name) <= head ? half : 0;
    }
    for (; read_head(COMMANDS[at].name) == head; at--) {
        if (has_tail(&COMMANDS[at], key)) {
            return &COMMANDS[at];
        }
        if (at == 0) {
            break;
        }
    }
    return NULL;
}

const struct command *command_find(struct span name)
{
    char key[COMMAND_NAME_MAX] = { 0 };
    size_t len = 0;

    return add_lower(key, &len, name) ? find_command(key) : NULL;
}

const struct command *command_find_sub(const struct command *container, struct span sub)
{
    char key[COMMAND_NAME_MAX] = { 0 };
    size_t len = 0;

    if (!add_lower(key, &len, span_str(container->name)) ||
        !add_lower(key, &len, SPAN("|")) || !add_lower(key, &len, sub)) {
        return NULL;
    }
    return find_command(key);
}

const struct command *command_resolve(const struct span *argv, size_t argc)
{
    const struct command *c = command_find(argv[0]);

    if (c != NULL && (c->flags & CMD_CONTAINER) != 0 && argc > 1) {
        c = command_find_sub(c, argv[1]);
    }
    return c;
}

bool command_is_lock(const struct command *c)
{
    return c != NULL && (c->flags & CMD_NEEDS_REPLY) != 0;
}

bool command_waits_for_others(const struct command *c)
{
    return c != NULL && (c->flags & CMD_BLOCKING) != 0 && (c->acl & ACL_BLOCKING) != 0;
}

bool command_may_wait(const struct command *c)
{
    return command_is_lock(c) || command_waits_for_others(c);
}

bool command_is_sub(const struct command *c)
{
    return strchr(c->name, '|') != NULL;
}

const struct command *command_subs(const struct command *container, size_t *ret_count)
{
    const struct command *end = COMMANDS + COMMAND_COUNT;
    const struct command *c = container + 1;

    if ((container->flags & CMD_CONTAINER) != 0) {
        while (c < end && command_is_sub(c)) {
            c++;
        }
    }
    *ret_count = (size_t)(c - container - 1);
    return container + 1;
}

const char *command_short_name(const struct command *c)
{
    const char *bar = strchr(c->name, '|');

    return bar == NULL ? c->name : bar + 1;
}

bool command_arity_fits(const struct command *c, size_t argc)
{
    return c->arity >= 0 ? argc == (size_t)c->arity : argc >= (size_t)-c->arity;
}

bool command_key_range(const struct command *c, const struct span *argv, size_t argc,
                       size_t *ret_first, size_t *ret_count)
{
    uint64_t count = 1;

    switch (c->keys) {
    case KEYS_NONE:
        count = 0;
        *ret_first = 0;
        break;
    case KEYS_ONE:
        *ret_first = 1;
        break;
    case KEYS_SECOND:
        *ret_first = 2;
        break;
    case KEYS_ALL:
        *ret_first = 1;
        count = argc - 1;
        break;
    case KEYS_COUNTED:
        *ret_first = 2;
        if (!parse_u64(argv[1], argc - 2, &count) || count == 0) {
            return false;
        }
        break;
    case KEYS_SCRIPT:
        *ret_first = 3;
        if (!parse_u64(argv[2], argc - 3, &count)) {
            return false;
        }
        break;
    }
    *ret_count = (size_t)count;
    return true;
}

/* Commands that Redis has and latchd has not: what is to be done instead.
 *
 * To clients an unknown command says that this is an older Redis, and some go on
 * trying. A client that sends one of these has taken latchd for a store of data. Words
 * unknown to Redis too stay unknown: by that clients find out what a server can do. */

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

static const char *const THAT_WAIT[] = {
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
    { GROUP(THAT_WAIT),
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

static const char *const WORDS[OUTCOME_COUNT] = {
    [OUTCOME_OK] = "ok",
    [OUTCOME_NULL] = "null",
    [OUTCOME_GONE] = "gone",
    [OUTCOME_ERR] = LATCHD_ERR,
    [OUTCOME_NOAUTH] = LATCHD_ERR_NOAUTH,
    [OUTCOME_WRONGPASS] = LATCHD_ERR_WRONGPASS,
    [OUTCOME_NOPERM] = LATCHD_ERR_NOPERM,
    [OUTCOME_NOPROTO] = LATCHD_ERR_NOPROTO,
    [OUTCOME_EXECABORT] = "EXECABORT",
    [OUTCOME_WRONGTYPE] = LATCHD_ERR_WRONGTYPE,
    [OUTCOME_NOTHELD] = LATCHD_ERR_NOTHELD,
    [OUTCOME_DEADLOCK] = LATCHD_ERR_DEADLOCK,
    [OUTCOME_BACKEND] = LATCHD_ERR_BACKEND,
    [OUTCOME_NOREPLICAS] = LATCHD_ERR_NOREPLICAS,
    [OUTCOME_CROSSSLOT] = LATCHD_ERR_CROSSSLOT,
    [OUTCOME_LIMIT] = LATCHD_ERR_LIMIT,
    [OUTCOME_GOAWAY] = LATCHD_ERR_GOAWAY,
    [OUTCOME_UNBLOCKED] = LATCHD_ERR_UNBLOCKED,
    [OUTCOME_OTHER] = "other",
};

enum outcome outcome_of_error(const char *word)
{
    for (int i = OUTCOME_ERR; i < OUTCOME_OTHER; i++) {
        if (strcmp(word, WORDS[i]) == 0) {
            return (enum outcome)i;
        }
    }
    return OUTCOME_OTHER;
}

const char *outcome_word(enum outcome outcome)
{
    return WORDS[outcome];
}

static struct command_stat *stat_of(struct cmd *c, const struct command *command)
{
    return &c->stats[command - COMMANDS];
}

void stats_rejected(const struct command_ctx *ctx)
{
    struct command_stat *stat;

    if (ctx->command == NULL) {
        ctx->cmd->unknown++;
        return;
    }
    stat = stat_of(ctx->cmd, ctx->command);
    stat->rejected++;
    if (outcome_is_error(ctx->outcome)) {
        stat->outcomes[ctx->outcome]++;
    }
}

static uint64_t elapsed_us(uint64_t started_us, uint64_t now_us)
{
    return now_us > started_us ? now_us - started_us : 0;
}

/* Answers of one round have one time: they leave together. */
static uint64_t answered_us(struct cmd *c)
{
    if (c->answered_us == 0) {
        c->answered_us = clock_boot_us();
    }
    return c->answered_us;
}

uint64_t stats_ran(const struct command_ctx *ctx)
{
    struct command_stat *stat = stat_of(ctx->cmd, ctx->command);
    uint64_t us = elapsed_us(ctx->started_us, clock_boot_us());

    if (!ctx->counted) {
        stat->calls++;
        ctx->cmd->calls++;
    }
    histogram_add(&stat->work, us);
    if (ctx->result == ANSWERED) {
        stat->failed += outcome_is_error(ctx->outcome);
        stat->outcomes[ctx->outcome]++;
    }
    return us;
}

void stats_answered(struct cmd *c, const struct command *command, uint64_t began_us,
                    enum outcome outcome)
{
    struct command_stat *stat = stat_of(c, command);

    histogram_add(&stat->wait, elapsed_us(began_us, answered_us(c)));
    stat->failed += outcome_is_error(outcome);
    stat->outcomes[outcome]++;
}

void cmd_reset_stats(struct cmd *c)
{
    memset(c->stats, 0, COMMAND_COUNT * sizeof(*c->stats));
    c->calls = 0;
    c->unknown = 0;
    denials_reset_totals(c->users.denials);
}

uint64_t stats_calls(const struct cmd *c)
{
    return c->calls;
}

uint64_t stats_outcome(const struct cmd *c, enum outcome outcome)
{
    uint64_t count = outcome == OUTCOME_ERR ? c->unknown : 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        count += c->stats[i].outcomes[outcome];
    }
    return count;
}

void cmd_stats_each(const struct cmd *c, cmd_stats_fn *fn, void *ctx)
{
    struct cmd_outcome outcomes[OUTCOME_COUNT];

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command_stat *stat = &c->stats[i];
        struct cmd_stats row = {
            .name = COMMANDS[i].name,
            .calls = stat->calls,
            .rejected = stat->rejected,
            .failed = stat->failed,
            .outcomes = outcomes,
            .work = &stat->work,
            .wait = (COMMANDS[i].flags & CMD_BLOCKING) != 0 ? &stat->wait : NULL,
        };

        if (stat->calls + stat->rejected == 0) {
            continue;
        }
        for (int k = 0; k < OUTCOME_COUNT; k++) {
            if (stat->outcomes[k] != 0) {
                outcomes[row.outcome_count++] =
                    (struct cmd_outcome){ WORDS[k], stat->outcomes[k] };
            }
        }
        fn(ctx, &row);
    }
}
