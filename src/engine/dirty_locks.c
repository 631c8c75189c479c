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

void dirty_locks_add(struct dirty_locks *dirty, struct lock *lock)
{
    if (lock->dirty) {
        return;
    }
    if (dirty->end == dirty->room) {
        dirty->room = dirty->room == 0 ? ROOM_MIN : dirty->room * 2;
        dirty->locks = xrealloc(dirty->locks, dirty->room * sizeof(struct lock *));
    }
    lock->dirty = true;
    dirty->locks[dirty->end++] = lock;
}

struct lock *dirty_locks_take(struct dirty_locks *dirty)
{
    struct lock *lock;

    if (dirty_locks_empty(dirty)) {
        return NULL;
    }
    lock = dirty->locks[dirty->first++];
    lock->dirty = false;
    if (dirty_locks_empty(dirty)) {
        dirty->first = dirty->end = 0;
        if (dirty->room > ROOM_KEPT) {
            dirty_locks_fini(dirty);
        }
    }
    return lock;
}

void dirty_locks_fini(struct dirty_locks *dirty)
{
    free(dirty->locks);
    *dirty = (struct dirty_locks){ 0 };
}
