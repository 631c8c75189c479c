/* top: `latchctl top`, the hottest names, live. */
#ifndef LATCHD_LATCHCTL_TOP_H
#define LATCHD_LATCHCTL_TOP_H

#include "latchctl/options.h"

/* Returns latchctl's exit code. */
int ctl_top(struct options *o);

#endif
