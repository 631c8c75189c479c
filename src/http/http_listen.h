/* http_listen: the socket that libmicrohttpd is given, so that `auto` can be a port. */
#ifndef LATCHD_HTTP_HTTP_LISTEN_H
#define LATCHD_HTTP_HTTP_LISTEN_H

#include <stddef.h>

/* A listening socket that does not block. `name` is "127.0.0.1:80". -1: errno; EINVAL
 * when the address is not one. `port` 0: the kernel chooses. */
int http_listen(const char *address, unsigned port, char *name, size_t room);

#endif
