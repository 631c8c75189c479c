/* listener: sockets that accept connections: TCP, unix, or handed over by systemd.
 *
 * A set owns its listeners until listeners_close(). A listener that was added has its
 * bound address in ret_name ("127.0.0.1:5625", "unix:/run/x.sock"). Each
 * listeners_add_*() returns 0 or a UV_E* code. */
#ifndef LATCHD_NET_LISTENER_H
#define LATCHD_NET_LISTENER_H

#include "util/list.h"

#include <stdbool.h>
#include <stddef.h>

struct io;

/* Takes an accepted socket. `tls`: the client has to begin with a TLS handshake. */
typedef void listener_fn(void *ctx, int fd, bool is_unix, bool tls);

struct listeners {
    struct io *io;
    listener_fn *on_connection;
    void *ctx;
    struct list all;
};

void listeners_init(struct listeners *set, struct io *io, listener_fn *on_connection,
                    void *ctx);
/* Closes all. May be called again. */
void listeners_close(struct listeners *set);

/* Listens on a TCP address. */
int listeners_add_tcp(struct listeners *set, const char *address, int port, int backlog,
                      bool tls, char *ret_name, size_t room);
/* Listens on a unix socket. A file left over from a dead daemon is replaced; if
 * somebody listens on it, the result is UV_EADDRINUSE. The file is removed when the
 * listener closes. */
int listeners_add_unix(struct listeners *set, const char *path, unsigned mode,
                       int backlog, char *ret_name, size_t room);
/* Takes an inherited listening socket of any family, whose backlog is set anew.
 * `owns_file`: removes the file of a unix socket as listeners_add_unix() does. */
int listeners_add_fd(struct listeners *set, int fd, int backlog, bool tls,
                     bool owns_file, char *ret_name, size_t room);

/* Calls `fn` with each socket; `owns_file`: it removes its file. */
typedef void listener_socket_fn(void *ctx, int fd, bool tls, bool owns_file);
void listeners_foreach(struct listeners *set, listener_socket_fn *fn, void *ctx);
/* The files stay when the listeners close: another process has the sockets, too. */
void listeners_leave_files(struct listeners *set);

#endif
