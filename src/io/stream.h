/* stream: one byte stream over TCP, TLS or a unix socket, for clients and for Redis
 * alike. TLS changes nothing of what is said here: bytes are the text, counted before
 * they are encrypted or after they were decrypted, but for stream_queued().
 *
 * A stream is one heap object with one socket, and all of them share one epoll
 * set. It lives until stream_close(); the memory goes in a later turn of the loop.
 * After stream_close() no event comes any more. Events come one after the other, and
 * none from within one of the functions here, but for io_tick(). Dead peers are found
 * by keepalive and TCP_USER_TIMEOUT. */
#ifndef LATCHD_IO_STREAM_H
#define LATCHD_IO_STREAM_H

#include "io/tls.h"
#include "util/buf.h"
#include "util/list.h"
#include "util/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

/* TLS handshakes of accepted streams. */
struct io_stats {
    uint64_t handshakes; /* successful ones */
    uint64_t handshakes_failed;
    uint64_t tls_open; /* open streams whose handshake is done */
};

struct stream;
struct poller;
struct io_turn;

/* The state that all streams of a loop share, such as its one read buffer. */
struct io {
    uv_loop_t *loop;
    struct poller *poller; /* NULL: no stream has a socket */
    size_t pollers;        /* pollers, including those being closed */
    struct stream *dead;   /* streams to be freed */
    bool runs; /* io_run() waits for events, not the loop: said before the first stream
                */
    const struct io_turn *turn; /* while io_run() runs */
    void *turn_ctx;
    size_t acceptors;
    int spare_fd; /* reserve for when no file can be opened, see socket.h; -1: none */
    char *read_buf;
    size_t read_room;
    struct io_stats stats;
    /* For TLS only. */
    char *text_buf;         /* decrypted input; NULL until it is needed */
    struct list handshakes; /* streams whose handshake is not over, oldest first */
    struct list deferred;   /* handshakes that wait for the next turn */
    uint64_t handshakes_ns; /* time of this turn spent on handshakes */
    struct log_recent told; /* of handshakes with servers */
};

int io_init(struct io *io, uv_loop_t *loop);
/* Frees an io. The last stream must be closed, and the loop must have run until it had
 * nothing to do. */
void io_fini(struct io *io);
struct io_turn {
    void (*before_wait)(void *ctx);
    void (*before_events)(void *ctx); /* reads the clock */
    void (*after_events)(void *ctx);
};

/* Runs the loop of an io with `runs` until it has no handle and no stream: waits for
 * the events of both in one call, where uv_run() needs two. 0 or a UV_E* code. */
int io_run(struct io *io, const struct io_turn *turn, void *ctx)
    __attribute__((warn_unused_result));
/* Called after each turn of the loop: lets deferred handshakes go on. */
void io_end_turn(struct io *io);
/* Called about once a second: ends handshakes that take too long. */
void io_tick(struct io *io);

struct stream_events {
    /* Outgoing streams only: called exactly once with 0 or a UV_E* code, unless the
     * stream is closed before. */
    void (*on_connect)(void *ctx, int status);
    /* Called with input that is valid during the call only. May close the stream. */
    void (*on_read)(void *ctx, const char *data, size_t len);
    /* Called when queued bytes have all been written. May be NULL. */
    void (*on_drain)(void *ctx);
    /* Called once when the peer closed the stream (UV_EOF) or it broke (another UV_E*
     * code). `unread`: the peer's side was gone before it had taken in everything we
     * wrote (reset, or bytes never acknowledged). The owner now calls stream_close().
     */
    void (*on_end)(void *ctx, int status, bool unread);
};

struct stream_options {
    uint64_t keepalive_s; /* idle time before the first of 3 probes, which are 3 s
                             apart; 0: none */
    uint64_t
        user_timeout_ms; /* unacknowledged data kills the connection; 0: kernel's */
    struct tls *tls;     /* NULL: not TLS; the stream takes a reference */
};

/* Below, `opt` is copied; `events` must outlive the stream. */

/* Makes a stream of an accepted socket, see socket.h; takes the socket even on
 * failure. With TLS nothing is read before the handshake is over, and what is sent
 * waits for it. If the handshake fails, or takes longer than TLS_HANDSHAKE_MS, the
 * stream ends with UV_EPROTO or UV_ETIMEDOUT. */
int stream_accept(struct io *io, int fd, bool is_unix, const struct stream_options *opt,
                  const struct stream_events *events, void *ctx, struct stream **ret);

/* Connects to a host (name or address, resolved without blocking) and port. With TLS,
 * where opt->tls is a client's, the stream is connected when the handshake is over;
 * the server's certificate must be for `host`. */
int stream_connect_tcp(struct io *io, const char *host, const char *port,
                       const struct stream_options *opt,
                       const struct stream_events *events, void *ctx,
                       struct stream **ret);
int stream_connect_unix(struct io *io, const char *path,
                        const struct stream_events *events, void *ctx,
                        struct stream **ret);

/* Switch reading on and off; off is back-pressure. Reading is on from the start (after
 * connect). */
void stream_read_start(struct stream *s);
void stream_read_stop(struct stream *s);

/* Sends all of `out`, and empties it. What the kernel does not take at once is queued
 * by the stream. Errors are reported by on_end. */
void stream_send(struct stream *s, struct buf *out);

/* Bytes that stream_send() took and the kernel did not yet (TLS: encrypted bytes). */
size_t stream_queued(const struct stream *s);

/* Whether the peer's side took in everything that was sent. */
enum stream_fate {
    STREAM_TAKEN,   /* the peer's kernel has it, and sent no reset */
    STREAM_PENDING, /* queued, or not acknowledged yet (unix: not read yet) */
    STREAM_LOST,    /* reset, or discarded unread */
};

enum stream_fate stream_fate(const struct stream *s);

/* Writes the peer's address, "ip:port" or "unix:path", NUL-terminated. */
void stream_peer_name(const struct stream *s, char *out, size_t room);
void stream_local_name(const struct stream *s, char *out, size_t room);
int stream_fd(const struct stream *s);
bool stream_is_unix(const struct stream *s);
bool stream_is_tls(const struct stream *s);
/* The TLS version, "TLSv1.3". NULL: not TLS, or the handshake is not over. */
const char *stream_tls_version(const struct stream *s);
/* The common name of the peer's certificate, signed by a trusted authority. False: the
 * peer showed none. */
bool stream_tls_peer(const struct stream *s, char *ret, size_t room);

/* Discards the input that the kernel has. Called before the close that follows a last
 * message: with unread input the close would be a reset, and the message could be
 * lost. */
void stream_discard_input(struct stream *s);

/* Closes a stream. Queued bytes are dropped; what the kernel has is still delivered.
 * Idempotent, accepts NULL. */
void stream_close(struct stream *s);
/* Closes a stream, and makes the kernel drop what it has not delivered (TCP only). */
void stream_abort(struct stream *s);

#endif
