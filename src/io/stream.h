/* stream: one byte stream over TCP, TLS or a unix socket, for clients and for Redis
 * alike. TLS changes nothing of what is said here: bytes are the text, counted before
 * they are encrypted or after they were decrypted, but for stream_queued().
 *
 * A stream is one heap object with one socket, and all of them share one libuv handle,
 * see poller.h. It lives until stream_close(); the memory goes in a later turn of the
 * loop. After stream_close() no event comes any more. Events come in the loop's poll
 * phase, and none from within one of the functions here, but for io_tick().
 * Dead peers are found by keepalive and TCP_USER_TIMEOUT. */
#ifndef LATCHD_IO_STREAM_H
#define LATCHD_IO_STREAM_H

#include "io/tls.h"
#include "util/buf.h"
#include "util/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

/* Of TLS, of streams that were accepted. */
struct io_stats {
    uint64_t handshakes; /* that succeeded */
    uint64_t handshakes_failed;
    uint64_t tls_open; /* streams that have done theirs */
};

struct stream;
struct poller;

/* What all streams of a loop share: the loop and its one read buffer. */
struct io {
    uv_loop_t *loop;
    struct poller *poller; /* NULL: no stream has a socket */
    size_t pollers;        /* and those that are being closed */
    struct stream *dead;   /* streams that nobody needs, to be freed */
    size_t acceptors;
    int spare_fd; /* gives way when no file can be opened, see acceptor.h; -1: none */
    char *read_buf;
    size_t read_room;
    struct io_stats stats;
    /* Of TLS only. */
    char *text_buf;         /* what was decrypted; NULL until it is needed */
    struct list handshakes; /* streams that are still at it, oldest first */
    struct list deferred;   /* those of them that wait for the next turn */
    uint64_t handshakes_ns; /* what they took of this turn */
};

int io_init(struct io *io, uv_loop_t *loop);
/* After the last stream is closed and the loop has run until it had nothing to do. */
void io_fini(struct io *io);
/* To be called after each turn of the loop: handshakes that had to wait may go on. */
void io_end_turn(struct io *io);
/* To be called about once a second: ends handshakes that take too long. */
void io_tick(struct io *io);

struct stream_events {
    /* Outgoing streams only, exactly once unless closed before: 0 or a UV_E* code. */
    void (*on_connect)(void *ctx, int status);
    /* Bytes came; valid during the call only. The callback may close the stream. */
    void (*on_read)(void *ctx, const char *data, size_t len);
    /* All that was queued has been written (after it had to wait). May be NULL. */
    void (*on_drain)(void *ctx);
    /* The peer ended it or it broke, once: UV_EOF or another UV_E* code. `unread`: the
     * peer's side was gone before it had taken in all that we wrote (reset, or bytes
     * never acknowledged). The owner now calls stream_close(). */
    void (*on_end)(void *ctx, int status, bool unread);
};

struct stream_options {
    uint64_t keepalive_s; /* first probe; 0: none. Then 3 probes, 3 s apart */
    uint64_t
        user_timeout_ms; /* unacknowledged data kills the connection; 0: kernel's */
    struct tls *tls;     /* NULL: not TLS; the stream takes a reference */
};

/* `opt`, `events` and `ctx` below: opt is copied; events must outlive the stream. */

/* Wraps the socket of an accepted connection, see acceptor.h, and takes it even if that
 * fails. With TLS nothing is read before the handshake is over, what is sent waits for
 * it, and if it fails or takes longer than TLS_HANDSHAKE_MS the stream ends with
 * UV_EPROTO or UV_ETIMEDOUT. */
int stream_accept(struct io *io, int fd, bool is_unix, const struct stream_options *opt,
                  const struct stream_events *events, void *ctx, struct stream **ret);

/* Connects to host (a name or an address; resolved without blocking) and port. With
 * TLS, `opt->tls` being a client's, it is connected when the handshake is over, for
 * which `host` must be what the certificate says. */
int stream_connect_tcp(struct io *io, const char *host, const char *port,
                       const struct stream_options *opt,
                       const struct stream_events *events, void *ctx,
                       struct stream **ret);
int stream_connect_unix(struct io *io, const char *path,
                        const struct stream_events *events, void *ctx,
                        struct stream **ret);

/* Reading is on from the start (after connect); off is back-pressure. */
void stream_read_start(struct stream *s);
void stream_read_stop(struct stream *s);

/* Sends all of `out` and leaves it empty; what the kernel does not take at once is
 * queued in the stream's own memory. Errors come through on_end. */
void stream_send(struct stream *s, struct buf *out);

/* Bytes accepted by stream_send() that the kernel has not taken yet (TLS: as they are
 * on the wire). */
size_t stream_queued(const struct stream *s);

/* What became of all that was sent: whether the peer's side took it in. */
enum stream_fate {
    STREAM_TAKEN,   /* its kernel has it, and no reset came back */
    STREAM_PENDING, /* queued here, or not acknowledged yet (unix: not read yet) */
    STREAM_LOST,    /* reset, or thrown away unread */
};

enum stream_fate stream_fate(const struct stream *s);

/* "ip:port" or "unix:path", NUL-terminated. */
void stream_peer_name(const struct stream *s, char *out, size_t room);
void stream_local_name(const struct stream *s, char *out, size_t room);
int stream_fd(const struct stream *s);
bool stream_is_unix(const struct stream *s);
bool stream_is_tls(const struct stream *s);
/* "TLSv1.3"; NULL: not TLS, or the handshake is not over. */
const char *stream_tls_version(const struct stream *s);
/* The common name of the peer's certificate, which a known authority vouches for.
 * False: it showed none. */
bool stream_tls_peer(const struct stream *s, char *ret, size_t room);

/* Throws away what the kernel has of the peer's bytes. Before a close after a last
 * word: with input unread the close would be a reset, and the word could be lost. */
void stream_discard_input(struct stream *s);

/* Idempotent, accepts NULL. Queued bytes are dropped; what the kernel has, it delivers.
 */
void stream_close(struct stream *s);
/* Closes, and has the kernel drop what it has not delivered (TCP only). */
void stream_abort(struct stream *s);

#endif
