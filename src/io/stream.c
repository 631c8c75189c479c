#include "io/stream.h"

#include "io/socket.h"
#include "io/tls.h"
#include "util/alloc.h"
#include "util/list.h"
#include "util/log.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Queued output; exists only while there is some. Once a part of `data` is written,
 * new bytes go into `next`, so that the rest need not be moved. */
struct outgoing {
    struct buf data;
    struct buf next;
};

/* A stream is freed when its owner has closed it and no name is being looked up, see
 * poller_bury(). There may be very many: 72 bytes fill a block of malloc(). */
struct stream {
    struct io *io;
    const struct stream_events *events;
    void *ctx;
    struct outgoing *out;
    struct dial *dial;        /* while connecting */
    struct stream_tls *tls;   /* NULL: not TLS */
    struct stream *next_dead; /* io->dead */
    int fd;                   /* -1: none */
    int write_error;          /* the first error */
    uint32_t armed;           /* the events that the kernel waits for */
    bool is_unix : 1;
    bool connected : 1;
    bool reading : 1; /* what the owner wants */
    bool ended : 1;   /* on_end was called */
    bool closed : 1;  /* by the owner */
};
/* Dial: connecting a stream: the name is looked up on libuv's threads, then the
 * addresses are tried in turn. */

/* SYN retries for an address if another one is left: it has 3 s. */
enum { SYN_RETRIES = 1 };

struct dial {
    uv_getaddrinfo_t lookup;
    struct stream *stream;
    struct stream_options opt;
    struct addrinfo *addresses;
    struct addrinfo *next;
    int error;  /* of the last attempt */
    int failed; /* error of this attempt, not handled yet */
    bool resolving;
};

static int poller_add(struct stream *s, int fd);
static void poller_update(struct stream *s);
static void poller_remove(struct stream *s);
static void poller_bury(struct stream *s);
static void stream_tls_new(struct stream *s, struct tls *tls, const char *host);
static void stream_tls_input(struct stream *s, const char *data, size_t len);
static struct stream *stream_new(struct io *io, const struct stream_events *events,
                                 void *ctx);
static void stream_drop_queued(struct stream *s);
static void stream_unref(struct stream *s);
static void stream_end(struct stream *s, int status);
static void stream_move_to_end(struct buf *to, struct buf *from);
static void stream_send_wire(struct stream *s, struct buf *out);
static void stream_opened(struct stream *s, const struct stream_options *opt);

static struct dial *dial_new(struct stream *s, const struct stream_options *opt)
{
    struct dial *d = xcalloc(1, sizeof(*d));

    d->stream = s;
    d->lookup.data = d;
    if (opt != NULL) {
        d->opt = *opt;
    }
    s->dial = d;
    return d;
}

static void dial_free(struct dial *d)
{
    if (d != NULL) {
        if (d->addresses != NULL) {
            freeaddrinfo(d->addresses);
        }
        free(d);
    }
}

static bool dial_is_resolving(const struct dial *d)
{
    return d != NULL && d->resolving;
}

/* Cancels the attempt. */
static void dial_cancel(struct dial *d)
{
    if (dial_is_resolving(d)) {
        /* Fails if the lookup runs already; then its answer is ignored. */
        (void)uv_cancel((uv_req_t *)&d->lookup);
    }
}

/* Tells the owner that the stream is connected. The owner may close the stream. */
static void dial_done(struct dial *d)
{
    struct stream *s = d->stream;

    s->dial = NULL;
    dial_free(d);
    s->events->on_connect(s->ctx, 0);
}

/* The connection was established, but its handshake failed: tries the next address. */
static void dial_broke(struct dial *d, int error)
{
    struct stream *s = d->stream;

    if (s->connected) {
        s->connected = false;
        stream_drop_queued(s);
        /* The caller may be in the middle of something: the loop calls dial_ready()
         * later. */
        d->failed = error;
        (void)shutdown(s->fd, SHUT_RDWR);
        poller_update(s);
    }
}

