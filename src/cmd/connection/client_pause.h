/* client_pause: CLIENT PAUSE: commands of clients are put off until it is over.
 * Renewals go on, and waits that had begun, with their WAIT running.
 *
 * A command that is put off suspends its connection and is looked at anew when the
 * pause ends: by time, by CLIENT UNPAUSE, or as the daemon stops. Commands about
 * connections and the server are never put off. */
#ifndef LATCHD_CMD_CONNECTION_CLIENT_PAUSE_H
#define LATCHD_CMD_CONNECTION_CLIENT_PAUSE_H

#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct command_ctx;
struct client;
struct cmd;

struct pause {
    uint64_t until_ms;    /* 0: there is none */
    bool all;             /* not only commands that change something */
    struct list deferred; /* what is put off */
};

/* True: the command is put off. */
bool pause_holds(struct command_ctx *ctx);
/* A pause that is over ends. */
void pause_tick(struct cmd *c, uint64_t now_ms);
void pause_end(struct cmd *c);

#endif
