/* An array, as the locks are many and mostly clean: it is as long as the longest turn
 * of late needed. */
#include "engine/dirty_locks.h"
#include "engine/lock.h"
#include "util/alloc.h"

#include <stdlib.h>

enum {
    ROOM_MIN = 64,
    ROOM_KEPT = 4096, /* a longer array is freed when it is empty */
};

void dirty_locks_add(struct dirty_locks *d, struct lock *lock)
{
    if (lock->dirty) {
        return;
    }
    if (d->end == d->room) {
        d->room = d->room == 0 ? ROOM_MIN : d->room * 2;
        d->locks = xrealloc(d->locks, d->room * sizeof(struct lock *));
    }
    lock->dirty = true;
    d->locks[d->end++] = lock;
}

struct lock *dirty_locks_take(struct dirty_locks *d)
{
    struct lock *lock;

    if (dirty_locks_empty(d)) {
        return NULL;
    }
    lock = d->locks[d->first++];
    lock->dirty = false;
    if (dirty_locks_empty(d)) {
        d->first = d->end = 0;
        if (d->room > ROOM_KEPT) {
            dirty_locks_fini(d);
        }
    }
    return lock;
}

void dirty_locks_fini(struct dirty_locks *d)
{
    free(d->locks);
    *d = (struct dirty_locks){ 0 };
}
