/* stream_priv: what stream.c, stream_tls.c and dial.c share. */
#ifndef LATCHD_IO_STREAM_PRIV_H
#define LATCHD_IO_STREAM_PRIV_H

#include "io/stream.h"

struct stream_tls; /* stream_tls.c */

/* Bytes that had to wait; exists only while there are any. Once some of `data` is
 * written, what comes is put into `next`: the rest need not be moved for it. */
struct outgoing {
    struct buf data;
    struct buf next;
};

/* A stream goes when its owner closed it and no name is being looked up, see
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
    int write_error;          /* the first one */
    uint32_t armed;           /* poller.c: what the kernel waits for */
    bool is_unix : 1;
    bool connected : 1;
    bool reading : 1; /* what the owner wants */
    bool ended : 1;   /* on_end came */
    bool closed : 1;  /* by the owner */
};

struct stream *stream_new(struct io *io, const struct stream_events *events, void *ctx);
/* Frees it once nothing needs it any more. */
void stream_unref(struct stream *s);
/* Only its memory. */
void stream_free(struct stream *s);
/* The connection stands. */
void stream_opened(struct stream *s, const struct stream_options *opt);

/* For the poller: events of epoll that it waits for, */
unsigned stream_wants(const struct stream *s);
/* and those that came. It may be closed then. */
void stream_ready(struct stream *s, unsigned events);

/* Forgets what waits to be written. */
void stream_drop_queued(struct stream *s);

/* `status` is what reading or writing ended with. The last thing its callers do. */
void stream_end(struct stream *s, int status);
/* Sends bytes as they are on the wire. */
void stream_send_wire(struct stream *s, struct buf *out);
/* Appends all of `from`, which is empty then. */
void stream_move_to_end(struct buf *to, struct buf *from);

/* --- stream_tls.c ----------------------------------------------------- */

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
bool stream_tls_is_deferred(const struct stream *s);
/* Bytes came from the peer. */
void stream_tls_input(struct stream *s, const char *data, size_t len);
/* The connection is over: whether it was in the middle of a handshake. */
void stream_tls_over(struct stream *s, int status);
void stream_tls_send(struct stream *s, struct buf *out);
size_t stream_tls_queued(const struct stream *s);
/* The owner closes it: the last word, if it can be sent at once. */
void stream_tls_close(struct stream *s);

/* Its socket is connected, or is not going to be. It may be closed then. */
void dial_ready(struct dial *d);
/* It is connected: tells the owner, who may close the stream. */
void dial_done(struct dial *d);
/* The connection stood, but it came to nothing: the next address will be tried. */
void dial_broke(struct dial *d, int error);
bool dial_is_resolving(const struct dial *d);
/* The owner does not want it any more. */
void dial_cancel(struct dial *d);
void dial_free(struct dial *d);

#endif
