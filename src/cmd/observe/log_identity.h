/* log_identity: a client, as the log names it. */
#ifndef LATCHD_CMD_OBSERVE_LOG_IDENTITY_H
#define LATCHD_CMD_OBSERVE_LOG_IDENTITY_H

#include "cmd/client.h"
#include "cmd/observe/redaction.h"
#include "util/log.h"

struct command_ctx;
struct conn;

struct log_identity {
    struct log_about about; /* points into the rest, and at the client's own texts */
    char address[REDACTED_PEER_ROOM];
    char library[2 * CLIENT_LIB_MAX + 2];
};

void log_identity_fill(struct log_identity *ret, const struct client *client,
                       const struct conn *conn);
/* A line about a client and what it did to lock `name`, if that is not empty. */
void log_about_client(const struct command_ctx *ctx, enum log_level level,
                      struct span name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Lines about its beginning and its end. */
void log_identity_connected(struct client *client, const struct conn *conn);
void log_identity_closed(const struct client *client, const struct conn *conn);

#endif
