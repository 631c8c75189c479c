/* commands: the subcommands that ask one thing of latchd, as long as it takes. Each
 * returns latchctl's exit code. */
#ifndef LATCHD_LATCHCTL_COMMANDS_H
#define LATCHD_LATCHCTL_COMMANDS_H

#include "latchctl/options.h"

int ctl_unlock(struct options *o);
int ctl_ls(struct options *o);
int ctl_latch(struct options *o);
int ctl_leader(struct options *o);
int ctl_force(struct options *o);

#endif
