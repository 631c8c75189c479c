/* Listening sockets in the loop. */
#include "io/socket.h"
#include "support/loop.h"
#include "support/runner.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS = ACCEPTS_TURN + 20 };

static struct test_loop loop;
static struct acceptor *acceptor;
static int listen_fd;
static int port;
static int accepted;
static int failed; /* how often, */
static int error;  /* and how at last */
static bool close_it;

static void on_connection(void *ctx, int fd)
{
    ck_assert_ptr_eq(ctx, &loop);
    if (fd < 0) {
        failed++;
        error = fd;
        return;
    }
    ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    ck_assert(fcntl(fd, F_GETFL) & O_NONBLOCK);
    accepted++;
    (void)close(fd);
    if (close_it) {
        acceptor_close(acceptor);
        acceptor = NULL;
    }
}

static void setup(void)
{
    accepted = failed = error = 0;
    close_it = false;
    loop_open(&loop);
    listen_fd = raw_listen_tcp(AF_INET, &port);
    ck_assert_int_eq(listen(listen_fd, 2 * CLIENTS), 0);
    ck_assert_int_eq(
        acceptor_open(&loop.io, listen_fd, on_connection, &loop, &acceptor), 0);
}

static void teardown(void)
{
    acceptor_close(acceptor);
    loop_close(&loop);
}

static bool is_accepted(const void *arg)
{
    return accepted >= *(const int *)arg;
}

static void on_accepts_turn(uv_prepare_t *handle)
{
    static int before;

    ck_assert_int_le(accepted - before, ACCEPTS_TURN);
    before = accepted;
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 20);

START_TEST(many_that_come_at_once_come_in_turns)
{
    static const int ALL = CLIENTS;
    uv_prepare_t prepare;
    int fds[CLIENTS];

    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = raw_connect_tcp(AF_INET, port);
    }
    ck_assert_int_eq(uv_prepare_init(&loop.uv, &prepare), 0);
    ck_assert_int_eq(uv_prepare_start(&prepare, on_accepts_turn), 0);
    loop_until(&loop, is_accepted, &ALL);
    ck_assert_int_eq(accepted, CLIENTS);
    ck_assert_int_eq(failed, 0);
    for (int i = 0; i < CLIENTS; i++) {
        (void)close(fds[i]);
    }
    uv_close((uv_handle_t *)&prepare, NULL);
    loop_turns(&loop, 1);
}

START_TEST(it_may_be_closed_by_what_it_tells)
{
    static const int ONE = 1;
    int fds[2] = { raw_connect_tcp(AF_INET, port), raw_connect_tcp(AF_INET, port) };

    close_it = true;
    loop_until(&loop, is_accepted, &ONE);
    loop_turns(&loop, 3);
    ck_assert_int_eq(accepted, 1);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

START_TEST(a_client_that_is_gone_already_harms_nobody)
{
    static const struct linger AT_ONCE = { .l_onoff = 1, .l_linger = 0 };
    int first = raw_connect_tcp(AF_INET, port);
    int second = raw_connect_tcp(AF_INET, port);
    static const int TWO = 2;

    (void)setsockopt(first, SOL_SOCKET, SO_LINGER, &AT_ONCE, sizeof(AT_ONCE));
    (void)close(first);
    loop_until(&loop, is_accepted, &TWO);
    ck_assert_int_eq(failed, 0);
    (void)close(second);
}

/* No file can be opened any more. */
static void use_up_files(struct rlimit *ret_before)
{
    struct rlimit limit;
    int lowest = dup(listen_fd);

    ck_assert_int_ge(lowest, 0);
    (void)close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, ret_before), 0);
    limit = *ret_before;
    limit.rlim_cur = (rlim_t)lowest;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(dup(listen_fd), -1);
}

static bool is_ended(const void *arg)
{
    char c;

    return recv(*(const int *)arg, &c, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN;
}

START_TEST(where_no_file_can_be_opened_who_comes_is_turned_away)
{
    static const int ONE = 1;
    struct rlimit before;
    int fds[3];

    for (int i = 0; i < 3; i++) {
        fds[i] = raw_connect_tcp(AF_INET, port);
    }
    use_up_files(&before);
    for (int i = 0; i < 3; i++) {
        loop_until(&loop, is_ended, &fds[i]);
    }
    ck_assert_int_eq(accepted, 0);
    ck_assert_int_eq(failed, 1);
    ck_assert_int_eq(error, UV_EMFILE);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (int i = 0; i < 3; i++) {
        (void)close(fds[i]);
    }
    fds[0] = raw_connect_tcp(AF_INET, port);
    loop_until(&loop, is_accepted, &ONE);
    ck_assert_int_eq(failed, 1);
    (void)close(fds[0]);
}

START_TEST(a_socket_that_is_in_the_loop_or_none_is_refused)
{
    struct acceptor *other = NULL;

    ck_assert_int_lt(acceptor_open(&loop.io, -1, on_connection, &loop, &other), 0);
    ck_assert_int_eq(acceptor_open(&loop.io, listen_fd, on_connection, &loop, &other),
                     UV_EEXIST);
    ck_assert_ptr_null(other);
}
