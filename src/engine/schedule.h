/* schedule: the scheduler of the engine. The parts of the engine change state, and mark
 * what needs another look; the scheduler looks, and sends. Private to engine/. */
#ifndef LATCHD_ENGINE_SCHEDULE_H
#define LATCHD_ENGINE_SCHEDULE_H

#include "engine/objects.h"

/* Pending send: sends the pending requests that are queued. */

void pending_request_on_timer(struct engine *eng, struct pending_request *c);

/* Op results: hands the result of an op to the part of the engine that asked. */

void inflight_on_result(struct engine *eng, const struct op_result *r);

/* Lock step: decides which op a name needs next. */

/* The scheduler of one name: sends what the name needs next, if nothing is in the way.
 */
void lock_step(struct engine *eng, struct lock *lock);
void lock_free(struct engine *eng, struct lock *lock);
void lock_on_timer(struct engine *eng, struct lock *lock);

/* Sends the queued requests and steps every dirty lock and MLOCK until none is left;
 * the last act of each entry into the engine. */
void engine_settle(struct engine *eng);

#endif
