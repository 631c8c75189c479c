/* The limits of a client: memory, files, the time of others. */
#include "support/net.h"
#include "support/runner.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_limits(struct net_limits limits)
{
    net_set_limits(net, &limits);
}

TEST_GROUP(.setup = net_fixture_open, .teardown = net_fixture_close, .timeout_s = 20);

START_TEST(too_much_behind_a_suspended_request_closes, 2)
{
    struct net_limits limits = LIMITS;
    int fd = client(_i);

    limits.query_buffer = 1000;
    set_limits(limits);
    raw_send(fd, "WAIT\r\n");
    for (int i = 0; i < 166; i++) {
        raw_send(fd, "PING\r\n");
    }
    wait_count(&seen.requests, 1);
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.closed, 0);
    raw_send(fd, "PING\r\n");
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 0);
    (void)close(fd);
}

START_TEST(a_request_larger_than_the_query_buffer_is_refused, 2)
{
    struct net_limits limits = LIMITS;
    int fd = client(_i);

    limits.query_buffer = 1000;
    set_limits(limits);
    raw_send(fd, "*3\r\n$4\r\nECHO\r\n$999\r\n");
    for (int i = 0; i < 100; i++) {
        raw_send(fd, "0123456789");
    }
    expect(fd, "-ERR Protocol error: expected CRLF after bulk string\r\n");
    expect_end(fd);
    fd = client(_i);
    raw_send(fd, "*1000\r\n");
    for (int i = 0; i < 150; i++) {
        raw_send(fd, "$1\r\nx\r\n");
    }
    expect(fd, "-ERR Protocol error: too big request (query-buffer-limit)\r\n");
    expect_end(fd);
}

START_TEST(a_client_that_does_not_read_is_dropped, 2)
{
    int fd = client(_i);

    for (int i = 0; i < 100 && seen.closed == 0; i++) {
        (void)send(fd, "BIG 300000\r\n", 12, MSG_NOSIGNAL);
        loop_turns(&loop, 2);
    }
    ck_assert_int_eq(seen.closed, 1);
    ck_assert_int_eq(seen.unread, 1);
    (void)close(fd);
}

START_TEST(replies_of_one_turn_cannot_pile_up_past_the_limit, 2)
{
    int fd = client(_i);
    struct buf in = { 0 };

    for (int i = 0; i < 200; i++) {
        buf_add_str(&in, "BIG 200000\r\n");
    }
    ck_assert_int_eq(write(fd, buf_ptr(&in), buf_len(&in)), (ssize_t)buf_len(&in));
    buf_reset(&in);
    wait_count(&seen.closed, 1);
    ck_assert_int_lt(seen.requests, 60);
    (void)close(fd);
}

