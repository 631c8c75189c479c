/* log_identity: how the log names a client: address, user, client library. */
#ifndef LATCHD_CMD_OBSERVE_LOG_IDENTITY_H
#define LATCHD_CMD_OBSERVE_LOG_IDENTITY_H

#include "cmd/client.h"
#include "cmd/observe/redaction.h"
#include "util/log.h"

struct command_ctx;
struct conn;

struct log_identity {
    struct log_about about; /* points into the arrays below and at the client's texts */
    char address[REDACTED_PEER_ROOM];
    char library[2 * CLIENT_LIB_MAX + 2];
};

void log_identity_fill(struct log_identity *ret, const struct client *client,
                       const struct conn *conn);
/* Logs a line about what a client did, to lock `name` unless that is empty. */
void log_about_client(const struct command_ctx *ctx, enum log_level level,
                      struct span name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Log the beginning and the end of a connection. */
void log_identity_connected(struct client *client, const struct conn *conn);
void log_identity_closed(const struct client *client, const struct conn *conn);

#endif
