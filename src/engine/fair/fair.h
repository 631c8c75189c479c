/* fair: a name's places in Redis's fair queue, as the rest of the engine sees them.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_FAIR_FAIR_H
#define LATCHD_ENGINE_FAIR_FAIR_H

#include <stdbool.h>

struct acquire_spec;
struct engine;
struct inflight_op;
struct lock;
struct op;
struct op_result;
struct timer;
struct waiter;

/* There is a fair queue, or is to be: all who wait here join it. */
void fair_start(struct engine *eng, struct lock *lock);
void fair_free(struct engine *eng, struct lock *lock);
/* Nothing is left to be told to Redis. */
bool fair_idle(const struct lock *lock);
/* It is on the queue now; it is about to be taken off. */
void fair_on_enqueue(struct engine *eng, struct waiter *w);
void fair_on_dequeue(struct engine *eng, struct waiter *w);
/* That op has granted it, which took its place away. */
void fair_granted(struct engine *eng, struct waiter *w, const struct op_result *r);
/* It holds, but Redis may have forgotten that it took its place away. */
void fair_leave_again(struct engine *eng, struct lock *lock, struct acquire_spec *spec);
/* But it was too late: it goes on waiting, where it stood. */
void fair_put_back(struct engine *eng, struct waiter *w, const struct op_result *r);
/* Its OP_ACQUIRE is about to be sent. */
void fair_fill_claim(struct engine *eng, struct op *op, struct waiter *w);
/* What an op on the lock said of the queue; of the waiter's place, if it was its. */
void fair_on_result(struct engine *eng, struct lock *lock, struct waiter *w,
                    const struct op_result *r);
/* The places may be gone, or their scores wrong. */
void fair_refresh_soon(struct engine *eng, struct lock *lock);
/* Redis may have lost what was done to its queue. */
void fair_lost(struct engine *eng, struct lock *lock);
/* Places of ours in it may be those of who is gone. */
void fair_sweep(struct engine *eng, struct lock *lock);
/* Sends what is due; nothing is in flight that may change who holds. `head_asked`: nor
 * is the head about to ask, which could give it its place. */
void fair_step(struct engine *eng, struct lock *lock, bool head_asked);
void fair_on_timer(struct engine *eng, struct timer *t);
void fair_on_inflight_gone(struct inflight_op *w);
void on_fair_reply(struct engine *eng, struct inflight_op *w,
                   const struct op_result *r);

#endif
