/* names: goes through the names that LOCKS lists, a page at a time. */
#ifndef LATCHD_LATCHCTL_NAMES_H
#define LATCHD_LATCHCTL_NAMES_H

#include "latchctl/link.h"
#include "util/span.h"

#include <stdbool.h>

/* Returns whether to go on. */
typedef bool names_fn(void *ctx, struct span name);

/* Calls `fn` for each name that this latchd's clients hold or wait for, or with `all`
 * for each that is held in Redis; `match` may be NULL. False: an error was printed. */
bool names_each(struct link *l, bool all, const char *match, names_fn *fn, void *ctx);

#endif
