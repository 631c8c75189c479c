/* The loop as the daemon runs it: streams and the loop's own handles are waited for in
 * one call. */
#include "io/stream.h"
#include "support/runner.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HELLO_LEN = 5 };

static uv_loop_t loop;
static struct io io;
static struct stream *stream;
static int far;
static unsigned waits, begun, events;

static void setup(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(io_init(&io, &loop), 0);
    io.runs = true;
    stream = NULL;
    far = -1;
    waits = begun = events = 0;
}

static void teardown(void)
{
    if (far >= 0) {
        (void)close(far);
    }
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    io_fini(&io);
}

static void count_wait(void *ctx)
{
    waits++;
}

static void count_begun(void *ctx)
{
    begun++;
}

static void count_events(void *ctx)
{
    events++;
    ck_assert_uint_eq(begun, events);
}

static void run(void)
{
    static const struct io_turn TURN = { count_wait, count_begun, count_events };

    ck_assert_int_eq(io_run(&io, &TURN, NULL), 0);
    ck_assert_uint_eq(waits, events + 1);
}

static void on_read(void *ctx, const char *data, size_t len)
{
    ck_assert_uint_eq(len, HELLO_LEN);
    ck_assert_uint_eq(begun, events + 1);
    stream_close(stream);
}

static void on_end(void *ctx, int status, bool unread)
{
    stream_close(stream);
}

static const struct stream_events EVENTS = { .on_read = on_read, .on_end = on_end };

static void open_stream(void)
{
    const struct stream_options none = { 0 };
    int fds[2];

    ck_assert_int_eq(
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    ck_assert_int_eq(stream_accept(&io, fds[0], true, &none, &EVENTS, NULL, &stream),
                     0);
    far = fds[1];
}

static void say_hello(void)
{
    ck_assert_int_eq(write(far, "hello", HELLO_LEN), HELLO_LEN);
}

static void hello_from_timer(uv_timer_t *timer)
{
    ck_assert_uint_eq(begun, events + 1);
    say_hello();
    uv_close((uv_handle_t *)timer, NULL);
}

static void close_stream(uv_handle_t *handle)
{
    stream_close(stream);
}

static void close_async(uv_async_t *async)
{
    uv_close((uv_handle_t *)async, close_stream);
}

static void wake(uv_work_t *work)
{
    ck_assert_int_eq(uv_async_send(work->data), 0);
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 20);

START_TEST(a_loop_without_anything_does_not_wait)
{
    run();
    ck_assert_uint_eq(events, 0);
}

START_TEST(a_loop_without_handles_waits_for_its_streams)
{
    open_stream();
    say_hello();
    run();
    ck_assert_uint_eq(events, 1);
}

START_TEST(a_timer_falls_due_while_streams_are_waited_for)
{
    uv_timer_t timer;

    open_stream();
    ck_assert_int_eq(uv_timer_init(&loop, &timer), 0);
    ck_assert_int_eq(uv_timer_start(&timer, hello_from_timer, 1, 0), 0);
    run();
}

/* The loop's own descriptors are not in its set before it runs. */
START_TEST(an_event_of_the_loop_comes_while_streams_are_waited_for)
{
    uv_async_t async;
    uv_work_t work = { .data = &async };

    open_stream();
    ck_assert_int_eq(uv_async_init(&loop, &async, close_async), 0);
    ck_assert_int_eq(uv_queue_work(&loop, &work, wake, NULL), 0);
    run();
}

START_TEST(the_last_stream_may_go_and_another_come)
{
    open_stream();
    stream_close(stream);
    (void)close(far);
    open_stream();
    say_hello();
    run();
}
