/* Streams that connect with TLS, to streams of the same loop that accept it. */
#include "support/runner.h"
#include "unit/io/accepted.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct test_cert ca;
static struct test_cert mine;
static struct stream_record out; /* the one that connects; `rec` is the other end */

static void setup(void)
{
    accepted_setup();
    out = (struct stream_record){ 0 };
    cert_make(&ca, "the authority", CERT_DAY_S, NULL);
    cert_make(&mine, "localhost", CERT_DAY_S, &ca);
    server_tls = cert_server(&mine, NULL);
}

static void teardown(void)
{
    stream_close(out.stream);
    buf_reset(&out.got);
    cert_free(&ca);
    cert_free(&mine);
    accepted_teardown();
}

static struct tls *client_of(const char *ca_file, const struct test_cert *cert)
{
    char err[512] = "";
    struct tls_files files = { .cert_file = cert == NULL ? "" : cert->cert,
                               .key_file = cert == NULL ? "" : cert->key,
                               .ca_cert_file = ca_file,
                               .ca_cert_dir = "" };
    struct tls *tls = tls_new_client(&files, err, sizeof(err));

    ck_assert_msg(tls != NULL, "%s", err);
    return tls;
}

static void dial(const char *host, int port, struct tls *tls)
{
    struct stream_options options = { .keepalive_s = 10, .tls = tls };
    char text[8];

    (void)snprintf(text, sizeof(text), "%d", port);
    ck_assert_int_eq(stream_connect_tcp(&loop.io, host, text, &options, &RECORD_EVENTS,
                                        &out, &out.stream),
                     0);
    tls_unref(tls);
}

static void say(const char *words)
{
    struct buf text = { 0 };

    buf_add_str(&text, words);
    stream_send(out.stream, &text);
    buf_reset(&text);
}

static bool got_answer(const void *arg)
{
    return buf_len(&out.got) > 0;
}

TEST_GROUP(.setup = setup, .teardown = teardown, .setup_once = accepted_warm_up,
           .timeout_s = 20);

START_TEST(early_words_arrive_encrypted, 2)
{
    dial(_i == 0 ? "127.0.0.1" : "localhost", accepted_port(),
         client_of(ca.cert, NULL));
    say("HELLO ");
    say("3");
    ck_assert_uint_eq(stream_queued(out.stream), 7);
    loop_until_flag(&loop, &out.connected);
    ck_assert_int_eq(out.connect_status, 0);
    ck_assert_str_eq(stream_tls_version(out.stream), "TLSv1.3");
    wait_for_input(7);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("HELLO 3")));
    send_text("+OK\r\n");
    loop_until(&loop, got_answer, NULL);
    ck_assert(span_eq(buf_span(&out.got), SPAN("+OK\r\n")));
    ck_assert_uint_eq(loop.io.stats.handshakes, 1); /* of those that were accepted */
    ck_assert_uint_eq(loop.io.stats.tls_open, 1);
    stream_close(rec.stream);
    rec.stream = NULL;
    loop_until_flag(&loop, &out.ended);
    ck_assert_int_eq(out.end_status, UV_EOF);
}

START_TEST(we_show_a_certificate_if_we_have_one)
{
    char name[64];

    tls_unref(server_tls);
    server_tls = cert_server(&mine, &ca);
    dial("127.0.0.1", accepted_port(), client_of(ca.cert, &mine));
    say("x");
    wait_for_input(1);
    ck_assert(stream_tls_peer(rec.stream, name, sizeof(name)));
    ck_assert_str_eq(name, "localhost");
}

START_TEST(a_server_that_is_not_who_it_should_be_is_left, 4)
{
    struct test_cert other;

    cert_make(&other, "another authority", CERT_DAY_S, NULL);
    switch (_i) {
    case 0: /* an unknown authority */
        dial("127.0.0.1", accepted_port(), client_of(other.cert, NULL));
        break;
    case 1: /* not even the system */
        dial("127.0.0.1", accepted_port(), client_of("", NULL));
        break;
    case 2: /* its certificate is somebody else's */
        tls_unref(server_tls);
        server_tls = cert_server(&ca, NULL);
        dial("localhost", accepted_port(), client_of(ca.cert, NULL));
        break;
    default:
        tls_unref(server_tls);
        cert_free(&mine);
        cert_make(&mine, "localhost", -CERT_DAY_S, &ca);
        server_tls = cert_server(&mine, NULL);
        dial("localhost", accepted_port(), client_of(ca.cert, NULL));
        break;
    }
    say("AUTH secret");
    loop_until_flag(&loop, &out.connected);
    ck_assert_int_eq(out.connect_status, UV_EPROTO);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_uint_eq(buf_len(&rec.got), 0);
    cert_free(&other);
}

START_TEST(a_client_that_trusts_anybody_trusts_a_stranger)
{
    struct tls_files files = { .cert_file = "",
                               .key_file = "",
                               .ca_cert_file = "",
                               .ca_cert_dir = "",
                               .trust_anybody = true };
    char err[512] = "";
    struct tls *tls = tls_new_client(&files, err, sizeof(err));

    ck_assert_msg(tls != NULL, "%s", err);
    tls_unref(server_tls);
    server_tls = cert_server(&ca, NULL); /* somebody else's, of nobody known */
    dial("localhost", accepted_port(), tls);
    say("x");
    wait_for_input(1);
    ck_assert_int_eq(out.connect_status, 0);
}

START_TEST(a_server_without_tls_is_left, 2)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);
    char hello[512];
    int fd;

    dial("127.0.0.1", port, client_of(ca.cert, NULL));
    say("AUTH secret");
    loop_turns(&loop, 2);
    fd = accept(server, NULL, NULL);
    ck_assert_int_ge(fd, 0);
    while (recv(fd, hello, sizeof(hello), MSG_DONTWAIT) <= 0) {
        loop_turns(&loop, 1);
    }
    ck_assert_int_eq(hello[0], 0x16);
    if (_i == 0) {
        raw_send(fd, "-ERR Protocol error\r\n");
    } else {
        (void)close(fd);
    }
    loop_until_flag(&loop, &out.connected);
    ck_assert_int_lt(out.connect_status, 0);
    if (_i == 0) {
        (void)close(fd);
    }
    (void)close(server);
}

START_TEST(a_server_that_says_nothing_is_left_in_time)
{
    int port;
    int server = raw_listen_tcp(AF_INET, &port);

    dial("127.0.0.1", port, client_of(ca.cert, NULL));
    while (list_empty(&loop.io.handshakes)) {
        loop_turns(&loop, 1);
    }
    loop.uv.time += TLS_HANDSHAKE_MS;
    io_tick(&loop.io);
    loop_until_flag(&loop, &out.connected);
    ck_assert_int_eq(out.connect_status, UV_ETIMEDOUT);
    (void)close(server);
}

START_TEST(it_can_be_closed_in_the_middle_of_a_handshake)
{
    dial("127.0.0.1", accepted_port(), client_of(ca.cert, NULL));
    say("x");
    while (list_empty(&loop.io.handshakes)) {
        loop_turns(&loop, 1);
    }
    stream_close(out.stream);
    out.stream = NULL;
    loop_turns(&loop, 3);
    ck_assert(!out.connected);
}