START_TEST(one_client_does_not_starve_the_others, 2)
{
    enum { MANY = 5000 };
    int fd = client(_i);
    int other = client(_i);
    struct buf in = { 0 };
    char got[7 * 64];
    size_t len = 0;

    for (int i = 0; i < MANY; i++) {
        buf_add_str(&in, "PING\r\n");
    }
    ck_assert_int_eq(write(fd, buf_ptr(&in), buf_len(&in)), (ssize_t)buf_len(&in));
    buf_reset(&in);
    wait_count(&seen.requests, 1);
    ck_assert_int_lt(seen.requests, MANY / 4);
    raw_send(other, "PING\r\n");
    expect(other, "+PONG\r\n");
    ck_assert_int_lt(seen.requests, MANY / 2);
    while (len < 7 * MANY) {
        ssize_t n;

        loop_until(&loop, is_readable, &fd);
        n = recv(fd, got, sizeof(got), MSG_DONTWAIT);
        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    ck_assert_int_eq(seen.requests, MANY + 1);
    (void)close(fd);
    (void)close(other);
}

START_TEST(who_asks_for_little_comes_before_the_rest_of_long_work, 2)
{
    enum { HEAVY = 20, EACH = 5 };
    int heavy[HEAVY];
    int other = client(_i);
    int before;

    for (int i = 0; i < HEAVY; i++) {
        heavy[i] = client(_i);
    }
    for (int i = 0; i < HEAVY; i++) {
        raw_send(heavy[i], "SPIN 2000\r\nSPIN 2000\r\nSPIN 2000\r\nSPIN 2000\r\n"
                           "SPIN 2000\r\n");
    }
    wait_count(&seen.requests, HEAVY);
    before = seen.requests;
    ck_assert_int_lt(before, HEAVY * 2);
    raw_send(other, "PING\r\n");
    expect(other, "+PONG\r\n");
    ck_assert_int_le(seen.requests, before + 5); /* and not as many as there are */
    wait_count(&seen.requests, HEAVY * EACH + 1);
    for (int i = 0; i < HEAVY; i++) {
        expect(heavy[i], "+SPUN\r\n+SPUN\r\n+SPUN\r\n+SPUN\r\n+SPUN\r\n");
        (void)close(heavy[i]);
    }
    (void)close(other);
}

/* Nothing else wakes the loop here: if the net does not, the test hangs. */
START_TEST(what_is_left_over_needs_nobody_to_wake_the_loop, 2)
{
    int fd = client(_i);
    struct buf in = { 0 };

    for (int i = 0; i < 2000; i++) {
        buf_add_str(&in, "PING\r\n");
    }
    ck_assert_int_eq(uv_timer_stop(&loop.waker), 0);
    ck_assert_int_eq(write(fd, buf_ptr(&in), buf_len(&in)), (ssize_t)buf_len(&in));
    buf_reset(&in);
    wait_count(&seen.requests, 2000);
    (void)close(fd);
}

/* A pipeline longer than the query buffer is no offence: it is read as it is run. */
START_TEST(a_long_pipeline_is_read_as_it_is_run, 2)
{
    enum { ROUNDS = 100, PER_ROUND = 1000 };
    int fd = client(_i);
    struct buf in = { 0 };
    char trash[65536];
    struct conn_info info;
    int sent = 0;

    for (int i = 0; i < PER_ROUND; i++) {
        buf_add_str(&in, "PING\r\n");
    }
    while (sent < ROUNDS * (int)buf_len(&in) || seen.requests < ROUNDS * PER_ROUND) {
        size_t at = (size_t)sent % buf_len(&in);

        if (sent < ROUNDS * (int)buf_len(&in)) {
            ssize_t n = send(fd, buf_ptr(&in) + at, buf_len(&in) - at, MSG_DONTWAIT);

            sent += n > 0 ? (int)n : 0;
        }
        (void)recv(fd, trash, sizeof(trash), MSG_DONTWAIT);
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
        conn_info(net_find(net, seen.last), &info);
        ck_assert_uint_le(info.in_buffered, loop.io.read_room * 2);
    }
    buf_reset(&in);
    (void)close(fd);
}

START_TEST(clients_beyond_the_limit_are_told, 2)
{
    struct net_limits limits = LIMITS;
    struct net_stats stats;
    int fds[3];

    limits.max_clients = 2;
    set_limits(limits);
    fds[0] = client(_i);
    fds[1] = client(_i);
    fds[2] = _i == 0 ? raw_connect_tcp(AF_INET, port) : raw_connect_unix(path);
    raw_send(fds[2], "PING\r\n"); /* is not to turn the end into a reset */
    expect(fds[2], "-ERR max number of clients reached\r\n");
    expect_end(fds[2]);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.refused, 1);
    ck_assert_uint_eq(stats.open, 2);
    (void)close(fds[0]);
    wait_count(&seen.closed, 1);
    fds[2] = client(_i);
    raw_send(fds[2], "PING\r\n");
    expect(fds[2], "+PONG\r\n");
    (void)close(fds[1]);
    (void)close(fds[2]);
}

