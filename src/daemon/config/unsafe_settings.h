/* unsafe_settings: warnings at the start about settings that let others connect, or
 * read passwords. */
#ifndef LATCHD_DAEMON_CONFIG_UNSAFE_SETTINGS_H
#define LATCHD_DAEMON_CONFIG_UNSAFE_SETTINGS_H

#include "daemon/config/command_line.h"

void unsafe_warn(const struct options *options, const struct config *c);

#endif
