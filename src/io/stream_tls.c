/* stream_tls: streams over TLS: the session, and when its handshake may go on.
 *
 *   handshake -> open -> ended
 *
 * A handshake costs up to a millisecond of the one loop, so a turn has only so much
 * time for them: then the sockets of the others are left alone until the next turn. */
#include "io/socket.h"
#include "io/stream_priv.h"
#include "io/tls_session.h"
#include "util/alloc.h"
#include "util/log.h"

#include <stdlib.h>
#include <sys/socket.h>

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

void stream_tls_new(struct stream *s, struct tls *tls, const char *host)
{
    struct stream_tls *t = xcalloc(1, sizeof(*t));

    t->stream = s;
    t->tls = tls_ref(tls);
    t->host = host == NULL ? NULL : xstrdup(host);
    list_init(&t->deferred);
    list_init(&t->handshake);
    s->tls = t;
}

void stream_tls_start(struct stream *s)
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

void stream_tls_free(struct stream_tls *t)
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

bool stream_tls_may_read(const struct stream *s)
{
    return s->tls->open ||
           s->io->handshakes_ns < TLS_HANDSHAKES_TURN_US * (uint64_t)NS_PER_US;
}

void stream_tls_defer(struct stream *s)
{
    if (list_empty(&s->tls->deferred)) {
        list_append(&s->io->deferred, &s->tls->deferred);
    }
}

bool stream_tls_is_deferred(const struct stream *s)
{
    return !list_empty(&s->tls->deferred);
}

void io_end_turn(struct io *io)
{
    struct list *node;

    io->handshakes_ns = 0;
    while ((node = list_first(&io->deferred)) != NULL) {
        struct stream *s = container_of(node, struct stream_tls, deferred)->stream;

        list_del(node);
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

void stream_tls_over(struct stream *s, int status)
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
    struct list *node;

    while ((node = list_first(&io->handshakes)) != NULL) {
        struct stream_tls *t = container_of(node, struct stream_tls, handshake);

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

void stream_tls_input(struct stream *s, const char *data, size_t len)
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

void stream_tls_send(struct stream *s, struct buf *out)
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

size_t stream_tls_queued(const struct stream *s)
{
    return s->tls == NULL ? 0 : buf_len(&s->tls->early);
}

void stream_tls_close(struct stream *s)
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
