/* probe: the waiters that are to ask Redis for themselves, beside the head of their
 * queue; the scheduler sends that. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_PROBE_H
#define LATCHD_ENGINE_LOCK_PROBE_H

#include "engine/wait/waiter.h"

struct engine;

/* The only way to change what the waiter is to ask, and the count of who asks. */
void waiter_set_probe(struct waiter *w, enum waiter_probe probe);
/* Makes a waiter probe or join, as soon as Redis is up and no undo of the waiter's is
 * pending. */
void waiter_probe_later(struct engine *eng, struct waiter *w, enum waiter_probe probe);
/* Makes a waiter ask once more: as the head, or for itself. */
void waiter_ask_again(struct engine *eng, struct waiter *w);

#endif
