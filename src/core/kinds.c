/* The kinds of locks: who can hold beside whom, and who stands in whose way.
 *
 * Plain and fair locks are one family, read and write locks the other. A name is of one
 * family while anybody here holds or waits. */
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
    return !list_empty(&lock->holds) || lock->waiting > 0;
}

void lock_set_family(struct locks *l, struct lock *lock, bool rw)
{
    if (lock->rw != rw) {
        lock_unsubscribe(l, lock); /* the other family has another channel */
        lock->rw = rw;
    }
}

/* Can somebody have that while this is held? */
static bool beside(enum lock_kind kind, struct span field, const struct hold *h)
{
    if (kind == KIND_READ && h->lock_kind == KIND_READ) {
        return true;
    }
    return kind_is_rw(kind) && h->lock_kind != kind && same_owner(h->field, field);
}

bool lock_in_the_way(const struct locks *l, const struct lock *lock,
                     const struct want *want)
{
    bool found = false;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (!hold_certain(l, h) || beside(want->lock_kind, want->field, h)) {
            continue;
        }
        if (want->field.len != 0 && same_owner(h->field, want->field)) {
            return false; /* it may have it again, or must be told that it may not */
        }
        found = true;
    }
    return found;
}

bool lock_rules_out(const struct locks *l, const struct lock *lock,
                    const struct want *want)
{
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (h->lock_kind != KIND_READ && hold_certain(l, h)) {
            return !same_owner(h->field, want->field);
        }
    }
    return false;
}

bool lock_being_read(const struct locks *l, const struct lock *lock)
{
    const struct hold *newest, *oldest;

    if (list_empty(&lock->holds)) {
        return false;
    }
    newest = container_of(lock->holds.next, struct hold, in_lock);
    /* Who writes came first, and may read since. */
    oldest = container_of(lock->holds.prev, struct hold, in_lock);
    return newest->lock_kind == KIND_READ && oldest->lock_kind == KIND_READ &&
           hold_certain(l, newest);
}

struct hold *lock_believe(struct locks *l, struct lock *lock, enum lock_kind kind,
                          struct span field, uint64_t token)
{
    struct hold *known = NULL;
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (span_eq(h->field, field) && (token == 0 || h->token == token)) {
            known = h;
        } else if (span_eq(h->field, field) || !beside(kind, field, h)) {
            hold_lost(l, h);
        }
    }
    return known;
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
    LIST_FOREACH(it, &lock->queue)
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
