/* monitor: MONITOR, connections that are sent every command that runs. Without any it
 * costs a look at an empty list. */
#ifndef LATCHD_CMD_OBSERVE_MONITOR_H
#define LATCHD_CMD_OBSERVE_MONITOR_H

struct command_ctx;

/* Sends a command that has run to all monitors. A monitor that does not read is closed
 * by its output limit. */
void monitor_feed(const struct command_ctx *ctx);

#endif
