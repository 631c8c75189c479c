/* fair_priv: this instance's places in the fair queue of a name.
 *
 * The order among this daemon's waiters is that of lock->queue; the places in Redis
 * only keep the daemon's turn among others. So only the first waiters have places
 * there, as many as fair_window allows. A waiter gets a place at the tail, by the
 * head's OP_ACQUIRE or by an OP_QUEUE, and keeps the place until the waiter is granted
 * (the script takes the place out) or leaves (OP_LEAVE). Every few seconds one OP_QUEUE
 * with all places shows that their waiters are alive.
 *
 * After a waiter was served, the next one to join waits a little, so that more can join
 * with it in one op: of a name that is handed over often, many are served meanwhile
 * without a place.
 *
 * Ops on the fair queue are sent only while no acquire and no release of the name is in
 * flight, and one at a time: so the state that they name still holds when they run.
 *
 * fair.c knows who has a place, fair.c what is asked of Redis about that and when.
 * Private to the two. */
#ifndef LATCHD_ENGINE_FAIR_PRIV_H
#define LATCHD_ENGINE_FAIR_PRIV_H

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

/* The place of a waiter that is gone. */
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
    uint64_t join_at;    /* if a waiter was `served`, nobody joins before this */
    struct waiter *last; /* the last waiter with a place: those behind it have none */
    size_t joined;       /* waiters with a place */
    struct inflight_op *queue; /* the OP_QUEUE in flight */
    struct inflight_op *leave;
    struct list leaves;  /* to be sent */
    struct list leaving; /* sent */
    size_t leave_count;
    unsigned leave_tries;
    bool seen;   /* the last result said that a fair queue exists */
    bool served; /* a waiter of this daemon was granted since others last joined */
    bool full;   /* more waiters than the window allows; they join many at once */
    /* a waiter that is gone had a place in Redis's queue, or may have had */
    bool stood;
    /* Redis may have such places again, or have lost others: all are to be named */
    bool sweep;
    bool swept; /* the OP_QUEUE in flight names all of them */
};

/* How often the scores are renewed, in ms. */
uint64_t fair_interval(const struct engine *eng);
/* Whether the waiter stays in the queue, and does not try once only. */
bool fair_stays(const struct waiter *w);
/* Op `op` names the waiter for the fair queue, so the waiter has a place, or may have
 * one. */
void fair_place_given(struct engine *eng, struct fair *f, struct waiter *w,
                      uint64_t op);
void fair_leaves_free(struct engine *eng, struct fair *f, struct list *leaves);

#endif
