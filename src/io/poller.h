/* poller: what waits for the sockets of all streams of an io: one epoll set, which is a
 * single handle of the loop, so that a stream needs no handle of its own. Private to
 * io/.
 *
 * It is there while any stream has a socket, and keeps the loop running so long. All
 * events of a turn of the loop come in its poll phase. A stream that was closed is
 * freed before the next events come, or with the poller: never while somebody works
 * with it.
 */
#ifndef LATCHD_IO_POLLER_H
#define LATCHD_IO_POLLER_H

#include "io/stream.h"

/* Takes the socket, which does not block, for the stream; what is waited for is what
 * stream_wants() says. 0 or a UV_E* code; the socket is the caller's then. */
int poller_add(struct stream *s, int fd) __attribute__((warn_unused_result));
/* To be called when stream_wants() says more, or when less is to cost nothing: an event
 * that is not wanted any more does no harm, it ends in another call of this. */
void poller_update(struct stream *s);
/* Closes the socket, if there is one. */
void poller_remove(struct stream *s);
/* Frees the stream, once nobody works with it. */
void poller_bury(struct stream *s);

#endif
