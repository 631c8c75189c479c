/* stream_priv: what stream.c, stream_tls.c and dial.c share. */
#ifndef LATCHD_IO_STREAM_PRIV_H
#define LATCHD_IO_STREAM_PRIV_H

#include "io/stream.h"

struct stream_tls; /* stream_tls.c */

/* Bytes that had to wait; exists only while there are any. `data` is with the kernel's
 * writer and must not move, `next` is filled meanwhile. */
struct outgoing {
    uv_write_t req;
    struct stream *stream;
    struct buf data;
    struct buf next;
    bool started;
};

/* A stream goes when its owner closed it, its handle is closed and no name is being
 * looked up: whichever comes last frees it, in stream_unref(). */
struct stream {
    struct io *io;
    const struct stream_events *events;
    void *ctx;
    struct outgoing *out;
    struct dial *dial;      /* while connecting */
    struct stream_tls *tls; /* NULL: not TLS */
    int write_error;        /* the first one */
    bool is_unix;
    bool live; /* the handle is known to the loop */
    bool connected;
    bool reading; /* what the owner wants */
    bool ended;   /* on_end came */
    bool closed;  /* by the owner */
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } u;
};

struct stream *stream_new(struct io *io, const struct stream_events *events, void *ctx);
/* Frees it if nothing needs it any more. */
void stream_unref(struct stream *s);
/* Closes the handle; when that is done the next address is tried, or the stream freed.
 */
void stream_close_handle(struct stream *s);
/* The connection stands. */
int stream_opened(struct stream *s, const struct stream_options *opt);

/* `status` is what reading or writing ended with. The last thing its callers do. */
void stream_end(struct stream *s, int status);
/* Sends bytes as they are on the wire. */
void stream_send_wire(struct stream *s, struct buf *out);
/* Appends all of `from`, which is empty then. */
void stream_move_to_end(struct buf *to, struct buf *from);

/* --- stream_tls.c ----------------------------------------------------------------- */

/* From now on what is sent waits for the handshake. `host`: see tls_session_new(). */
void stream_tls_new(struct stream *s, struct tls *tls, const char *host);
/* To be called once the connection stands; again, after stream_tls_over(), for another
 * connection. */
void stream_tls_start(struct stream *s);
void stream_tls_free(struct stream_tls *t); /* accepts NULL */
/* False: it must not read now, since handshakes have had their share of this turn. */
bool stream_tls_may_read(const struct stream *s);
/* Lets it go on with the next turn. */
void stream_tls_defer(struct stream *s);
/* Bytes came from the peer. */
void stream_tls_input(struct stream *s, const char *data, size_t len);
/* The connection is over: whether it was in the middle of a handshake. */
void stream_tls_over(struct stream *s, int status);
void stream_tls_send(struct stream *s, struct buf *out);
size_t stream_tls_queued(const struct stream *s);
/* The owner closes it: the last word, if it can be sent at once. */
void stream_tls_close(struct stream *s);

/* Tries the next address. False: there is none left. */
bool dial_next(struct dial *d);
/* It is connected: tells the owner, who may close the stream. */
void dial_done(struct dial *d);
/* The connection stood, but it came to nothing: tries the next address. */
void dial_broke(struct dial *d, int error);
/* Tells the owner that no address could be reached; it may close the stream. */
void dial_failed(struct dial *d);
bool dial_is_resolving(const struct dial *d);
/* The owner does not want it any more. */
void dial_cancel(struct dial *d);
void dial_free(struct dial *d);

#endif
