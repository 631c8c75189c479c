/* fair_priv: our places in Redis's fair queue of a name.
 *
 * The order among our own waiters is that of lock->queue; what stands in Redis only
 * keeps our turn among others. So the first waiters have places there, as many as the
 * window allows: each gets one, at the tail, by the head's own asking or by an
 * OP_QUEUE, and keeps it until it is granted (the script takes it out) or goes
 * (OP_LEAVE). Every few seconds one OP_QUEUE with all of them shows that they live.
 *
 * Where somebody was served since others joined, who comes next waits a little for more
 * to join with: of a name that is handed over often, many are served before that.
 *
 * Ops on the queue are sent only while no ask and no release is in flight, and one at
 * a time: so what they name is what is so when they run.
 *
 * fair.c knows who has a place, fair_ops.c what is asked of Redis about that and when.
 * Private to the two. */
#ifndef LATCHD_ENGINE_FAIR_FAIR_PRIV_H
#define LATCHD_ENGINE_FAIR_FAIR_PRIV_H

#include "engine/timer.h"
#include "util/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct inflight_op;
struct lock;
struct waiter;

/* A place of somebody who is gone. */
struct fair_leaving {
    struct list in_fair;
    struct acquire_spec *spec;
};

struct fair {
    struct lock *lock;
    struct timer timer;
    uint64_t refresh_at;
    uint64_t refreshed;
    uint64_t not_before; /* no op on the queue before this */
    uint64_t join_at;    /* if somebody was `served`, nobody joins before this */
    struct waiter *last; /* the last one with a place: who is behind it has none */
    size_t joined;       /* waiters with a place */
    struct inflight_op *queue; /* the OP_QUEUE in flight */
    struct inflight_op *leave;
    struct list leaves;  /* to be sent */
    struct list leaving; /* sent */
    size_t leave_count;
    unsigned leave_tries;
    bool seen;   /* the last op said that there is a queue */
    bool served; /* a waiter of ours was granted since others joined last */
    bool full;   /* waiters are left over; they come in many at once */
    bool stood;  /* one of ours stood in Redis's queue, or may have, and is gone */
    bool sweep;  /* Redis may have those again, or lost others: all are to be named */
    bool swept;  /* the op in flight does that */
};

/* How often the scores are moved on. */
uint64_t fair_interval(const struct engine *eng);
/* Whether it waits in earnest, and not only this once. */
bool fair_stays(const struct waiter *w);
/* That op names it, so it stands, or may stand, in the queue. */
void fair_place_given(struct engine *eng, struct fair *f, struct waiter *w,
                      uint64_t op);
void fair_leaves_free(struct engine *eng, struct fair *f, struct list *leaves);

#endif
