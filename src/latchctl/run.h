/* run: `latchctl run` and `latchctl lock`.
 *
 *   front --take--> granted --fork--> keeper --fork--> COMMAND
 *
 * The *front* is the process that the shell started. It takes the lock (run_lock.h),
 * then stays in the foreground beside COMMAND, in one process group with it, so that
 * the terminal's signals reach both, and passes on those that were sent to it alone.
 *
 * The *keeper* is COMMAND's parent, in a process group of its own so
 * that Ctrl-Z does not stop it. It renews the lock (run_lock.h), stops COMMAND when the
 * lock is lost, and releases the lock in the end.
 *
 * Each of the two watches over the other: the keeper ends COMMAND when the front is
 * gone, the front ends it when the keeper is gone, or stands still when the lease ends.
 * Both adopt COMMAND's orphans, so that either finds all processes that came from it,
 * whatever groups and sessions they made. If both are killed at once,
 * COMMAND itself goes by PR_SET_PDEATHSIG. */
#ifndef LATCHD_LATCHCTL_RUN_H
#define LATCHD_LATCHCTL_RUN_H

#include "latchctl/options.h"

/* Returns latchctl's exit code. */
int ctl_run(struct options *o);

#endif
