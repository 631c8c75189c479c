/* Connections against raw clients of the same process. */
#include "resp/writer.h"
#include "support/net.h"
#include "support/runner.h"

#include <sys/socket.h>
#include <unistd.h>

TEST_GROUP(.setup = net_fixture_open, .teardown = net_fixture_close, .timeout_s = 20);

START_TEST(pipelined_requests_are_answered_in_order, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\n*2\r\n$4\r\nECHO\r\n$2\r\nab\r\n\r\nnope\r\nPING\r\n");
    expect(fd, "+PONG\r\n$2\r\nab\r\n-ERR what?\r\n+PONG\r\n");
    ck_assert_int_eq(seen.requests, 4);
    ck_assert_int_ge(seen.events, 5);
    (void)close(fd);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 0);
}

START_TEST(a_request_may_come_in_pieces, 2)
{
    static const char TEXT[] = "*2\r\n$4\r\nECHO\r\n$2\r\nab\r\nPING\r\n";
    int fd = client(_i);

    for (const char *at = TEXT; *at != '\0'; at++) {
        ck_assert_int_eq(write(fd, at, 1), 1);
        loop_turns(&loop, 1);
    }
    expect(fd, "$2\r\nab\r\n+PONG\r\n");
    (void)close(fd);
}

START_TEST(requests_behind_a_suspended_one_run_when_it_is_over, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\nWAIT\r\nPING\r\nWA");
    expect(fd, "+PONG\r\n");
    raw_send(fd, "IT\r\nPING\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.requests, 2);
    go(seen.last);
    expect(fd, "+GO\r\n+PONG\r\n");
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.requests, 4);
    go(seen.last);
    expect(fd, "+GO\r\n+PONG\r\n");
    (void)close(fd);
}

START_TEST(what_is_not_done_goes_on_before_the_next_request, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\nTIMES 3\r\nPING\r\nTIMES 1\r\n");
    expect(fd, "+PONG\r\n+AGAIN\r\n+AGAIN\r\n+AGAIN\r\n+PONG\r\n+AGAIN\r\n");
    ck_assert_int_eq(seen.requests, 4);
    (void)close(fd);
}

START_TEST(what_is_not_done_goes_on_after_a_wait, 2)
{
    int fd = client(_i);

    raw_send(fd, "WAIT\r\n");
    wait_count(&seen.requests, 1);
    again_times = 2;
    conn_again(net_find(net, seen.last));
    loop_turns(&loop, 3);
    ck_assert_int_eq(seen.again, 0);
    go(seen.last);
    expect(fd, "+GO\r\n+AGAIN\r\n+AGAIN\r\n");
    (void)close(fd);
}

/* A turn has room for 256 of them. */
START_TEST(what_goes_on_has_its_share_of_a_turn_and_ends_before_the_end, 2)
{
    int fd = client(_i);

    raw_send(fd, "TIMES 600\r\nPING\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    wait_count(&seen.again, 1);
    ck_assert_int_lt(seen.again, 600);
    for (int i = 0; i < 600; i++) {
        expect(fd, "+AGAIN\r\n");
    }
    expect(fd, "+PONG\r\n");
    expect_end(fd);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 0);
}

START_TEST(the_end_of_input_is_noticed_while_suspended, 4)
{
    int fd = client(_i % 2);

    raw_send(fd, "WAIT\r\nPING\r\n");
    wait_count(&seen.requests, 1);
    if (_i < 2) {
        (void)close(fd);
    } else {
        ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    }
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 0);
    ck_assert_int_eq(seen.requests, 1);
    if (_i >= 2) {
        expect_end(fd);
    }
}

START_TEST(what_came_before_the_end_is_answered, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\nPING\r\nPI");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect(fd, "+PONG\r\n+PONG\r\n");
    expect_end(fd);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 0);
}

START_TEST(what_was_resumed_before_the_end_is_answered, 2)
{
    int fd = client(_i);

    raw_send(fd, "WAIT\r\nPING\r\nPING\r\n");
    wait_count(&seen.requests, 1);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    /* The end arrives in the same turn, after this and before the requests run. */
    ck_assert_int_eq(uv_prepare_stop(&net_prepare), 0);
    go(seen.last);
    expect(fd, "+GO\r\n+PONG\r\n+PONG\r\n");
    expect_end(fd);
    ck_assert_int_eq(seen.unread, 0);
}

START_TEST(a_reply_nobody_read_is_told, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\n");
    loop_until(&loop, is_readable, &fd);
    (void)close(fd);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, 1);
}

