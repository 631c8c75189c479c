/* command_line: the command line. Its values override the file, also after a reload. */
#ifndef LATCHD_DAEMON_CONFIG_COMMAND_LINE_H
#define LATCHD_DAEMON_CONFIG_COMMAND_LINE_H

#include "daemon/config/config.h"

enum options_action {
    OPTIONS_RUN,
    OPTIONS_HELP,
    OPTIONS_VERSION,
    OPTIONS_PRINT_CONFIG,
    OPTIONS_CHECK_CONFIG,
};

/* The parsed command line; points into argv. */
struct options {
    enum options_action action;
    const char *config_path; /* NULL: no file */
    int argc;
    const char *const *argv;
};

/* Parses the words; does not read the file. */
bool options_parse(int argc, const char *const *argv, struct options *ret, char *reterr,
                   size_t room) __attribute__((warn_unused_result));
/* Makes the configuration of defaults, the file and the command line, in this order.
 * False: `mistakes` has a line for each mistake. *ret must be freed by config_fini()
 * in any case. */
bool options_config(const struct options *o, struct config *ret, struct buf *mistakes)
    __attribute__((warn_unused_result));
void options_help(struct buf *out);

#endif
