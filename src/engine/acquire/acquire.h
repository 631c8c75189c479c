/* acquire: asking Redis for a lock on behalf of waiters, and what its answers mean.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_ACQUIRE_H
#define LATCHD_ENGINE_ACQUIRE_ACQUIRE_H

#include "engine/inflight_op.h"

#include <stdbool.h>

struct acquire_spec;
struct engine;
struct lock;
struct op_result;
struct waiter;

void acquire_ask(struct engine *eng, struct lock *lock, struct waiter *w);
/* Asks for one waiter that is not the head whether it holds already. */
void acquire_probe(struct engine *eng, struct waiter *w);
/* Asks for one that is not the head, but may be granted beside who holds. */
void acquire_join(struct engine *eng, struct waiter *w);
/* The same as soon as nothing is left to be undone and Redis is up. */
void acquire_probe_later(struct engine *eng, struct waiter *w);
/* It may be asked for; else it is looked at again when it may. */
bool acquire_may_ask(struct engine *eng, struct lock *lock);
/* Granted, but not acknowledged by enough replicas: back with it. Who waits goes on
 * trying, with a pause. `waiter` may be NULL. */
void acquire_unacked(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r);
/* It is to ask once more: as the head, or for itself. */
void acquire_again(struct engine *eng, struct waiter *w);
void on_acquire_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);
/* Redis gave `want` the lock by an op sent at `sent`, or had given it before; `waiter`
 * is NULL when nobody waits for it any more. */
void acquire_granted(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked);

#endif
