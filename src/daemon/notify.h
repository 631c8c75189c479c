/* notify: messages to systemd, and the sockets that it passes. The protocols of
 * sd_notify(3) and sd_listen_fds(3), without the library. Does nothing when systemd
 * did not start latchd. */
#ifndef LATCHD_DAEMON_NOTIFY_H
#define LATCHD_DAEMON_NOTIFY_H

#include "util/buf.h"

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un addr;
    socklen_t addr_len;
    uint64_t watchdog_ms; /* interval of WATCHDOG=1; 0: never */
};

enum { NOTIFY_FIRST_FD = 3 };

/* Reads systemd's variables, and removes them from the environment, so that children
 * do not inherit them. */
void notify_init(struct notify *n);
void notify_fini(struct notify *n);

/* Sends a datagram of "KEY=value" lines. */
void notify_send(const struct notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* The variables of a process that is to take over from this one, "NAME=value": empty if
 * there is no service manager, or no watchdog. */
void notify_write_env(const struct notify *n, struct buf *socket, struct buf *watchdog);
/* Announces a reload. */
void notify_reloading(const struct notify *n);

/* Returns how many sockets were passed, from NOTIFY_FIRST_FD on, and makes them
 * close-on-exec. Bit i of *ret_tls: socket i is named `tls` (FileDescriptorName=). */
int notify_listen_fds(uint64_t *ret_tls);

#endif
