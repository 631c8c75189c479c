#include "io/stream.h"

#include "io/socket.h"
#include "io/stream_priv.h"
#include "util/alloc.h"
#include "util/list.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { READ_ROOM = 64 * 1024 };

int io_init(struct io *io, uv_loop_t *loop)
{
    *io = (struct io){ .loop = loop, .read_room = READ_ROOM };
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
    s->reading = true;
    return s;
}

static void outgoing_free(struct outgoing *out)
{
    if (out != NULL) {
        buf_reset(&out->data);
        buf_reset(&out->next);
        free(out);
    }
}

void stream_unref(struct stream *s)
{
    if (s->closed && !s->live && !dial_is_resolving(s->dial)) {
        outgoing_free(s->out);
        dial_free(s->dial);
        stream_tls_free(s->tls);
        free(s);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct stream *s = handle->data;

    s->live = false;
    if (s->closed) {
        stream_unref(s);
    } else if (!dial_next(s->dial)) {
        dial_failed(s->dial);
    }
}

void stream_close_handle(struct stream *s)
{
    if (s->live && !uv_is_closing(&s->u.handle)) {
        uv_close(&s->u.handle, on_closed);
    }
}

void stream_close(struct stream *s)
{
    if (s == NULL || s->closed) {
        return;
    }
    stream_tls_close(s);
    s->closed = true;
    stream_close_handle(s);
    dial_cancel(s->dial);
    stream_unref(s);
}

void stream_abort(struct stream *s)
{
    static const struct linger AT_ONCE = { .l_onoff = 1, .l_linger = 0 };

    if (s != NULL && !s->closed && s->connected && !s->is_unix) {
        (void)setsockopt(stream_fd(s), SOL_SOCKET, SO_LINGER, &AT_ONCE,
                         sizeof(AT_ONCE));
        s->write_error = UV_ECONNABORTED; /* no last word either */
    }
    stream_close(s);
}

int stream_fd(const struct stream *s)
{
    uv_os_fd_t fd = -1;

    return s->live && uv_fileno(&s->u.handle, &fd) == 0 ? fd : -1;
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
    (void)uv_read_stop(&s->u.stream);
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
        /* A dead peer, found by a probe, may have had everything before it died. */
        unread =
            has_queued(s) || s->write_error != 0 || socket_has_unsent(stream_fd(s));
    }
    s->events->on_end(s->ctx, status, unread);
}

/* Writing failed. What the peer said before it left can still be read, and comes first:
 * the end is reported once the input is used up. */
static void end_after_input(struct stream *s)
{
    struct pollfd p = { .fd = stream_fd(s), .events = POLLIN };

    if (!s->reading || s->ended || poll(&p, 1, 0) <= 0 || (p.revents & POLLIN) == 0) {
        stream_end(s, s->write_error);
    }
}

/* Reading */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
    struct stream *s = handle->data;
    bool may_read = s->tls == NULL || stream_tls_may_read(s);

    /* No room makes it UV_ENOBUFS, and leaves the bytes with the kernel. */
    *ret = uv_buf_init(s->io->read_buf, may_read ? (unsigned)s->io->read_room : 0);
}

static void on_read(uv_stream_t *handle, ssize_t nread, const uv_buf_t *data)
{
    struct stream *s = handle->data;

    if (nread == UV_ENOBUFS) {
        stream_tls_defer(s);
    } else if (nread < 0) {
        stream_end(s, (int)nread);
    } else if (nread > 0) {
        if (s->tls != NULL) {
            stream_tls_input(s, data->base, (size_t)nread);
        } else {
            s->events->on_read(s->ctx, data->base, (size_t)nread);
        }
        if (!s->closed && s->write_error != 0) {
            end_after_input(s);
        }
    }
}

void stream_read_start(struct stream *s)
{
    s->reading = true;
    if (s->connected && !s->closed && !s->ended) {
        /* Cannot fail for a stream that is open. */
        (void)uv_read_start(&s->u.stream, on_alloc, on_read);
    }
}

