/* stream_priv: what stream.c, stream.c and stream.c share. */
#ifndef LATCHD_IO_STREAM_PRIV_H
#define LATCHD_IO_STREAM_PRIV_H

#include "io/stream.h"

struct stream_tls; /* stream.c */

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
/* Frees the memory. */
void stream_free(struct stream *s);

/* For the poller: the epoll events that the stream waits for. */
unsigned stream_wants(const struct stream *s);
/* Handles events. May close the stream. */
void stream_ready(struct stream *s, unsigned events);

/* --- stream.c ----------------------------------------------------- */

void stream_tls_free(struct stream_tls *t); /* accepts NULL */

#endif
