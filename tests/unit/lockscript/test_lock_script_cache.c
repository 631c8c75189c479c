#include "lockscript/lock_script.h"
#include "support/runner.h"

#include <stdio.h>

enum { LONG_MS = 1000000 }; /* every bucket is full again */

static struct lock_script_cache *cache;
static const struct lock_script *script;
static struct lock_script_error error;
static char sha1[SHA1_HEX_LEN + 1];

static void setup(void)
{
    cache = lock_script_cache_new();
}

static void teardown(void)
{
    lock_script_cache_free(cache);
}

static enum lock_script_load load(const char *user, const char *text, uint64_t now_ms)
{
    return lock_script_cache_load(cache, span_str(user), span_str(text), now_ms, sha1,
                                  &script, &error);
}

/* The text number `i` of many that do the same. */
static enum lock_script_load load_nth(const char *user, int i, const char *code,
                                      uint64_t now_ms)
{
    char text[100];

    (void)snprintf(text, sizeof(text), "-- %d\n%s", i, code);
    return load(user, text, now_ms);
}

#define GET "return redis.call('get', KEYS[1])"
#define BAD "return redis.call('incr', KEYS[1])"

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_text_is_found_by_its_sha1)
{
    const struct lock_script *first;

    ck_assert_int_eq(load("ann", GET, 0), LOCK_SCRIPT_LOADED);
    ck_assert_str_eq(sha1, "4e6d8fc8bb01276962cce5371fa795a7763657ae");
    first = script;
    ck_assert_ptr_eq(lock_script_cache_find(cache, span_str(sha1)), first);
    ck_assert_ptr_eq(
        lock_script_cache_find(cache, SPAN("4E6D8FC8BB01276962CCE5371FA795A7763657AE")),
        first);
    ck_assert_int_eq(load("bob", GET, 0), LOCK_SCRIPT_LOADED);
    ck_assert_ptr_eq(script, first);
    ck_assert_uint_eq(lock_script_cache_count(cache), 1);
    ck_assert_ptr_null(lock_script_cache_find(cache, SPAN("4e6d")));

    lock_script_cache_flush(cache);
    ck_assert_ptr_null(lock_script_cache_find(cache, span_str(sha1)));
}

START_TEST(known_scripts_are_there_from_the_start_and_stay)
{
    static const struct span RELEASE = SPAN("c3f8721cbb97f72bc19e972846bd7aaf91901658");

    ck_assert_ptr_nonnull(lock_script_cache_find(cache, RELEASE));
    lock_script_cache_flush(cache);
    ck_assert_ptr_nonnull(lock_script_cache_find(cache, RELEASE));
    ck_assert_uint_eq(lock_script_cache_count(cache), 0);
}

START_TEST(a_text_that_is_refused_is_refused_again_with_the_same_reason)
{
    ck_assert_int_eq(load("ann", BAD, 0), LOCK_SCRIPT_REFUSED);
    ck_assert_str_eq(error.why, "'incr' is no command of lock libraries");
    ck_assert_ptr_null(script);
    ck_assert_ptr_null(lock_script_cache_find(cache, span_str(sha1)));
    error.why[0] = '\0';
    ck_assert_int_eq(load("bob", BAD, 0), LOCK_SCRIPT_REFUSED);
    ck_assert_str_eq(error.why, "'incr' is no command of lock libraries");
    ck_assert_uint_eq(error.line, 1);
    ck_assert_uint_eq(lock_script_cache_failures(cache), 1);
    ck_assert_uint_eq(lock_script_cache_count(cache), 0);
}

START_TEST(the_script_that_was_not_used_for_longest_makes_room)
{
    char first[SHA1_HEX_LEN + 1], second[SHA1_HEX_LEN + 1];
    uint64_t now_ms = 0;

    for (int i = 0; i < LOCK_SCRIPTS_MAX; i++) {
        ck_assert_int_eq(load_nth("ann", i, GET, now_ms += LONG_MS),
                         LOCK_SCRIPT_LOADED);
        memcpy(i == 0 ? first : second, sha1, i < 2 ? sizeof(sha1) : 0);
    }
    ck_assert_uint_eq(lock_script_cache_count(cache), LOCK_SCRIPTS_MAX);
    ck_assert_ptr_nonnull(lock_script_cache_find(cache, span_str(first)));
    ck_assert_int_eq(load_nth("ann", -1, GET, now_ms + LONG_MS), LOCK_SCRIPT_LOADED);
    ck_assert_uint_eq(lock_script_cache_count(cache), LOCK_SCRIPTS_MAX);
    ck_assert_ptr_nonnull(lock_script_cache_find(cache, span_str(first)));
    ck_assert_ptr_null(lock_script_cache_find(cache, span_str(second)));
}

START_TEST(failures_are_bounded_and_displace_no_script)
{
    uint64_t now_ms = 0;

    ck_assert_int_eq(load("ann", GET, 0), LOCK_SCRIPT_LOADED);
    for (int i = 0; i < LOCK_SCRIPT_FAILURES_MAX + 1; i++) {
        ck_assert_int_eq(load_nth("eve", i, BAD, now_ms += LONG_MS),
                         LOCK_SCRIPT_REFUSED);
    }
    ck_assert_uint_eq(lock_script_cache_failures(cache), LOCK_SCRIPT_FAILURES_MAX);
    ck_assert_uint_eq(lock_script_cache_count(cache), 1);
}

START_TEST(a_user_may_bring_so_many_new_texts_and_no_more)
{
    for (int i = 0; i < LOCK_SCRIPT_TEXTS_BURST; i++) {
        ck_assert_int_eq(load_nth("eve", i, i % 2 ? GET : BAD, 5),
                         i % 2 ? LOCK_SCRIPT_LOADED : LOCK_SCRIPT_REFUSED);
    }
    ck_assert_int_eq(load_nth("eve", -1, GET, 5), LOCK_SCRIPT_TOO_MANY);
    /* A text that was read already is not new; others are not held up. */
    ck_assert_int_eq(load_nth("eve", 0, BAD, 5), LOCK_SCRIPT_REFUSED);
    ck_assert_int_eq(load_nth("eve", 1, GET, 5), LOCK_SCRIPT_LOADED);
    ck_assert_int_eq(load_nth("ann", -1, GET, 5), LOCK_SCRIPT_LOADED);
    for (int i = 0; i < LOCK_SCRIPT_TEXTS_PER_SECOND; i++) {
        ck_assert_int_eq(load_nth("eve", -2 - i, GET, 1005), LOCK_SCRIPT_LOADED);
    }
    ck_assert_int_eq(load_nth("eve", -100, GET, 1005), LOCK_SCRIPT_TOO_MANY);
}

/* Those beyond share one rate. */
START_TEST(so_many_users_have_a_rate_of_their_own)
{
    char user[16];

    for (int i = 0; i < LOCK_SCRIPT_USERS_MAX; i++) {
        (void)snprintf(user, sizeof(user), "u%d", i);
        ck_assert_int_eq(load_nth(user, i, GET, 5), LOCK_SCRIPT_LOADED);
    }
    for (int i = 1; i <= LOCK_SCRIPT_TEXTS_BURST; i++) {
        ck_assert_int_eq(load_nth("eve", -i, GET, 5), LOCK_SCRIPT_LOADED);
    }
    ck_assert_int_eq(load_nth("ann", -1000, GET, 5), LOCK_SCRIPT_TOO_MANY);
    ck_assert_int_eq(load_nth("u0", -1000, GET, 5), LOCK_SCRIPT_LOADED);
}
