/* acquire: asks Redis for a lock on behalf of waiters, and takes the answers. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_H
#define LATCHD_ENGINE_ACQUIRE_H

#include "engine/inflight_op.h"
#include "engine/objects.h"
#include "engine/waiter.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limit: the limit of a semaphore, set by a client. */

void on_limit_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r);

/* Local grant: which names are lent to this daemon, and grants from memory. */

/* The block of tokens to ask for with that waiter's grant; 0: the name is not to be
 * lent. A lent name is shut for others for a moment after its UNLOCK, and for a lease
 * if this daemon crashes: so only names that are asked for again within a window are
 * lent. */
uint32_t local_grant_block(const struct engine *eng, const struct waiter *w);
/* Grants an idle loan to the head of the queue, from memory. False: Redis has to be
 * asked, as the head is not local or the loan is in doubt or too old. */
bool local_grant_try(struct engine *eng, struct lock *lock);

/* Asks Redis for the head of the queue. */
void acquire_ask(struct engine *eng, struct lock *lock, struct waiter *w);
/* Asks whether a waiter that is not the head holds the lock already. */
void acquire_probe(struct engine *eng, struct waiter *w);
/* Asks for a waiter that is not the head, but may be granted beside the present
 * holders. */
void acquire_join(struct engine *eng, struct waiter *w);
/* Redis granted the lock, but too few replicas acknowledged that: undoes the grant. A
 * waiter goes on trying, after a pause. `waiter` may be NULL. */
void acquire_unacked(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked);
void on_acquire_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);
/* Redis granted the lock to `spec` by an op that was sent at `asked`, or had granted
 * it before. `waiter` is NULL when nobody waits for the grant any more. */
void acquire_granted(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked);

/* Acquire batch: one op that asks for the heads of several idle names. */

/* Asks for these waiters by one op, which the scheduler sends. Each is the head of a
 * queue that is idle otherwise; there are at most OP_BATCH_MAX, of names of one group.
 * A waiter behind one that is not granted leaves its queue. `all_or_none`: none is
 * granted unless all can be; for the IDs' claims of value holds. */
void acquire_ask_batch(struct engine *eng, struct waiter *const *waiters, size_t count,
                       bool all_or_none);
void acquire_send_batch(struct engine *eng, struct inflight_op *all);
void on_acquire_batch_reply(struct engine *eng, struct inflight_op *all,
                            const struct op_result *r);

/* Request lock: a LOCK, from the request to the queue. */

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
