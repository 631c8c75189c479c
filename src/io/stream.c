#include "io/stream.h"

#include "io/poller.h"
#include "io/socket.h"
#include "io/stream_priv.h"
#include "util/alloc.h"
#include "util/list.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_ROOM = 64 * 1024,
    /* Full buffers that one stream may read in a turn, while others wait. */
    READS_TURN = 16,
};

int io_init(struct io *io, uv_loop_t *loop)
{
    *io = (struct io){ .loop = loop, .spare_fd = -1, .read_room = READ_ROOM };
    io->read_buf = xmalloc(READ_ROOM);
    list_init(&io->handshakes);
    list_init(&io->deferred);
    return 0;
}

void io_fini(struct io *io)
{
    free(io->read_buf);
    free(io->text_buf);
    *io = (struct io){ 0 };
}

/* Life */

struct stream *stream_new(struct io *io, const struct stream_events *events, void *ctx)
{
    struct stream *s = xcalloc(1, sizeof(*s));

    s->io = io;
    s->events = events;
    s->ctx = ctx;
    s->fd = -1;
    s->reading = true;
    return s;
}

void stream_drop_queued(struct stream *s)
{
    if (s->out != NULL) {
        buf_reset(&s->out->data);
        buf_reset(&s->out->next);
        free(s->out);
        s->out = NULL;
    }
}

void stream_free(struct stream *s)
{
    stream_drop_queued(s);
    dial_free(s->dial);
    stream_tls_free(s->tls);
    free(s);
}

void stream_unref(struct stream *s)
{
    if (s->closed && !dial_is_resolving(s->dial)) {
        poller_bury(s);
    }
}

void stream_close(struct stream *s)
{
    if (s == NULL || s->closed) {
        return;
    }
    stream_tls_close(s);
    s->closed = true;
    poller_remove(s);
    dial_cancel(s->dial);
    stream_unref(s);
}

void stream_abort(struct stream *s)
{
    static const struct linger AT_ONCE = { .l_onoff = 1, .l_linger = 0 };

    if (s != NULL && !s->closed && s->connected && !s->is_unix) {
        (void)setsockopt(stream_fd(s), SOL_SOCKET, SO_LINGER, &AT_ONCE,
                         sizeof(AT_ONCE));
        s->write_error =
            UV_ECONNABORTED; /* a closing TLS message cannot be sent either */
    }
    stream_close(s);
}

int stream_fd(const struct stream *s)
{
    return s->fd;
}

/* How it ends */

static bool has_queued(const struct stream *s)
{
    return s->out != NULL || stream_tls_queued(s) > 0;
}

enum stream_fate stream_fate(const struct stream *s)
{
    int fd = stream_fd(s);

    if (s->write_error != 0 || fd < 0 || socket_is_reset(fd, s->is_unix)) {
        return STREAM_LOST;
    }
    return has_queued(s) || socket_has_unsent(fd) ? STREAM_PENDING : STREAM_TAKEN;
}

void stream_end(struct stream *s, int status)
{
    bool unread;

    if (s->ended) {
        return;
    }
    s->ended = true;
    stream_tls_over(s, status);
    if (s->dial != NULL) {
        s->ended = false;
        dial_broke(s->dial, status);
        return;
    }
    switch (status) {
    case UV_EOF:
        unread = stream_fate(s) != STREAM_TAKEN;
        break;
    case UV_ECONNRESET:
    case UV_EPIPE:
        unread = true;
        break;
    default:
        /* A peer that keepalive found dead may have read everything before. */
        unread =
            has_queued(s) || s->write_error != 0 || socket_has_unsent(stream_fd(s));
    }
    s->events->on_end(s->ctx, status, unread);
}

/* Handles a failed write. What the peer sent before it left can still be read: the end
 * is reported once the input is used up. */
static void end_after_input(struct stream *s)
{
    struct pollfd p = { .fd = stream_fd(s), .events = POLLIN };

    if (!s->reading || s->ended || poll(&p, 1, 0) <= 0 || (p.revents & POLLIN) == 0) {
        stream_end(s, s->write_error);
    }
}

/* Reading */

static bool wants_input(const struct stream *s)
{
    return s->reading && s->connected && !s->ended && !s->closed &&
           (s->tls == NULL || !stream_tls_is_deferred(s));
}

static void take_input(struct stream *s, size_t len)
{
    if (s->tls != NULL) {
        stream_tls_input(s, s->io->read_buf, len);
    } else {
        s->events->on_read(s->ctx, s->io->read_buf, len);
    }
    if (!s->closed && s->write_error != 0) {
        end_after_input(s);
    }
}

/* Reads input. `hung_up`: the kernel has all input that there will be. */
static void read_input(struct stream *s, bool hung_up)
{
    for (int i = 0; i < READS_TURN && wants_input(s); i++) {
        ssize_t n;

        if (s->tls != NULL && !stream_tls_may_read(s)) {
            stream_tls_defer(s);
            return;
        }
        n = recv(s->fd, s->io->read_buf, s->io->read_room, 0);
        if (n > 0) {
            take_input(s, (size_t)n);
            if ((size_t)n == s->io->read_room) {
                continue;
            }
            if (hung_up && wants_input(s)) {
                stream_end(s, UV_EOF);
            }
            return;
        }
        if (n == 0) {
            stream_end(s, UV_EOF);
        } else if (errno != EAGAIN && errno != EINTR) {
            stream_end(s, uv_translate_sys_error(errno));
        }
        return; /* interrupted by a signal: epoll reports it again */
    }
}

