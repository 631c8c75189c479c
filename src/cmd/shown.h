/* shown: a call as operators see it, in MONITOR and SLOWLOG: passwords are not. */
#ifndef LATCHD_CMD_SHOWN_H
#define LATCHD_CMD_SHOWN_H

#include "util/span.h"

struct call;
struct conn;

/* Argument `at`, or "(redacted)" in its place. */
struct span shown_arg(const struct call *call, size_t at);

enum { SHOWN_PEER_ROOM = 128 };
/* The address of a client as Redis writes it there. */
void shown_peer(const struct conn *conn, char out[SHOWN_PEER_ROOM]);

#endif
