/* socket: facts about sockets that libuv does not report, and options that it sets
 * otherwise. */
#ifndef LATCHD_IO_SOCKET_H
#define LATCHD_IO_SOCKET_H

#include "io/stream.h"

#include <stdbool.h>
#include <stddef.h>

struct acceptor;

/* Writes the address, NUL-terminated: "1.2.3.4:5", "[::1]:5" or "unix:/path"; "-" if
 * there is none. */
void socket_local_name(int fd, char *out, size_t room);
void socket_peer_name(int fd, char *out, size_t room);

/* Whether the peer is on this machine (a unix socket or a loopback address), or gone.
 */
bool socket_is_local(int fd);

void socket_set_tcp_options(int fd, const struct stream_options *opt);

/* Whether bytes were written that the peer's kernel has not acknowledged (unix: that
 * the peer has not read); also works for a broken connection. */
bool socket_has_unsent(int fd);
/* Whether a reset came, also after the peer's end of input. */
bool socket_is_reset(int fd, bool is_unix);

/* Discards input that has arrived, up to a limit. */
void socket_discard_input(int fd);

/* acceptor: a listening socket of any family, in the loop. Owns the socket and one
 * handle; its memory goes in libuv's close callback.
 *
 * Where no more files can be opened, who comes is accepted and closed at once with a
 * file that is kept for that: left alone they would be reported for ever. */

enum { ACCEPTS_TURN = 64 }; /* connections per turn */

/* Called with the non-blocking socket of a connection, which the callee owns from now
 * on, or with a UV_E* code if none could be accepted (UV_EMFILE is reported again only
 * after a success). May close the acceptor. */
typedef void acceptor_fn(void *ctx, int fd);

/* Takes a listening socket. 0 or a UV_E* code; on failure the socket stays the
 * caller's. */
int acceptor_open(struct io *io, int fd, acceptor_fn *fn, void *ctx,
                  struct acceptor **ret) __attribute__((warn_unused_result));
/* Closes the socket at once; accepts NULL. */
void acceptor_close(struct acceptor *a);

#endif
