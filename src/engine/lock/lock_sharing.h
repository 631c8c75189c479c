/* lock_sharing: what only a lock has that several may hold at once, readers or permits.
 * A sharing is made when it is first needed; the other locks share the constant
 * LOCK_UNSHARED, which is read only. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_SHARING_H
#define LATCHD_ENGINE_LOCK_LOCK_SHARING_H

#include <stdint.h>

struct engine;
struct hold;
struct hold_index;
struct lock;

struct lock_sharing {
    struct hold *writer;      /* the hold of the writer, or NULL */
    struct hold_index *index; /* index of the holds, if they are many */
    /* A semaphore's, as far as a client or Redis has said it: what it is made with
     * should Redis have lost it. 0: not known. */
    uint32_t limit;
    uint32_t permits_here; /* of all holds of this daemon */
};

extern const struct lock_sharing LOCK_UNSHARED;

void lock_sharing_none(struct lock *lock);
/* The sharing, to be changed: made if the lock has none. It stays as long as the lock.
 */
struct lock_sharing *lock_open_sharing(struct engine *eng, struct lock *lock);
void lock_sharing_free(struct engine *eng, struct lock *lock);

#endif
