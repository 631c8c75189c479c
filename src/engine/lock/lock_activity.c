/* The activity of a lock: it exists only while something is under way, as most of many
 * names are merely held. All inactive locks share one activity that is empty and read
 * only. */
#include "engine/lock/lock_activity.h"
#include "engine/engine_limits.h"

#define EMPTY(of)                                                                      \
    {                                                                                  \
        (struct list *)&LOCK_INACTIVE.of, (struct list *)&LOCK_INACTIVE.of             \
    }

const struct lock_activity LOCK_INACTIVE = {
    .queue = EMPTY(queue),
    .releases = EMPTY(releases),
    .parallel_releases = EMPTY(parallel_releases),
    .shortenings = EMPTY(shortenings),
    .renews = EMPTY(renews),
    .waiting_for_restore = EMPTY(waiting_for_restore),
};

void lock_activity_none(struct lock *lock)
{
    lock->activity = (struct lock_activity *)&LOCK_INACTIVE;
}

struct lock_activity *lock_activity_open(struct engine *eng, struct lock *lock)
{
    struct lock_activity *d = pool_alloc(&eng->pool, sizeof(*d));

    d->lock = lock;
    list_init(&d->queue);
    list_init(&d->releases);
    list_init(&d->parallel_releases);
    list_init(&d->shortenings);
    list_init(&d->renews);
    list_init(&d->waiting_for_restore);
    lock->activity = d;
    return d;
}

/* Whether nothing in the activity matters to what comes next, not even how often the
 * lock was handed over since it was free. */
static bool is_clear(const struct engine *eng, const struct lock *lock)
{
    const struct lock_activity *d = lock->activity;

    return list_empty(&d->queue) && list_empty(&d->releases) &&
           list_empty(&d->parallel_releases) && list_empty(&d->shortenings) &&
           list_empty(&d->renews) && list_empty(&d->waiting_for_restore) &&
           d->asking == NULL && d->loan == NULL && d->fair == NULL &&
           d->leader_watch == NULL && d->latch_watch == NULL &&
           !heap_armed(&d->wake.node) && lock->sub == SUB_NONE &&
           d->handovers_since == NEVER && d->handovers == 0 &&
           d->stand_back_until <= eng->now && d->ask_after <= eng->now;
}

void lock_note_foreign(struct engine *eng, struct lock *lock, bool is_foreign)
{
    if (is_foreign && lock->activity->foreign_since == NEVER) {
        lock_open_activity(eng, lock)->foreign_since = eng->now;
        eng->foreign_names++;
    } else if (!is_foreign && lock->activity->foreign_since != NEVER) {
        lock->activity->foreign_since = NEVER;
        eng->foreign_names--;
    }
}

void lock_activity_free(struct engine *eng, struct lock *lock)
{
    if (!lock_is_inactive(lock)) {
        lock_note_foreign(eng, lock, false);
        timer_stop(eng, &lock->activity->wake);
        last_answer_fini(&lock->activity->last_answer);
        pool_free(&eng->pool, lock->activity->marks);
        pool_free_sized(&eng->pool, lock->activity, sizeof(*lock->activity));
        lock_activity_none(lock);
    }
}

void lock_activity_clear(struct engine *eng, struct lock *lock)
{
    if (is_clear(eng, lock)) {
        lock_activity_free(eng, lock);
    }
}
