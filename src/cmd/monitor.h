/* monitor: connections that see every command that runs. Costs one look at an empty
 * list while there are none. */
#ifndef LATCHD_CMD_MONITOR_H
#define LATCHD_CMD_MONITOR_H

struct call;

/* The command has run. Who does not read its lines is closed by its output limit. */
void monitor_feed(const struct call *call);

#endif
