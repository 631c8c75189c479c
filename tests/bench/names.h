/* names: which lock a lane wants next. */
#ifndef LATCHD_BENCH_NAMES_H
#define LATCHD_BENCH_NAMES_H

#include "ways.h"

/* Into lane->name. One of its own; `one`; or, of 10,000, the n-th most wanted one with
 * a chance of 1 / n. */
void names_choose(struct lane *lane, enum names names);

/* The same sequence in every run. */
uint32_t names_dice(void);

#endif
