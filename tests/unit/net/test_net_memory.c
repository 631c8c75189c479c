/* The memory of all connections together: beyond the limit, the largest goes. */
#include "support/net.h"
#include "support/runner.h"

#include <string.h>
#include <unistd.h>

enum { KERNEL = 1 << 20 }; /* more than it takes in for a unix socket */

static struct net_stats stats;

static void limit(size_t bytes)
{
    struct net_limits limits = LIMITS;

    limits.output_buffer = limits.query_buffer = 64 << 20;
    limits.memory = bytes;
    net_set_limits(net, &limits);
}

static int comes_in(uint64_t *ret_id, const char *say)
{
    int before = seen.requests;
    int fd = client(1);

    *ret_id = seen.last;
    raw_send(fd, say);
    wait_count(&seen.requests, before + 1);
    return fd;
}

TEST_GROUP(.setup = net_fixture_open, .teardown = net_fixture_close, .timeout_s = 20);

START_TEST(who_does_not_read_most_goes_first)
{
    uint64_t ids[3];
    int fds[3], good;

    limit(10 << 20);
    good = client(1);
    fds[0] = comes_in(&ids[0], "BIG 4000000\r\n");
    fds[1] = comes_in(&ids[1], "BIG 6000000\r\n");
    ck_assert_uint_gt(conn_memory(net_find(net, ids[1])), 6000000 - KERNEL);
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    fds[2] = comes_in(&ids[2], "BIG 3000000\r\n");
    wait_count(&seen.closed, 1);
    ck_assert_ptr_nonnull(net_find(net, ids[0]));
    ck_assert_ptr_null(net_find(net, ids[1]));
    ck_assert_ptr_nonnull(net_find(net, ids[2]));
    ck_assert_int_eq(seen.unread, 1);
    raw_send(good, "PING\r\n");
    expect(good, "+PONG\r\n");
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.evicted, 1);
    for (int i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
    (void)close(good);
}

START_TEST(what_was_read_counts_no_more)
{
    char trash[65536];
    uint64_t ids[2];
    size_t got = 0;
    int fds[2];

    limit(6 << 20);
    fds[0] = comes_in(&ids[0], "BIG 4000000\r\n");
    while (got < 4000000) {
        loop_until(&loop, is_readable, &fds[0]);
        got += (size_t)read(fds[0], trash, sizeof(trash));
    }
    fds[1] = comes_in(&ids[1], "BIG 5000000\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

START_TEST(input_and_what_the_handler_keeps_count)
{
    char more[50000];
    uint64_t ids[3];
    int fds[3];

    memset(more, 'x', sizeof(more));
    limit(300000);
    fds[0] = comes_in(&ids[0], "WAIT\r\n");
    fds[1] = comes_in(&ids[1], "PING\r\n");
    fds[2] = comes_in(&ids[2], "WAIT\r\n");
    ck_assert_int_eq(write(fds[0], more, sizeof(more)), sizeof(more));
    ck_assert_int_eq(write(fds[2], more, sizeof(more)), sizeof(more));
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    ck_assert_uint_ge(conn_memory(net_find(net, ids[0])), sizeof(more));
    seen.keeper = ids[1];
    seen.kept = 290000;
    raw_send(fds[1], "PING\r\n");
    wait_count(&seen.closed, 1);
    ck_assert_ptr_null(net_find(net, ids[1]));
    for (int i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
}

static int spared_comes_in(uint64_t *ret_id, const char *say)
{
    int fd = comes_in(ret_id, "STAY\r\n");
    int before = seen.requests;

    raw_send(fd, say);
    wait_count(&seen.requests, before + 1);
    return fd;
}

START_TEST(others_do_not_pay_for_who_is_spared)
{
    uint64_t ids[2];
    int fds[2];

    limit(6 << 20);
    fds[0] = spared_comes_in(&ids[0], "BIG 8000000\r\n");
    fds[1] = comes_in(&ids[1], "BIG 4000000\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

START_TEST(who_is_spared_stays_and_without_a_limit_all_do)
{
    uint64_t ids[2];
    int fds[2];

    limit(6 << 20);
    fds[0] = spared_comes_in(&ids[0], "BIG 8000000\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    limit(0);
    fds[1] = comes_in(&ids[1], "BIG 9000000\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    limit(8 << 20); /* counts what is there already */
    wait_count(&seen.closed, 1);
    ck_assert_ptr_nonnull(net_find(net, ids[0]));
    (void)close(fds[0]);
    (void)close(fds[1]);
}
