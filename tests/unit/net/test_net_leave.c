/* Very many connections end at the same instant: others have their turns in between. */
#include "support/net.h"
#include "support/runner.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MANY = 90, AT_ONCE = 64 };

static int fds[MANY];
static uint64_t ids[MANY];

static void many_come(int row, const char *say)
{
    for (int i = 0; i < MANY; i++) {
        fds[i] = client(row);
        ids[i] = seen.last;
        raw_send(fds[i], say);
    }
    wait_count(&seen.requests, MANY);
}

static void reset_on_close(int fd)
{
    struct linger at_once = { .l_onoff = 1 };

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* The loop's next look at its sockets, alone. */
static void one_look(void)
{
    int turns = seen.turns;

    ck_assert_int_eq(uv_prepare_stop(&net_prepare), 0);
    (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    ck_assert_int_eq(uv_prepare_start(&net_prepare, net_turn_end), 0);
    ck_assert_int_eq(seen.turns, turns);
}

TEST_GROUP(.setup = net_fixture_open, .teardown = net_fixture_close, .timeout_s = 20);

START_TEST(many_that_leave_at_once_leave_in_turns, 2)
{
    int other = client(0);

    many_come(0, "PING\r\n");
    for (int i = 0; i < MANY; i++) {
        if (_i == 1) {
            reset_on_close(fds[i]);
        } else {
            expect(fds[i], "+PONG\r\n");
        }
        (void)close(fds[i]);
    }
    raw_send(other, "PING\r\n");
    one_look();
    ck_assert_int_eq(seen.closed, AT_ONCE);
    expect(other, "+PONG\r\n");
    wait_count(&seen.closed, MANY);
    ck_assert_int_eq(seen.unread, _i == 1 ? MANY : 0);
    (void)close(other);
}

/* A client that has left is told nothing any more, and its grants are taken back. */
START_TEST(what_is_answered_after_it_left_is_not_taken_in, 2)
{
    many_come(_i, "WAIT\r\n");
    for (int i = 0; i < MANY; i++) {
        (void)close(fds[i]);
    }
    one_look();
    ck_assert_int_eq(seen.closed, AT_ONCE);
    for (int i = 0; i < MANY; i++) {
        if (net_find(net, ids[i]) != NULL) {
            go(ids[i]);
        }
    }
    wait_count(&seen.closed, MANY);
    ck_assert_int_eq(seen.unread, MANY - AT_ONCE);
}

/* A place that only waits for its end is free. */
START_TEST(who_comes_back_finds_a_place, 2)
{
    enum { BACK = 10 };
    struct net_limits limits = LIMITS;
    struct net_stats stats;

    limits.max_clients = MANY - AT_ONCE;
    many_come(_i, "WAIT\r\n");
    net_set_limits(net, &limits);
    for (int i = 0; i < MANY; i++) {
        (void)close(fds[i]);
    }
    for (int i = 0; i < BACK; i++) {
        fds[i] = _i == 0 ? raw_connect_tcp(AF_INET, port) : raw_connect_unix(path);
    }
    one_look();
    wait_count(&seen.opened, MANY + BACK);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.refused, 0);
    wait_count(&seen.closed, MANY);
    for (int i = 0; i < BACK; i++) {
        (void)close(fds[i]);
    }
}
