/* The Redis of the simulator is right: each of its commands answers as a real Redis
 * does, from random states; and its Lua makes the same of what scripts do. `SEED` in
 * the environment: just that run; `RUNS`: so many. */
#include "sim/redis/keyspace.h"
#include "sim/redis/lua_host.h"
#include "sim/world/dice.h"
#include "support/redis.h"
#include "support/runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

enum {
    STEPS = 3000,
    RUNS = 4,
    WORDS_MAX = 12,
    WORD_MAX = 80,
    SLACK_MS = 20000, /* by which times may differ; they are minutes, or none */
};

#define CHANNEL "heard"

/* s, h, l, z: a key, mostly of that type; K: any key. f: a field, member or element;
 * v: a value; i: a whole number; d: a score; x: an index; t: a time; c: a channel. Now
 * and then a word is none of its kind. */
static const char *const FORMS[] = {
    "get s",
    "set s v",
    "SET s v PX t",
    "set s v NX",
    "set s v px t nx",
    "set K v",
    "set s v v",
    "mget s K s",
    "strlen s",
    "incr s",
    "incrby s i",
    "del K",
    "del K K",
    "unlink K K",
    "exists K",
    "exists K K K",
    "type K",
    "pttl K",
    "pexpire K t",
    "hset h f v",
    "hset h f v f v",
    "hset h f i",
    "hset h f v f",
    "hget h f",
    "hmget h f f f",
    "hgetall h",
    "hkeys h",
    "hvals h",
    "hlen h",
    "hexists h f",
    "hdel h f",
    "hdel h f f",
    "hincrby h f i",
    "hscan h 0 COUNT 1",
    "hscan h 7 COUNT 100",
    "lpush l f",
    "lpush l f f",
    "rpush l f",
    "rpush l f f f",
    "lpop l",
    "lindex l x",
    "llen l",
    "lrange l x x",
    "lrange l 0 -1",
    "lrem l x f",
    "ltrim l x x",
    "lpos l f",
    "zadd z d f",
    "zadd z d f d f",
    "zadd z NX d f",
    "zadd z XX d f",
    "zadd z XX INCR d f",
    "zadd z INCR d f",
    "zadd z XX INCR d f d f",
    "zadd z NX XX d f",
    "zadd z d",
    "zrem z f",
    "zrem z f f",
    "zscore z f",
    "zmscore z f f f",
    "zcard z",
    "decrby s i",
    "zrangebyscore z -inf +inf",
    "zrangebyscore z d d WITHSCORES",
    "zrangebyscore z -inf d WITHSCORES LIMIT 0 3",
    "zrangebyscore z d +inf limit 1 2",
    "zrange z x x",
    "zrange z 0 -1",
    "zincrby z d f",
    "publish c v",
    "pubsub NUMSUB c",
    "get",
    "get s s",
    "nonsense K",
};

static struct test_redis *redis;
static redisContext *listener;
static struct keyspace keys;
static struct dice dice;

/* --- the same in both ----------------------------------------------------- */

static int64_t count_subscribers(void *ctx, struct span channel)
{
    (void)ctx;
    return span_eq(channel, SPAN(CHANNEL)) ? 1 : 0;
}

static void set_clock(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    keys.now_ms = (uint64_t)tv.tv_sec * 1000 + (uint64_t)tv.tv_usec / 1000;
}

static void setup(void)
{
    redisReply *r;

    redis = redis_start();
    listener = redisConnectUnix(redis_path(redis));
    r = redisCommand(listener, "SUBSCRIBE " CHANNEL);
    ck_assert_ptr_nonnull(r);
    freeReplyObject(r);
    keys.hooks.count_subscribers = count_subscribers;
}

static void teardown(void)
{
    redisFree(listener);
    redis_stop(redis);
    keyspace_fini(&keys);
}

/* --- comparing ------------------------------------------------------------ */

/* Errors are alike if they begin with the same word. */
static bool same_error(struct span a, struct span b)
{
    return span_eq(span_next(&a, ' '), span_next(&b, ' '));
}

static bool same_number(int64_t a, int64_t b)
{
    return a == b || (a > SLACK_MS && b > SLACK_MS && llabs(a - b) < SLACK_MS);
}

