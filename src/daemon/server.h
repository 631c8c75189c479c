/* server: the whole daemon. It owns the loop and every part, and connects them. */
#ifndef LATCHD_DAEMON_SERVER_H
#define LATCHD_DAEMON_SERVER_H

#include "daemon/config/command_line.h"
#include "daemon/config/config.h"

/* Runs the daemon until it is stopped. False: it could not start; the log says why. */
bool server_main(const struct options *options, const struct config *config)
    __attribute__((warn_unused_result));

#endif
