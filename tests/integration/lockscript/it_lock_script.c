/* Scripts that are read as lock operations, on a real Redis: in every state, the
 * operation leaves the same keys as the script, and replies the same. */
#include "lock_call_run.h"
#include "lock_script_words.h"
#include "lockscript/lock_script.h"
#include "support/runner.h"
#include "unit/lockscript/lock_script_cases.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RANDOM_SCRIPTS = 12000,
    RANDOM_TRIED_MIN = 100, /* that are operations: the words are too wild otherwise */
    LONG_MS = 1000000000,
    EVAL_ARGS_MAX = 3 + SEEN_KEYS_MAX + 4,
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

static const struct span KEYS[SEEN_KEYS_MAX] = { SPAN("a"), SPAN("b"), SPAN("c") };
static struct test_redis *redis;

static void setup(void)
{
    redis = redis_start();
}

static void teardown(void)
{
    redis_stop(redis);
}

/* A script and a call of it. */
struct trial {
    struct span text;
    struct span argv[4];
    size_t arg_count;
    size_t key_count;
    struct lock_call call;
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

static void eval_script(const struct trial *t, struct seen_reply *ret)
{
    const char *words[EVAL_ARGS_MAX] = { "EVAL", t->text.ptr };
    size_t lens[EVAL_ARGS_MAX] = { 4, t->text.len };
    char count[8];
    size_t n = 3;
    redisReply *reply;

    lens[2] = (size_t)snprintf(count, sizeof(count), "%zu", t->key_count);
    words[2] = count;
    for (size_t i = 0; i < t->key_count; i++, n++) {
        words[n] = KEYS[i].ptr;
        lens[n] = KEYS[i].len;
    }
    for (size_t i = 0; i < t->arg_count; i++, n++) {
        words[n] = t->argv[i].ptr;
        lens[n] = t->argv[i].len;
    }
    reply = redisCommandArgv(redis_side(redis), (int)n, words, lens);
    ck_assert_ptr_nonnull(reply);
    seen_reply_read(reply, ret);
    freeReplyObject(reply);
}

static void try_world(const struct trial *t, unsigned world)
{
    struct seen script, operation;
    char said[400], done[400];

    set_keys(t, world);
    eval_script(t, &script.reply);
    seen_keys_read(redis, KEYS, t->key_count, &script);
    set_keys(t, world);
    lock_call_run(redis, &t->call, &operation.reply);
    seen_keys_read(redis, KEYS, t->key_count, &operation);
    seen_print(&script, t->key_count, said, sizeof(said));
    seen_print(&operation, t->key_count, done, sizeof(done));
    ck_assert_msg(seen_is_equal(&script, &operation, t->key_count),
                  "%.*s\nstate %u of %zu keys\nthe script: %s\n%s: %s",
                  (int)t->text.len, t->text.ptr, world, t->key_count, said,
                  lock_call_kind_name(t->call.kind), done);
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
    return true;
}

START_TEST(scripts_of_lock_libraries_do_what_the_operation_does)
{
    const struct script_case *c = &CASES[_i];
    struct trial t = { .text = span_str(c->text) };
    struct lock_script_error error;
    struct lock_script *script = lock_script_parse(t.text, &error);
    bool tried = false;

    ck_assert_ptr_nonnull(script);
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
    for (unsigned i = 0; script != NULL && i < 2; i++) {
        memcpy(t.argv, ARGV[i], sizeof(t.argv));
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

Suite *test_suite(void)
{
    Suite *s = suite_create("lock_script_redis");
    TCase *tc = tcase_create("lock_script_redis");

    tcase_add_unchecked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_loop_test(tc, scripts_of_lock_libraries_do_what_the_operation_does, 0,
                        (int)(sizeof(CASES) / sizeof(CASES[0])));
    tcase_add_test(tc, whatever_is_accepted_does_what_the_operation_does);
    suite_add_tcase(s, tc);
    return s;
}
