/* acceptor: a listening socket of any family, in the loop. Owns the socket and one
 * handle; its memory goes in libuv's close callback.
 *
 * Where no more files can be opened, who comes is accepted and closed at once with a
 * file that is kept for that: left alone they would be reported for ever. */
#ifndef LATCHD_IO_ACCEPTOR_H
#define LATCHD_IO_ACCEPTOR_H

#include "io/stream.h"

enum { ACCEPTS_TURN = 64 }; /* connections of a turn; the others come next turn */

struct acceptor;

/* `fd`: a connection's socket, which does not block and is the callee's now; or a UV_E*
 * code: why none could be accepted (UV_EMFILE: told again only after one could). It may
 * close the acceptor. */
typedef void acceptor_fn(void *ctx, int fd);

/* Takes the socket, which listens. 0 or a UV_E* code: the socket is the caller's then.
 */
int acceptor_open(struct io *io, int fd, acceptor_fn *fn, void *ctx,
                  struct acceptor **ret) __attribute__((warn_unused_result));
/* Closes the socket at once; accepts NULL. */
void acceptor_close(struct acceptor *a);

#endif