static bool is_same(const redisReply *real, const struct key_reply *ours)
{
    struct span text = span_of(real->str, real->len);

    switch (real->type) {
    case REDIS_REPLY_NIL:
        return ours->type == KEY_REPLY_NIL;
    case REDIS_REPLY_INTEGER:
        return ours->type == KEY_REPLY_INTEGER &&
               same_number(real->integer, ours->integer);
    case REDIS_REPLY_STRING:
        return ours->type == KEY_REPLY_BULK && span_eq(text, ours->text);
    case REDIS_REPLY_STATUS:
        return ours->type == KEY_REPLY_STATUS && span_eq(text, ours->text);
    case REDIS_REPLY_ERROR:
        return ours->type == KEY_REPLY_ERROR && same_error(text, ours->text);
    default:
        break;
    }
    if (ours->type != KEY_REPLY_ARRAY || real->elements != ours->count) {
        return false;
    }
    for (size_t i = 0; i < ours->count; i++) {
        if (!is_same(real->element[i], &ours->items[i])) {
            return false;
        }
    }
    return true;
}

/* --- random commands ------------------------------------------------------ */

struct command {
    size_t argc;
    char text[WORDS_MAX][WORD_MAX];
    const char *argv[WORDS_MAX];
    size_t len[WORDS_MAX];
    struct span spans[WORDS_MAX];
};

static const char *one_of(const char *const *list, size_t count)
{
    return list[dice_below(&dice, count)];
}
#define ONE_OF(list) one_of((list), sizeof(list) / sizeof((list)[0]))

static void pick_key(char type, char *out)
{
    static const char TYPES[] = "shlz";

    if (type == 'K' || dice_chance(&dice, 80)) {
        type = TYPES[dice_below(&dice, sizeof(TYPES) - 1)];
    }
    (void)snprintf(out, WORD_MAX, "%c%d", type, (int)dice_below(&dice, 2));
}

static void pick_word(char kind, char *out)
{
    static const char *const FIELDS[] = { "a", "b", "c", "dd", "aa", "B", "" };
    static const char *const VALUES[] = {
        "1",
        "-7",
        "007",
        "+3",
        "",
        "some text",
        "9007199254740993",
        "12.5",
        "1e3",
        " 5",
        "0",
        "a rather long value that needs more room than the others here",
        "9223372036854775807",
    };
    static const char *const INTEGERS[] = {
        "1",
        "-1",
        "0",
        "42",
        "-100",
        "1700000000000123",
        "9223372036854775807",
        "9223372036854775808",
        "1.0",
    };
    static const char *const SCORES[] = {
        "1",     "2",
        "-3",    "0",
        "2.5",   "0.1",
        "1e3",   "1700000000000",
        "-0.25", "1700000000000123",
    };
    /* None so short that the key is over in one of the two first. */
    static const char *const TIMES[] = { "600000", "1200000", "3600000", "-1", "0" };
    static const char *const NO_TIMES[] = { "",   "12.5", "007",
                                            "+3", "1e3",  "9223372036854775807" };
    static const char *const INDEXES[] = { "0",  "1",  "2",  "3", "7",
                                           "-1", "-2", "-3", "-9" };

    if (kind == 't' && dice_chance(&dice, 30)) {
        (void)snprintf(out, WORD_MAX, "%s", ONE_OF(NO_TIMES));
        return;
    }
    if (strchr("idx", kind) != NULL && dice_chance(&dice, 30)) {
        kind = 'v';
    }
    (void)snprintf(out, WORD_MAX, "%s",
                   kind == 'f'   ? ONE_OF(FIELDS)
                   : kind == 'v' ? ONE_OF(VALUES)
                   : kind == 'i' ? ONE_OF(INTEGERS)
                   : kind == 'd' ? ONE_OF(SCORES)
                   : kind == 't' ? ONE_OF(TIMES)
                   : kind == 'x' ? ONE_OF(INDEXES)
                                 : (dice_chance(&dice, 500) ? CHANNEL : "other"));
}