/* Begins to connect. The result always arrives through dial_ready(). */
static int connect_to(struct dial *d, const struct sockaddr *name, socklen_t len)
{
    struct stream *s = d->stream;
    int retries = SYN_RETRIES;
    int fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int r;

    if (fd < 0) {
        return uv_translate_sys_error(errno);
    }
    s->write_error = 0;
    d->failed = 0;
    if (d->next != NULL) {
        (void)setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof(retries));
    }
    if (connect(fd, name, len) != 0 && errno != EINPROGRESS && errno != EINTR) {
        /* epoll reports an unconnected socket as hung up, so dial_ready() is called. */
        d->failed = uv_translate_sys_error(errno);
    }
    r = poller_add(s, fd);
    if (r != 0) {
        (void)close(fd);
    }
    return r;
}

/* Tries the next address. False: none is left. */
static bool dial_next(struct dial *d)
{
    while (d->next != NULL) {
        struct addrinfo *address = d->next;
        int r;

        d->next = address->ai_next;
        r = connect_to(d, address->ai_addr, address->ai_addrlen);
        if (r == 0) {
            return true;
        }
        d->error = r;
    }
    return false;
}

/* Tells the owner that no address could be reached; it may close the stream. */
static void dial_failed(struct dial *d)
{
    struct stream *s = d->stream;
    int error = d->error;

    s->dial = NULL;
    dial_free(d);
    s->ended = true;
    s->events->on_connect(s->ctx, error);
}

static int connect_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0) {
        error = errno;
    }
    return error == 0 ? 0 : uv_translate_sys_error(error);
}

/* Called when connecting has succeeded or failed. May close the stream. */
static void dial_ready(struct dial *d)
{
    struct stream *s = d->stream;
    int error = d->failed != 0 ? d->failed : connect_error(s->fd);

    if (error != 0) {
        d->error = error;
        poller_remove(s);
        if (!dial_next(d)) {
            dial_failed(d);
        }
        return;
    }
    stream_opened(s, &d->opt);
    if (s->tls == NULL) {
        dial_done(d);
    } /* with TLS: after the handshake */
}

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *addresses)
{
    struct dial *d = req->data;

    d->resolving = false;
    d->addresses = d->next = addresses;
    if (d->stream->closed) {
        stream_unref(d->stream);
        return;
    }
    d->error = status == 0 ? UV_EAI_NODATA : status;
    if (!dial_next(d)) {
        dial_failed(d);
    }
}

