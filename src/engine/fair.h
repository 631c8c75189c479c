/* fair: a name's places in Redisson's fair queue, as the rest of the engine sees them.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_FAIR_H
#define LATCHD_ENGINE_FAIR_H

#include "engine/engine.h"
#include "engine/objects.h"

#include <stdbool.h>

struct op;
struct timer;

/* Fair left: names in whose fair queue this instance had places not long ago.
 *
 * A Redis that lost its last writes may have such places again, of waiters that are
 * gone. Because this daemon is alive, all others would wait behind those places until
 * their scores have run out. So after such a loss this instance's leftover places leave
 * those queues. Of places from longer ago, whose scores have run out, only this
 * instance takes notice: they leave when it frees the name next. */

enum {
    FAIR_LEFT_MAX = 16384, /* then the oldest name is dropped: scores end its places */
};
/* Redis may have lost what happened to the names of those groups (NULL: all): sweeps
 * their fair queues. */
void fair_left_again(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
void fair_free(struct engine *eng, struct lock *lock);
/* Whether nothing is left to be sent about the name's fair queue. */
bool fair_idle(const struct lock *lock);
/* A waiter has joined the lock's own queue; a waiter is about to leave it. */
void fair_on_enqueue(struct engine *eng, struct waiter *w);
void fair_on_dequeue(struct engine *eng, struct waiter *w);
/* An op has granted the waiter, which took the waiter's place out of the fair queue. */
void fair_granted(struct engine *eng, struct waiter *w, const struct op_result *r);
/* An owner holds the lock, but Redis may have lost that its place was taken out: the
 * place is to leave once more. */
void fair_leave_again(struct engine *eng, struct lock *lock, struct acquire_spec *spec);
/* The grant came too late and is undone: the waiter waits on, at its old place. */
void fair_put_back(struct engine *eng, struct waiter *w, const struct op_result *r);
/* Fills in the fair part of a waiter's OP_ACQUIRE. */
void fair_fill_claim(struct engine *eng, struct op *op, struct waiter *w);
/* Takes what a result says of the fair queue and, if the op was of waiter `w`, of its
 * place. */
void fair_on_result(struct engine *eng, struct lock *lock, struct waiter *w,
                    const struct op_result *r);
/* A release says that the head of the fair queue is a member of this instance. Of a
 * waiter that is gone it is one that a failover has brought back: it leaves. */
void fair_on_own_head(struct engine *eng, struct lock *lock);
/* The places may be gone, or their scores wrong: an OP_QUEUE is to name them soon. */
void fair_refresh_soon(struct engine *eng, struct lock *lock);
/* Redis may have lost changes of the name's fair queue. */
void fair_lost(struct engine *eng, struct lock *lock);
/* Sends what is due, while nothing is in flight that may change who holds.
 * `head_sleeps`: the head is not about to ask, which could give it its place. */
void fair_step(struct engine *eng, struct lock *lock, bool head_sleeps);
void fair_on_timer(struct engine *eng, struct timer *t);
void on_fair_reply(struct engine *eng, struct inflight_op *o,
                   const struct op_result *r);

#endif
