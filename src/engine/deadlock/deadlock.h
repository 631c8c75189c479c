/* deadlock: refuses a wait that would close a circle of named owners.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_DEADLOCK_DEADLOCK_H
#define LATCHD_ENGINE_DEADLOCK_DEADLOCK_H

#include <stdbool.h>

struct engine;
struct waiter;

/* Whether that wait would close a circle: then it has been answered, and is gone. */
bool deadlock_refuses(struct engine *eng, struct waiter *w);

#endif
