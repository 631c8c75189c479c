/* request_lock: a LOCK, from the request to the queue. Private to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_REQUEST_LOCK_H
#define LATCHD_ENGINE_ACQUIRE_REQUEST_LOCK_H

#include "util/span.h"

#include <stdbool.h>

struct engine;
struct lock_req;
struct waiter;

/* Carries out a LOCK, but does not settle the engine. */
void request_lock(struct engine *eng, const struct lock_req *req);
/* Whether no client of this daemon holds or waits for the name, nothing is under way
 * for it, and the ID is not known. */
bool lock_untouched(const struct engine *eng, struct span name, struct span id);
/* request_lock() in two steps, for an untouched name. The first puts a waiter into the
 * queue; NULL: the request has been answered. */
struct waiter *request_lock_enqueue(struct engine *eng, const struct lock_req *req);
/* The second decides what the waiter does first. Also for a waiter whose client came
 * back. */
void request_lock_start(struct engine *eng, struct waiter *w);

#endif
