#include "unit/cmd/cmd_fake.h"

#include "cmd/slowlog.h"
#include "support/runner.h"

#include <stdio.h>

static struct cmd_limits limits;

static void setup(void)
{
    fake_setup();
    limits =
        (struct cmd_limits){ .max_name = 512, .slowlog_us = -1, .latency_ms = 100 };
    cmd_set_limits(fake.cmd, &limits);
}

/* --- samples -----------------------------------------------------------------------
 */

TEST_GROUP(.setup = setup, .teardown = fake_teardown);

START_TEST(a_second_has_one_sample_its_worst)
{
    static struct latency_series s;

    latency_add(&s, 10, 200);
    latency_add(&s, 10, 300);
    latency_add(&s, 10, 250);
    latency_add(&s, 12, 100);
    ck_assert_uint_eq(s.count, 2);
    ck_assert_uint_eq(latency_sample(&s, 0)->ms, 300);
    ck_assert_uint_eq(latency_sample(&s, 1)->at_s, 12);
    ck_assert_uint_eq(s.max_ms, 300);
}

START_TEST(the_oldest_samples_give_way)
{
    static struct latency_series s;

    for (uint64_t i = 0; i < 2 * LATENCY_SAMPLES + 3; i++) {
        latency_add(&s, i, 1000 - i);
    }
    ck_assert_uint_eq(s.count, LATENCY_SAMPLES);
    ck_assert_uint_eq(latency_sample(&s, 0)->at_s, LATENCY_SAMPLES + 3);
    ck_assert_uint_eq(latency_sample(&s, LATENCY_SAMPLES - 1)->at_s,
                      2 * LATENCY_SAMPLES + 2);
    ck_assert_uint_eq(s.max_ms, 1000);
}

/* --- commands ----------------------------------------------------------------------
 */

START_TEST(only_what_is_long_is_remembered)
{
    cmd_latency(fake.cmd, LATENCY_REDIS, 99);
    ck_assert_str_eq(fake_run(me, "LATENCY LATEST"), "*0\r\n");
    cmd_latency(fake.cmd, LATENCY_REDIS, 100);
    ck_assert(has(fake_run(me, "LATENCY LATEST"), "*1\r\n*4\r\n$5\r\nredis\r\n:1"));
    ck_assert(has(fake_output(me), "\r\n:100\r\n:100\r\n"));
    ck_assert(has(fake_run(me, "LATENCY HISTORY Redis"), "*1\r\n*2\r\n:1"));
    ck_assert_str_eq(fake_run(me, "LATENCY HISTORY loop"), "*0\r\n");
    ck_assert_str_eq(fake_run(me, "LATENCY HISTORY nonsense"), "*0\r\n");
    limits.latency_ms = 0;
    cmd_set_limits(fake.cmd, &limits);
    cmd_latency(fake.cmd, LATENCY_LOOP, 100000);
    ck_assert_str_eq(fake_run(me, "LATENCY HISTORY loop"), "*0\r\n");
}

START_TEST(reset_says_how_many_events_had_samples)
{
    cmd_latency(fake.cmd, LATENCY_REDIS, 100);
    cmd_latency(fake.cmd, LATENCY_LOOP, 100);
    cmd_latency(fake.cmd, LATENCY_RENEWAL, 100);
    ck_assert_str_eq(fake_run(me, "LATENCY RESET command redis nonsense"), ":1\r\n");
    ck_assert_str_eq(fake_run(me, "LATENCY RESET"), ":2\r\n");
    ck_assert_str_eq(fake_run(me, "LATENCY RESET"), ":0\r\n");
}
