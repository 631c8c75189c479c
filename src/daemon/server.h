/* server: the whole daemon: it owns the loop and every part, and wires them together.
 */
#ifndef LATCHD_DAEMON_SERVER_H
#define LATCHD_DAEMON_SERVER_H

#include "daemon/config/command_line.h"
#include "daemon/config/config.h"

/* Reads the configuration, and checks also what the table cannot judge: values that
 * must fit each other, and the files that they name. False: a line for each mistake is
 * in `mistakes`. Otherwise *ret is to be finished with config_fini(). */
bool server_read_config(const struct options *options, struct config *ret,
                        struct buf *mistakes) __attribute__((warn_unused_result));

/* Runs until it is told to stop. False: it could not start; the log says why. */
bool server_main(const struct options *options, const struct config *config)
    __attribute__((warn_unused_result));

#endif
