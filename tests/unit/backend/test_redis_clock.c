#include "backend/redis/redis_link.h"
#include "support/runner.h"

enum { MS = 1000 };

START_TEST(the_middle_of_a_short_trip_is_taken)
{
    struct redis_clock c = { 0 };

    ck_assert(!redis_clock_sample(&c, 1000, 3000, 1002000));
    ck_assert_int_eq(c.offset_us, 1000000);
    ck_assert_uint_eq(c.round_trip_us, 2000);
    ck_assert_uint_eq(redis_clock_at(&c, 5), 1000005);
}

START_TEST(a_long_trip_tells_only_that_it_is_in_between)
{
    struct redis_clock c = { 0 };

    (void)redis_clock_sample(&c, 0, 2 * MS, 1000 * MS + MS);
    /* Redis stood still for 3 s, then read its clock: no jump, and nothing new. */
    ck_assert(!redis_clock_sample(&c, 10000 * MS, 13000 * MS, 14000 * MS));
    ck_assert_int_eq(c.offset_us, 1000 * MS);
    /* Drift: now it must be at least 1010 ms ahead. */
    ck_assert(!redis_clock_sample(&c, 20000 * MS, 20100 * MS, 21110 * MS));
    ck_assert_int_eq(c.offset_us, 1010 * MS);
}

START_TEST(a_jump_is_more_than_half_a_second_in_either_direction)
{
    struct redis_clock c = { 0 };

    (void)redis_clock_sample(&c, 0, 0, 1000 * MS);
    ck_assert(!redis_clock_sample(&c, 0, 0, 1499 * MS));
    ck_assert(redis_clock_sample(&c, 0, 0, 2000 * MS));
    ck_assert_int_eq(c.offset_us, 2000 * MS);
    ck_assert(redis_clock_sample(&c, 0, 0, 1000 * MS));
    ck_assert(redis_clock_sample(&c, 5000 * MS, 5000 * MS, 1000 * MS));
    ck_assert_int_eq(c.offset_us, -4000 * MS);
}

/* Of this server, or of another one that took its place. */
START_TEST(a_clock_that_is_behind_is_told_H17)
{
    struct redis_clock c = { 0 };

    ck_assert_uint_eq(redis_clock_if_behind(&c, 0, 0, 5), 0); /* nothing is known */
    ck_assert(!redis_clock_sample(&c, 1000, 3000, 1002000));
    ck_assert_uint_eq(redis_clock_if_behind(&c, 5000, 9000, 1005000), 0);
    /* Redis read it in time, and the answer took long. */
    ck_assert_uint_eq(redis_clock_if_behind(&c, 5000, 900000, 1005000), 0);
    ck_assert_uint_eq(redis_clock_if_behind(&c, 5000, 9000, 1105000), 0); /* ahead */
    /* Half a second may be an error of ours. */
    ck_assert_uint_eq(redis_clock_if_behind(&c, 905000, 909000, 1405000), 0);
    ck_assert_uint_eq(redis_clock_if_behind(&c, 905000, 909000, 1404999), 1909000);
}

/* The first answer came late to a busy machine, and was read long before. */
START_TEST(a_long_first_trip_is_taken_neither_for_a_jump_nor_for_a_clock_behind)
{
    struct redis_clock c = { 0 };

    ck_assert(!redis_clock_sample(&c, 0, 2000 * MS, 5000 * MS));
    ck_assert_int_eq(c.offset_us, 4000 * MS);
    ck_assert_uint_eq(redis_clock_if_behind(&c, 2000 * MS, 2001 * MS, 5000 * MS), 0);
    ck_assert_uint_eq(redis_clock_if_behind(&c, 2000 * MS, 2001 * MS, 4499 * MS),
                      6001 * MS);
    ck_assert(!redis_clock_sample(&c, 2000 * MS, 2001 * MS, 5000 * MS));
    ck_assert_uint_eq(redis_clock_if_behind(&c, 3000 * MS, 3001 * MS, 5499 * MS),
                      6000 * MS + 500);
}

/* To a Redis that is far away no trip is short. */
START_TEST(what_may_be_wrong_shrinks_with_each_shorter_trip)
{
    struct redis_clock c = { 0 };

    (void)redis_clock_sample(&c, 0, 2000 * MS, 1000 * MS);
    (void)redis_clock_sample(&c, 3000 * MS, 3030 * MS, 3015 * MS);
    ck_assert_int_eq(c.offset_us, 0);
    ck_assert(redis_clock_sample(&c, 4000 * MS, 4030 * MS, 3400 * MS));
}
