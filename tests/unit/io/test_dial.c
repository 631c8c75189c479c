/* Streams that connect to raw sockets of the same process. */
#include "support/loop.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct test_loop loop;
static struct stream_record rec;
static char path[96];

static const struct stream_options OPTIONS = { .keepalive_s = 10,
                                               .user_timeout_ms = 19000 };

static void setup(void)
{
    rec = (struct stream_record){ 0 };
    loop_open(&loop);
    scratch_path("dial", ".sock", path, sizeof(path));
}

static void teardown(void)
{
    stream_close(rec.stream);
    loop_close(&loop);
    buf_reset(&rec.got);
}

static bool has_input(const void *arg)
{
    return buf_len(&rec.got) > 0;
}

static void send_text(const char *text)
{
    struct buf out = { 0 };

    buf_add_str(&out, text);
    stream_send(rec.stream, &out);
    ck_assert_uint_eq(buf_len(&out), 0);
    buf_reset(&out);
}

static void connect_tcp(const char *host, int port)
{
    char text[8];

    (void)snprintf(text, sizeof(text), "%d", port);
    ck_assert_int_eq(stream_connect_tcp(&loop.io, host, text, &OPTIONS, &RECORD_EVENTS,
                                        &rec, &rec.stream),
                     0);
    ck_assert(!rec.connected);
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 20);

START_TEST(a_connection_is_made_and_early_bytes_arrive)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);
    int fd;

    connect_tcp("127.0.0.1", port);
    send_text("HELLO ");
    send_text("3");
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_eq(rec.connect_status, 0);
    fd = accept(server, NULL, NULL);
    raw_expect(fd, "HELLO 3");
    ck_assert_int_eq(write(fd, "x", 1), 1);
    loop_until(&loop, has_input, NULL);
    (void)close(fd);
    (void)close(server);
}

/* localhost may be ::1 first, where nobody listens. */
START_TEST(a_name_is_looked_up_and_its_addresses_are_tried_in_turn)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);

    connect_tcp("localhost", port);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_eq(rec.connect_status, 0);
    (void)close(server);
}

START_TEST(a_refused_connection_is_reported, 2)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);

    (void)close(server);
    connect_tcp(_i == 0 ? "127.0.0.1" : "localhost", port);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_eq(rec.connect_status, UV_ECONNREFUSED);
}

/* No host has that address, and the kernel says so at once. */
START_TEST(an_attempt_that_fails_at_once_is_reported_later)
{
    connect_tcp("255.255.255.255", 1);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_lt(rec.connect_status, 0);
}

START_TEST(a_name_that_does_not_exist_is_reported)
{
    connect_tcp("no-such-host.invalid", 1);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_lt(rec.connect_status, 0);
}

START_TEST(a_stream_can_be_closed_while_it_connects, 3)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);

    connect_tcp(_i == 0 ? "127.0.0.1" : "localhost", port);
    if (_i == 2) {
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    stream_close(rec.stream);
    rec.stream = NULL;
    (void)close(server);
    ck_assert(!rec.connected || _i == 2);
}

START_TEST(unix_sockets_are_connected_to)
{
    int server = raw_listen_unix(path);
    char name[128];

    ck_assert_int_eq(
        stream_connect_unix(&loop.io, path, &RECORD_EVENTS, &rec, &rec.stream), 0);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_eq(rec.connect_status, 0);
    stream_peer_name(rec.stream, name, sizeof(name));
    ck_assert_str_eq(name + 5, path);
    (void)close(server);
}

START_TEST(a_unix_socket_that_is_not_there_is_reported)
{
    char too_long[300];

    ck_assert_int_eq(
        stream_connect_unix(&loop.io, path, &RECORD_EVENTS, &rec, &rec.stream), 0);
    loop_until_flag(&loop, &rec.connected);
    ck_assert_int_eq(rec.connect_status, UV_ENOENT);
    stream_close(rec.stream);
    rec.stream = NULL;
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    ck_assert_int_eq(
        stream_connect_unix(&loop.io, too_long, &RECORD_EVENTS, &rec, &rec.stream),
        UV_ENAMETOOLONG);
}
