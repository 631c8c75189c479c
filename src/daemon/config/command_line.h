/* command_line: the command line. It wins over the file, also when the file is read
 * again.
 */
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

/* Points into argv, which must live as long. */
struct options {
    enum options_action action;
    const char *config_path; /* NULL: no file */
    int argc;
    const char *const *argv;
};

/* Reads the words, not yet the file. */
bool options_parse(int argc, const char *const *argv, struct options *ret, char *reterr,
                   size_t room) __attribute__((warn_unused_result));
/* Defaults, then the file, then the command line. False: a line for each mistake is in
 * `mistakes`. *ret is to be finished with config_fini() in any case. */
bool options_config(const struct options *o, struct config *ret, struct buf *mistakes)
    __attribute__((warn_unused_result));
void options_help(struct buf *out);

#endif
