/* wait_queue: the order in which the waiters of a name stand.
 *
 * A waiter's rank is when the waiter arrived, less its PRIORITY times priority-aging,
 * and stays what it is. So a waiter is passed only by those that arrive within so
 * many steps of priority-aging, and nobody starves. Without priorities the order is
 * that of arrival.
 *
 * The head is not passed while Redis may be about to give it the lock: it goes to its
 * place when it is not given the lock after all. Behind a fair queue PRIORITY counts
 * for nothing, as the places in Redis are in the order of joining. Private to engine/.
 */
#ifndef LATCHD_ENGINE_WAIT_QUEUE_H
#define LATCHD_ENGINE_WAIT_QUEUE_H

#include "engine/objects.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether `max` waiters have places. The first waiter of a name that may be free is
 * not counted, as it may not have to wait. */
bool wait_queue_is_full(const struct engine *eng, const struct lock *lock,
                        uint32_t max);
/* Puts a new waiter to its place, which is also that in eng->waiters. Returns the
 * waiter that was the head before and is not any more, or NULL: see
 * waiter_on_passed(). */
struct waiter *wait_queue_add(struct engine *eng, struct waiter *w);
void wait_queue_remove(struct waiter *w);
/* Moves the head back to its place if others were kept from passing it, and nothing
 * keeps them any more. Returns the former head, or NULL: as above. */
struct waiter *wait_queue_step_back(struct engine *eng, struct lock *lock);

#endif
