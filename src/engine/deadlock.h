/* deadlock: refuses a wait that would close a cycle of the wait-for graph. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_DEADLOCK_H
#define LATCHD_ENGINE_DEADLOCK_H

#include "engine/objects.h"

#include <stdbool.h>

/* Whether that wait would complete a deadlock. If so, the waiter has been answered and
 * freed. */
bool deadlock_refuses(struct engine *eng, struct waiter *w);

#endif
