/* dirty_locks: the queue of the locks that the scheduler is to step before the engine
 * returns. Each is in it once, and is not freed while it is. Private to engine/. */
#ifndef LATCHD_ENGINE_DIRTY_LOCKS_H
#define LATCHD_ENGINE_DIRTY_LOCKS_H

#include <stdbool.h>
#include <stddef.h>

struct lock;

/* A zeroed queue is empty and valid. The queue owns its array, not the locks. */
struct dirty_locks {
    struct lock **locks;
    size_t room;
    size_t first; /* the next to be taken.. */
    size_t end;   /* ..and behind the last */
};

static inline bool dirty_locks_empty(const struct dirty_locks *dirty)
{
    return dirty->first == dirty->end;
}
/* Marks a lock dirty, which it may be already. */
void dirty_locks_add(struct dirty_locks *dirty, struct lock *lock);
/* Takes the lock that has been dirty for longest; NULL: there is none. */
struct lock *dirty_locks_take(struct dirty_locks *dirty);
void dirty_locks_fini(struct dirty_locks *dirty);

#endif
