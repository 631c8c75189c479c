#include "io/acceptor.h"

#include "util/alloc.h"
#include "util/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
