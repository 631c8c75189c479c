/* poller: what waits for the sockets of all streams of an io: one epoll set, so that a
 * stream needs no handle of the loop. Private to io/.
 *
 * The daemon's io_run() has the loop's own epoll set in that one, and waits for both in
 * one call. Elsewhere the set is a single handle of the loop, there while any stream
 * has a socket, and keeps the loop running so long. All events of a turn come together.
 * A stream that was closed is freed before the next events come, or with the poller:
 * never while somebody works with it.
 */
#ifndef LATCHD_IO_POLLER_H
#define LATCHD_IO_POLLER_H

#include "io/stream.h"

/* Takes a non-blocking socket for the stream, and waits for the events of
 * stream_wants(). 0 or a UV_E* code; on failure the socket stays the caller's. */
int poller_add(struct stream *s, int fd) __attribute__((warn_unused_result));
/* Updates the events that the kernel waits for. Needed when stream_wants() asks for
 * more; when it asks for less, an unwanted event does no harm, as it ends in another
 * call of this. */
void poller_update(struct stream *s);
/* Closes the stream's socket, if it has one. */
void poller_remove(struct stream *s);
/* Frees the stream once no caller uses it. */
void poller_bury(struct stream *s);

#endif
