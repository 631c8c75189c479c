/* redaction: a call as operators see it, in MONITOR and SLOWLOG: passwords are not. */
#ifndef LATCHD_CMD_OBSERVE_REDACTION_H
#define LATCHD_CMD_OBSERVE_REDACTION_H

#include "util/span.h"

struct command_ctx;
struct conn;

/* Argument `at`, or "(redacted)" in its place. */
struct span redacted_arg(const struct command_ctx *ctx, size_t at);

enum { REDACTED_PEER_ROOM = 128 };
/* The address of a client as Redis writes it there. */
void redacted_peer(const struct conn *conn, char out[REDACTED_PEER_ROOM]);

#endif
