/* log_identity: how the log names a client: address, user, client library. */
#ifndef LATCHD_CMD_LOG_IDENTITY_H
#define LATCHD_CMD_LOG_IDENTITY_H

#include "cmd/client.h"
#include "util/log.h"
#include "util/recent.h"
#include "util/span.h"

struct cmd;
struct command_ctx;
struct conn;

/* redaction: commands as MONITOR and SLOWLOG print them, without passwords. */

/* Argument `at` of a command, or "(redacted)" if it may hold a secret. */
struct span redacted_arg(const struct command_ctx *ctx, size_t at);

enum { REDACTED_PEER_ROOM = 128 };
/* The address of a client, in the form that Redis prints. */
void redacted_peer(const struct conn *conn, char out[REDACTED_PEER_ROOM]);
/* The address of a connection as the log has it, perhaps in `room`; empty: it is
 * closed. */
const char *client_address(const struct cmd *c, uint64_t conn,
                           char room[REDACTED_PEER_ROOM]);

struct log_identity {
    struct log_about about; /* points into the arrays below and at the client's texts */
    char address[REDACTED_PEER_ROOM];
    char library[2 * CLIENT_LIB_MAX + 2];
};
/* Logs a line about what a client did, to lock `name` unless that is empty. */
void log_about_client(const struct command_ctx *ctx, enum log_level level,
                      struct span name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Log the beginning and the end of a connection. */
void log_identity_connected(struct client *client, const struct conn *conn);
void log_identity_closed(const struct client *client, const struct conn *conn);

/* refusals: what lock libraries were refused, for the log.
 *
 * Many libraries swallow the error, and try again for ever. So the log says what was
 * refused and what to do, once a minute at most for each client library: by the name
 * that it gave with CLIENT SETINFO or CLIENT SETNAME, or else by its user. */

enum {
    REFUSALS_MAX =
        64, /* libraries; beyond it, the one logged longest ago is forgotten */
    REFUSALS_SAY_AGAIN_MS = 60000,
};

/* The caller owns them, and ends them with recent_fini(). */
void refusals_init(struct recent *r);

/* Writes an error reply about something that only a Redis does, and logs it. */
void ctx_refuse(struct command_ctx *ctx, const char *word, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a command that only Redis has; the advice says what to do instead. */
void ctx_only_redis(struct command_ctx *ctx, const char *advice);

#endif
