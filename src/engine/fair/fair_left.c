#include "engine/fair/fair_left.h"
#include "engine/engine_state.h"
#include "engine/fair/fair.h"
#include "engine/lock/lock.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/table.h"

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

static void forget_left(struct engine *eng, struct fair_left *left)
{
    list_del(&left->in_order);
    table_remove(&eng->fair_left_names, &left->in_names);
    pool_free(&eng->pool, left);
}

/* A place is stale when it was not renewed for the lease and `fair-wait-timeout`; and
 * it may have been renewed since it was left, by who lives and has others there. */
static void forget_old(struct engine *eng)
{
    uint64_t kept_ms = eng->cfg.watchdog_ms + 2 * eng->cfg.fair_wait_ms;
    struct list *first;

    while ((first = list_first(&eng->fair_left)) != NULL) {
        struct fair_left *left = container_of(first, struct fair_left, in_order);

        if (eng->now < left->at + kept_ms &&
            eng->fair_left_names.count <= FAIR_LEFT_MAX) {
            break;
        }
        forget_left(eng, left);
    }
}

static struct fair_left *find_left(const struct engine *eng, struct span name,
                                   uint64_t hash)
{
    struct table_node *n = table_find(&eng->fair_left_names, hash);

    while (n != NULL && !span_eq(left_name(left_of(n)), name)) {
        n = table_next(n);
    }
    return n == NULL ? NULL : left_of(n);
}

void fair_left_note(struct engine *eng, const struct lock *lock)
{
    struct span name = lock_name(lock);
    uint64_t hash = hash_bytes(name.ptr, name.len);
    struct fair_left *left = find_left(eng, name, hash);

    if (left == NULL) {
        left = pool_alloc(&eng->pool, sizeof(*left) + name.len);
        memcpy(left->name, name.ptr, name.len);
        left->name_len = name.len;
        left->in_names.key = hash;
        table_add(&eng->fair_left_names, &left->in_names);
    } else {
        list_del(&left->in_order);
    }
    left->at = eng->now;
    list_append(&eng->fair_left, &left->in_order);
    forget_old(eng);
}

void fair_left_again(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    struct list *it;

    forget_old(eng);
    LIST_FOREACH(it, &eng->fair_left)
    {
        struct span name = left_name(container_of(it, struct fair_left, in_order));

        if (concerns == NULL || concerns(ctx, lock_group(eng, name))) {
            fair_sweep(eng, lock_get(eng, name));
        }
    }
}

void fair_left_free(struct engine *eng)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &eng->fair_left)
    {
        forget_left(eng, container_of(it, struct fair_left, in_order));
    }
    table_fini(&eng->fair_left_names);
}
