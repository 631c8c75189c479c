/* Scripts that are read as lock operations, on a real Redis: in every state, the
 * operation leaves the same keys as the script, and replies the same. So does latchd,
 * over the wire, when it is sent the script. */
#include "lock_call_run.h"
#include "lock_script_words.h"
#include "lockscript/lock_plan.h"
#include "support/daemon.h"
#include "support/runner.h"
#include "unit/lockscript/lock_script_cases.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    RANDOM_SCRIPTS = 12000,
    RANDOM_TRIED_MIN = 100, /* that are operations: the words are too wild otherwise */
    LONG_MS = 1000000000,
    EVAL_ARGS_MAX = 3 + SEEN_KEYS_MAX + 4,
    NAME_ROOM = 24,
    WIRE_KEYS_MAX = 2,    /* of scripts that are sent to latchd */
    PAIRS = 3,            /* states of two keys of which one is tried there */
    TEXTS_OF_A_USER = 90, /* scripts that one user sends: each may bring so many */
};

/* How a key is before the script runs. */
enum key_before {
    BEFORE_FREE,
    BEFORE_MINE,
    BEFORE_MINE_ENDLESS,
    BEFORE_OTHERS,
    BEFORE_OTHERS_ENDLESS,
    BEFORE_SAME_PREFIX,
    BEFORE_EMPTY,
    BEFORE_HASH,
    BEFORE_STATES,
};

/* How a lock is before latchd is sent the script: as above, or else. */
enum lock_before {
    LOCK_BEFORE_TAKEN = BEFORE_HASH, /* by LOCK */
    LOCK_BEFORE_STRAIGHT,            /* as a string at the Redis behind latchd */
    LOCK_BEFORE_STRAIGHT_ENDLESS,
    LOCK_BEFORE_STATES,
};

static const struct span KEYS[SEEN_KEYS_MAX] = { SPAN("a"), SPAN("b"), SPAN("c") };
static struct test_redis *redis;
/* A latchd, the Redis behind it, and a connection. */
static struct test_redis *backing;
static struct test_daemon *latchd;
static redisContext *wire;
static int texts_sent;

static void setup(void)
{
    redis = redis_start();
    backing = redis_start();
    latchd = daemon_start(redis_path(backing), "--max-lease", "30d", NULL);
    wire = redisConnectUnix(daemon_unix_path(latchd));
    ck_assert(wire != NULL && wire->err == 0);
}

static void teardown(void)
{
    redisFree(wire);
    daemon_stop(latchd);
    redis_stop(backing);
    redis_stop(redis);
}

/* A script and a call of it. */
struct trial {
    struct span text;
    struct span argv[4];
    size_t arg_count;
    size_t key_count;
    struct lock_call call;
    bool seen; /* latchd need not be asked again */
};

static void set_key(struct span key, enum key_before before, struct span value)
{
    const char *k = key.ptr;
    bool ends = before != BEFORE_MINE_ENDLESS && before != BEFORE_OTHERS_ENDLESS &&
                before != BEFORE_EMPTY;

    freeReplyObject(redis_ask(redis, "DEL %s", k));
    switch (before) {
    case BEFORE_MINE:
    case BEFORE_MINE_ENDLESS:
        freeReplyObject(redis_ask(redis, "SET %s %b", k, value.ptr, value.len));
        break;
    case BEFORE_SAME_PREFIX:
        freeReplyObject(redis_ask(redis, "SET %s %bz", k, value.ptr, value.len));
        break;
    case BEFORE_HASH:
        freeReplyObject(redis_ask(redis, "HSET %s f v", k));
        break;
    case BEFORE_EMPTY:
        freeReplyObject(redis_ask(redis, "SET %s %b", k, "", (size_t)0));
        break;
    case BEFORE_OTHERS:
    case BEFORE_OTHERS_ENDLESS:
        freeReplyObject(redis_ask(redis, "SET %s other's", k));
        break;
    default:
        return;
    }
    if (ends) {
        freeReplyObject(redis_ask(redis, "PEXPIRE %s %d", k, LONG_MS));
    }
}

/* State number `world` of all that the keys can be in together. */
static void set_keys(const struct trial *t, unsigned world)
{
    /* Any value does where the script has none. */
    struct span value = t->call.value.ptr == NULL ? SPAN("v") : t->call.value;

    for (size_t i = 0; i < t->key_count; i++) {
        set_key(KEYS[i], (enum key_before)(world % BEFORE_STATES), value);
        world /= BEFORE_STATES;
    }
}

