/* Streams and the turns of the loop: several at once, closed by one another, and what
 * must not keep the loop busy. */
#include "io/stream.h"
#include "support/loop.h"
#include "support/runner.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PAIRS = 3 };

static struct test_loop loop;
/* Streams over pairs of sockets, and their far ends. */
static struct stream_record recs[PAIRS];
static int far[PAIRS];

static void open_pair(int i, const struct stream_events *events)
{
    const struct stream_options none = { 0 };
    int fds[2];

    recs[i] = (struct stream_record){ 0 };
    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(
        stream_accept(&loop.io, fds[0], true, &none, events, &recs[i], &recs[i].stream),
        0);
    far[i] = fds[1];
}

static void close_far(int i)
{
    if (far[i] >= 0) {
        (void)close(far[i]);
        far[i] = -1;
    }
}

static void close_stream(int i)
{
    stream_close(recs[i].stream);
    recs[i].stream = NULL;
}

static void setup(void)
{
    loop_open(&loop);
    for (int i = 0; i < PAIRS; i++) {
        recs[i] = (struct stream_record){ 0 };
        far[i] = -1;
    }
}

static void teardown(void)
{
    for (int i = 0; i < PAIRS; i++) {
        close_stream(i);
        close_far(i);
    }
    loop_close(&loop);
    for (int i = 0; i < PAIRS; i++) {
        buf_reset(&recs[i].got);
    }
}

static void send_bytes(int i, size_t len)
{
    struct buf out = { 0 };

    memset(buf_reserve(&out, len), 'x', len);
    buf_grew(&out, len);
    stream_send(recs[i].stream, &out);
    buf_reset(&out);
}

/* --- closed by one another -------------------------------------------------------- */

static int told;

/* The first of two that have input closes the other, and the next socket has its
 * number. */
static void read_and_replace(void *ctx, const char *data, size_t len)
{
    int other = ctx == &recs[0] ? 1 : 0;
    int fd = stream_fd(recs[other].stream);

    ck_assert_int_eq(++told, 1);
    close_stream(other);
    open_pair(2, &RECORD_EVENTS);
    ck_assert_int_eq(stream_fd(recs[2].stream), fd);
}

static bool is_told(const void *arg)
{
    return told >= *(const int *)arg;
}

static bool has_input(const void *arg)
{
    return buf_len(&((const struct stream_record *)arg)->got) > 0;
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 20);

START_TEST(an_event_of_a_stream_that_another_closed_is_told_to_nobody)
{
    static const struct stream_events EVENTS = { .on_read = read_and_replace };
    static const int ONE = 1;

    told = 0;
    open_pair(0, &EVENTS);
    open_pair(1, &EVENTS);
    raw_send(far[0], "x");
    raw_send(far[1], "x");
    loop_until(&loop, is_told, &ONE);
    loop_turns(&loop, 3);
    ck_assert_int_eq(told, 1);
    ck_assert_uint_eq(buf_len(&recs[2].got), 0);
    raw_send(far[2], "y");
    loop_until(&loop, has_input, &recs[2]);
    ck_assert(span_eq(buf_span(&recs[2].got), SPAN("y")));
}

static void close_on_read(void *ctx, const char *data, size_t len)
{
    struct stream_record *rec = ctx;

    told++;
    stream_close(rec->stream);
    rec->stream = NULL;
}

static void close_on_drain(void *ctx)
{
    close_on_read(ctx, NULL, 0);
}

static void close_on_end(void *ctx, int status, bool unread)
{
    close_on_read(ctx, NULL, 0);
}

