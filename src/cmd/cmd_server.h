/* cmd_server: the commands about the server: CONFIG, MONITOR, SHUTDOWN and so on. */
#ifndef LATCHD_CMD_CMD_SERVER_H
#define LATCHD_CMD_CMD_SERVER_H

struct command_ctx;

/* Sends a command that has run to the connections that are in MONITOR; without any it
 * costs a look at an empty list. A monitor that does not read is closed by its output
 * limit. */
void monitor_feed(const struct command_ctx *ctx);

#endif
