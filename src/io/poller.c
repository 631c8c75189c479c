#include "io/poller.h"

#include "io/stream_priv.h"
#include "util/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS_MAX = 512 }; /* events per turn */

struct poller {
    uv_poll_t poll; /* unless io_run() waits for the events */
    struct io *io;
    size_t streams;
    int fd;
};

static void free_dead(struct io *io)
{
    struct stream *s;

    while ((s = io->dead) != NULL) {
        io->dead = s->next_dead;
        stream_free(s);
    }
}

/* The poller */

static void poller_free(struct poller *p)
{
    struct io *io = p->io;

    (void)close(p->fd);
    free(p);
    io->pollers--;
    free_dead(io);
}

static void on_closed(uv_handle_t *handle)
{
    poller_free(container_of(handle, struct poller, poll));
}

/* Waits for events, and handles those of streams. True: the loop has to run, as it has
 * events of its own or the time is over. */
static bool handle_events(const struct poller *p, int timeout_ms)
{
    struct epoll_event ready[EVENTS_MAX];
    bool loop_ready = false;
    int count;

    free_dead(p->io);
    count = epoll_wait(p->fd, ready, EVENTS_MAX, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct stream *s = ready[i].data.ptr;

        /* The event of another stream may have closed this one; its memory is still
         * valid. */
        if (s == NULL) {
            loop_ready = true;
        } else if (s->fd >= 0) {
            stream_ready(s, ready[i].events);
        }
    }
    return loop_ready || count <= 0;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    (void)handle_events(container_of(poll, struct poller, poll), 0);
}

/* Has the loop wait for the streams. */
static int join_loop(struct poller *p)
{
    int r = uv_poll_init(p->io->loop, &p->poll, p->fd);

    if (r == 0) {
        (void)uv_poll_start(&p->poll, UV_READABLE, on_ready); /* cannot fail */
    }
    return r;
}

/* Waits for the loop's own events beside those of streams. */
static int join_streams(struct poller *p)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };
    int fd = uv_backend_fd(p->io->loop);

    return epoll_ctl(p->fd, EPOLL_CTL_ADD, fd, &event) == 0
               ? 0
               : uv_translate_sys_error(errno);
}

static int poller_open(struct io *io)
{
    struct poller *p = xcalloc(1, sizeof(*p));
    int r;

    p->io = io;
    p->fd = epoll_create1(EPOLL_CLOEXEC);
    if (p->fd < 0) {
        r = uv_translate_sys_error(errno);
        free(p);
        return r;
    }
    r = io->runs ? join_streams(p) : join_loop(p);
    if (r != 0) {
        (void)close(p->fd);
        free(p);
        return r;
    }
    io->poller = p;
    io->pollers++;
    return 0;
}

static void poller_leave(struct poller *p)
{
    if (--p->streams > 0 || p->io->runs) {
        return;
    }
    p->io->poller = NULL;
    uv_close((uv_handle_t *)&p->poll, on_closed);
}

/* Running the loop */

static bool has_work(const struct io *io)
{
    return uv_loop_alive(io->loop) || io->poller->streams > 0;
}

/* How long the loop's own handles leave time to wait. */
static int time_to_wait(const struct io *io)
{
    uv_update_time(io->loop);
    return uv_loop_alive(io->loop) ? uv_backend_timeout(io->loop) : -1;
}

int io_run(struct io *io, const struct io_turn *turn, void *ctx)
{
    int r = io->poller == NULL ? poller_open(io) : 0;

    if (r != 0) {
        return r;
    }
    for (turn->before_wait(ctx); has_work(io); turn->before_wait(ctx)) {
        int timeout_ms = time_to_wait(io);

        if (handle_events(io->poller, timeout_ms) || timeout_ms == 0) {
            (void)uv_run(io->loop, UV_RUN_NOWAIT);
        }
        turn->after_events(ctx);
    }
    poller_free(io->poller);
    io->poller = NULL;
    return 0;
}

/* --- the streams of a poller ----------------------------------------------------- */

static uint32_t mask_of(const struct stream *s)
{
    unsigned wants = stream_wants(s);

    /* epoll always reports that the peer is gone; edge-triggered it does so only once.
     */
    return wants == 0 ? (uint32_t)EPOLLET : wants;
}

int poller_add(struct stream *s, int fd)
{
    struct io *io = s->io;
    struct epoll_event event = { .events = mask_of(s), .data.ptr = s };
    int r = io->poller == NULL ? poller_open(io) : 0;

    if (r != 0) {
        return r;
    }
    io->poller->streams++;
    if (epoll_ctl(io->poller->fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        r = uv_translate_sys_error(errno);
        poller_leave(io->poller);
        return r;
    }
    s->fd = fd;
    s->armed = event.events;
    return 0;
}

void poller_update(struct stream *s)
{
    struct epoll_event event = { .events = mask_of(s), .data.ptr = s };

    if (event.events == s->armed) {
        return;
    }
    if (epoll_ctl(s->io->poller->fd, EPOLL_CTL_MOD, s->fd, &event) != 0) {
        abort(); /* cannot fail: it is in the set */
    }
    s->armed = event.events;
}

void poller_remove(struct stream *s)
{
    int fd = s->fd;

    if (fd >= 0) {
        s->fd = -1;
        /* A child between fork and exec may still have the file open, so close() is
         * not enough. */
        (void)epoll_ctl(s->io->poller->fd, EPOLL_CTL_DEL, fd,
                        &(struct epoll_event){ 0 });
        (void)close(fd);
        poller_leave(s->io->poller);
    }
}

void poller_bury(struct stream *s)
{
    if (s->io->pollers == 0) {
        stream_free(s); /* it has no socket, and no events are being handled */
    } else {
        s->next_dead = s->io->dead;
        s->io->dead = s;
    }
}