void stream_read_start(struct stream *s)
{
    s->reading = true;
    if (wants_input(s)) {
        poller_update(s);
    }
}

void stream_read_stop(struct stream *s)
{
    s->reading = false; /* the next input stops the polling, see stream_ready() */
}

/* Writing */

/* Writes as much as the kernel takes. 0: everything. UV_EAGAIN: the kernel has no
 * room. */
static int write_some(struct stream *s, struct buf *out)
{
    while (buf_len(out) > 0) {
        size_t len = buf_len(out);
        ssize_t n = send(s->fd, buf_ptr(out), len, MSG_NOSIGNAL);

        if (n >= 0) {
            buf_drop(out, (size_t)n);
            if ((size_t)n < len) {
                return UV_EAGAIN;
            }
        } else if (errno == EAGAIN || errno == ENOBUFS) {
            return UV_EAGAIN;
        } else if (errno != EINTR) {
            return uv_translate_sys_error(errno);
        }
    }
    return 0;
}

/* Writes queued bytes when the kernel has room again, or reports an earlier error. */
static void write_queued(struct stream *s)
{
    int r = s->write_error != 0 ? s->write_error : write_some(s, &s->out->data);

    if (r == 0 && buf_len(&s->out->next) > 0) {
        buf_reset(&s->out->data);
        s->out->data = s->out->next;
        s->out->next = (struct buf){ 0 };
        r = write_some(s, &s->out->data);
    }
    if (r == UV_EAGAIN) {
        return;
    }
    stream_drop_queued(s);
    poller_update(s);
    if (s->dial != NULL) {
        return; /* during a handshake: its own end reports more */
    }
    if (r != 0) {
        s->write_error = r;
        end_after_input(s);
    } else if (s->events->on_drain != NULL) {
        s->events->on_drain(s->ctx);
    }
}

void stream_move_to_end(struct buf *to, struct buf *from)
{
    if (buf_len(to) == 0) {
        buf_reset(to);
        *to = *from;
        *from = (struct buf){ 0 };
    } else {
        buf_add_span(to, buf_span(from));
        buf_clear(from);
    }
}

void stream_send(struct stream *s, struct buf *out)
{
    if (s->tls != NULL) {
        stream_tls_send(s, out);
    } else {
        stream_send_wire(s, out);
    }
}

void stream_send_wire(struct stream *s, struct buf *out)
{
    struct outgoing *waiting;

    if (s->closed || s->write_error != 0 || buf_len(out) == 0) {
        buf_clear(out);
        return;
    }
    if (s->out == NULL && s->connected) {
        int r = write_some(s, out);

        if (r == 0) {
            return;
        }
        /* An error is reported later, when no caller is in the middle of something: it
         * makes the socket ready, and write_queued() reports it. */
        s->write_error = r == UV_EAGAIN ? 0 : r;
    }
    if (s->out == NULL) {
        s->out = xcalloc(1, sizeof(*s->out));
    }
    waiting = s->out;
    stream_move_to_end(waiting->data.head == 0 && buf_len(&waiting->next) == 0
                           ? &waiting->data
                           : &waiting->next,
                       out);
    if (s->connected) {
        poller_update(s);
    }
}

size_t stream_queued(const struct stream *s)
{
    size_t waiting = stream_tls_queued(s);

    return s->out == NULL ? waiting
                          : waiting + buf_len(&s->out->data) + buf_len(&s->out->next);
}

/* The loop */

unsigned stream_wants(const struct stream *s)
{
    if (!s->connected) {
        return EPOLLOUT;
    }
    return (wants_input(s) ? EPOLLIN : 0U) | (s->out != NULL ? EPOLLOUT : 0U);
}

void stream_ready(struct stream *s, unsigned events)
{
    if (!s->connected) {
        dial_ready(s->dial);
        return;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) {
        if (wants_input(s)) {
            read_input(s, (events & EPOLLHUP) != 0);
        } else {
            poller_update(s);
        }
    }
    if (s->fd >= 0 && s->connected && s->out != NULL &&
        (events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) {
        write_queued(s);
    }
}

/* Opening */

void stream_opened(struct stream *s, const struct stream_options *opt)
{
    if (!s->is_unix) {
        socket_set_tcp_options(s->fd, opt);
    }
    s->connected = true;
    if (s->tls != NULL) {
        stream_tls_start(s);
    } else if (s->out != NULL) {
        int r = write_some(s, &s->out->data);

        s->write_error = r == UV_EAGAIN ? 0 : r; /* write_queued() does the rest */
    }
    poller_update(s);
}

int stream_accept(struct io *io, int fd, bool is_unix, const struct stream_options *opt,
                  const struct stream_events *events, void *ctx, struct stream **ret)
{
    struct stream *s = stream_new(io, events, ctx);
    int r;

    if (opt->tls != NULL) {
        stream_tls_new(s, opt->tls, NULL);
    }
    s->is_unix = is_unix;
    s->connected = true;
    r = poller_add(s, fd);
    if (r != 0) {
        (void)close(fd);
        stream_close(s);
        return r;
    }
    stream_opened(s, opt);
    *ret = s;
    return 0;
}

bool stream_is_unix(const struct stream *s)
{
    return s->is_unix;
}

void stream_discard_input(struct stream *s)
{
    if (s->connected && !s->closed) {
        socket_discard_input(stream_fd(s));
    }
}

void stream_local_name(const struct stream *s, char *out, size_t room)
{
    socket_local_name(stream_fd(s), out, room);
}

void stream_peer_name(const struct stream *s, char *out, size_t room)
{
    socket_peer_name(stream_fd(s), out, room);
}
