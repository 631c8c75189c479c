/* listener: sockets that accept clients for a net: TCP, unix, or handed over by
 * systemd.
 *
 * Listeners belong to their net, net_stop_listening() closes them. On success the bound
 * address is in ret_name ("127.0.0.1:5625", "unix:/run/x.sock"). 0 or a UV_E* code. */
#ifndef LATCHD_NET_LISTENER_H
#define LATCHD_NET_LISTENER_H

#include "net/conn.h"

/* Listens on a TCP address. `tls`: its connections use TLS; net_set_tls() must have
 * been called. */
int net_listen_tcp(struct net *n, const char *address, int port, int backlog, bool tls,
                   char *ret_name, size_t room);
/* Listens on a unix socket. A file left over from a dead daemon is replaced; if
 * somebody listens on it, the result is UV_EADDRINUSE. The file is removed when the
 * listener closes. */
int net_listen_unix(struct net *n, const char *path, unsigned mode, int backlog,
                    char *ret_name, size_t room);
/* Takes an inherited listening socket of any family. */
int net_listen_fd(struct net *n, int fd, bool tls, char *ret_name, size_t room);

#endif
