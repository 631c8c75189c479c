/* peer: who listens on a unix socket. */
#ifndef LATCHD_TESTS_PEER_H
#define LATCHD_TESTS_PEER_H

#include <sys/types.h>

/* Connects, or fails the test; the caller closes it. */
int peer_connect(const char *socket_path);
/* The process that listens there. */
pid_t peer_pid(const char *socket_path);

#endif