START_TEST(a_stream_may_be_closed_by_each_of_its_events)
{
    static const struct stream_events EVENTS = { NULL, close_on_read, close_on_drain,
                                                 close_on_end };
    static const int THREE = 3;
    static char in[1 << 16];

    told = 0;
    for (int i = 0; i < PAIRS; i++) {
        open_pair(i, &EVENTS);
    }
    raw_send(far[0], "x");
    close_far(1);
    send_bytes(2, 4 << 20);
    ck_assert_uint_gt(stream_queued(recs[2].stream), 0);
    while (!is_told(&THREE)) {
        while (read(far[2], in, sizeof(in)) > 0) {
        }
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    for (int i = 0; i < PAIRS; i++) {
        ck_assert_ptr_null(recs[i].stream);
    }
}

START_TEST(after_the_last_stream_another_can_be_opened)
{
    open_pair(0, &RECORD_EVENTS);
    close_stream(0);
    open_pair(1, &RECORD_EVENTS); /* while what they shared is being closed */
    raw_send(far[1], "x");
    loop_until(&loop, has_input, &recs[1]);
    close_stream(1);
    loop_turns(&loop, 2);
    ck_assert_ptr_null(loop.io.poller);
    ck_assert_uint_eq(loop.io.pollers, 0);
    ck_assert_ptr_null(loop.io.dead);
    open_pair(2, &RECORD_EVENTS);
    raw_send(far[2], "x");
    loop_until(&loop, has_input, &recs[2]);
}

/* --- fair ------------------------------------------------------------------------- */

enum { READS_ENOUGH = 64 }; /* more than any stream may do in a turn or two */

static int reads;

static void fill(int fd)
{
    static char bytes[1 << 16];

    while (write(fd, bytes, sizeof(bytes)) > 0) {
    }
}

/* Its peer is always faster, until the other one was heard. */
static void read_for_ever(void *ctx, const char *data, size_t len)
{
    ck_assert_int_lt(++reads, READS_ENOUGH);
    if (buf_len(&recs[1].got) == 0) {
        fill(far[0]);
    }
}

START_TEST(who_sends_for_ever_leaves_time_for_others)
{
    static const struct stream_events EVENTS = { .on_read = read_for_ever };

    reads = 0;
    open_pair(0, &EVENTS);
    open_pair(1, &RECORD_EVENTS);
    fill(far[0]);
    raw_send(far[1], "x");
    loop_until(&loop, has_input, &recs[1]);
}

/* --- idle ------------------------------------------------------------------------- */

static int turns;
static int ticks;

static void on_prepare(uv_prepare_t *handle)
{
    turns++;
}

static void on_tick(uv_timer_t *timer)
{
    ticks++;
}

/* Turns that the loop makes in 20 ticks of a timer. */
static int turns_of_ticks(void)
{
    uv_prepare_t prepare;
    uv_timer_t timer;

    ck_assert_int_eq(uv_prepare_init(&loop.uv, &prepare), 0);
    ck_assert_int_eq(uv_timer_init(&loop.uv, &timer), 0);
    ck_assert_int_eq(uv_prepare_start(&prepare, on_prepare), 0);
    ck_assert_int_eq(uv_timer_start(&timer, on_tick, 2, 2), 0);
    for (turns = ticks = 0; ticks < 20;) {
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    uv_close((uv_handle_t *)&prepare, NULL);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    return turns;
}

/* Rows: the peer said something, half closed, closed; and then the same after its end
 * was told. */
START_TEST(input_that_nobody_wants_does_not_keep_the_loop_busy, 5)
{
    open_pair(0, &RECORD_EVENTS);
    if (_i >= 3) {
        (void)shutdown(far[0], SHUT_WR);
        loop_until_flag(&loop, &recs[0].ended);
    } else {
        stream_read_stop(recs[0].stream);
    }
    switch (_i) {
    case 0:
        raw_send(far[0], "x");
        break;
    case 1:
        (void)shutdown(far[0], SHUT_WR);
        break;
    case 2:
    case 3:
        close_far(0);
        break;
    default:
        break;
    }
    ck_assert_int_le(turns_of_ticks(), 200);
    if (_i == 0) {
        stream_read_start(recs[0].stream);
        loop_until(&loop, has_input, &recs[0]);
    } else if (_i < 3) {
        ck_assert(!recs[0].ended);
        stream_read_start(recs[0].stream);
        loop_until_flag(&loop, &recs[0].ended);
        ck_assert_int_eq(recs[0].end_status, UV_EOF);
    }
}

START_TEST(a_stream_that_was_drained_does_not_keep_the_loop_busy)
{
    static char in[1 << 16];

    open_pair(0, &RECORD_EVENTS);
    send_bytes(0, 4 << 20);
    while (!recs[0].drained) {
        while (read(far[0], in, sizeof(in)) > 0) {
        }
        (void)uv_run(&loop.uv, UV_RUN_ONCE);
    }
    ck_assert_int_le(turns_of_ticks(), 200);
}

/* --- writing ---------------------------------------------------------------------- */

START_TEST(a_write_that_fails_is_told_though_nothing_is_read)
{
    open_pair(0, &RECORD_EVENTS);
    (void)signal(SIGPIPE, SIG_DFL);
    stream_read_stop(recs[0].stream);
    close_far(0);
    send_bytes(0, 1);
    ck_assert(!recs[0].ended); /* not in the middle of something */
    ck_assert_uint_eq(stream_queued(recs[0].stream), 1);
    loop_until_flag(&loop, &recs[0].ended);
    ck_assert_int_eq(recs[0].end_status, UV_EPIPE);
    ck_assert(recs[0].unread);
}

START_TEST(a_peer_that_goes_while_bytes_wait_for_it_is_told)
{
    open_pair(0, &RECORD_EVENTS);
    stream_read_stop(recs[0].stream);
    send_bytes(0, 4 << 20);
    loop_turns(&loop, 2);
    ck_assert(!recs[0].ended);
    close_far(0);
    loop_until_flag(&loop, &recs[0].ended);
    ck_assert(recs[0].unread);
}

static void on_signal(int number)
{
}

/* Both ways, in order, in bits of all sizes, with signals that interrupt. */
START_TEST(signals_and_partial_writes_change_nothing)
{
    enum { TOTAL = 2 << 20, BIT = 60000 };
    const struct sigaction action = { .sa_handler = on_signal };
    const struct itimerval often = { { 0, 5000 }, { 0, 5000 } };
    const struct itimerval never = { 0 };
    static unsigned char in[BIT];
    struct buf out = { 0 };
    size_t sent = 0;
    size_t got = 0;
    size_t wrong = 0;

    open_pair(0, &RECORD_EVENTS);
    ck_assert_int_eq(sigaction(SIGPROF, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_PROF, &often, NULL), 0);
    while (got < TOTAL) {
        ssize_t n;

        for (size_t i = 0; sent < TOTAL && i < 2 * BIT; i++, sent++) {
            buf_add(&out, &(char){ (char)(sent % 251) }, 1);
        }
        stream_send(recs[0].stream, &out);
        n = read(far[0], in, 1 + got % BIT);
        for (ssize_t i = 0; i < n; i++) {
            wrong += in[i] != (got + (size_t)i) % 251;
        }
        got += n > 0 ? (size_t)n : 0;
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    }
    ck_assert_int_eq(setitimer(ITIMER_PROF, &never, NULL), 0);
    ck_assert_uint_eq(wrong, 0);
    buf_reset(&out);
    loop_until_flag(&loop, &recs[0].drained);
    ck_assert_uint_eq(stream_queued(recs[0].stream), 0);
    ck_assert_int_eq(stream_fate(recs[0].stream), STREAM_TAKEN);
}
