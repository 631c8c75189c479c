/* stream_priv: what stream.c and dial.c share. */
#ifndef LATCHD_IO_STREAM_PRIV_H
#define LATCHD_IO_STREAM_PRIV_H

#include "io/stream.h"

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
    struct dial *dial; /* while connecting */
    int write_error;   /* the first one */
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

/* Tries the next address. False: there is none left. */
bool dial_next(struct dial *d);
/* Tells the owner that no address could be reached; it may close the stream. */
void dial_failed(struct dial *d);
bool dial_is_resolving(const struct dial *d);
/* The owner does not want it any more. */
void dial_cancel(struct dial *d);
void dial_free(struct dial *d);

#endif
