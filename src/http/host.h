/* host: whether a request was meant for us.
 *
 * A page of somebody else can make a browser on this machine ask 127.0.0.1 under a name
 * that its owner points there, and read the answer (DNS rebinding). On a loopback
 * address only requests by number, or for `localhost`, are answered. */
#ifndef LATCHD_HTTP_HOST_H
#define LATCHD_HTTP_HOST_H

#include <stdbool.h>

/* A Host header: an address in digits, `localhost`, or below `.localhost`; with or
 * without a port. */
bool host_is_numeric_or_local(const char *host);

/* In digits, IPv4 or IPv6: 127.0.0.0/8 or ::1. */
bool host_is_loopback(const char *address);

#endif