START_TEST(the_limit_of_open_files_is_not_run_into)
{
    struct rlimit before;
    struct rlimit files;
    int opened = 0;
    int fd = -1;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    files = before;
    files.rlim_cur = 64;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    set_limits(LIMITS);
    /* Both ends are ours, so each connection costs two files. */
    for (; opened < 15; opened++) {
        fd = raw_connect_unix(path);
        wait_count(&seen.opened, opened + 1);
    }
    raw_send(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    files.rlim_cur = 47;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    set_limits(LIMITS);
    fd = raw_connect_unix(path);
    expect(fd, "-ERR max number of clients reached\r\n");
    expect_end(fd);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
}

START_TEST(idle_conns_are_closed_and_busy_ones_are_not, 2)
{
    struct net_limits limits = LIMITS;
    int idle = client(_i);
    int waiting;
    struct conn_info info;

    limits.idle_ms = 1000;
    set_limits(limits);
    conn_info(net_find(net, seen.last), &info);
    waiting = client(_i);
    raw_send(waiting, "WAIT\r\n");
    wait_count(&seen.requests, 1);
    net_tick(net, info.active_ms + 1000);
    ck_assert_int_eq(seen.closed, 0);
    seen.busy = true;
    net_tick(net, info.active_ms + 100000);
    ck_assert_int_eq(seen.closed, 0);
    seen.busy = false;
    net_tick(net, info.active_ms + 1001);
    ck_assert_int_eq(seen.closed, 1);
    net_tick(net, info.active_ms + 100000);
    ck_assert_int_eq(seen.closed, 1);
    expect_end(idle);
    (void)close(waiting);
}

START_TEST(who_does_not_log_in_is_shown_out, 2)
{
    struct net_limits limits = LIMITS;
    struct net_stats stats;
    struct conn_info info;
    int known, fds[100];

    limits.login_ms = 1000;
    set_limits(limits);
    seen.strange = true;
    known = client(_i);
    raw_send(known, "TRUST\r\n");
    expect(known, "+WELCOME\r\n");
    for (int i = 0; i < 99; i++) {
        fds[i] = client(_i);
    }
    raw_send(known, "UNTRUST\r\n"); /* and yet it is no stranger */
    wait_count(&seen.requests, 2);
    conn_info(net_find(net, seen.last), &info);
    net_tick(net, info.opened_ms + 1000); /* that of the last */
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.unauthenticated, 99);
    net_tick(net, info.opened_ms + 1001);
    net_end_turn(net);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.late, 64); /* and others have their turn */
    for (int i = 0; i < 99; i++) {
        expect(fds[i],
               "-NOAUTH Authentication required: it took too long (auth-timeout)\r\n");
        expect_end(fds[i]);
    }
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.late, 99);
    ck_assert_uint_eq(stats.unauthenticated, 0);
    raw_send(known, "PING\r\n");
    expect(known, "+PONG\r\n");
    (void)close(known);
}

START_TEST(who_needs_no_login_any_more_stays, 2)
{
    struct net_limits limits = LIMITS;
    struct conn_info info;
    int fd;

    limits.login_ms = 1000;
    set_limits(limits);
    seen.strange = true;
    fd = client(_i);
    conn_info(net_find(net, seen.last), &info);
    seen.strange = false;
    net_tick(net, info.opened_ms + 5000);
    net_end_turn(net);
    raw_send(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    (void)close(fd);
}

START_TEST(a_stranger_makes_room_for_who_comes, 2)
{
    struct net_limits limits = LIMITS;
    struct net_stats stats;
    int known, first, second, third;

    limits.max_clients = 3;
    set_limits(limits);
    seen.strange = true;
    known = client(_i);
    raw_send(known, "TRUST\r\n");
    expect(known, "+WELCOME\r\n");
    first = client(_i);
    second = client(_i);
    third = client(_i);
    expect_end(first); /* it was longest at it */
    raw_send(third, "TRUST\r\n");
    expect(third, "+WELCOME\r\n");
    raw_send(second, "TRUST\r\n");
    expect(second, "+WELCOME\r\n");
    first = _i == 0 ? raw_connect_tcp(AF_INET, port) : raw_connect_unix(path);
    expect(first, "-ERR max number of clients reached\r\n");
    expect_end(first);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.evicted_unauthenticated, 1);
    ck_assert_uint_eq(stats.refused, 1);
    ck_assert_uint_eq(stats.open, 3);
    (void)close(known);
    (void)close(second);
    (void)close(third);
}

START_TEST(a_client_that_speaks_tls_is_told_that_nobody_here_does, 2)
{
    int fd = client(_i);

    raw_send(fd, "\x16\x03\x01");
    expect(fd, "-ERR Protocol error: this port does not speak TLS\r\n");
    expect_end(fd);
}
