/* The features of streams over TLS: handshakes, certificates, and their ends. The rest
 * is in test_stream.c. Rows: TLS 1.3 and 1.2. */
#include "support/runner.h"
#include "unit/io/accepted.h"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_open(const void *arg)
{
    return stream_tls_version(rec.stream) != NULL;
}

TEST_GROUP(.setup = accepted_setup, .teardown = accepted_teardown,
           .setup_once = accepted_warm_up, .timeout_s = 20);

START_TEST(the_handshake_may_come_in_pieces, 2)
{
    struct far far;
    char hello[4096];
    long len;
    long step;
    BIO *to = BIO_new(BIO_s_mem());
    BIO *from = BIO_new(BIO_s_mem());

    accepted_raw(&far, FAR_TLS13 + _i, NULL, NULL);
    SSL_set_bio(far.ssl, from, to);
    ck_assert_int_eq(SSL_do_handshake(far.ssl), -1);
    len = BIO_read(to, hello, sizeof(hello));
    ck_assert_int_gt(len, 100);
    for (long i = 0; i < len; i += step) {
        step = i < 20 ? 1 : 60; /* the headers byte by byte */
        step = step < len - i ? step : len - i;
        ck_assert_int_eq(write(far.fd, hello + i, (size_t)step), step);
        loop_turns(&loop, 1);
    }
    ck_assert_int_eq(SSL_set_fd(far.ssl, far.fd), 1);
    ck_assert(far_shake_hands(&far));
    far_send(&far, "PING");
    wait_for_input(4);
    far_close(&far);
}

START_TEST(what_is_sent_before_the_handshake_waits_for_it, 2)
{
    struct far far;

    accepted_raw(&far, FAR_TLS13 + _i, NULL, NULL);
    ck_assert_ptr_null(stream_tls_version(rec.stream));
    send_text("hello");
    ck_assert_uint_eq(stream_queued(rec.stream), 5);
    ck_assert_int_eq(stream_fate(rec.stream), STREAM_PENDING);
    ck_assert(far_shake_hands(&far));
    loop_until(&loop, is_open, NULL);
    far_expect(&far, "hello");
    ck_assert_str_eq(stream_tls_version(rec.stream), _i == 0 ? "TLSv1.3" : "TLSv1.2");
    far_close(&far);
}

START_TEST(an_end_without_a_word_is_an_end, 2)
{
    struct far far;

    accepted_far(&far, FAR_TLS13 + _i);
    send_text("+OK\r\n");
    far_expect(&far, "+OK\r\n");
    far_send(&far, "QUIT");
    far_drop(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert(!rec.unread);
    ck_assert(span_eq(buf_span(&rec.got), SPAN("QUIT")));
}

START_TEST(a_record_that_is_cut_off_is_an_end_without_it, 2)
{
    struct far far;
    char record[200] = "\x17\x03\x03\x40\x00";

    accepted_far(&far, FAR_TLS13 + _i);
    send_text("x");
    far_expect(&far, "x"); /* else a ticket is unread, and the end a reset */
    far_send(&far, "PING");
    ck_assert_int_eq(write(far.fd, record, sizeof(record)), sizeof(record));
    wait_for_input(4);
    far_drop(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EOF);
    ck_assert_uint_eq(buf_len(&rec.got), 4);
}

START_TEST(a_forged_record_breaks_it, 2)
{
    struct far far;
    char record[69] = "\x17\x03\x03\x00\x40";

    accepted_far(&far, FAR_TLS13 + _i);
    ck_assert_int_eq(write(far.fd, record, sizeof(record)), sizeof(record));
    loop_until_flag(&loop, &rec.ended);
    ck_assert_int_eq(rec.end_status, UV_EPROTO);
    ck_assert_uint_eq(buf_len(&rec.got), 0);
    far_drop(&far);
}

START_TEST(an_end_that_was_said_is_answered, 2)
{
    struct far far;
    char c;

    accepted_far(&far, FAR_TLS13 + _i);
    far_half_close(&far);
    loop_until_flag(&loop, &rec.ended);
    send_text("bye");
    stream_close(rec.stream);
    rec.stream = NULL;
    far_expect(&far, "bye");
    loop_turns(&loop, 2);
    ck_assert_int_eq(far_read(&far, &c, 1), 0);
    far_drop(&far);
}

START_TEST(an_abort_is_not_an_end_that_was_said, 2)
{
    struct far far;
    char c;

    accepted_far(&far, FAR_TLS13 + _i);
    stream_abort(rec.stream);
    rec.stream = NULL;
    loop_turns(&loop, 2);
    ck_assert_int_eq(far_read(&far, &c, 1), -2);
    far_drop(&far);
}

START_TEST(what_is_not_tls_is_refused, 4)
{
    static const char *const WORDS[] = { "PING\r\n", "GET / HTTP/1.1\r\n\r\n",
                                         "\x16\x03\x01\xff\xff\x01", "\x80\x2e\x01" };
    struct far far;

    accepted_raw(&far, FAR_TLS13, NULL, NULL);
    raw_send(far.fd, WORDS[_i]);
    loop_turns(&loop, 3);
    if (!rec.ended) {
        (void)shutdown(far.fd, SHUT_WR);
    }
    loop_until_flag(&loop, &rec.ended);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 1);
    ck_assert_uint_eq(loop.io.stats.handshakes, 0);
    far_drop(&far);
}

START_TEST(who_only_looks_whether_it_is_open_has_not_failed)
{
    struct far far;

    accepted_raw(&far, FAR_TLS13, NULL, NULL);
    far_drop(&far);
    loop_until_flag(&loop, &rec.ended);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 0);
}

