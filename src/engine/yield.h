/* yield: a true release lets others ask first, and the head stands back meanwhile. It
 * stands back for longer while a foreign client waits and yields are in vain: on a busy
 * machine a library may take longer than handoff-pause to ask.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_YIELD_H
#define LATCHD_ENGINE_YIELD_H

#include "engine/op.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct lock;
struct op_result;
struct waiter;

/* Whether others get their chance now, instead of our next waiter. */
enum yield yield_choose(struct engine *eng, struct lock *lock);
/* The lock was freed for others' sake, and so many others listened. */
void yield_begin(struct engine *eng, struct lock *lock, uint32_t listeners);
/* A message says that the lock was released, here or elsewhere, while a waiter is here.
 */
void yield_on_message(struct engine *eng, struct lock *lock);
/* Redis answered an acquire: who got the lock after the last yield? */
void yield_on_answer(const struct engine *eng, struct lock *lock,
                     const struct op_result *r);

#endif
