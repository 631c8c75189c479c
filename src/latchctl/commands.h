/* commands: the subcommands. Each returns latchctl's exit code. */
#ifndef LATCHD_LATCHCTL_COMMANDS_H
#define LATCHD_LATCHCTL_COMMANDS_H

#include "latchctl/options.h"

int ctl_run(struct options *o);
int ctl_top(struct options *o);
int ctl_why(struct options *o);
int ctl_ls(struct options *o);
int ctl_leader(struct options *o);
int ctl_force(struct options *o);

#endif