static void eval_script(redisContext *link, const struct trial *t,
                        const struct span *keys, struct seen_reply *ret)
{
    const char *words[EVAL_ARGS_MAX] = { "EVAL", t->text.ptr };
    size_t lens[EVAL_ARGS_MAX] = { 4, t->text.len };
    char count[8];
    size_t n = 3;
    redisReply *reply;

    lens[2] = (size_t)snprintf(count, sizeof(count), "%zu", t->key_count);
    words[2] = count;
    for (size_t i = 0; i < t->key_count; i++, n++) {
        words[n] = keys[i].ptr;
        lens[n] = keys[i].len;
    }
    for (size_t i = 0; i < t->arg_count; i++, n++) {
        words[n] = t->argv[i].ptr;
        lens[n] = t->argv[i].len;
    }
    reply = redisCommandArgv(link, (int)n, words, lens);
    ck_assert_ptr_nonnull(reply);
    seen_reply_read(reply, ret);
    freeReplyObject(reply);
}

static void try_world(const struct trial *t, unsigned world)
{
    struct seen script, operation;
    char said[400], done[400];

    set_keys(t, world);
    eval_script(redis_side(redis), t, KEYS, &script.reply);
    seen_keys_read(redis_side(redis), KEYS, t->key_count, &script);
    set_keys(t, world);
    lock_call_run(redis, &t->call, &operation.reply);
    seen_keys_read(redis_side(redis), KEYS, t->key_count, &operation);
    seen_print(&script, t->key_count, said, sizeof(said));
    seen_print(&operation, t->key_count, done, sizeof(done));
    ck_assert_msg(seen_is_equal(&script, &operation, t->key_count),
                  "%.*s\nstate %u of %zu keys\nthe script: %s\n%s: %s",
                  (int)t->text.len, t->text.ptr, world, t->key_count, said,
                  lock_call_kind_name(t->call.kind), done);
}

/* --- latchd ----------------------------------------------------------------- */

static void do_at(redisContext *link, const char *fmt, ...)
{
    redisReply *reply;
    va_list ap;

    va_start(ap, fmt);
    reply = redisvCommand(link, fmt, ap);
    va_end(ap);
    ck_assert_msg(reply != NULL && reply->type != REDIS_REPLY_ERROR &&
                      reply->type != REDIS_REPLY_NIL,
                  "%s: %s", fmt, reply == NULL ? "no reply" : reply->str);
    freeReplyObject(reply);
}

/* Another user now and then, as each may bring only so many new scripts at a time. */
static void count_text(void)
{
    if (texts_sent++ % TEXTS_OF_A_USER == 0) {
        int user = texts_sent / TEXTS_OF_A_USER;

        do_at(wire, "ACL SETUSER user%d.%d on nopass ~* &* +@all", getpid(), user);
        do_at(wire, "AUTH user%d.%d any", getpid(), user);
    }
}

/* Takes a lock, and sets the same key at the Redis with which latchd is compared. */
static void take_lock(const char *name, int before, struct span value)
{
    redisReply *token;
    char text[40];

    switch (before) {
    case BEFORE_FREE:
        return;
    case LOCK_BEFORE_TAKEN:
        token = redisCommand(wire, "LOCK %s WAIT 0 LEASE %d", name, LONG_MS);
        ck_assert_int_eq(token->type, REDIS_REPLY_INTEGER);
        (void)snprintf(text, sizeof(text), "latchd:held:%lld", token->integer);
        freeReplyObject(token);
        do_at(redis_side(redis), "SET %s %s PX %d", name, text, LONG_MS);
        return;
    case LOCK_BEFORE_STRAIGHT:
        do_at(redis_side(redis), "SET %s straight PX %d", name, LONG_MS);
        do_at(redis_side(backing), "SET %s straight PX %d", name, LONG_MS);
        return;
    case LOCK_BEFORE_STRAIGHT_ENDLESS:
        do_at(redis_side(redis), "SET %s straight", name);
        do_at(redis_side(backing), "SET %s straight", name);
        return;
    default:
        break;
    }
    set_key(span_str(name), (enum key_before)before, value);
    {
        redisReply *set = redisCommand(redis_side(redis), "GET %s", name);
        bool ends = redis_ask_int(redis, "PTTL %s", name) > 0;

        if (ends) {
            do_at(wire, "SET %s %b NX PX %d", name, set->str, set->len, LONG_MS);
        } else {
            do_at(wire, "SET %s %b NX", name, set->str, set->len);
        }
        freeReplyObject(set);
    }
}

