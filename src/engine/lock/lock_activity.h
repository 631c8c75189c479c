/* lock_activity: what is under way at a name: its waiters and pending releases. An
 * activity is made when it is first needed; an inactive lock shares the constant
 * LOCK_INACTIVE, which is read only. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_ACTIVITY_H
#define LATCHD_ENGINE_LOCK_LOCK_ACTIVITY_H

#include "engine/engine_state.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/timer.h"
#include "latchd/protocol.h"
#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct fair;
struct inflight_op;
struct latch_watch;
struct leader_watch;
struct loan;

/* Where the last waiters of each PRIORITY above 0 went: see wait_queue.c. */
struct priority_marks {
    struct list *last[LATCHD_PRIORITY_MAX];
};

struct lock_activity {
    struct list queue;
    struct list releases;
    /* releases in flight that are sent beside each other, as other readers stay */
    struct list parallel_releases;
    struct list shortenings;
    /* RENEW and REGRANT requests, which may attach a client to a hold */
    struct list renews;
    /* pending requests, sent when all holds are put back */
    struct list waiting_for_restore;
    struct lock *lock;
    struct inflight_op *asking;
    struct loan *loan;                 /* see loan.h; NULL: the name is not lent */
    struct leader_watch *leader_watch; /* NULL: nobody here follows the leader */
    struct latch_watch *latch_watch;   /* NULL: nobody here awaits the latch */
    struct fair *fair;                 /* see fair.c; NULL: no fair queue is known of */
    struct priority_marks *marks;      /* NULL: no waiter came with a PRIORITY */
    struct timer wake;
    struct last_answer last_answer;
    uint32_t parallel_release_count;
    uint32_t waiting;
    uint32_t places;  /* waiters that do not try once only: see QUEUE */
    uint32_t probes;  /* waiters that still have to ask for themselves */
    uint32_t writers; /* waiters for the write lock */
    /* since the last true release through this daemon, or since others were looked for
     */
    uint32_t handovers;
    /* from `handovers_since` to when another daemon's waiters were last looked for */
    uint32_t checked_after_ms;
    uint64_t sub_op;  /* the last op sent when the subscription was confirmed */
    uint64_t seen_op; /* the last op that found the name held */
    uint64_t stand_back_until;
    /* no waiter asks before this, as too few replicas acknowledged a grant */
    uint64_t ask_after;
    /* since when the name was found to be a foreign library's each time that its
     * waiters asked; NEVER: it is none. Those with waiters are in eng->foreign_names.
     */
    uint64_t foreign_since;
    uint64_t handovers_since; /* when a hand-over was first considered since then */
};

extern const struct lock_activity LOCK_INACTIVE;
void lock_activity_none(struct lock *lock);
struct lock_activity *lock_activity_open(struct engine *eng, struct lock *lock);
/* Frees the activity if nothing is under way. */
void lock_activity_clear(struct engine *eng, struct lock *lock);
void lock_activity_free(struct engine *eng, struct lock *lock);
static inline bool lock_is_inactive(const struct lock *lock)
{
    return lock->activity == &LOCK_INACTIVE;
}
/* The name is a foreign library's, or not, or nobody waits for it any more. */
void lock_note_foreign(struct engine *eng, struct lock *lock, bool is_foreign);
/* The activity, to be changed: made if the lock is inactive. It stays at least until
 * the engine returns. */
static inline struct lock_activity *lock_open_activity(struct engine *eng,
                                                       struct lock *lock)
{
    return lock_is_inactive(lock) ? lock_activity_open(eng, lock) : lock->activity;
}

#endif
