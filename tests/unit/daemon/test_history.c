#include "daemon/web.h"
#include "support/runner.h"

static struct history history;
static struct histogram wait_h, redis_h;
static struct history_sample sample;

static void setup(void)
{
    history = (struct history){ 0 };
    wait_h = redis_h = (struct histogram){ 0 };
    sample = (struct history_sample){ .wait = &wait_h, .redis = &redis_h };
    history_start(&history, 1000, &sample);
}

static void step(uint64_t now_ms)
{
    history_add(&history, now_ms, &sample);
}

TEST_GROUP(.setup = setup);

START_TEST(counters_are_told_by_the_step_and_the_rest_as_it_is)
{
    ck_assert_uint_eq(history.next_ms, 3000);
    sample.grants = 10;
    sample.held = 4;
    step(3000);
    sample.grants = 25;
    sample.held = 3;
    step(5001);
    ck_assert_uint_eq(history.count, 2);
    ck_assert_uint_eq(history.next_ms, 7000);
    ck_assert_uint_eq(history_at(&history, HISTORY_GRANTS, 0), 10);
    ck_assert_uint_eq(history_at(&history, HISTORY_GRANTS, 1), 15);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 0), 4);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 1), 3);
}

START_TEST(quantiles_are_of_that_step_only)
{
    histogram_add(&wait_h, 1 << 20);
    step(3000);
    for (int i = 0; i < 1000; i++) {
        histogram_add(&wait_h, 64);
    }
    step(5000);
    step(7000);
    ck_assert_uint_eq(history_at(&history, HISTORY_WAIT_US, 0), 1 << 20);
    ck_assert_uint_eq(history_at(&history, HISTORY_WAIT_US, 1), 64);
    ck_assert_uint_eq(history_at(&history, HISTORY_WAIT_US, 2), 0);
}

START_TEST(steps_that_nobody_saw_are_gaps)
{
    sample.held = 1;
    step(3000);
    step(9100);
    ck_assert_uint_eq(history.count, 4);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 1), HISTORY_NONE);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 2), HISTORY_NONE);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 3), 1);
    ck_assert_uint_eq(history.next_ms, 11000);
    step(UINT64_C(1) << 50);
    ck_assert_uint_eq(history.count, HISTORY_POINTS);
    ck_assert_uint_gt(history.next_ms, UINT64_C(1) << 50);
}

START_TEST(the_oldest_points_make_room)
{
    for (unsigned i = 0; i < HISTORY_POINTS + 7; i++) {
        sample.held = i;
        step(history.next_ms);
    }
    ck_assert_uint_eq(history.count, HISTORY_POINTS);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, 0), 7);
    ck_assert_uint_eq(history_at(&history, HISTORY_HELD, HISTORY_POINTS - 1),
                      HISTORY_POINTS + 6);
}