void stream_read_stop(struct stream *s)
{
    s->reading = false;
    if (s->connected && !s->closed) {
        (void)uv_read_stop(&s->u.stream);
    }
}

/* Writing */

static void on_written(uv_write_t *req, int status);

static void start_write(struct stream *s)
{
    struct outgoing *out = s->out;
    uv_buf_t data =
        uv_buf_init(out->data.data + out->data.head, (unsigned)buf_len(&out->data));

    out->started = true;
    /* Fails only for a handle that was never open. */
    (void)uv_write(&out->req, &s->u.stream, &data, 1, on_written);
}

static void on_written(uv_write_t *req, int status)
{
    struct outgoing *out = container_of(req, struct outgoing, req);
    struct stream *s = out->stream;

    if (s->closed) {
        return; /* stream_unref() frees it */
    }
    if (status == 0 && buf_len(&out->next) > 0) {
        buf_reset(&out->data);
        out->data = out->next;
        out->next = (struct buf){ 0 };
        start_write(s);
        return;
    }
    outgoing_free(out);
    s->out = NULL;
    if (s->dial != NULL) {
        return; /* of a handshake: its end, or that of the connection, tells more */
    }
    if (status != 0) {
        s->write_error = s->write_error != 0 ? s->write_error : status;
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
    if (s->closed || s->write_error != 0 || buf_len(out) == 0) {
        buf_clear(out);
        return;
    }
    if (s->out == NULL && s->connected) {
        uv_buf_t data = uv_buf_init(out->data + out->head, (unsigned)buf_len(out));
        int written = uv_try_write(&s->u.stream, &data, 1);

        if (written > 0) {
            buf_drop(out, (size_t)written);
        } else if (written != UV_EAGAIN) {
            s->write_error = written;
        }
        if (buf_len(out) == 0) {
            return;
        }
        /* If this was an error, uv_write() runs into it again, and reports it when
         * nobody is in the middle of something. */
    }
    if (s->out == NULL) {
        s->out = xcalloc(1, sizeof(*s->out));
        s->out->stream = s;
    }
    stream_move_to_end(s->out->started ? &s->out->next : &s->out->data, out);
    if (s->connected && !s->out->started) {
        start_write(s);
    }
}

size_t stream_queued(const struct stream *s)
{
    size_t waiting = stream_tls_queued(s);

    if (s->out == NULL) {
        return waiting;
    }
    return waiting + buf_len(&s->out->next) +
           (s->out->started ? uv_stream_get_write_queue_size(&s->u.stream)
                            : buf_len(&s->out->data));
}

/* Opening */

int stream_opened(struct stream *s, const struct stream_options *opt)
{
    int r = 0;

    if (!s->is_unix) {
        socket_set_tcp_options(stream_fd(s), opt);
    }
    if (s->reading) {
        r = uv_read_start(&s->u.stream, on_alloc, on_read);
    }
    if (r == 0) {
        s->connected = true;
        if (s->tls != NULL) {
            stream_tls_start(s);
        }
        if (s->out != NULL && !s->out->started) {
            start_write(s);
        }
    }
    return r;
}

int stream_accept(struct io *io, uv_stream_t *listener,
                  const struct stream_options *opt, const struct stream_events *events,
                  void *ctx, struct stream **ret)
{
    struct stream *s = stream_new(io, events, ctx);
    int r;

    if (opt->tls != NULL) {
        stream_tls_new(s, opt->tls, NULL);
    }
    s->is_unix = listener->type == UV_NAMED_PIPE;
    r = s->is_unix ? uv_pipe_init(io->loop, &s->u.pipe, 0)
                   : uv_tcp_init(io->loop, &s->u.tcp);
    if (r != 0) {
        goto err_close;
    }
    s->live = true;
    s->u.handle.data = s;
    r = uv_accept(listener, &s->u.stream);
    if (r != 0) {
        goto err_close;
    }
    r = stream_opened(s, opt);
    if (r != 0) {
        goto err_close;
    }
    *ret = s;
    return 0;

err_close:
    stream_close(s);
    return r;
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
