/* acceptor: a listening socket of any family, in the loop. Owns the socket and one
 * handle; its memory goes in libuv's close callback.
 *
 * Where no more files can be opened, who comes is accepted and closed at once with a
 * file that is kept for that: left alone they would be reported for ever. */
#ifndef LATCHD_IO_ACCEPTOR_H
#define LATCHD_IO_ACCEPTOR_H

#include "io/stream.h"

enum { ACCEPTS_TURN = 64 }; /* connections per turn */

struct acceptor;

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
