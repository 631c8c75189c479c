/* Streams against raw sockets of the same process, over loopback TCP, unix sockets, and
 * TLS 1.3 and 1.2: the rows of each test. */
#include "support/runner.h"
#include "unit/io/accepted.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

static bool is_taken(const void *arg)
{
    return stream_fate(rec.stream) == STREAM_TAKEN;
}

/* The far end's kernel may take its time to say that it has them. */
static void wait_until_taken(void)
{
    loop_until(&loop, is_taken, NULL);
}

TEST_GROUP(.setup = accepted_setup, .teardown = accepted_teardown,
           .setup_once = accepted_warm_up, .timeout_s = 20);

START_TEST(bytes_go_both_ways, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    far_send(&far, "ping");
    wait_for_input(4);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("ping")));
    send_text("pong");
    far_expect(&far, "pong");
    wait_until_taken();
    far_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
}

START_TEST(a_peer_that_read_all_and_closed_is_not_unread, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    send_text("+OK\r\n");
    far_expect(&far, "+OK\r\n");
    far_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(!rec.unread);
}

START_TEST(a_peer_that_closed_before_we_wrote_is_unread, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    far_close(&far);
    send_text("+OK\r\n"); /* in the same turn: its end was not seen yet */
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
}

START_TEST(what_was_in_the_buffer_of_a_peer_that_closed_is_unread, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    send_text("+OK\r\n");
    ck_assert_int_eq(poll(&(struct pollfd){ .fd = far.fd, .events = POLLIN }, 1,
                          (int)loop_deadline_ms()),
                     1);
    far_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
}

START_TEST(a_half_close_after_reading_is_not_unread, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    send_text("+OK\r\n");
    far_expect(&far, "+OK\r\n");
    far_half_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(!rec.unread);
    /* The other direction still works, and tells what becomes of it. */
    send_text("bye");
    far_expect(&far, "bye");
    wait_until_taken();
    send_text("more");
    far_close(&far);
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_LOST);
}

START_TEST(the_last_words_of_a_peer_are_read_before_its_end, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    far_send(&far, "UNLOCK");
    far_close(&far);
    send_text("+OK\r\n");
    send_text("+OK\r\n"); /* fails: a reset came back for the first */
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("UNLOCK")));
}

START_TEST(what_the_kernel_does_not_take_is_queued, far_kinds())
{
    enum { CHUNK = 1 << 20, CHUNKS = 12 };
    struct far far;
    struct buf out = { 0 };
    static char in[CHUNK];
    size_t total = 0;
    size_t expected = 0;

    accepted_far(&far, _i);
    for (int i = 0; i < CHUNKS; i++) {
        memset(buf_reserve(&out, CHUNK), 'a' + i, CHUNK);
        buf_grew(&out, CHUNK);
        stream_send(rec.stream, &out);
        ck_assert_uint_eq(buf_len(&out), 0);
    }
    buf_reset(&out);
    ck_assert_uint_gt(stream_queued(rec.stream), 0);
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_PENDING);
    while (total < (size_t)CHUNK * CHUNKS) {
        ssize_t n = far_read(&far, in, sizeof(in));

        if (n < 0) {
            ck_assert_int_eq(n, -1);
            (void)uv_run(&loop.uv, UV_RUN_ONCE);
            continue;
        }
        for (ssize_t i = 0; i < n; i++) {
            expected += in[i] == (char)('a' + (total + (size_t)i) / CHUNK);
        }
        total += (size_t)n;
    }
    ck_assert_uint_eq(expected, total);
    loop_until_flag(&loop, &rec.drained);
    ck_assert_uint_eq(stream_queued(rec.stream), 0);
    far_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert(!rec.unread);
}

START_TEST(bytes_still_queued_at_the_end_are_unread, far_kinds())
{
    struct far far;
    struct buf out = { 0 };

    accepted_far(&far, _i);
    memset(buf_reserve(&out, 16 << 20), 'x', 16 << 20);
    buf_grew(&out, 16 << 20);
    stream_send(rec.stream, &out);
    buf_reset(&out);
    far_half_close(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(rec.unread);
    stream_abort(rec.stream);
    rec.stream = NULL;
    far_close(&far);
}

START_TEST(a_stream_can_be_closed_while_it_reads, far_kinds())
{
    struct far far;
    char c;

    accepted_far(&far, _i);
    rec.close_on_read = true;
    far_send(&far, "x");
    wait_for_input(1);
    loop_turns(&loop, 2);
    ck_assert_int_eq(far_read(&far, &c, 1), 0);
    far_close(&far);
}

START_TEST(a_stopped_stream_reads_nothing_until_it_is_started, far_kinds())
{
    struct far far;

    accepted_far(&far, _i);
    stream_read_stop(rec.stream);
    far_send(&far, "x");
    for (int i = 0; i < 5; i++) {
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    ck_assert_uint_eq(buf_len(&rec.got), 0);
    stream_read_start(rec.stream);
    wait_for_input(1);
    far_close(&far);
}

START_TEST(names_of_both_ends, far_kinds())
{
    struct far far;
    char local[128];
    char peer[128];
    char expected[160];

    accepted_far(&far, _i);
    stream_local_name(rec.stream, local, sizeof(local));
    stream_peer_name(rec.stream, peer, sizeof(peer));
    if (_i != FAR_UNIX) {
        struct sockaddr_in in;
        socklen_t len = sizeof(in);

        ck_assert_int_eq(getsockname(far.fd, (struct sockaddr *)&in, &len), 0);
        (void)snprintf(expected, sizeof(expected), "127.0.0.1:%d", ntohs(in.sin_port));
        ck_assert_str_eq(peer, expected);
        ck_assert(strncmp(local, "127.0.0.1:", 10) == 0);
    } else {
        (void)snprintf(expected, sizeof(expected), "unix:%s", path);
        ck_assert_str_eq(peer, expected);
        ck_assert_str_eq(local, expected);
    }
    far_close(&far);
}

START_TEST(dead_peers_are_found_as_asked)
{
    static const struct {
        int level, name, value;
    } WANTED[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },          { IPPROTO_TCP, TCP_KEEPIDLE, 10 },
        { IPPROTO_TCP, TCP_KEEPINTVL, 3 },        { IPPROTO_TCP, TCP_KEEPCNT, 3 },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, 19000 }, { IPPROTO_TCP, TCP_NODELAY, 1 },
    };
    struct far far;

    accepted_far(&far, _i);
    for (size_t i = 0; i < sizeof(WANTED) / sizeof(WANTED[0]); i++) {
        int value = -1;
        socklen_t len = sizeof(value);

        ck_assert_int_eq(getsockopt(stream_fd(rec.stream), WANTED[i].level,
                                    WANTED[i].name, &value, &len),
                         0);
        ck_assert_int_eq(value, WANTED[i].value);
    }
    ck_assert(fcntl(stream_fd(rec.stream), F_GETFD) & FD_CLOEXEC);
    far_close(&far);
}
