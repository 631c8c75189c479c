/* redaction: commands as MONITOR and SLOWLOG print them, without passwords. */
#ifndef LATCHD_CMD_OBSERVE_REDACTION_H
#define LATCHD_CMD_OBSERVE_REDACTION_H

#include "util/span.h"

struct command_ctx;
struct conn;

/* Argument `at` of a command, or "(redacted)" if it may hold a secret. */
struct span redacted_arg(const struct command_ctx *ctx, size_t at);

enum { REDACTED_PEER_ROOM = 128 };
/* The address of a client, in the form that Redis prints. */
void redacted_peer(const struct conn *conn, char out[REDACTED_PEER_ROOM]);

#endif
