/* Lock modes: which holds can exist beside each other, and which prevent a grant.
 *
 * A name keeps its lock class while a client of this daemon holds or waits. */
#include "engine/lock/lock_mode.h"
#include "engine/acquire_spec.h"
#include "engine/hold/hold.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "latchd/protocol.h"
#include "util/list.h"

enum lock_kind lock_mode_of_hold(enum lock_kind kind)
{
    return kind == KIND_FAIR ? KIND_PLAIN : kind;
}

static bool same_owner(struct span field_a, struct span field_b)
{
    return span_eq(field_owner(field_a), field_owner(field_b));
}

bool lock_in_use(const struct lock *lock)
{
    return !list_empty(&lock->holds) || lock->activity->waiting > 0;
}

enum lock_class lock_class_guess(const struct lock *lock)
{
    /* Nobody holds a latch, so the request means something else of that name. */
    return lock->lock_class == CLASS_LATCH ? CLASS_PLAIN : lock->lock_class;
}

void lock_set_class(struct engine *eng, struct lock *lock, enum lock_class lock_class)
{
    if (lock->lock_class != lock_class) {
        lock_unsubscribe(eng, lock); /* the other class has another channel */
        lock->lock_class = lock_class;
    }
}

/* Can that be taken while this is held, by one of another kind than a reader? */
static bool can_stand_beside(enum lock_kind kind, struct span field,
                             const struct hold *h)
{
    return kind == KIND_WRITE && h->lock_kind == KIND_READ &&
           same_owner(hold_field(h), field);
}

bool lock_blocks(const struct engine *eng, const struct lock *lock,
                 const struct acquire_spec *spec)
{
    struct span owner = field_owner(spec_field(spec));
    struct hold *h = lock_hold(lock);

    if (lock_kind_is_shared(spec->lock_kind)) {
        h = lock->sharing->writer; /* what permits are free, only Redis knows */
    }
    if (h == NULL || !hold_is_certain(eng, h)) {
        return false;
    }
    /* An owner may enter its own lock again, or must be told why it may not. */
    return owner.len == 0 || lock_held_by(lock, owner, KIND_PLAIN) == NULL;
}

bool lock_excludes(const struct engine *eng, const struct lock *lock,
                   const struct acquire_spec *spec)
{
    const struct hold *h =
        lock->lock_class == CLASS_PLAIN ? lock_hold(lock) : lock->sharing->writer;

    return h != NULL && hold_is_certain(eng, h) &&
           !same_owner(hold_field(h), spec_field(spec));
}

bool lock_is_read_here(const struct engine *eng, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);

    return h != NULL && lock->sharing->writer == NULL && h->lock_kind == KIND_READ &&
           hold_is_certain(eng, h);
}

size_t lock_contradicted_holds(const struct lock *lock, enum lock_kind kind,
                               struct span field, uint64_t token, struct hold **ret,
                               size_t max)
{
    struct hold *known = lock_hold_of(lock, field);
    struct hold *writer = lock->sharing->writer, *newest = lock_hold(lock);
    size_t count = 0;
    struct list *it;

    if (known == NULL && field.len == 0) {
        known = lock_hold_with(lock, token);
    }
    if (known != NULL && token != 0 && known->token != token) {
        ret[count++] = known;
    }
    if (lock_kind_is_shared(kind)) { /* others may be many, and are not in its way */
        if (writer != NULL && count < max && !same_owner(hold_field(writer), field)) {
            ret[count++] = writer;
        }
        /* A client came back to a plain lock, and meanwhile the name is another kind.
         */
        if (newest != NULL && newest != known && newest != writer && count < max &&
            lock_class_of(newest->lock_kind) != lock_class_of(kind)) {
            ret[count++] = newest;
        }
        return count;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (h != known && count < max && !can_stand_beside(kind, field, h)) {
            ret[count++] = h;
        }
    }
    return count;
}

uint64_t lock_leader_token(const struct lock *lock)
{
    const struct hold *h =
        lock->lock_class == CLASS_PLAIN ? lock_hold(lock) : lock->sharing->writer;

    return h == NULL || h->kind == OWNER_REST ? 0 : h->token;
}

bool lock_is_uncertain(const struct engine *eng, const struct lock *lock)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        if (!hold_is_certain(eng, container_of(it, struct hold, in_lock))) {
            return true;
        }
    }
    return false;
}