int stream_connect_tcp(struct io *io, const char *host, const char *port,
                       const struct stream_options *opt,
                       const struct stream_events *events, void *ctx,
                       struct stream **ret)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
                              .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV };
    struct stream *s = stream_new(io, events, ctx);
    struct dial *d = dial_new(s, opt);
    int r = 0;

    if (opt != NULL && opt->tls != NULL) {
        stream_tls_new(s, opt->tls, host);
    }
    /* An address needs no thread: this does not block. */
    if (getaddrinfo(host, port, &hints, &d->addresses) == 0) {
        d->next = d->addresses;
        r = dial_next(d) ? 0 : d->error;
    } else {
        d->addresses = NULL;
        hints.ai_flags = AI_ADDRCONFIG;
        r = uv_getaddrinfo(io->loop, &d->lookup, on_resolved, host, port, &hints);
        d->resolving = r == 0;
    }
    if (r != 0) {
        stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int stream_connect_unix(struct io *io, const char *path,
                        const struct stream_events *events, void *ctx,
                        struct stream **ret)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    struct stream *s;
    int r;

    if (strlen(path) >= sizeof(name.sun_path)) {
        return UV_ENAMETOOLONG;
    }
    s = stream_new(io, events, ctx);
    s->is_unix = true;
    (void)memcpy(name.sun_path, path, strlen(path) + 1);
    r = connect_to(dial_new(s, NULL), (struct sockaddr *)&name, sizeof(name));
    if (r != 0) {
        stream_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* Stream tls: streams over TLS: the session, and when its handshake may go on.
 *
 *   handshake -> open -> ended
 *
 * A handshake costs up to a millisecond of the one loop, so a turn has only so much
 * time for them: then the sockets of the others are left alone until the next turn. */

enum {
    NS_PER_US = 1000,
    ERROR_MAX = 160,
};

struct stream_tls {
    struct stream *stream;
    struct tls *tls;
    char *host;                  /* of a client; NULL: server */
    struct tls_session *session; /* NULL: not connected yet */
    struct list handshake;       /* io->handshakes */
    struct list deferred;        /* io->deferred */
    struct buf early;            /* plaintext that waits for the end of the handshake */
    uint64_t started_ms;
    size_t chatter; /* bytes of TLS's own messages since all output was written */
    bool open;
    bool heard; /* the peer has sent anything */
};

static void leave_lists(struct stream_tls *t)
{
    list_del(&t->handshake);
    list_del(&t->deferred);
}

/* Makes it a TLS stream: from now on, what is sent waits for the handshake. `host`:
 * see tls_session_new(). */
static void stream_tls_new(struct stream *s, struct tls *tls, const char *host)
{
    struct stream_tls *t = xcalloc(1, sizeof(*t));

    t->stream = s;
    t->tls = tls_ref(tls);
    t->host = host == NULL ? NULL : xstrdup(host);
    list_init(&t->deferred);
    list_init(&t->handshake);
    s->tls = t;
}

/* Called when the connection is established; after stream_tls_over() again, for the
 * next connection. */
static void stream_tls_start(struct stream *s)
{
    struct stream_tls *t = s->tls;

    if (s->io->text_buf == NULL) {
        s->io->text_buf = xmalloc(s->io->read_room + TLS_RECORDS_LEFT);
    }
    tls_session_free(t->session);
    t->session = tls_session_new(t->tls, t->host);
    t->started_ms = uv_now(s->io->loop);
    t->heard = false;
    list_append(&s->io->handshakes, &t->handshake);
    if (t->host != NULL) {
        stream_tls_input(s, "", 0); /* begins the handshake */
    }
}

static void stream_tls_free(struct stream_tls *t)
{
    if (t != NULL) {
        leave_lists(t);
        t->stream->io->stats.tls_open -= t->open && t->host == NULL ? 1 : 0;
        tls_session_free(t->session);
        tls_unref(t->tls);
        buf_reset(&t->early);
        free(t->host);
        free(t);
    }
}

/* Turns */

/* Whether the stream may read now. False: handshakes have had their share of this
 * turn. */
static bool stream_tls_may_read(const struct stream *s)
{
    return s->tls->open ||
           s->io->handshakes_ns < TLS_HANDSHAKES_TURN_US * (uint64_t)NS_PER_US;
}

/* Defers the handshake to the next turn. */
static void stream_tls_defer(struct stream *s)
{
    if (list_empty(&s->tls->deferred)) {
        list_append(&s->io->deferred, &s->tls->deferred);
    }
}

static bool stream_tls_is_deferred(const struct stream *s)
{
    return !list_empty(&s->tls->deferred);
}

void io_end_turn(struct io *io)
{
    struct stream_tls *tls;

    io->handshakes_ns = 0;
    while (LIST_FIRST(tls, &io->deferred, deferred)) {
        struct stream *s = tls->stream;

        list_del(&tls->deferred);
        if (s->reading) {
            stream_read_start(s);
        }
    }
}

/* Failures */

static void log_handshake_failure(struct stream *s, const char *why)
{
    /* A failure at a server that we need matters more than one of a passing client. */
    enum log_level level = s->tls->host != NULL ? LOG_WARNING : LOG_INFO;
    struct log_about about = { 0 };
    char peer[128];

    s->io->stats.handshakes_failed += s->tls->host == NULL ? 1 : 0;
    if (s->tls->host != NULL && !log_is_news(&s->io->told, why)) {
        return; /* who connects tries several times a second */
    }
    if (log_enabled(level)) {
        stream_peer_name(s, peer, sizeof(peer));
        about.address = span_str(peer);
        log_about(level, "tls", &about, "no handshake: %s", why);
    }
}

/* Called when the connection is over; counts and logs a handshake that did not end. */
static void stream_tls_over(struct stream *s, int status)
{
    struct stream_tls *t = s->tls;

    if (t == NULL || list_empty(&t->handshake)) {
        return;
    }
    leave_lists(t);
    /* A port check that sends nothing is no failed handshake. */
    if (t->heard || status == UV_ETIMEDOUT) {
        log_handshake_failure(s, status == UV_ETIMEDOUT ? "it took too long"
                                                        : "it went away");
    }
}

void io_tick(struct io *io)
{
    uint64_t now = uv_now(io->loop);
    struct stream_tls *t;

    while (LIST_FIRST(t, &io->handshakes, handshake)) {
        if (now < t->started_ms + TLS_HANDSHAKE_MS) {
            return;
        }
        stream_end(t->stream, UV_ETIMEDOUT);
        leave_lists(t);
    }
}

static void break_off(struct stream *s)
{
    char why[ERROR_MAX];

    tls_session_error(s->tls->session, why, sizeof(why));
    if (!list_empty(&s->tls->handshake)) {
        leave_lists(s->tls);
        log_handshake_failure(s, why);
    } else {
        log_debug("tls", "broken: %s", why);
    }
    /* With unread input the close would be a reset, and the peer would not see the
     * reason. */
    socket_discard_input(stream_fd(s));
    stream_end(s, UV_EPROTO);
}

/* Bytes */

static void send_text(struct stream *s, struct span text)
{
    struct buf wire = { 0 };

    if (!tls_session_output(s->tls->session, text, &wire)) {
        /* The caller may be in the middle of something: the loop reports it later. */
        s->write_error = UV_EPROTO;
        (void)shutdown(stream_fd(s), SHUT_RDWR);
    }
    stream_send_wire(s, &wire);
    buf_reset(&wire);
}

static void on_handshake_done(struct stream *s)
{
    struct stream_tls *t = s->tls;

    t->open = true;
    leave_lists(t);
    if (t->host == NULL) {
        s->io->stats.handshakes++;
        s->io->stats.tls_open++;
    }
    if (buf_len(&t->early) > 0) {
        send_text(s, buf_span(&t->early));
    }
    buf_reset(&t->early);
    if (s->dial != NULL) {
        dial_done(s->dial);
    }
}

/* Sends TLS's own messages. True: the peer provokes them without reading them. */
static bool send_chatter(struct stream *s, struct buf *wire)
{
    struct stream_tls *t = s->tls;

    t->chatter += buf_len(wire);
    stream_send_wire(s, wire);
    buf_reset(wire);
    if (s->out == NULL) {
        t->chatter = 0;
    }
    return t->chatter > TLS_CHATTER_MAX;
}

/* Takes bytes from the peer. */
static void stream_tls_input(struct stream *s, const char *data, size_t len)
{
    struct stream_tls *t = s->tls;
    struct io *io = s->io;
    uint64_t start = t->open ? 0 : uv_hrtime();
    struct buf wire = { 0 };
    size_t got = 0;
    enum tls_state state =
        tls_session_input(t->session, span_of(data, len), io->text_buf,
                          io->read_room + TLS_RECORDS_LEFT, &got, &wire);
    bool floods = send_chatter(s, &wire);

    t->heard = len > 0;
    if (!t->open) {
        io->handshakes_ns += uv_hrtime() - start;
        if (state == TLS_OPEN || state == TLS_ENDED || got > 0) {
            on_handshake_done(s);
        }
    }
    if (got > 0 && !s->closed) {
        s->events->on_read(s->ctx, io->text_buf, got);
    }
    if (s->closed) {
        return;
    }
    if (state == TLS_BROKEN) {
        break_off(s);
    } else if (state == TLS_ENDED) {
        stream_end(s, UV_EOF);
    } else if (floods) {
        stream_end(s, UV_ENOBUFS);
    }
}

static void stream_tls_send(struct stream *s, struct buf *out)
{
    struct stream_tls *t = s->tls;

    if (s->closed || s->write_error != 0 || buf_len(out) == 0) {
        buf_clear(out);
    } else if (!t->open) {
        stream_move_to_end(&t->early, out);
    } else {
        send_text(s, buf_span(out));
        buf_clear(out);
    }
}

static size_t stream_tls_queued(const struct stream *s)
{
    return s->tls == NULL ? 0 : buf_len(&s->tls->early);
}

/* Sends TLS's closing message if that is possible at once. */
static void stream_tls_close(struct stream *s)
{
    struct buf wire = { 0 };

    if (s->tls == NULL) {
        return;
    }
    leave_lists(s->tls);
    /* After dropped bytes, an orderly end would be a lie. */
    if (s->tls->open && s->out == NULL && s->write_error == 0) {
        tls_session_close(s->tls->session, &wire);
        stream_send_wire(s, &wire);
        buf_reset(&wire);
    }
}

/* Questions */

bool stream_is_tls(const struct stream *s)
{
    return s->tls != NULL;
}

const char *stream_tls_version(const struct stream *s)
{
    return s->tls == NULL || !s->tls->open ? NULL
                                           : tls_session_version(s->tls->session);
}

bool stream_tls_peer(const struct stream *s, char *ret, size_t room)
{
    return s->tls != NULL && s->tls->open &&
           tls_session_peer(s->tls->session, ret, room);
}

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

static struct stream *stream_new(struct io *io, const struct stream_events *events,
                                 void *ctx)
{
    struct stream *s = xcalloc(1, sizeof(*s));

    s->io = io;
    s->events = events;
    s->ctx = ctx;
    s->fd = -1;
    s->reading = true;
    return s;
}

/* Drops the queued output. */
static void stream_drop_queued(struct stream *s)
{
    if (s->out != NULL) {
        buf_reset(&s->out->data);
        buf_reset(&s->out->next);
        free(s->out);
        s->out = NULL;
    }
}

static void stream_free(struct stream *s)
{
    stream_drop_queued(s);
    dial_free(s->dial);
    stream_tls_free(s->tls);
    free(s);
}

/* Frees the stream if nothing needs it any more. */
static void stream_unref(struct stream *s)
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

/* Ends the stream; `status` is the result of reading or writing. Callers must not
 * touch the stream afterwards. */
static void stream_end(struct stream *s, int status)
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

/* Moves all bytes of `from` to the end of `to`. */
static void stream_move_to_end(struct buf *to, struct buf *from)
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

/* Sends bytes without encrypting them. */
static void stream_send_wire(struct stream *s, struct buf *out)
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

/* The epoll events that the stream waits for. */
static unsigned stream_wants(const struct stream *s)
{
    if (!s->connected) {
        return EPOLLOUT;
    }
    return (wants_input(s) ? EPOLLIN : 0U) | (s->out != NULL ? EPOLLOUT : 0U);
}

/* Handles events. May close the stream. */
static void stream_ready(struct stream *s, unsigned events)
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

/* Called when the connection is established. */
static void stream_opened(struct stream *s, const struct stream_options *opt)
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

/* The poller waits for the sockets of all streams of an io: one epoll set, so that a
 * stream needs no handle of the loop.
 *
 * The daemon's io_run() has the loop's own epoll set in that one, and waits for both in
 * one call. Elsewhere the set is a single handle of the loop, there while any stream
 * has a socket, and keeps the loop running so long. All events of a turn come together.
 * A stream that was closed is freed before the next events come, or with the poller:
 * never while somebody works with it. */

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
    if (p->io->turn != NULL) {
        p->io->turn->before_events(p->io->turn_ctx);
    }
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
    io->turn = turn;
    io->turn_ctx = ctx;
    for (turn->before_wait(ctx); has_work(io); turn->before_wait(ctx)) {
        int timeout_ms = time_to_wait(io);

        if (handle_events(io->poller, timeout_ms) || timeout_ms == 0) {
            (void)uv_run(io->loop, UV_RUN_NOWAIT);
        }
        turn->after_events(ctx);
    }
    io->turn = NULL;
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

/* Takes a non-blocking socket for the stream, and waits for the events of
 * stream_wants(). 0 or a UV_E* code; on failure the socket stays the caller's. */
static int poller_add(struct stream *s, int fd)
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

/* Updates the events that the kernel waits for. Needed when stream_wants() asks for
 * more; when it asks for less, an unwanted event does no harm, as it ends in another
 * call of this. */
static void poller_update(struct stream *s)
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

/* Closes the stream's socket, if it has one. */
static void poller_remove(struct stream *s)
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

/* Frees the stream once no caller uses it. */
static void poller_bury(struct stream *s)
{
    if (s->io->pollers == 0) {
        stream_free(s); /* it has no socket, and no events are being handled */
    } else {
        s->next_dead = s->io->dead;
        s->io->dead = s;
    }
}
