/* Streams against raw sockets of the same process, over loopback TCP and unix sockets.
 */
#include "support/loop.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static struct test_loop loop;
static struct stream_record rec;
static char path[96];
static union {
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
} listener;

static const struct stream_options OPTIONS = { .keepalive_s = 10,
                                               .user_timeout_ms = 19000 };

static void setup(void)
{
    rec = (struct stream_record){ 0 };
    loop_open(&loop);
    scratch_path("stream", ".sock", path, sizeof(path));
}

static void teardown(void)
{
    stream_close(rec.stream);
    uv_close((uv_handle_t *)&listener.stream, NULL);
    loop_close(&loop);
    buf_reset(&rec.got);
}

static bool has_input(const void *arg)
{
    return buf_len(&rec.got) >= *(const size_t *)arg;
}

static void wait_for_input(size_t len)
{
    loop_until(&loop, has_input, &len);
}

static void on_connection(uv_stream_t *handle, int status)
{
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(
        stream_accept(&loop.io, handle, &OPTIONS, &RECORD_EVENTS, &rec, &rec.stream),
        0);
    rec.connected = true;
}

static int listen_tcp(void)
{
    struct sockaddr_in any = { .sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    int len = sizeof(any);

    ck_assert_int_eq(uv_tcp_init(&loop.uv, &listener.tcp), 0);
    ck_assert_int_eq(uv_tcp_bind(&listener.tcp, (struct sockaddr *)&any, 0), 0);
    ck_assert_int_eq(uv_listen(&listener.stream, 8, on_connection), 0);
    ck_assert_int_eq(uv_tcp_getsockname(&listener.tcp, (struct sockaddr *)&any, &len),
                     0);
    return ntohs(any.sin_port);
}

/* A raw, blocking peer of the stream; row 0: TCP, row 1: unix. */
static int accepted_peer(int row)
{
    int fd;

    if (row == 0) {
        fd = raw_connect_tcp(AF_INET, listen_tcp());
    } else {
        ck_assert_int_eq(uv_pipe_init(&loop.uv, &listener.pipe, 0), 0);
        ck_assert_int_eq(uv_pipe_bind(&listener.pipe, path), 0);
        ck_assert_int_eq(uv_listen(&listener.stream, 8, on_connection), 0);
        fd = raw_connect_unix(path);
    }
    loop_until_flag(&loop, &rec.connected);
    return fd;
}

static void send_text(const char *text)
{
    struct buf out = { 0 };

    buf_add_str(&out, text);
    stream_send(rec.stream, &out);
    ck_assert_uint_eq(buf_len(&out), 0);
    buf_reset(&out);
}

START_TEST(bytes_go_both_ways)
{
    int fd = accepted_peer(_i);

    ck_assert_int_eq(write(fd, "ping", 4), 4);
    wait_for_input(4);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("ping")));
    send_text("pong");
    raw_expect(fd, "pong");
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_TAKEN);
    (void)close(fd);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
}
END_TEST

START_TEST(a_peer_that_read_all_and_closed_is_not_unread)
{
    int fd = accepted_peer(_i);

    send_text("+OK\r\n");
    raw_expect(fd, "+OK\r\n");
    (void)close(fd);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(!rec.unread);
}
END_TEST

START_TEST(a_peer_that_closed_before_we_wrote_is_unread)
{
    int fd = accepted_peer(_i);

    (void)close(fd);
    send_text("+OK\r\n"); /* in the same turn: its end was not seen yet */
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
}
END_TEST

START_TEST(what_was_in_the_buffer_of_a_peer_that_closed_is_unread)
{
    int fd = accepted_peer(_i);

    send_text("+OK\r\n");
    ck_assert_int_eq(
        poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, LOOP_DEADLINE_MS), 1);
    (void)close(fd);
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
}
END_TEST

START_TEST(a_half_close_after_reading_is_not_unread)
{
    int fd = accepted_peer(_i);

    send_text("+OK\r\n");
    raw_expect(fd, "+OK\r\n");
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(!rec.unread);
    /* The other direction still works, and tells what becomes of it. */
    send_text("bye");
    raw_expect(fd, "bye");
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_TAKEN);
    send_text("more");
    (void)close(fd);
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_LOST);
}
END_TEST

START_TEST(the_last_words_of_a_peer_are_read_before_its_end)
{
    int fd = accepted_peer(_i);

    ck_assert_int_eq(write(fd, "UNLOCK", 6), 6);
    (void)close(fd);
    send_text("+OK\r\n");
    send_text("+OK\r\n"); /* fails: a reset came back for the first */
    loop_until_flag(&loop, &rec.ended);
    ck_assert(rec.unread);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("UNLOCK")));
}
END_TEST

