/* The kinds of locks: who can hold beside whom, and who stands in whose way.
 *
 * Plain and fair locks are one family, read and write locks the other. A name is of one
 * family while anybody here holds or waits. */
#include "core/loss.h"
#include "core/parts.h"

#define WRITE_SUFFIX SPAN(LATCHD_RESERVED_OWNER_SUFFIX)

bool kind_is_rw(enum lock_kind kind)
{
    return kind == KIND_READ || kind == KIND_WRITE;
}

enum lock_kind kind_of_hold(enum lock_kind kind)
{
    return kind == KIND_FAIR ? KIND_PLAIN : kind;
}

struct span field_owner(struct span field)
{
    size_t len = WRITE_SUFFIX.len;

    if (field.len > len &&
        span_eq(span_of(field.ptr + field.len - len, len), WRITE_SUFFIX)) {
        return span_of(field.ptr, field.len - len);
    }
    return field;
}

static bool same_owner(struct span field_a, struct span field_b)
{
    return span_eq(field_owner(field_a), field_owner(field_b));
}

bool lock_in_use(const struct lock *lock)
{
    return !list_empty(&lock->holds) || lock->desk->waiting > 0;
}

void lock_set_family(struct locks *l, struct lock *lock, bool rw)
{
    if (lock->rw != rw) {
        lock_unsubscribe(l, lock); /* the other family has another channel */
        lock->rw = rw;
    }
}

/* Can that be taken while this is held, by one of another kind than a reader? */
static bool beside(enum lock_kind kind, struct span field, const struct hold *h)
{
    return kind == KIND_WRITE && h->lock_kind == KIND_READ &&
           same_owner(hold_field(h), field);
}

bool lock_in_the_way(const struct locks *l, const struct lock *lock,
                     const struct want *want)
{
    struct span owner = field_owner(want_field(want));
    struct hold *h = lock_hold(lock);

    if (want->lock_kind == KIND_READ) {
        h = lock->writer;
    }
    if (h == NULL || !hold_certain(l, h)) {
        return false;
    }
    /* Its own it may have again, or must be told that it may not. */
    return owner.len == 0 || lock_held_by(lock, owner, KIND_PLAIN) == NULL;
}

bool lock_rules_out(const struct locks *l, const struct lock *lock,
                    const struct want *want)
{
    const struct hold *h = lock->rw ? lock->writer : lock_hold(lock);

    return h != NULL && hold_certain(l, h) &&
           !same_owner(hold_field(h), want_field(want));
}

bool lock_being_read(const struct locks *l, const struct lock *lock)
{
    const struct hold *h = lock_hold(lock);

    return h != NULL && lock->writer == NULL && h->lock_kind == KIND_READ &&
           hold_certain(l, h);
}

size_t lock_denied(const struct lock *lock, enum lock_kind kind, struct span field,
                   uint64_t token, struct hold **ret, size_t max)
{
    struct hold *known = lock_hold_of(lock, field);
    struct hold *writer = lock->writer;
    size_t count = 0;
    struct list *it;

    if (known == NULL && field.len == 0) {
        known = lock_hold_with(lock, token);
    }
    if (known != NULL && token != 0 && known->token != token) {
        ret[count++] = known;
    }
    if (kind == KIND_READ) { /* other readers may be many, and are not in its way */
        if (writer != NULL && count < max && !same_owner(hold_field(writer), field)) {
            ret[count++] = writer;
        }
        return count;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (h != known && count < max && !beside(kind, field, h)) {
            ret[count++] = h;
        }
    }
    return count;
}

struct hold *lock_believe(struct locks *l, struct lock *lock, enum lock_kind kind,
                          struct span field, uint64_t token)
{
    struct hold *denied[16];
    size_t count;

    while ((count = lock_denied(lock, kind, field, token, denied, 16)) > 0) {
        for (size_t i = 0; i < count; i++) {
            hold_lost_to(l, denied[i], field_owner(field));
        }
    }
    return lock_hold_of(lock, field);
}

/* As soon as one reader is in, those behind it follow, without waiting for each other's
 * answers; up to the first writer. */
void lock_let_readers_in(struct locks *l, struct lock *lock)
{
    struct list *it;

    lock->readers_in = false;
    if (!lock_being_read(l, lock)) {
        return;
    }
    LIST_FOREACH(it, &lock->desk->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->want->lock_kind != KIND_READ) {
            break;
        }
        if (w->work == NULL) {
            take_join(l, w);
        }
    }
}
