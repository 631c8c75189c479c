#include "engine/lock/lock_sharing.h"
#include "engine/engine_state.h"
#include "engine/lock/lock.h"
#include "util/pool.h"

const struct lock_sharing LOCK_UNSHARED = { 0 };

void lock_sharing_none(struct lock *lock)
{
    lock->sharing = (struct lock_sharing *)&LOCK_UNSHARED;
}

struct lock_sharing *lock_open_sharing(struct engine *eng, struct lock *lock)
{
    if (lock->sharing == &LOCK_UNSHARED) {
        lock->sharing = pool_alloc(&eng->pool, sizeof(*lock->sharing));
    }
    return lock->sharing;
}

void lock_sharing_free(struct engine *eng, struct lock *lock)
{
    if (lock->sharing != &LOCK_UNSHARED) {
        pool_free_sized(&eng->pool, lock->sharing, sizeof(*lock->sharing));
        lock_sharing_none(lock);
    }
}