START_TEST(a_handshake_that_takes_too_long_is_ended)
{
    struct far far;

    accepted_raw(&far, FAR_TLS13, NULL, NULL);
    raw_send(far.fd, "\x16\x03");
    loop_turns(&loop, 2);
    loop.uv.time += TLS_HANDSHAKE_MS - 1000;
    io_tick(&loop.io);
    ck_assert(!rec.ended);
    loop.uv.time += 1000;
    io_tick(&loop.io);
    ck_assert(rec.ended);
    ck_assert_int_eq(rec.end_status, UV_ETIMEDOUT);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 1);
    io_tick(&loop.io);
    far_drop(&far);
}

START_TEST(one_that_stands_has_all_the_time, 2)
{
    struct far far;

    accepted_far(&far, FAR_TLS13 + _i);
    loop.uv.time += TLS_HANDSHAKE_MS * 10;
    io_tick(&loop.io);
    ck_assert(!rec.ended);
    far_close(&far);
}

START_TEST(handshakes_wait_when_the_turn_had_its_share, 2)
{
    struct far far;

    accepted_raw(&far, FAR_TLS13 + _i, NULL, NULL);
    (void)uv_timer_stop(&loop.waker); /* which ends the turns */
    loop.io.handshakes_ns = UINT64_MAX / 2;
    ck_assert(!far_try_handshake(&far));
    for (int i = 0; i < 10; i++) {
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
        ck_assert(!far_try_handshake(&far));
    }
    ck_assert(!list_empty(&loop.io.deferred));
    io_end_turn(&loop.io);
    ck_assert(list_empty(&loop.io.deferred));
    ck_assert_int_eq(uv_timer_start(&loop.waker, loop.waker.timer_cb, 5, 5), 0);
    ck_assert(far_shake_hands(&far));
    far_close(&far);
}

START_TEST(a_deferred_one_may_be_closed, 2)
{
    struct far far;

    accepted_raw(&far, FAR_TLS13 + _i, NULL, NULL);
    loop.io.handshakes_ns = UINT64_MAX / 2;
    (void)uv_timer_stop(&loop.waker);
    ck_assert(!far_try_handshake(&far));
    while (list_empty(&loop.io.deferred)) {
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    }
    stream_close(rec.stream);
    rec.stream = NULL;
    ck_assert(list_empty(&loop.io.deferred));
    ck_assert(list_empty(&loop.io.handshakes));
    io_end_turn(&loop.io);
    io_tick(&loop.io);
    far_drop(&far);
}

START_TEST(new_keys_may_be_asked_for)
{
    struct far far;

    accepted_far(&far, FAR_TLS13);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(SSL_key_update(far.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        far_send(&far, "x");
        wait_for_input((size_t)i + 1);
        send_text("y");
        far_expect(&far, "y");
    }
    far_close(&far);
}

/* Each request for new keys wants an answer. */
START_TEST(who_asks_for_new_keys_and_does_not_read_is_closed)
{
    struct far far;
    struct buf out = { 0 };

    accepted_far(&far, FAR_TLS13);
    memset(buf_reserve(&out, 16 << 20), 'x', 16 << 20);
    buf_grew(&out, 16 << 20);
    stream_send(rec.stream, &out);
    buf_reset(&out);
    ck_assert_uint_gt(stream_queued(rec.stream), 0);
    for (int i = 0; i < 10000 && !rec.ended; i++) {
        ck_assert_int_eq(SSL_key_update(far.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        far_send(&far, "x");
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    }
    ck_assert(rec.ended);
    ck_assert_int_eq(rec.end_status, UV_ENOBUFS);
    ck_assert(rec.unread);
    stream_abort(rec.stream);
    rec.stream = NULL;
    far_drop(&far);
}

START_TEST(another_handshake_on_the_same_connection_is_refused)
{
    struct far far;

    accepted_far(&far, FAR_TLS12);
    ck_assert_int_eq(SSL_renegotiate(far.ssl), 1);
    ck_assert(!far_shake_hands(&far));
    ck_assert_uint_eq(loop.io.stats.handshakes, 1);
    far_drop(&far);
}

START_TEST(a_session_can_be_resumed, 2)
{
    struct far far;
    SSL_SESSION *session;

    accepted_far(&far, FAR_TLS13 + _i);
    send_text("x");
    far_expect(&far, "x"); /* and with it the ticket */
    session = SSL_get1_session(far.ssl);
    far_close(&far);
    accepted_raw(&far, FAR_TLS13 + _i, NULL, NULL);
    ck_assert_int_eq(SSL_set_session(far.ssl, session), 1);
    SSL_SESSION_free(session);
    ck_assert(far_shake_hands(&far));
    loop_until(&loop, is_open, NULL);
    ck_assert_int_eq(SSL_session_reused(far.ssl), 1);
    send_text("x");
    far_expect(&far, "x");
    far_close(&far);
}

START_TEST(old_protocols_and_ciphers_are_refused, 2)
{
    struct far far;

    accepted_raw(&far, FAR_TLS12, NULL, NULL);
    SSL_set_security_level(far.ssl, 0);
    if (_i == 0) {
        (void)SSL_set_min_proto_version(far.ssl, TLS1_1_VERSION);
        (void)SSL_set_max_proto_version(far.ssl, TLS1_1_VERSION);
    } else {
        ck_assert_int_eq(SSL_set_cipher_list(far.ssl, "ECDHE-ECDSA-AES128-SHA"), 1);
    }
    ck_assert(!far_shake_hands(&far));
    loop_until_flag(&loop, &rec.ended);
    ck_assert_uint_eq(loop.io.stats.handshakes_failed, 1);
    far_drop(&far);
}
