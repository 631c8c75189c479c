/* What a name costs: walks over everything that belongs to it. */
#include "core/parts.h"

#include <malloc.h>

/* What was got from malloc(), with its rounding. */
static size_t size_of(const void *ptr)
{
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

static size_t waiter_size(const struct waiter *w)
{
    return size_of(w) + size_of(w->want) + size_of(w->request);
}

static size_t entry_size(const struct entry *e)
{
    size_t size = size_of(e) + size_of(e->want) + size_of(e->request);

    for (const struct attach *a = e->attaches; a != NULL; a = a->next) {
        size += size_of(a);
    }
    return size;
}

static size_t hold_size(const struct hold *h)
{
    size_t size = size_of(h);

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        size += entry_size(e);
    }
    return size;
}

/* Of all, by the average of the first ones. */
static size_t scale(size_t size, size_t seen, size_t count)
{
    return seen == 0 ? 0 : (size_t)((double)size / (double)seen * (double)count);
}

static size_t queue_size(const struct lock *lock, size_t samples)
{
    size_t size = 0, seen = 0;
    struct list *it;

    LIST_FOREACH(it, &lock->desk->queue)
    {
        if (seen == samples) {
            break;
        }
        size += waiter_size(container_of(it, struct waiter, in_queue));
        seen++;
    }
    return scale(size, seen, lock->desk->waiting);
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
    return scale(size, seen, lock->hold_count);
}

static size_t desk_size(const struct lock *lock)
{
    return lock_rests(lock) ? 0 : size_of(lock->desk);
}

static size_t work_size(const struct lock *lock)
{
    size_t size = size_of(lock->desk->busy);
    struct list *it;

    LIST_FOREACH(it, &lock->desk->duties)
    {
        size += size_of(container_of(it, struct duty, in_lock));
    }
    LIST_FOREACH(it, &lock->desk->cuts)
    {
        size += size_of(container_of(it, struct cut, in_lock));
    }
    return size;
}

size_t locks_memory(const struct locks *l, struct span name, size_t samples)
{
    const struct lock *lock = lock_find(l, name);

    return lock == NULL ? 0
                        : size_of(lock) + desk_size(lock) + size_of(lock->desk->fair) +
                              work_size(lock) + queue_size(lock, samples) +
                              holds_size(lock, samples);
}
