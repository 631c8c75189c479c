/* cmd_library: what the handlers of the lock libraries' commands share. */
#ifndef LATCHD_CMD_CMD_LIBRARY_H
#define LATCHD_CMD_CMD_LIBRARY_H

#include <stdbool.h>

struct command_ctx;

#endif
