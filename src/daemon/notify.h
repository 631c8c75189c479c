/* notify: what systemd is told, and the sockets that it hands over.
 *
 * The protocol of sd_notify(3) and sd_listen_fds(3), without the library. Nothing
 * happens where systemd did not ask for it. */
#ifndef LATCHD_DAEMON_NOTIFY_H
#define LATCHD_DAEMON_NOTIFY_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct notify {
    int fd; /* -1: nobody listens */
    struct sockaddr_un addr;
    socklen_t addr_len;
    uint64_t watchdog_ms; /* a sign of life is due this often; 0: never */
};

enum { NOTIFY_FIRST_FD = 3 };

/* Reads the environment and takes the variables out of it, so that children do not see
 * them. */
void notify_init(struct notify *n);
void notify_fini(struct notify *n);

/* One datagram, "KEY=value" lines. */
void notify_send(const struct notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Around a reload. */
void notify_reloading(const struct notify *n);

/* How many sockets were handed over, from NOTIFY_FIRST_FD on; they do not survive an
 * exec any more. Bit i of *ret_tls: the i-th of them is called `tls`
 * (FileDescriptorName=). */
int notify_listen_fds(uint64_t *ret_tls);

#endif
