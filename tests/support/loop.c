#include "support/loop.h"

#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void on_tick(uv_timer_t *timer)
{
    struct test_loop *l = timer->data;

    io_end_turn(&l->io);
}

void loop_open(struct test_loop *l)
{
    (void)signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(uv_loop_init(&l->uv), 0);
    ck_assert_int_eq(uv_timer_init(&l->uv, &l->waker), 0);
    ck_assert_int_eq(io_init(&l->io, &l->uv), 0);
    l->waker.data = l;
    ck_assert_int_eq(uv_timer_start(&l->waker, on_tick, 5, 5), 0);
}

void loop_close(struct test_loop *l)
{
    uv_close((uv_handle_t *)&l->waker, NULL);
    ck_assert_int_eq(uv_run(&l->uv, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&l->uv), 0);
    io_fini(&l->io);
}

uint64_t loop_deadline_ms(void)
{
    const char *factor = getenv("CK_TIMEOUT_MULTIPLIER");
    long times = factor == NULL ? 1 : strtol(factor, NULL, 10);

    return (uint64_t)LOOP_DEADLINE_MS * (uint64_t)(times > 1 ? times : 1);
}

void loop_until(struct test_loop *l, loop_condition_fn *is_met, const void *arg)
{
    uint64_t limit = uv_hrtime() + loop_deadline_ms() * 1000000ULL;

    while (!is_met(arg)) {
        ck_assert_msg(uv_hrtime() < limit, "what was waited for did not happen");
        (void)uv_run(&l->uv, UV_RUN_ONCE);
    }
}

static bool is_set(const void *arg)
{
    return *(const bool *)arg;
}

void loop_until_flag(struct test_loop *l, const bool *flag)
{
    loop_until(l, is_set, flag);
}

void loop_turns(struct test_loop *l, int count)
{
    for (int i = 0; i < count; i++) {
        (void)uv_run(&l->uv, UV_RUN_ONCE);
    }
}

/* The loopback address with a port; returns its length. */
static socklen_t loopback(int family, int port, struct sockaddr_storage *ret)
{
    struct sockaddr_in *in = (void *)ret;
    struct sockaddr_in6 *in6 = (void *)ret;

    *ret = (struct sockaddr_storage){ 0 };
    if (family == AF_INET) {
        in->sin_family = AF_INET;
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        in->sin_port = htons((uint16_t)port);
        return sizeof(*in);
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_addr = in6addr_loopback;
    in6->sin6_port = htons((uint16_t)port);
    return sizeof(*in6);
}

static struct sockaddr_un unix_name(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };

    (void)snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
    return un;
}

int raw_listen_tcp(int family, int *ret_port)
{
    struct sockaddr_storage name;
    socklen_t len = loopback(family, 0, &name);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, len), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&name, &len), 0);
    /* The port is at the same place in both families. */
    *ret_port = ntohs(((struct sockaddr_in *)(void *)&name)->sin_port);
    return fd;
}

int raw_listen_unix(const char *path)
{
    struct sockaddr_un un = unix_name(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    ck_assert_int_eq(listen(fd, 8), 0);
    return fd;
}

int raw_connect_tcp(int family, int port)
{
    struct sockaddr_storage name;
    socklen_t len = loopback(family, port, &name);
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&name, len), 0);
    return fd;
}

int raw_connect_unix(const char *path)
{
    struct sockaddr_un un = unix_name(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    return fd;
}

void raw_send(int fd, const char *text)
{
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

void raw_expect(int fd, const char *text)
{
    struct timeval limit = { .tv_sec = (time_t)(loop_deadline_ms() / 1000) };
    char got[512] = "";

    ck_assert_uint_lt(strlen(text), sizeof(got));
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    ck_assert_msg(recv(fd, got, strlen(text), MSG_WAITALL) == (ssize_t)strlen(text) &&
                      strcmp(got, text) == 0,
                  "expected \"%s\", got \"%s\"", text, got);
}

static void on_connect(void *ctx, int status)
{
    struct stream_record *rec = ctx;

    ck_assert(!rec->connected);
    rec->connected = true;
    rec->connect_status = status;
}

static void on_read(void *ctx, const char *data, size_t len)
{
    struct stream_record *rec = ctx;

    buf_add(&rec->got, data, len);
    if (rec->close_on_read) {
        stream_close(rec->stream);
        rec->stream = NULL;
    }
}

static void on_drain(void *ctx)
{
    struct stream_record *rec = ctx;

    rec->drained = true;
}

static void on_end(void *ctx, int status, bool unread)
{
    struct stream_record *rec = ctx;

    ck_assert(!rec->ended);
    rec->ended = true;
    rec->end_status = status;
    rec->unread = unread;
}

const struct stream_events RECORD_EVENTS = { on_connect, on_read, on_drain, on_end };
