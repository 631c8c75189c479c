/* server: the whole daemon. It owns the loop and every part, and connects them. */
#ifndef LATCHD_DAEMON_SERVER_H
#define LATCHD_DAEMON_SERVER_H

#include "daemon/config/command_line.h"
#include "daemon/config/config.h"

/* Reads and checks the configuration, including values that must fit each other, and
 * the files that they name. False: `mistakes` has a line for each mistake. Otherwise
 * *ret must be freed by config_fini(). */
bool server_read_config(const struct options *options, struct config *ret,
                        struct buf *mistakes) __attribute__((warn_unused_result));

/* Runs the daemon until it is stopped. False: it could not start; the log says why. */
bool server_main(const struct options *options, const struct config *config)
    __attribute__((warn_unused_result));

#endif
