/* acquire_batch: one op that asks for the heads of several idle names. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_ACQUIRE_BATCH_H
#define LATCHD_ENGINE_ACQUIRE_ACQUIRE_BATCH_H

#include <stdbool.h>
#include <stddef.h>

struct engine;
struct inflight_op;
struct op_result;
struct waiter;

/* Asks for these waiters by one op, which the scheduler sends. Each is the head of a
 * queue that is idle otherwise; there are at most OP_BATCH_MAX, of names of one group.
 * A waiter behind one that is not granted leaves its queue. `all_or_none`: none is
 * granted unless all can be; for the IDs' claims of value holds. */
void acquire_ask_batch(struct engine *eng, struct waiter *const *waiters, size_t count,
                       bool all_or_none);
void acquire_send_batch(struct engine *eng, struct inflight_op *all);
void on_acquire_batch_reply(struct engine *eng, struct inflight_op *all,
                            const struct op_result *r);

#endif
