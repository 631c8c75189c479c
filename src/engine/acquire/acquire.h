/* acquire: asks Redis for a lock on behalf of waiters, and takes the answers. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_ACQUIRE_H
#define LATCHD_ENGINE_ACQUIRE_ACQUIRE_H

#include "engine/inflight_op.h"
#include "engine/wait/waiter.h"

#include <stdbool.h>

struct acquire_spec;
struct engine;
struct lock;
struct op_result;

/* Asks Redis for the head of the queue. */
void acquire_ask(struct engine *eng, struct lock *lock, struct waiter *w);
/* Asks whether a waiter that is not the head holds the lock already. */
void acquire_probe(struct engine *eng, struct waiter *w);
/* Asks for a waiter that is not the head, but may be granted beside the present
 * holders. */
void acquire_join(struct engine *eng, struct waiter *w);
/* Whether the lock's head may ask now; if not, lock_step() runs again when it may. */
bool acquire_may_ask(struct engine *eng, struct lock *lock);
/* Redis granted the lock, but too few replicas acknowledged that: undoes the grant. A
 * waiter goes on trying, after a pause. `waiter` may be NULL. */
void acquire_unacked(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked);
void on_acquire_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);
/* Redis granted the lock to `spec` by an op that was sent at `asked`, or had granted
 * it before. `waiter` is NULL when nobody waits for the grant any more. */
void acquire_granted(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked);
/* Grants the head of the queue the lock from its idle loan. */
void acquire_grant_from_loan(struct engine *eng, struct lock *lock, struct waiter *w);

#endif