/* latchd lets nobody change these who does not compare. */
static bool is_out_of_reach(const struct trial *t, int before)
{
    bool changes = !lock_call_is_query(t->call.kind) && !lock_call_takes(t->call.kind);

    return before >= LOCK_BEFORE_TAKEN && changes &&
           t->call.compare == LOCK_COMPARE_NONE;
}

/* The keys are as before, or each that could be changed was counted; and no reply says
 * that anything was done that was not. */
static bool is_left_alone(const struct trial *t, const struct seen *s,
                          const int *before)
{
    int64_t reached = 0;

    for (size_t i = 0; i < t->key_count; i++) {
        bool here = before[i] != BEFORE_FREE;

        reached += here && !is_out_of_reach(t, before[i]);
        if (is_out_of_reach(t, before[i]) &&
            strncmp(s->keys[i].text, "string", 6) != 0) {
            return false;
        }
    }
    return t->call.scope == LOCK_CALL_EACH_KEY
               ? s->reply.kind == ':' && s->reply.integer == reached
               : strncmp(s->reply.text, "ERR nothing was done", 20) == 0;
}

/* A lock keeps its value if only the beginning is compared. */
static void keep_values(const struct trial *t, const int *before, struct seen *expected)
{
    for (size_t i = 0; i < t->key_count; i++) {
        struct seen_key *k = &expected->keys[i];

        if (t->call.compare == LOCK_COMPARE_PREFIX && before[i] == BEFORE_SAME_PREFIX &&
            strcmp(k->text, "none") != 0) {
            (void)snprintf(k->text, sizeof(k->text), "string %.*sz",
                           (int)t->call.value.len, t->call.value.ptr);
        }
    }
}

/* Redis says OK to a lock whose end is past, and keeps nothing. latchd says no. */
static bool is_over(const struct trial *t)
{
    return lock_call_takes(t->call.kind) && t->call.end == LOCK_END_AT;
}

/* Whether the replies and the keys are those of Redis, or latchd says that it cannot.
 */
static bool is_true(const struct trial *t, const struct seen *expected,
                    const struct seen *said, const int *before)
{
    bool out_of_reach = false;

    for (size_t i = 0; i < t->key_count; i++) {
        out_of_reach = out_of_reach || is_out_of_reach(t, before[i]);
    }
    if (t->key_count > 1 && t->call.kind == LOCK_CALL_ACQUIRE_OR_EXTEND) {
        return strncmp(said->reply.text, "ERR so many keys", 16) == 0;
    }
    return seen_is_equal(expected, said, t->key_count) ||
           (out_of_reach && is_left_alone(t, said, before));
}

/* Sends the script for locks in these states; with `twice` each key is the first. */
static void try_at_latchd(const struct trial *t, const int *before, bool twice)
{
    static unsigned number;
    struct span value = t->call.value.ptr == NULL ? SPAN("v") : t->call.value;
    char names[WIRE_KEYS_MAX][NAME_ROOM], wanted[400], got[400];
    struct span keys[WIRE_KEYS_MAX];
    struct seen expected, said;

    for (size_t i = 0; i < t->key_count; i++) {
        if (i == 0 || !twice) {
            (void)snprintf(names[i], NAME_ROOM, "k%d.%u", getpid(), number++);
            take_lock(names[i], before[i], value);
        }
        keys[i] = span_str(names[twice ? 0 : i]);
    }
    eval_script(redis_side(redis), t, keys, &expected.reply);
    seen_keys_read(redis_side(redis), keys, t->key_count, &expected);
    keep_values(t, before, &expected);
    eval_script(wire, t, keys, &said.reply);
    seen_keys_read(wire, keys, t->key_count, &said);
    seen_print(&expected, t->key_count, wanted, sizeof(wanted));
    seen_print(&said, t->key_count, got, sizeof(got));
    ck_assert_msg(is_true(t, &expected, &said, before),
                  "%.*s\nstates %d %d of %zu keys\nRedis: %s\nlatchd (%s): %s",
                  (int)t->text.len, t->text.ptr, before[0], before[1], t->key_count,
                  wanted, lock_call_kind_name(t->call.kind), got);
}

