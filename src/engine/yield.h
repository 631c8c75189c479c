/* yield: a true release lets others ask first, and the head stands back meanwhile. It
 * stands back for longer while a foreign client waits and yields are in vain: on a busy
 * machine a library may take longer than handoff-pause to ask.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_YIELD_H
#define LATCHD_ENGINE_YIELD_H

#include "engine/objects.h"
#include "engine/op.h"

#include <stdbool.h>
#include <stdint.h>

/* Yields: what decides when a name yields, and for how long. */
struct yields {
    uint64_t since; /* when a hand-over was first considered since the lock was free */
    /* from `since` to when another daemon's waiters were last looked for */
    uint32_t checked_after_ms;
    /* since the last true release through this daemon, or since others were looked for
     */
    uint32_t handovers;
    uint64_t messages; /* since the last release with a successor was sent */
    uint32_t pause_ms; /* of the head after a yield; 0: for handoff-pause only */
    /* listeners at the last yield that are no latchd; 0: none is for certain, or who
     * got the lock then is known */
    uint32_t foreign_listeners;
    /* The lock was released for others' sake: the next message does not make the head
     * ask at once, either. */
    bool pauses_again;
};

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