static void make_command(struct command *c)
{
    struct span form = span_str(ONE_OF(FORMS));

    c->argc = 0;
    while (form.len > 0) {
        struct span word = span_next(&form, ' ');
        char *out = c->text[c->argc];

        if (word.len != 1 || strchr("shlzKfvidxtc", word.ptr[0]) == NULL) {
            (void)snprintf(out, WORD_MAX, "%.*s", (int)word.len, word.ptr);
        } else if (strchr("shlzK", word.ptr[0]) != NULL) {
            pick_key(word.ptr[0], out);
        } else {
            pick_word(word.ptr[0], out);
        }
        c->argv[c->argc] = out;
        c->len[c->argc] = strlen(out);
        c->spans[c->argc] = span_str(out);
        c->argc++;
    }
}

static const char *show_command(const struct command *c)
{
    static char text[WORDS_MAX * (WORD_MAX + 3)];
    size_t at = 0;

    for (size_t i = 0; i < c->argc; i++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "'%s' ", c->argv[i]);
    }
    return text;
}

static void run(uint64_t seed)
{
    freeReplyObject(redis_ask(redis, "FLUSHALL"));
    keyspace_clear(&keys);
    dice_init(&dice, seed);
    for (unsigned step = 0; step < STEPS; step++) {
        struct command c;
        struct key_reply ours;
        redisReply *real;

        make_command(&c);
        set_clock();
        ours = keyspace_call(&keys, c.argc, c.spans);
        real = redisCommandArgv(redis_side(redis), (int)c.argc, c.argv, c.len);
        ck_assert_ptr_nonnull(real);
        ck_assert_msg(is_same(real, &ours),
                      "seed %" PRIu64
                      " step %u: %s: Redis: %d %lld %s, here: %d %" PRId64 " %.*s",
                      seed, step, show_command(&c), real->type, real->integer,
                      real->str == NULL ? "" : real->str, ours.type, ours.integer,
                      (int)ours.text.len, ours.text.len == 0 ? "" : ours.text.ptr);
        freeReplyObject(real);
    }
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 60);

START_TEST(each_command_answers_as_redis_does)
{
    const char *only = getenv("SEED");
    const char *runs = getenv("RUNS");
    uint64_t count = runs == NULL ? RUNS : strtoull(runs, NULL, 10);

    if (only != NULL) {
        run(strtoull(only, NULL, 10));
        return;
    }
    for (uint64_t seed = 1; seed <= count; seed++) {
        run(seed);
    }
}

START_TEST(a_key_is_over_when_redis_says_so)
{
    static const struct span SET[] = { SPAN("SET"), SPAN("k"), SPAN("v"), SPAN("PX"),
                                       SPAN("50") };
    static const struct span PTTL[] = { SPAN("PTTL"), SPAN("k") };

    keys.now_ms = 1000;
    (void)keyspace_call(&keys, 5, SET);
    keys.now_ms = 1050; /* Redis: over is what is past */
    ck_assert_int_eq(keyspace_call(&keys, 2, PTTL).integer, 0);
    keys.now_ms = 1051;
    ck_assert_int_eq(keyspace_call(&keys, 2, PTTL).integer, -2);
}

/* --- Lua ------------------------------------------------------------------ */

