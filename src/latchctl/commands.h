/* commands: the subcommands. Each returns latchctl's exit code. */
#ifndef LATCHD_LATCHCTL_COMMANDS_H
#define LATCHD_LATCHCTL_COMMANDS_H

#include "latchctl/link.h"
#include "latchctl/options.h"

int ctl_run(struct options *o); /* and lock */
int ctl_unlock(struct options *o);
int ctl_top(struct options *o);
int ctl_why(struct options *o);
int ctl_ls(struct options *o);
int ctl_latch(struct options *o);
/* What LOCKINFO says of the name. NULL: an error was printed, or what is to be said of
 * a latch of that name; *ret_code is set then. */
redisReply *latch_or_lockinfo(struct link *l, const char *name, int *ret_code);
int ctl_leader(struct options *o);
int ctl_force(struct options *o);

#endif
