/* The holds of one lock by field and by token. Few are looked through; from INDEX_FROM
 * readers on they are in two maps. */
#include "core/parts.h"
#include "util/alloc.h"

enum { INDEX_FROM = 16 };

struct hold_key {
    UT_hash_handle by_field;
    UT_hash_handle by_token;
    struct hold *hold;
};

static void put(struct lock *lock, struct hold *h)
{
    struct hold_key *k = xcalloc(1, sizeof(*k));

    k->hold = h;
    h->key = k;
    HASH_ADD_KEYPTR(by_field, lock->fields, h->field.ptr, h->field.len, k);
    HASH_ADD_KEYPTR(by_token, lock->tokens, &h->token, sizeof(h->token), k);
}

void index_add(struct hold *h)
{
    struct lock *lock = h->lock;
    struct list *it;

    lock->hold_count++;
    if (h->lock_kind == KIND_WRITE) {
        lock->writer = h;
    }
    if (lock->fields != NULL) {
        put(lock, h);
    } else if (lock->hold_count >= INDEX_FROM) {
        LIST_FOREACH(it, &lock->holds)
        {
            put(lock, container_of(it, struct hold, in_lock));
        }
    }
}

void index_remove(struct hold *h)
{
    struct lock *lock = h->lock;
    struct hold_key *k = h->key;

    lock->hold_count--;
    if (lock->writer == h) {
        lock->writer = NULL;
    }
    if (k != NULL) {
        HASH_DELETE(by_field, lock->fields, k);
        HASH_DELETE(by_token, lock->tokens, k);
        h->key = NULL;
        free(k);
    }
}

struct hold *lock_hold_of(const struct lock *lock, struct span field)
{
    struct hold_key *k;
    struct list *it;

    if (lock->fields != NULL) {
        HASH_FIND(by_field, lock->fields, field.ptr, field.len, k);
        return k == NULL ? NULL : k->hold;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (span_eq(h->field, field)) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_hold_with(const struct lock *lock, uint64_t token)
{
    struct hold_key *k;
    struct list *it;

    if (lock->fields != NULL) {
        HASH_FIND(by_token, lock->tokens, &token, sizeof(token), k);
        return k == NULL ? NULL : k->hold;
    }
    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (h->token == token) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_held_by(const struct lock *lock, struct span owner,
                          enum lock_kind kind)
{
    struct hold *w = lock->writer;

    if (kind == KIND_WRITE || (kind == KIND_PLAIN && w != NULL)) {
        if (w != NULL && span_eq(field_owner(w->field), owner)) {
            return w;
        }
    }
    return kind == KIND_WRITE ? NULL : lock_hold_of(lock, owner);
}
