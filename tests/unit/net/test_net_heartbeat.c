/* Connections that have to say something every so often. The time is the test's. */
#include "support/net.h"
#include "support/runner.h"
#include "util/clock.h"

#include <unistd.h>

enum { EVERY = 200, SWEEP = 50 };

static uint64_t now_ms;
static int fd;

static void sweep_for(uint64_t ms)
{
    for (uint64_t end = now_ms + ms; now_ms < end;) {
        now_ms += SWEEP;
        net_sweep_heartbeats(net, now_ms);
    }
}

static void open_with_heartbeat(void)
{
    net_fixture_open();
    fd = client(0);
    now_ms = clock_boot_ms() + 1;
    seen.heartbeat = EVERY;
    net_set_heartbeat(net, seen.last, EVERY);
    ck_assert_uint_ge(net_next_sweep(net), now_ms);
    ck_assert_uint_ne(net_next_sweep(net), UINT64_MAX);
}

TEST_GROUP(.setup = open_with_heartbeat, .teardown = net_fixture_close);

START_TEST(who_is_silent_for_too_long_is_closed)
{
    struct net_stats stats;

    sweep_for(EVERY);
    ck_assert_int_eq(seen.closed, 0);
    sweep_for(3 * SWEEP);
    ck_assert_int_eq(seen.closed, 1);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.silent, 1);
    ck_assert_uint_eq(net_next_sweep(net), UINT64_MAX);
    expect_end(fd);
}

/* A word in time may be in its socket still. */
START_TEST(a_time_that_is_over_counts_only_after_another_read)
{
    net_sweep_heartbeats(net, now_ms + EVERY - SWEEP - 10);
    net_sweep_heartbeats(net, now_ms + EVERY + SWEEP);
    ck_assert_int_eq(seen.closed, 0);
    net_sweep_heartbeats(net, now_ms + EVERY + 2 * SWEEP);
    ck_assert_int_eq(seen.closed, 1);
    expect_end(fd);
}

START_TEST(who_holds_nothing_any_more_may_be_silent)
{
    seen.heartbeat = 0;
    sweep_for(5 * EVERY);
    ck_assert_int_eq(seen.closed, 0);
    ck_assert_uint_eq(net_next_sweep(net), UINT64_MAX);
    (void)close(fd);
}

START_TEST(the_shortest_one_counts_until_its_hold_is_gone)
{
    net_set_heartbeat(net, seen.last, 3 * EVERY);
    seen.heartbeat = 3 * EVERY; /* the other one is gone */
    sweep_for(2 * EVERY);
    ck_assert_int_eq(seen.closed, 0);
    sweep_for(2 * EVERY);
    ck_assert_int_eq(seen.closed, 1);
    expect_end(fd);
}

START_TEST(after_a_stall_all_begin_anew)
{
    now_ms += 50 * EVERY;
    net_sweep_heartbeats(net, now_ms);
    sweep_for(EVERY);
    ck_assert_int_eq(seen.closed, 0);
    sweep_for(3 * SWEEP);
    ck_assert_int_eq(seen.closed, 1);
    expect_end(fd);
}

START_TEST(its_time_stands_still_while_it_waits)
{
    raw_send(fd, "WAIT\r\n");
    wait_count(&seen.requests, 1);
    sweep_for(5 * EVERY);
    ck_assert_int_eq(seen.closed, 0);
    go(seen.last);
    expect(fd, "+GO\r\n");
    sweep_for(EVERY);
    ck_assert_int_eq(seen.closed, 0);
    sweep_for(3 * SWEEP);
    ck_assert_int_eq(seen.closed, 1);
    expect_end(fd);
}
