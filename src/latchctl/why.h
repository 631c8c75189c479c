/* why: `latchctl why`, who holds a name, who waits for it, and what to do about it. */
#ifndef LATCHD_LATCHCTL_WHY_H
#define LATCHD_LATCHCTL_WHY_H

#include "latchctl/options.h"

/* Returns latchctl's exit code. */
int ctl_why(struct options *o);

#endif
