#include "core/fair_left.h"

#include "util/hash.h"

struct fair_left {
    struct list in_order; /* l->fair_left, oldest first */
    struct table_node in_names;
    uint64_t at;
    size_t name_len;
    char name[];
};

static struct fair_left *left_of(struct table_node *n)
{
    return container_of(n, struct fair_left, in_names);
}

static struct span left_name(const struct fair_left *left)
{
    return span_of(left->name, left->name_len);
}

static void forget(struct locks *l, struct fair_left *left)
{
    list_del(&left->in_order);
    table_remove(&l->fair_left_names, &left->in_names);
    pool_free(&l->pool, left);
}

/* A place is stale when it was not renewed for the lease and `fair-wait-timeout`; and
 * it may have been renewed since it was left, by who lives and has others there. */
static void forget_old(struct locks *l)
{
    uint64_t kept_ms = l->cfg.watchdog_ms + 2 * l->cfg.fair_wait_ms;
    struct list *first;

    while ((first = list_first(&l->fair_left)) != NULL) {
        struct fair_left *left = container_of(first, struct fair_left, in_order);

        if (l->now < left->at + kept_ms && l->fair_left_names.count <= FAIR_LEFT_MAX) {
            break;
        }
        forget(l, left);
    }
}

static struct fair_left *find(const struct locks *l, struct span name, uint64_t hash)
{
    struct table_node *n = table_find(&l->fair_left_names, hash);

    while (n != NULL && !span_eq(left_name(left_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : left_of(n);
}

void fair_left_note(struct locks *l, const struct lock *lock)
{
    struct span name = lock_name(lock);
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct fair_left *left = find(l, name, hash);

    if (left == NULL) {
        left = pool_alloc(&l->pool, sizeof(*left) + name.len);
        memcpy(left->name, name.ptr, name.len);
        left->name_len = name.len;
        left->in_names.key = hash;
        table_add(&l->fair_left_names, &left->in_names);
    } else {
        list_del(&left->in_order);
    }
    left->at = l->now;
    list_append(&l->fair_left, &left->in_order);
    forget_old(l);
}

void fair_left_again(struct locks *l, locks_concerns_fn *concerns, void *ctx)
{
    struct list *it;

    forget_old(l);
    LIST_FOREACH(it, &l->fair_left)
    {
        struct span name = left_name(container_of(it, struct fair_left, in_order));

        if (concerns == NULL || concerns(ctx, lock_group(l, name))) {
            fair_sweep(l, lock_get(l, name));
        }
    }
}

void fair_left_free(struct locks *l)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &l->fair_left)
    {
        forget(l, container_of(it, struct fair_left, in_order));
    }
    table_fini(&l->fair_left_names);
}
