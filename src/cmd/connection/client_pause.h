/* client_pause: CLIENT PAUSE defers the commands of clients until the pause is over.
 * Renewals go on, and so do waits that had begun, with their WAIT running. A deferred
 * command suspends its connection, and is dispatched again when the pause ends: by
 * time, by CLIENT UNPAUSE, or as the daemon stops. Commands about connections and the
 * server are never deferred. */
#ifndef LATCHD_CMD_CONNECTION_CLIENT_PAUSE_H
#define LATCHD_CMD_CONNECTION_CLIENT_PAUSE_H

#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct command_ctx;
struct client;
struct cmd;

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

#endif
