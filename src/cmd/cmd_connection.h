/* cmd_connection: the commands about connections: HELLO, AUTH, RESET, CLIENT. */
#ifndef LATCHD_CMD_CMD_CONNECTION_H
#define LATCHD_CMD_CMD_CONNECTION_H

#include "util/list.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct cmd;
struct command_ctx;

/* client_pause: CLIENT PAUSE defers the commands of clients until the pause is over.
 * Renewals go on, and so do waits that had begun, with their WAIT running. A deferred
 * command suspends its connection, and is dispatched again when the pause ends: by
 * time, by CLIENT UNPAUSE, or as the daemon stops. Commands about connections and the
 * server are never deferred. */

struct pause {
    uint64_t until_ms;    /* 0: no pause */
    bool all;             /* also commands that change nothing */
    struct list deferred; /* the deferred commands */
};

/* Whether the command is to be deferred, and belongs into pause.deferred. */
bool pause_concerns(const struct command_ctx *ctx);
/* Ends a pause whose time is over. */
void pause_tick(struct cmd *c, uint64_t now_ms);
void pause_end(struct cmd *c);

/* --- the connection's commands ------------------------------------------ */

/* Whether the locks are in the database of that number, or of any. False: an error
 * reply was written. */
bool ctx_has_database(struct command_ctx *ctx, int64_t index);

#endif
