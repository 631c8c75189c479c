/* unsafe: what the operator may not know about the settings: who could come in, and who
 * could read the passwords. Said once, at the start. */
#ifndef LATCHD_DAEMON_UNSAFE_H
#define LATCHD_DAEMON_UNSAFE_H

#include "daemon/options.h"

void unsafe_warn(const struct options *options, const struct config *c);

#endif
