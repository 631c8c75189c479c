/* socket: what libuv does not tell about sockets, or sets otherwise. */
#ifndef LATCHD_IO_SOCKET_H
#define LATCHD_IO_SOCKET_H

#include "io/stream.h"

#include <stdbool.h>
#include <stddef.h>

/* "1.2.3.4:5", "[::1]:5" or "unix:/path"; "-" if there is no name. NUL-terminated. */
void socket_local_name(int fd, char *out, size_t room);
void socket_peer_name(int fd, char *out, size_t room);

/* The peer is on this machine, by a unix socket or a loopback address; or gone. */
bool socket_is_local(int fd);

void socket_set_tcp_options(int fd, const struct stream_options *opt);

/* Bytes written that the peer's kernel has not acknowledged (unix: that the peer has
 * not read); also of a connection that broke. */
bool socket_has_unsent(int fd);
/* A reset came, also if it came after the peer's end of input. */
bool socket_is_reset(int fd, bool is_unix);

/* Throws away what has arrived, up to some amount. */
void socket_discard_input(int fd);

#endif
