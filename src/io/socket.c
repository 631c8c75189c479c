#include "io/socket.h"

#include "util/alloc.h"
#include "util/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    DISCARD_ROUNDS = 64,
    PROBES = 3,
    PROBE_INTERVAL_S = 3,
    UNIX_HEAD = offsetof(struct sockaddr_un, sun_path),
};

static void format_name(const struct sockaddr_storage *name, socklen_t len, char *out,
                        size_t room)
{
    char address[INET6_ADDRSTRLEN];

    if (name->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)name;

        (void)inet_ntop(AF_INET, &in->sin_addr, address, sizeof(address));
        (void)snprintf(out, room, "%s:%d", address, ntohs(in->sin_port));
    } else if (name->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)name;

        (void)inet_ntop(AF_INET6, &in6->sin6_addr, address, sizeof(address));
        (void)snprintf(out, room, "[%s]:%d", address, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_un *un = (const void *)name;
        size_t path = len > UNIX_HEAD ? strnlen(un->sun_path, len - UNIX_HEAD) : 0;

        (void)snprintf(out, room, "unix:%.*s", (int)path, un->sun_path);
    }
}

void socket_local_name(int fd, char *out, size_t room)
{
    struct sockaddr_storage name = { 0 };
    socklen_t len = sizeof(name);

    if (getsockname(fd, (struct sockaddr *)&name, &len) == 0) {
        format_name(&name, len, out, room);
    } else {
        (void)snprintf(out, room, "-");
    }
}

void socket_peer_name(int fd, char *out, size_t room)
{
    struct sockaddr_storage name = { 0 };
    socklen_t len = sizeof(name);

    if (getpeername(fd, (struct sockaddr *)&name, &len) != 0) {
        (void)snprintf(out, room, "-");
    } else if (name.ss_family == AF_UNIX && len <= UNIX_HEAD) {
        /* Clients of a unix socket have no address: the socket's own path says more. */
        socket_local_name(fd, out, room);
    } else {
        format_name(&name, len, out, room);
    }
}

static bool is_loopback(const struct sockaddr_storage *name)
{
    if (name->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)name;

        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    if (name->ss_family == AF_INET6) {
        const struct in6_addr *in6 =
            &((const struct sockaddr_in6 *)(const void *)name)->sin6_addr;

        return IN6_IS_ADDR_LOOPBACK(in6) ||
               (IN6_IS_ADDR_V4MAPPED(in6) && in6->s6_addr[12] == IN_LOOPBACKNET);
    }
    return name->ss_family == AF_UNIX;
}

bool socket_is_local(int fd)
{
    struct sockaddr_storage name = { 0 };
    socklen_t len = sizeof(name);

    if (getpeername(fd, (struct sockaddr *)&name, &len) != 0) {
        return errno == ENOTCONN; /* reset before it was accepted: nobody is there */
    }
    return is_loopback(&name);
}

static void set_option(int fd, int level, int name, int value)
{
    /* An old kernel may lack an option; the connection works without it. */
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

void socket_set_tcp_options(int fd, const struct stream_options *opt)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (opt->keepalive_s > 0) {
        set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)opt->keepalive_s);
        set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_INTERVAL_S);
        set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
        set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    }
    if (opt->user_timeout_ms > 0) {
        set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, (int)opt->user_timeout_ms);
    }
}

bool socket_has_unsent(int fd)
{
    int unsent = 0;

    return ioctl(fd, SIOCOUTQ, &unsent) != 0 || unsent > 0;
}

bool socket_is_reset(int fd, bool is_unix)
{
    struct tcp_info info = { .tcpi_state = TCP_ESTABLISHED };
    socklen_t len = sizeof(info);
    int error = 0;

    if (is_unix) {
        /* Set when the peer closed with bytes of ours unread. */
        len = sizeof(error);
        return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 || error != 0;
    }
    /* The peer's FIN leaves the state at CLOSE_WAIT; only a reset makes it CLOSE. */
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
           info.tcpi_state == TCP_CLOSE;
}

void socket_discard_input(int fd)
{
    char trash[4096];

    for (int i = 0; i < DISCARD_ROUNDS; i++) {
        if (recv(fd, trash, sizeof(trash), MSG_DONTWAIT) <= 0) {
            return;
        }
    }
}

struct acceptor {
    uv_poll_t poll;
    struct io *io;
    acceptor_fn *fn;
    void *ctx;
    int fd;
    bool full; /* no file could be opened, and this was reported */
};

static void open_spare(struct io *io)
{
    if (io->spare_fd < 0) {
        io->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static void close_spare(struct io *io)
{
    if (io->spare_fd >= 0) {
        (void)close(io->spare_fd);
        io->spare_fd = -1;
    }
}

static int accept_one(const struct acceptor *a)
{
    int fd = accept4(a->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    return fd >= 0 ? fd : uv_translate_sys_error(errno);
}

/* Accepts and closes a connection with the spare file, when no file can be opened.
 * False: none is there, or this failed too. */
static bool turn_away(const struct acceptor *a)
{
    int fd = UV_EMFILE;

    if (a->io->spare_fd >= 0) {
        close_spare(a->io);
        fd = accept_one(a);
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    open_spare(a->io);
    return fd >= 0;
}

/* Handles a result of accept(). False: stop for this turn. */
static bool handle_accepted(struct acceptor *a, int fd)
{
    bool tell;

    if (fd >= 0) {
        a->full = false;
        a->fn(a->ctx, fd);
        return true;
    }
    switch (fd) {
    case UV_EAGAIN:
        return false;
    case UV_EMFILE:
    case UV_ENFILE:
        if (!turn_away(a)) {
            return false;
        }
        tell = !a->full;
        a->full = true;
        if (tell) {
            a->fn(a->ctx, fd);
        }
        return true;
    case UV_EBADF:
    case UV_EINVAL:
    case UV_ENOTSOCK:
    case UV_ENOBUFS:
    case UV_ENOMEM:
        a->fn(a->ctx, fd);
        return false;
    default:
        return true; /* the connection was gone already, or a signal came */
    }
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct acceptor *a = container_of(poll, struct acceptor, poll);

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_TURN && a->fd >= 0 && handle_accepted(a, accept_one(a));
         i++) {
    }
}

static void on_closed(uv_handle_t *handle)
{
    free(container_of(handle, struct acceptor, poll));
}

int acceptor_open(struct io *io, int fd, acceptor_fn *fn, void *ctx,
                  struct acceptor **ret)
{
    struct acceptor *a = xcalloc(1, sizeof(*a));
    int r = uv_poll_init(io->loop, &a->poll, fd);

    if (r != 0) {
        free(a);
        return r;
    }
    a->io = io;
    a->fn = fn;
    a->ctx = ctx;
    a->fd = fd;
    io->acceptors++;
    open_spare(io);
    (void)uv_poll_start(&a->poll, UV_READABLE, on_ready); /* cannot fail */
    *ret = a;
    return 0;
}

void acceptor_close(struct acceptor *a)
{
    if (a != NULL && a->fd >= 0) {
        uv_close((uv_handle_t *)&a->poll,
                 on_closed); /* removes it from the loop's poll set */
        (void)close(a->fd);
        a->fd = -1;
        if (--a->io->acceptors == 0) {
            close_spare(a->io);
        }
    }
}
