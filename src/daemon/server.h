/* server: the whole daemon: it owns the loop and every part, and wires them together.
 */
#ifndef LATCHD_DAEMON_SERVER_H
#define LATCHD_DAEMON_SERVER_H

#include "daemon/config.h"
#include "daemon/options.h"

/* What the table cannot judge: values that must fit each other. */
bool server_check_config(const struct config *c, char *reterr, size_t room)
    __attribute__((warn_unused_result));

/* Runs until it is told to stop. False: it could not start; the log says why. */
bool server_main(const struct options *options, const struct config *config)
    __attribute__((warn_unused_result));

#endif