START_TEST(a_reply_that_came_too_late_is_told_and_not_sent, 2)
{
    int fd = client(_i);

    raw_send(fd, "WAIT\r\nWAIT\r\n");
    wait_count(&seen.requests, 1);
    go(seen.last);
    (void)net_run(
        net); /* the second one waits; the reply to the first is not written */
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    ck_assert_int_eq(uv_prepare_stop(&net_prepare), 0);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(uv_prepare_start(&net_prepare, net_turn_end), 0);
    ck_assert_int_eq(seen.unread, 1);
    if (_i == 1) {
        expect_end(fd);
    } else {
        char c;

        loop_until(&loop, is_readable, &fd);
        ck_assert_int_eq(read(fd, &c, 1), -1); /* a reset */
        (void)close(fd);
    }
}

/* On a unix socket one can see whether the peer has read; on_close waits for that. */
START_TEST(a_half_closed_peer_is_asked_whether_it_read, 2)
{
    int fd = client(1);

    raw_send(fd, "PING\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    loop_until(&loop, is_readable, &fd);
    loop_turns(&loop, 10);
    ck_assert_int_eq(seen.closed, 0);
    if (_i == 0) {
        expect(fd, "+PONG\r\n");
    }
    (void)close(fd);
    wait_count(&seen.closed, 1);
    ck_assert_int_eq(seen.unread, _i);
}

START_TEST(a_protocol_error_is_told_and_closes, 2)
{
    int fd = client(_i);

    raw_send(fd, "PING\r\n*1\r\n$1000000000\r\n");
    raw_send(fd, "PING\r\nPING\r\n");
    expect(fd, "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n");
    expect_end(fd);
    ck_assert_int_eq(seen.requests, 1);
}

START_TEST(before_auth_limits_are_small, 2)
{
    int fd = client(_i);

    raw_send(fd, "UNTRUST\r\n*11\r\n");
    expect(fd, "-ERR Protocol error: unauthenticated multibulk length\r\n");
    expect_end(fd);
}

START_TEST(quit_is_answered_and_nothing_after_it, 2)
{
    int fd = client(_i);

    raw_send(fd, "QUIT\r\nPING\r\n");
    expect(fd, "+OK\r\n");
    expect_end(fd);
    ck_assert_int_eq(seen.requests, 1);
    ck_assert_int_eq(seen.unread, 0);
}

START_TEST(a_handler_may_close_its_own_conn, 2)
{
    int fd = client(_i);

    raw_send(fd, "KILL\r\nPING\r\n");
    wait_count(&seen.closed, 1);
    loop_turns(&loop, 2);
    ck_assert_int_eq(seen.requests, 1);
    (void)close(fd);
}

START_TEST(a_conn_that_on_open_refuses_gets_its_words, 2)
{
    int fd;

    seen.refuse = true;
    fd = client(_i);
    expect(fd, "-ERR not you\r\n");
    expect_end(fd);
    ck_assert_int_eq(seen.closed, 0);
    seen.closed = seen.opened; /* on_close is not owed */
}

START_TEST(a_conn_tells_about_itself, 2)
{
    int fd = client(_i);
    struct conn_info info;
    struct net_stats stats;

    raw_send(fd, "WAIT\r\nPING");
    wait_count(&seen.requests, 1);
    conn_info(net_find(net, seen.last), &info);
    ck_assert_uint_eq(info.in_buffered, 4);
    ck_assert_int_ge(info.fd, 0);
    ck_assert(strncmp(info.local, _i == 0 ? "127.0.0.1:" : "unix:/", 6) == 0);
    ck_assert(strncmp(info.peer, _i == 0 ? "127.0.0.1:" : "unix:/", 6) == 0);
    ck_assert_uint_eq(conn_input_count(net_find(net, seen.last)), 1);
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.open, 1);
    ck_assert_uint_eq(stats.bytes_in, 10);
    (void)close(fd);
    wait_count(&seen.closed, 1);
    ck_assert_ptr_null(net_find(net, seen.last));
    net_stats(net, &stats);
    ck_assert_uint_eq(stats.open, 0);
    ck_assert_uint_eq(stats.accepted, 1);
}

START_TEST(at_the_end_replies_get_a_last_try, 2)
{
    int fd = client(_i);
    int busy = client(_i);

    raw_send(busy, "WAIT\r\n");
    wait_count(&seen.requests, 1);
    resp_simple(conn_out(net_find(net, seen.last)), "BYE");
    net_close(net);
    ck_assert_int_eq(seen.closed, 2);
    ck_assert_int_eq(seen.unread, 0);
    expect(busy, "+BYE\r\n");
    expect_end(busy);
    expect_end(fd);
}
