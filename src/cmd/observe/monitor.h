/* monitor: connections that see every command that runs. Costs one look at an empty
 * list while there are none. */
#ifndef LATCHD_CMD_OBSERVE_MONITOR_H
#define LATCHD_CMD_OBSERVE_MONITOR_H

struct command_ctx;

/* The command has run. Who does not read its lines is closed by its output limit. */
void monitor_feed(const struct command_ctx *ctx);

#endif
