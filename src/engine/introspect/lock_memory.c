/* The memory that a name takes: walks over everything that belongs to it. */
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/lease_shortening.h"
#include "engine/hold/loan.h"
#include "engine/hold/pending_release.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/wait/waiter.h"
#include "util/list.h"
#include "util/span.h"

#include <malloc.h>

/* Returns the size of a block from malloc(), with its rounding. */
static size_t size_of(const void *ptr)
{
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

static size_t waiter_size(const struct waiter *w)
{
    return size_of(w) + size_of(w->spec) + size_of(w->request);
}

static size_t entry_size(const struct entry *e)
{
    size_t size = size_of(e) + size_of(e->extra->request);

    size += e->serial != 0 ? 0 : size_of(e->spec); /* else others have it, too */
    size += e->extra == &ENTRY_NO_EXTRA ? 0 : size_of(e->extra);
    for (const struct attach *a = entry_first_attach(e); a != NULL;
         a = attach_next(a)) {
        size += a->is_own ? 0 : size_of(attach_far(a));
    }
    return size;
}

static size_t hold_size(const struct hold *h)
{
    size_t size = size_of(h) + (h->upkeep == &HOLD_NO_UPKEEP ? 0 : size_of(h->upkeep));

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        size += entry_size(e);
    }
    return size;
}

/* Of all, by the average of the first ones. */
static size_t scale_size(size_t size, size_t seen, size_t count)
{
    return seen == 0 ? 0 : (size_t)((double)size / (double)seen * (double)count);
}

static size_t queue_size(const struct lock *lock, size_t samples)
{
    size_t size = 0, seen = 0;
    struct list *it;

    LIST_FOREACH(it, &lock->activity->queue)
    {
        if (seen == samples) {
            break;
        }
        size += waiter_size(container_of(it, struct waiter, in_queue));
        seen++;
    }
    return scale_size(size, seen, lock->activity->waiting);
}

static size_t holds_size(const struct lock *lock, size_t samples)
{
    size_t size = 0, seen = 0;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        if (seen == samples) {
            break;
        }
        size += hold_size(container_of(it, struct hold, in_lock));
        seen++;
    }
    return scale_size(size, seen, lock->hold_count);
}

static size_t lock_activity_size(const struct lock *lock)
{
    return lock_is_inactive(lock)
               ? 0
               : size_of(lock->activity) + size_of(lock->activity->marks);
}

static size_t lock_sharing_size(const struct lock *lock)
{
    return lock->sharing == &LOCK_UNSHARED ? 0 : size_of(lock->sharing);
}

static size_t inflight_size(const struct lock *lock)
{
    size_t size = size_of(lock->activity->asking) + size_of(lock->activity->loan);
    struct list *it;

    LIST_FOREACH(it, &lock->activity->releases)
    {
        size += size_of(container_of(it, struct pending_release, in_lock));
    }
    LIST_FOREACH(it, &lock->activity->shortenings)
    {
        size += size_of(container_of(it, struct lease_shortening, in_lock));
    }
    return size;
}

size_t engine_memory(const struct engine *eng, struct span name, size_t samples)
{
    const struct lock *lock = lock_find(eng, name);

    return lock == NULL
               ? 0
               : size_of(lock) + lock_activity_size(lock) + lock_sharing_size(lock) +
                     size_of(lock->activity->fair) + inflight_size(lock) +
                     queue_size(lock, samples) + holds_size(lock, samples);
}