/* All states of one key; of the pairs of two keys each script gets other ones. */
static void try_all_at_latchd(const struct trial *t)
{
    static int turn;

    if (t->key_count > WIRE_KEYS_MAX || is_over(t)) {
        return;
    }
    turn++;
    for (int a = 0; a < LOCK_BEFORE_STATES; a++) {
        for (int b = 0; b < (t->key_count > 1 ? LOCK_BEFORE_STATES : 1); b++) {
            int before[WIRE_KEYS_MAX] = { a, b };

            if (t->key_count == 1 || (a * LOCK_BEFORE_STATES + b + turn) % PAIRS == 0) {
                try_at_latchd(t, before, false);
            }
        }
        if (t->key_count > 1) {
            int before[WIRE_KEYS_MAX] = { a, a };

            try_at_latchd(t, before, true);
        }
    }
}

/* Whether one key fewer would do. */
static bool is_last_key_idle(const struct lock_script *script, const struct trial *t)
{
    struct lock_script_error error;
    struct lock_call call;

    return t->key_count > 1 &&
           lock_script_bind(script, KEYS, t->key_count - 1, t->argv, t->arg_count,
                            &call, &error) &&
           call.key_count == t->call.key_count;
}

/* Tries a script in every state, with so many keys. False: it does not take these, or
 * has no use for the last of them. */
static bool try_worlds(const struct lock_script *script, struct trial *t)
{
    struct lock_script_error error;
    unsigned worlds = 1;

    if (!lock_script_bind(script, KEYS, t->key_count, t->argv, t->arg_count, &t->call,
                          &error) ||
        is_last_key_idle(script, t)) {
        return false;
    }
    for (size_t i = 0; i < t->key_count; i++) {
        worlds *= BEFORE_STATES;
    }
    for (unsigned world = 0; world < worlds; world++) {
        try_world(t, world);
    }
    if (!t->seen) {
        try_all_at_latchd(t);
    }
    return true;
}

TEST_GROUP(.setup_once = setup, .teardown_once = teardown, .timeout_s = 240);

START_TEST(scripts_of_lock_libraries_do_what_the_operation_does, TEST_ROWS(CASES))
{
    const struct script_case *c = &CASES[_i];
    struct trial t = { .text = span_str(c->text) };
    struct lock_script_error error;
    struct lock_script *script = lock_script_parse(t.text, &error);
    bool tried = false;

    ck_assert_ptr_nonnull(script);
    count_text();
    while (t.arg_count < ARGS_MAX && c->argv[t.arg_count] != NULL) {
        t.argv[t.arg_count] = span_str(c->argv[t.arg_count]);
        t.arg_count++;
    }
    for (t.key_count = 1; t.key_count <= SEEN_KEYS_MAX; t.key_count++) {
        tried = try_worlds(script, &t) || tried;
    }
    ck_assert(tried);
    lock_script_free(script);
}

/* Tries a script that was put together at random; whether it is an operation. */
static bool try_random(uint64_t seed)
{
    static const struct span ARGV[2][4] = {
        { SPAN("vwxy"), SPAN("30000"), SPAN("x"), SPAN("3") },
        { SPAN("vwxy"), SPAN("30000"), SPAN("y"), SPAN("4") },
    };
    struct lock_script_error error;
    struct lock_script *script;
    struct buf text = { 0 };
    struct trial t = { .arg_count = 4 };
    bool tried = false;

    lock_script_words(seed, &text);
    t.text = buf_span(&text);
    script = lock_script_parse(t.text, &error);
    if (script != NULL) {
        count_text();
    }
    for (unsigned i = 0; script != NULL && i < 2; i++) {
        memcpy(t.argv, ARGV[i], sizeof(t.argv));
        t.seen = i > 0 && script->condition_count == 0 &&
                 script->plans[0].compare != LOCK_COMPARE_PREFIX;
        for (t.key_count = 1; t.key_count <= 2; t.key_count++) {
            tried = try_worlds(script, &t) || tried;
        }
    }
    ck_assert(tried == (script != NULL));
    lock_script_free(script);
    buf_reset(&text);
    return tried;
}

START_TEST(whatever_is_accepted_does_what_the_operation_does)
{
    int tried = 0;

    for (uint64_t seed = 0; seed < RANDOM_SCRIPTS; seed++) {
        tried += try_random(seed);
    }
    (void)printf("# %d of %d scripts are lock operations\n", tried, RANDOM_SCRIPTS);
    ck_assert_int_ge(tried, RANDOM_TRIED_MIN);
}
