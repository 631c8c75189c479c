/* request_lock: LOCK: from the request to the queue.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_REQUEST_LOCK_H
#define LATCHD_ENGINE_ACQUIRE_REQUEST_LOCK_H

#include "util/span.h"

#include <stdbool.h>

struct engine;
struct lock_req;
struct waiter;

/* LOCK, without the engine settling. */
void request_lock(struct engine *eng, const struct lock_req *req);
/* Whether nobody here holds, waits for or does anything about that name, and that ID is
 * not known. */
bool lock_untouched(const struct engine *eng, struct span name, struct span id);
/* The same in two steps, for a name that is untouched: into the queue.. */
struct waiter *request_lock_enqueue(struct engine *eng, const struct lock_req *req);
/* ..and what it does first. Also for one that has come back. */
void request_lock_start(struct engine *eng, struct waiter *w);

#endif
