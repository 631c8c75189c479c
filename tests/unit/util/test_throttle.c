#include "support/runner.h"
#include "util/throttle.h"

#include <stdio.h>

enum { BURST = 100, PER_SECOND = 20, KEYS_MAX = 500 };

static struct throttle *throttle;

static void setup(void)
{
    static const struct throttle_limits LIMITS = { BURST, PER_SECOND, KEYS_MAX };

    throttle = throttle_new(&LIMITS);
}

static void teardown(void)
{
    throttle_free(throttle);
}

#define HERE SPAN("here")
#define THERE SPAN("there")

static int takes_until_refused(struct span key, uint64_t now_ms)
{
    int count = 0;

    while (throttle_allows(throttle, key, now_ms)) {
        throttle_take(throttle, key, now_ms);
        count++;
    }
    return count;
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(a_key_has_its_burst_and_then_its_rate)
{
    ck_assert_int_eq(takes_until_refused(HERE, 1000), BURST);
    ck_assert(!throttle_allows(throttle, HERE, 1000));
    ck_assert(throttle_allows(throttle, THERE, 1000));
    ck_assert_int_eq(takes_until_refused(HERE, 2000), PER_SECOND);
    ck_assert_int_eq(takes_until_refused(HERE, 1000000), BURST);
}

START_TEST(who_does_not_take_is_never_refused)
{
    for (int i = 0; i < 10 * BURST; i++) {
        ck_assert(throttle_allows(throttle, HERE, 1000));
    }
    ck_assert_uint_eq(throttle_count(throttle), 0);
}

START_TEST(many_keys_cost_bounded_memory_and_are_forgotten)
{
    char key[32];

    for (int i = 0; i < KEYS_MAX + 1000; i++) {
        (void)snprintf(key, sizeof(key), "a%d", i);
        throttle_take(throttle, span_str(key), 1000);
        ck_assert_uint_le(throttle_count(throttle), KEYS_MAX);
    }
    /* Those that are too many share one bucket, and it is empty by now. */
    ck_assert(!throttle_allows(throttle, HERE, 1000));
    throttle_take(throttle, HERE, 100000);
    ck_assert_uint_eq(throttle_count(throttle), 1);
    ck_assert(throttle_allows(throttle, THERE, 100000));
}