/* KEYS: `h`, `s`. ARGV: `one`, `2`, ``. */
static const char *const SCRIPTS[] = {
    "return 1",
    "return 3.99",
    "return -3.99",
    "return 'text'",
    "return ''",
    "return true",
    "return false",
    "return nil",
    "return { 1, 'two', 3.5, { 'nested', { 4 } }, false, true }",
    "return { 1, nil, 3 }",
    "return {}",
    "return { err = 'MINE went wrong' }",
    "return { ok = 'FINE' }",
    "return { 1, { ok = 'A' }, { err = 'B' } }",
    "return redis.error_reply('MINE too')",
    "return { #KEYS, #ARGV, KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3] }",
    "return { type(KEYS[3]), type(ARGV[4]), ARGV[2] + 1, ARGV[2] .. 1 }",
    "return redis.call('SET', KEYS[2], 1700000000000123)",
    "redis.call('SET', KEYS[2], 1700000000000123) return redis.call('GET', KEYS[2])",
    "redis.call('SET', KEYS[2], 2 ^ 53) return redis.call('GET', KEYS[2])",
    "redis.call('SET', KEYS[2], -5) return redis.call('GET', KEYS[2])",
    "redis.call('SET', KEYS[2], 0.5) return redis.call('GET', KEYS[2])",
    "redis.call('SET', KEYS[2], 1e15) return redis.call('GET', KEYS[2])",
    "redis.call('DEL', KEYS[2]) return { type(redis.call('GET', KEYS[2])) }",
    "redis.call('SET', KEYS[2], 'x') return redis.pcall('HGET', KEYS[2], 'f').err ~= "
    "nil",
    "redis.call('SET', KEYS[2], 'x') return redis.call('HGET', KEYS[2], 'f')",
    "redis.call('SET', KEYS[2], 'x') redis.call('DEL', KEYS[1]) "
    "local ran, state = pcall(redis.call, 'HGET', KEYS[2], 'f') "
    "local err = type(state) == 'table' and state.err or state "
    "return { ran, string.find(err, 'WRONGTYPE', 1, true) ~= nil }",
    "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'a', '1', 'b', 2) "
    "return { redis.call('HGETALL', KEYS[1]), redis.call('HMGET', KEYS[1], 'a', 'x') }",
    "return redis.call('HSCAN', KEYS[1], '0', 'COUNT', 10)",
    "return redis.call('HINCRBY', KEYS[1], 'a', 1)",
    "return redis.call('TYPE', KEYS[1])",
    "return redis.call('TYPE', KEYS[1]).ok",
    "return redis.call('SET', KEYS[2], '1', 'NX')",
    "return { type(redis.call('TIME')[1]), type(redis.call('TIME')[2]) }",
    "return { string.format('%.0f', 1700000000000123), 1700000000000123 .. '' }",
    "return { tonumber('12'), tonumber('1e3'), tonumber('0x10'), tonumber(' 7 ') }",
    "return { tostring(tonumber('')), tostring(tonumber('x')), tonumber('10', 2) }",
    "return { tostring(tonumber(nil)), tostring(tonumber(false)), tonumber(5) }",
    "return string.format('%.0f', tonumber('9007199254740992'))",
    "return string.format('%.0f', tonumber('999999999999999'))",
    "return string.format('%016.0f', tonumber('0000000000000042'))",
    "return { unpack({ 1, 2, 3 }, 2, 3) }",
    "return { string.match('17 fabc rest', '^(%d+) (%S*)(.*)$') }",
    "return redis.call('NONSENSE')",
    "return redis.pcall('NONSENSE').err ~= nil",
    "return math.huge > 1 and { math.floor(2.7), math.max(1, 2), math.min(1, 2) }",
};

static bool is_same_reply(const redisReply *a, const redisReply *b)
{
    if (a->type != b->type) {
        return false;
    }
    if (a->type == REDIS_REPLY_INTEGER) {
        return a->integer == b->integer;
    }
    if (a->type == REDIS_REPLY_ERROR) {
        return same_error(span_of(a->str, a->len), span_of(b->str, b->len));
    }
    if (a->type != REDIS_REPLY_ARRAY) {
        return span_eq(span_of(a->str, a->len), span_of(b->str, b->len));
    }
    for (size_t i = 0; i < a->elements && a->elements == b->elements; i++) {
        if (!is_same_reply(a->element[i], b->element[i])) {
            return false;
        }
    }
    return a->elements == b->elements;
}

START_TEST(each_script_returns_what_it_does_in_redis, TEST_ROWS(SCRIPTS))
{
    static const char *const WORDS[] = { "h", "s", "one", "2", "", NULL };
    const char *script = SCRIPTS[_i];
    redisReply *real = redis_ask(redis, "EVAL %s 2 h s one 2 %s", script, "");
    redisReply *ours;

    set_clock();
    ours = lua_host_eval(&keys, script, 2, WORDS);
    ck_assert_msg(is_same_reply(real, ours), "%s: Redis: %d %lld %s, here: %d %lld %s",
                  script, real->type, real->integer, real->str == NULL ? "" : real->str,
                  ours->type, ours->integer, ours->str == NULL ? "" : ours->str);
    freeReplyObject(real);
    free(ours);
}
