/* stream_priv: what stream.c, stream_tls.c and dial.c share. */
#ifndef LATCHD_IO_STREAM_PRIV_H
#define LATCHD_IO_STREAM_PRIV_H

#include "io/stream.h"

struct stream_tls; /* stream_tls.c */

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
    uint32_t armed;           /* poller.c: the events that the kernel waits for */
    bool is_unix : 1;
    bool connected : 1;
    bool reading : 1; /* what the owner wants */
    bool ended : 1;   /* on_end was called */
    bool closed : 1;  /* by the owner */
};

struct stream *stream_new(struct io *io, const struct stream_events *events, void *ctx);
/* Frees the stream if nothing needs it any more. */
void stream_unref(struct stream *s);
/* Frees the memory. */
void stream_free(struct stream *s);
/* Called when the connection is established. */
void stream_opened(struct stream *s, const struct stream_options *opt);

/* For the poller: the epoll events that the stream waits for. */
unsigned stream_wants(const struct stream *s);
/* Handles events. May close the stream. */
void stream_ready(struct stream *s, unsigned events);

/* Drops the queued output. */
void stream_drop_queued(struct stream *s);

/* Ends the stream; `status` is the result of reading or writing. Callers must not
 * touch the stream afterwards. */
void stream_end(struct stream *s, int status);
/* Sends bytes without encrypting them. */
void stream_send_wire(struct stream *s, struct buf *out);
/* Moves all bytes of `from` to the end of `to`. */
void stream_move_to_end(struct buf *to, struct buf *from);

/* --- stream_tls.c ----------------------------------------------------- */

/* Makes it a TLS stream: from now on, what is sent waits for the handshake. `host`:
 * see tls_session_new(). */
void stream_tls_new(struct stream *s, struct tls *tls, const char *host);
/* Called when the connection is established; after stream_tls_over() again, for the
 * next connection. */
void stream_tls_start(struct stream *s);
void stream_tls_free(struct stream_tls *t); /* accepts NULL */
/* Whether the stream may read now. False: handshakes have had their share of this
 * turn. */
bool stream_tls_may_read(const struct stream *s);
/* Defers the handshake to the next turn. */
void stream_tls_defer(struct stream *s);
bool stream_tls_is_deferred(const struct stream *s);
/* Takes bytes from the peer. */
void stream_tls_input(struct stream *s, const char *data, size_t len);
/* Called when the connection is over; counts and logs a handshake that did not end. */
void stream_tls_over(struct stream *s, int status);
void stream_tls_send(struct stream *s, struct buf *out);
size_t stream_tls_queued(const struct stream *s);
/* Sends TLS's closing message if that is possible at once. */
void stream_tls_close(struct stream *s);

/* Called when connecting has succeeded or failed. May close the stream. */
void dial_ready(struct dial *d);
/* Tells the owner that the stream is connected. The owner may close the stream. */
void dial_done(struct dial *d);
/* The connection was established, but its handshake failed: tries the next address. */
void dial_broke(struct dial *d, int error);
bool dial_is_resolving(const struct dial *d);
/* Cancels the attempt. */
void dial_cancel(struct dial *d);
void dial_free(struct dial *d);

#endif
