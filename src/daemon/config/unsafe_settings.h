/* unsafe_settings: what the operator may not know about the settings: who could come
 * in, and who could read the passwords. Said once, at the start. */
#ifndef LATCHD_DAEMON_CONFIG_UNSAFE_SETTINGS_H
#define LATCHD_DAEMON_CONFIG_UNSAFE_SETTINGS_H

#include "daemon/config/command_line.h"

void unsafe_warn(const struct options *options, const struct config *c);

#endif
