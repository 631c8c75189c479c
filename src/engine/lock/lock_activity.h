/* lock_activity: what is under way at a name: waiters and releases. Lazily made; a lock
 * at rest shares the constant LOCK_AT_REST, which is read only. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_ACTIVITY_H
#define LATCHD_ENGINE_LOCK_LOCK_ACTIVITY_H

#include "engine/engine_state.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/timer.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct fair;
struct inflight_op;

/* What is under way at a name: who waits, what is to be done. */
struct lock_activity {
    struct list queue;
    struct list releases;
    struct list
        parallel_releases; /* duties in flight that leave other readers behind */
    struct list shortenings;
    struct list renews; /* calls that may attach somebody to a hold */
    struct list
        waiting_for_restore; /* pending requests, sent when all holds are put back */
    struct lock *lock;
    struct inflight_op *asking;
    struct fair *fair; /* fair.c; NULL: no fair queue is known of */
    struct timer wake;
    struct last_answer last_answer;
    uint32_t parallel_release_count;
    uint32_t waiting;
    uint32_t probes;  /* waiters that still have to ask for themselves */
    uint32_t writers; /* waiters that want to write */
    uint32_t undecided;
    uint32_t handoffs;
    uint64_t sub_op; /* the last op that was sent when the subscription was confirmed */
    uint64_t seen_op; /* the last op that found it held */
    uint64_t stand_back_until;
    uint64_t ask_after;      /* nobody asks for it before this: too few replicas */
    uint64_t handoffs_since; /* first hand-over since the last true release */
    uint64_t checked_at;     /* when somebody else was last looked for */
};

extern const struct lock_activity LOCK_AT_REST;
void lock_activity_none(struct lock *lock);
struct lock_activity *lock_activity_open(struct engine *eng, struct lock *lock);
/* Puts it away if nothing is on it. */
void lock_activity_clear(struct engine *eng, struct lock *lock);
void lock_activity_free(struct engine *eng, struct lock *lock);
static inline bool lock_is_at_rest(const struct lock *lock)
{
    return lock->activity == &LOCK_AT_REST;
}
/* To write on: for whatever may come first at a name. It stays until the engine
 * returns. */
static inline struct lock_activity *lock_open_activity(struct engine *eng,
                                                       struct lock *lock)
{
    return lock_is_at_rest(lock) ? lock_activity_open(eng, lock) : lock->activity;
}

#endif
