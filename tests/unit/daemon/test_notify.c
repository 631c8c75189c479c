#include "daemon/notify.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The manager's side: bound to `name`, an `@` at its start meaning an abstract one. */
static int listen_as(const char *name)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    size_t len = strlen(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    memcpy(addr.sun_path, name, len);
    if (name[0] == '@') {
        addr.sun_path[0] = '\0';
    }
    ck_assert_int_ge(fd, 0);
    len += offsetof(struct sockaddr_un, sun_path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, (socklen_t)len), 0);
    (void)setenv("NOTIFY_SOCKET", name, 1);
    return fd;
}

static void expect(int fd, const char *want)
{
    char text[1024];
    ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

    ck_assert_int_gt(n, 0);
    text[n] = '\0';
    ck_assert_str_eq(text, want);
}

START_TEST(messages_reach_a_path_and_an_abstract_name)
{
    char path[128];
    char abstract[64];
    const char *names[2] = { path, abstract };
    struct notify n;

    scratch_path("notify", ".sock", path, sizeof(path));
    (void)snprintf(abstract, sizeof(abstract), "@latchd-test-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        int fd = listen_as(names[i]);

        notify_init(&n);
        ck_assert_ptr_null(getenv("NOTIFY_SOCKET"));
        notify_send(&n, "READY=1\nSTATUS=%s", "Serving");
        expect(fd, "READY=1\nSTATUS=Serving");
        notify_fini(&n);
        (void)close(fd);
    }
    (void)unlink(path);
}

START_TEST(nothing_happens_where_nobody_asked)
{
    struct notify n;

    (void)unsetenv("NOTIFY_SOCKET");
    notify_init(&n);
    ck_assert_int_eq(n.fd, -1);
    notify_send(&n, "READY=1");
    notify_fini(&n);
    (void)setenv("NOTIFY_SOCKET", "relative", 1);
    notify_init(&n);
    ck_assert_int_eq(n.fd, -1);
    notify_fini(&n);
}

START_TEST(the_watchdog_is_fed_at_half_its_time_if_it_is_ours)
{
    char name[64];
    struct notify n;
    int fd;

    (void)snprintf(name, sizeof(name), "@latchd-watchdog-%d", (int)getpid());
    fd = listen_as(name);
    (void)setenv("WATCHDOG_USEC", "3000000", 1);
    (void)unsetenv("WATCHDOG_PID");
    notify_init(&n);
    ck_assert_uint_eq(n.watchdog_ms, 1500);
    notify_fini(&n);

    (void)setenv("NOTIFY_SOCKET", name, 1);
    (void)setenv("WATCHDOG_USEC", "3000000", 1);
    (void)setenv("WATCHDOG_PID", "1", 1);
    notify_init(&n);
    ck_assert_uint_eq(n.watchdog_ms, 0);
    notify_fini(&n);
    (void)close(fd);
}

START_TEST(sockets_are_taken_only_by_the_process_they_are_meant_for)
{
    char pid[32];
    uint64_t tls = 77;

    (void)setenv("LISTEN_FDNAMES", "tls", 1);
    (void)setenv("LISTEN_FDS", "2", 1);
    (void)setenv("LISTEN_PID", "1", 1);
    ck_assert_int_eq(notify_listen_fds(&tls), 0);
    (void)setenv("LISTEN_FDS", "2", 1);
    (void)unsetenv("LISTEN_PID");
    ck_assert_int_eq(notify_listen_fds(&tls), 0);

    ck_assert_int_ge(dup2(STDIN_FILENO, NOTIFY_FIRST_FD), 0);
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    (void)setenv("LISTEN_FDS", "1", 1);
    (void)setenv("LISTEN_PID", pid, 1);
    ck_assert_int_eq(notify_listen_fds(&tls), 1);
    ck_assert_int_eq(fcntl(NOTIFY_FIRST_FD, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    ck_assert_ptr_null(getenv("LISTEN_FDS"));
    ck_assert_ptr_null(getenv("LISTEN_PID"));
    ck_assert_uint_eq(tls, 0); /* the names went with the first, who was not us */
}

START_TEST(sockets_that_are_called_tls_are_told_apart, 7)
{
    static const struct {
        const char *names;
        uint64_t tls;
    } ROWS[] = {
        { "plain:tls", 2 }, { "tls:tls", 3 },       { "tls", 1 },      { "", 0 },
        { ":tls", 2 },      { "tls2:xtls:TLS", 0 }, { "a:b:tls:", 4 },
    };
    char pid[32];
    uint64_t tls = 77;

    ck_assert_int_ge(dup2(STDIN_FILENO, NOTIFY_FIRST_FD), 0);
    (void)snprintf(pid, sizeof(pid), "%d", (int)getpid());
    (void)setenv("LISTEN_FDS", "1", 1);
    (void)setenv("LISTEN_PID", pid, 1);
    (void)setenv("LISTEN_FDNAMES", ROWS[_i].names, 1);
    ck_assert_int_eq(notify_listen_fds(&tls), 1);
    ck_assert_uint_eq(tls, ROWS[_i].tls);
    ck_assert_ptr_null(getenv("LISTEN_FDNAMES"));
}
