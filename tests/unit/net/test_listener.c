/* Where clients can come in. */
#include "support/net.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

TEST_GROUP(.setup = net_fixture_open, .teardown = net_fixture_close, .timeout_s = 20);

START_TEST(a_port_can_be_left_to_the_kernel)
{
    char v6[64];
    int fd;

    ck_assert_int_gt(port, 0);
    fd = client(0);
    raw_send(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    (void)close(fd);
    if (listeners_add_tcp(net_listeners(net), "::1", port, 16, false, v6, sizeof(v6)) ==
        0) {
        /* v6 only, so the same port is free for it */
        ck_assert(strncmp(v6, "[::1]:", 6) == 0);
        ck_assert_int_eq(atoi(v6 + 6), port);
        fd = raw_connect_tcp(AF_INET6, port);
        raw_send(fd, "PING\r\n");
        expect(fd, "+PONG\r\n");
        (void)close(fd);
    }
}

START_TEST(an_address_that_is_taken_or_none_is_refused)
{
    char text[64];

    ck_assert_int_eq(listeners_add_tcp(net_listeners(net), "127.0.0.1", port, 16, false,
                                       text, sizeof(text)),
                     UV_EADDRINUSE);
    ck_assert_int_eq(listeners_add_tcp(net_listeners(net), "no address", 0, 16, false,
                                       text, sizeof(text)),
                     UV_EINVAL);
    ck_assert_int_eq(listeners_add_tcp(net_listeners(net), "192.0.2.1", 0, 16, false,
                                       text, sizeof(text)),
                     UV_EADDRNOTAVAIL);
    /* An IPv6 socket is for IPv6 only. */
    ck_assert_int_lt(listeners_add_tcp(net_listeners(net), "::ffff:127.0.0.1", 0, 16,
                                       false, text, sizeof(text)),
                     0);
}

START_TEST(a_unix_socket_has_the_mode_that_was_asked_for)
{
    struct stat st;
    char text[128];
    char other[96];

    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0700);
    scratch_path("net", ".sock", other, sizeof(other));
    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), other, 0666, 16, text, sizeof(text)), 0);
    ck_assert_int_eq(lstat(other, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0666);
    ck_assert(strncmp(text, "unix:/", 6) == 0);
    net_stop_listening(net);
    loop_turns(&loop, 1);
    ck_assert_int_eq(lstat(other, &st), -1);
    ck_assert_int_eq(lstat(path, &st), -1);
}

START_TEST(a_stale_socket_is_replaced_and_nothing_else)
{
    char text[128];
    char other[96];
    int fd;

    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), path, 0700, 16, text, sizeof(text)),
        UV_EADDRINUSE);
    scratch_path("net", ".sock", other, sizeof(other));
    (void)close(raw_listen_unix(other)); /* leaves the file */
    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), other, 0700, 16, text, sizeof(text)), 0);
    fd = raw_connect_unix(other);
    raw_send(fd, "PING\r\n");
    expect(fd, "+PONG\r\n");
    (void)close(fd);
    scratch_path("net", ".file", other, sizeof(other));
    fd = creat(other, 0600);
    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), other, 0700, 16, text, sizeof(text)),
        UV_EEXIST);
    (void)close(fd);
    ck_assert_int_eq(unlink(other), 0);
}

START_TEST(a_path_that_is_too_long_or_nowhere_is_refused)
{
    char text[128];
    char other[300];

    memset(other, 'x', sizeof(other) - 1);
    other[sizeof(other) - 1] = '\0';
    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), other, 0700, 16, text, sizeof(text)),
        UV_ENAMETOOLONG);
    ck_assert_int_lt(listeners_add_unix(net_listeners(net), "/nonexistent/x", 0700, 16,
                                        text, sizeof(text)),
                     0);
}

START_TEST(sockets_can_be_handed_over)
{
    char text[128];
    char other[96];
    int tcp_port;
    int tcp = raw_listen_tcp(AF_INET, &tcp_port);
    int un;
    int fds[2];

    scratch_path("net", ".sock", other, sizeof(other));
    un = raw_listen_unix(other);
    ck_assert_int_eq(listeners_add_fd(net_listeners(net), tcp, SOMAXCONN, false, false,
                                      text, sizeof(text)),
                     0);
    ck_assert_int_eq(atoi(text + 10), tcp_port);
    ck_assert_int_eq(listeners_add_fd(net_listeners(net), un, SOMAXCONN, false, false,
                                      text, sizeof(text)),
                     0);
    ck_assert_str_eq(text + 5, other);
    ck_assert(fcntl(un, F_GETFD) & FD_CLOEXEC);
    fds[0] = raw_connect_tcp(AF_INET, tcp_port);
    fds[1] = raw_connect_unix(other);
    for (int i = 0; i < 2; i++) {
        raw_send(fds[i], "PING\r\n");
        expect(fds[i], "+PONG\r\n");
        (void)close(fds[i]);
    }
    net_stop_listening(net);
    loop_turns(&loop, 1);
    ck_assert_int_eq(unlink(other), 0); /* not ours to remove */
}

START_TEST(what_does_not_listen_cannot_be_handed_over)
{
    char text[128];
    int fd = client(0);

    ck_assert_int_eq(listeners_add_fd(net_listeners(net), fd, SOMAXCONN, false, false,
                                      text, sizeof(text)),
                     UV_EINVAL);
    (void)close(fd);
    ck_assert_int_eq(listeners_add_fd(net_listeners(net), fd, SOMAXCONN, false, false,
                                      text, sizeof(text)),
                     UV_EBADF);
}
