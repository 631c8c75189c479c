/* A name's desk: there only while something is on it, as most of many names are merely
 * held. All names at rest share one that is empty, and cannot be written on. */
#include "core/parts.h"

#define EMPTY(of)                                                                      \
    {                                                                                  \
        (struct list *)&NO_DESK.of, (struct list *)&NO_DESK.of                         \
    }

const struct desk NO_DESK = {
    .queue = EMPTY(queue),
    .duties = EMPTY(duties),
    .leaving = EMPTY(leaving),
    .cuts = EMPTY(cuts),
    .renews = EMPTY(renews),
    .calls = EMPTY(calls),
};

void desk_none(struct lock *lock)
{
    lock->desk = (struct desk *)&NO_DESK;
}

struct desk *desk_open(struct locks *l, struct lock *lock)
{
    struct desk *d = pool_alloc(&l->pool, sizeof(*d));

    d->lock = lock;
    list_init(&d->queue);
    list_init(&d->duties);
    list_init(&d->leaving);
    list_init(&d->cuts);
    list_init(&d->renews);
    list_init(&d->calls);
    lock->desk = d;
    return d;
}

/* Nothing on it means anything to what comes next: not even how often the lock moved
 * since it was free. */
static bool is_clear(const struct locks *l, const struct lock *lock)
{
    const struct desk *d = lock->desk;

    return list_empty(&d->queue) && list_empty(&d->duties) && list_empty(&d->leaving) &&
           list_empty(&d->cuts) && list_empty(&d->renews) && list_empty(&d->calls) &&
           d->busy == NULL && d->fair == NULL && !heap_armed(&d->wake.node) &&
           lock->sub == SUB_NONE && d->row_since == NEVER && d->moves == 0 &&
           d->stand_back_until <= l->now && d->ask_after <= l->now;
}

void desk_free(struct locks *l, struct lock *lock)
{
    if (!lock_rests(lock)) {
        timer_stop(l, &lock->desk->wake);
        last_answer_fini(&lock->desk->last_answer);
        pool_free(&l->pool, lock->desk);
        desk_none(lock);
    }
}

void desk_clear(struct locks *l, struct lock *lock)
{
    if (is_clear(l, lock)) {
        desk_free(l, lock);
    }
}