START_TEST(what_the_kernel_does_not_take_is_queued)
{
    enum { CHUNK = 1 << 20, CHUNKS = 12 };
    int fd = accepted_peer(_i);
    struct buf out = { 0 };
    static char in[CHUNK];
    size_t total = 0;
    size_t expected = 0;

    for (int i = 0; i < CHUNKS; i++) {
        memset(buf_reserve(&out, CHUNK), 'a' + i, CHUNK);
        buf_grew(&out, CHUNK);
        stream_send(rec.stream, &out);
        ck_assert_uint_eq(buf_len(&out), 0);
    }
    buf_reset(&out);
    ck_assert_uint_gt(stream_queued(rec.stream), 0);
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_PENDING);
    ck_assert_int_eq(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    while (total < (size_t)CHUNK * CHUNKS) {
        ssize_t n = read(fd, in, sizeof(in));

        if (n < 0) {
            ck_assert_int_eq(errno, EAGAIN);
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
    (void)close(fd);
    loop_until_flag(&loop, &rec.ended);
    ck_assert(!rec.unread);
}
END_TEST

START_TEST(bytes_still_queued_at_the_end_are_unread)
{
    int fd = accepted_peer(_i);
    struct buf out = { 0 };

    memset(buf_reserve(&out, 16 << 20), 'x', 16 << 20);
    buf_grew(&out, 16 << 20);
    stream_send(rec.stream, &out);
    buf_reset(&out);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(rec.unread);
    stream_abort(rec.stream);
    rec.stream = NULL;
    (void)close(fd);
}
END_TEST

START_TEST(a_stream_can_be_closed_while_it_reads)
{
    int fd = accepted_peer(_i);
    char c;

    rec.close_on_read = true;
    ck_assert_int_eq(write(fd, "x", 1), 1);
    wait_for_input(1);
    ck_assert_int_eq(read(fd, &c, 1), 0);
    (void)close(fd);
}
END_TEST

START_TEST(a_stopped_stream_reads_nothing_until_it_is_started)
{
    int fd = accepted_peer(_i);

    stream_read_stop(rec.stream);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    for (int i = 0; i < 5; i++) {
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    ck_assert_uint_eq(buf_len(&rec.got), 0);
    stream_read_start(rec.stream);
    wait_for_input(1);
    (void)close(fd);
}
END_TEST

START_TEST(names_of_both_ends)
{
    int fd = accepted_peer(_i);
    char local[128];
    char peer[128];
    char expected[160];

    stream_local_name(rec.stream, local, sizeof(local));
    stream_peer_name(rec.stream, peer, sizeof(peer));
    if (_i == 0) {
        struct sockaddr_in in;
        socklen_t len = sizeof(in);

        ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
        (void)snprintf(expected, sizeof(expected), "127.0.0.1:%d", ntohs(in.sin_port));
        ck_assert_str_eq(peer, expected);
        ck_assert(strncmp(local, "127.0.0.1:", 10) == 0);
    } else {
        (void)snprintf(expected, sizeof(expected), "unix:%s", path);
        ck_assert_str_eq(peer, expected);
        ck_assert_str_eq(local, expected);
    }
    (void)close(fd);
}
END_TEST

START_TEST(dead_peers_are_found_as_asked)
{
    static const struct {
        int level, name, value;
    } WANTED[] = {
        { SOL_SOCKET, SO_KEEPALIVE, 1 },          { IPPROTO_TCP, TCP_KEEPIDLE, 10 },
        { IPPROTO_TCP, TCP_KEEPINTVL, 3 },        { IPPROTO_TCP, TCP_KEEPCNT, 3 },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, 19000 }, { IPPROTO_TCP, TCP_NODELAY, 1 },
    };
    int fd = accepted_peer(0);

    for (size_t i = 0; i < sizeof(WANTED) / sizeof(WANTED[0]); i++) {
        int value = -1;
        socklen_t len = sizeof(value);

        ck_assert_int_eq(getsockopt(stream_fd(rec.stream), WANTED[i].level,
                                    WANTED[i].name, &value, &len),
                         0);
        ck_assert_int_eq(value, WANTED[i].value);
    }
    ck_assert(fcntl(stream_fd(rec.stream), F_GETFD) & FD_CLOEXEC);
    (void)close(fd);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("stream");
    TCase *in = tcase_create("accepted");

    tcase_set_timeout(in, 20);
    tcase_add_checked_fixture(in, setup, teardown);
    tcase_add_loop_test(in, bytes_go_both_ways, 0, 2);
    tcase_add_loop_test(in, a_peer_that_read_all_and_closed_is_not_unread, 0, 2);
    tcase_add_loop_test(in, a_peer_that_closed_before_we_wrote_is_unread, 0, 2);
    tcase_add_loop_test(in, what_was_in_the_buffer_of_a_peer_that_closed_is_unread, 0,
                        2);
    tcase_add_loop_test(in, a_half_close_after_reading_is_not_unread, 0, 2);
    tcase_add_loop_test(in, the_last_words_of_a_peer_are_read_before_its_end, 0, 2);
    tcase_add_loop_test(in, what_the_kernel_does_not_take_is_queued, 0, 2);
    tcase_add_loop_test(in, bytes_still_queued_at_the_end_are_unread, 0, 2);
    tcase_add_loop_test(in, a_stream_can_be_closed_while_it_reads, 0, 2);
    tcase_add_loop_test(in, a_stopped_stream_reads_nothing_until_it_is_started, 0, 2);
    tcase_add_loop_test(in, names_of_both_ends, 0, 2);
    tcase_add_test(in, dead_peers_are_found_as_asked);
    suite_add_tcase(s, in);
    return s;
}
