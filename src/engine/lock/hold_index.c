/* The holds of one lock by field and by token. Few are looked through; from INDEX_FROM
 * readers on they are in two tables. */
#include "engine/lock/hold_index.h"
#include "engine/acquire_spec.h"
#include "engine/hold/hold.h"
#include "engine/lock/lock.h"
#include "engine/value_hold.h"
#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

enum { INDEX_FROM = 16 };

struct hold_key {
    struct table_node by_field;
    struct table_node by_token;
    struct hold *hold;
};

struct hold_index {
    struct table fields;
    struct table tokens;
};

static uint64_t field_key(struct span field)
{
    return hash_bytes(field.ptr, field.len);
}

/* Tokens are partly what Redis says: not to be trusted as they are. */
static uint64_t token_key(uint64_t token)
{
    return hash_bytes(&token, sizeof(token));
}

static void index_put(struct lock *lock, struct hold *h)
{
    struct hold_key *k = xcalloc(1, sizeof(*k));

    k->hold = h;
    k->by_field.key = field_key(hold_field(h));
    k->by_token.key = token_key(h->token);
    table_add(&lock->sharing->index->fields, &k->by_field);
    table_add(&lock->sharing->index->tokens, &k->by_token);
}

static struct hold_key *key_of(const struct hold_index *in, const struct hold *h)
{
    struct table_node *n = table_find(&in->tokens, token_key(h->token));

    while (container_of(n, struct hold_key, by_token)->hold != h) {
        n = table_next(n);
    }
    return container_of(n, struct hold_key, by_token);
}

static void acquire_out(struct lock *lock, const struct hold *h)
{
    struct hold_index *in = lock->sharing->index;
    struct hold_key *k = key_of(in, h);

    table_remove(&in->fields, &k->by_field);
    table_remove(&in->tokens, &k->by_token);
    if (in->fields.count == 0) {
        table_fini(&in->fields);
        table_fini(&in->tokens);
        free(in);
        lock->sharing->index = NULL;
    }
    free(k);
}

void index_add(struct engine *eng, struct hold *h)
{
    struct lock *lock = h->lock;
    struct list *it;

    lock->hold_count++;
    if (h->lock_kind == KIND_WRITE) {
        lock_open_sharing(eng, lock)->writer = h;
    }
    if (lock->sharing->index != NULL) {
        index_put(lock, h);
    } else if (lock->hold_count >= INDEX_FROM) {
        lock_open_sharing(eng, lock)->index = xcalloc(1, sizeof(struct hold_index));
        LIST_FOREACH(it, &lock->holds)
        {
            index_put(lock, container_of(it, struct hold, in_lock));
        }
    }
}

void index_remove(struct hold *h)
{
    struct lock *lock = h->lock;

    lock->hold_count--;
    if (lock->sharing->writer == h) {
        lock->sharing->writer = NULL;
    }
    if (lock->sharing->index != NULL) {
        acquire_out(lock, h);
    }
}

static struct hold *with_field(const struct table *fields, struct span field)
{
    struct table_node *n = table_find(fields, field_key(field));

    for (; n != NULL; n = table_next(n)) {
        struct hold *h = container_of(n, struct hold_key, by_field)->hold;

        if (span_eq(hold_field(h), field)) {
            return h;
        }
    }
    return NULL;
}

static struct hold *with_token(const struct table *tokens, uint64_t token)
{
    struct table_node *n = table_find(tokens, token_key(token));

    for (; n != NULL; n = table_next(n)) {
        struct hold *h = container_of(n, struct hold_key, by_token)->hold;

        if (h->token == token) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_hold_of(const struct lock *lock, struct span field)
{
    struct list *it;

    if (lock->sharing->index != NULL) {
        return with_field(&lock->sharing->index->fields, field);
    }
    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);

        if (span_eq(hold_field(h), field)) {
            return h;
        }
    }
    return NULL;
}

struct hold *lock_hold_with(const struct lock *lock, uint64_t token)
{
    struct list *it;

    if (lock->sharing->index != NULL) {
        return with_token(&lock->sharing->index->tokens, token);
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
    struct hold *w = lock->sharing->writer;

    if (kind == KIND_WRITE || (kind == KIND_PLAIN && w != NULL)) {
        if (w != NULL && span_eq(field_owner(hold_field(w)), owner)) {
            return w;
        }
    }
    return kind == KIND_WRITE ? NULL : lock_hold_of(lock, owner);
}

bool hold_is_of_value(const struct hold *hold)
{
    return span_starts(hold_field(hold), SPAN(VALUE_FIELD_PREFIX));
}

struct hold *lock_value_hold(const struct lock *lock, struct span pattern)
{
    struct hold *h = lock_hold(lock); /* a plain lock has no other */

    return h != NULL && value_field_fits(hold_field(h), pattern) ? h : NULL;
}
