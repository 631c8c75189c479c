#include "backend/quorum/quorum_subs.h"

#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

struct quorum_sub {
    struct table_node in_all;
    unsigned nodes; /* one bit for each that listens */
    bool told;
    enum lock_class lock_class;
    size_t len;
    char name[];
};

struct quorum_subs {
    struct table all;
    unsigned need;
};

static bool is_majority(const struct quorum_subs *h, unsigned nodes)
{
    return (unsigned)__builtin_popcount(nodes) >= h->need;
}

static struct quorum_sub *sub_new(struct span name, enum lock_class lock_class)
{
    struct quorum_sub *e = xcalloc(1, sizeof(*e) + name.len);

    e->lock_class = lock_class;
    e->len = name.len;
    memcpy(e->name, name.ptr, name.len);
    e->in_all.key = hash_bytes(name.ptr, name.len);
    return e;
}

static struct quorum_sub *heard_in(struct table_node *n)
{
    return container_of(n, struct quorum_sub, in_all);
}

static struct quorum_sub *find_sub(const struct quorum_subs *h, struct span name,
                                   enum lock_class lock_class)
{
    struct table_node *n = table_find(&h->all, hash_bytes(name.ptr, name.len));

    for (; n != NULL; n = table_next(n)) {
        struct quorum_sub *e = heard_in(n);

        if (e->lock_class == lock_class && span_eq(span_of(e->name, e->len), name)) {
            return e;
        }
    }
    return NULL;
}

struct quorum_subs *quorum_subs_new(unsigned node_count)
{
    struct quorum_subs *h = xcalloc(1, sizeof(*h));

    h->need = node_count / 2 + 1;
    return h;
}

void quorum_subs_free(struct quorum_subs *h)
{
    struct table_walk walk;
    struct table_node *n;

    if (h == NULL) {
        return;
    }
    TABLE_FOREACH(n, &walk, &h->all)
    {
        table_remove(&h->all, n);
        free(heard_in(n));
    }
    table_fini(&h->all);
    free(h);
}

void quorum_subs_add(struct quorum_subs *h, struct span name,
                     enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e == NULL) {
        e = sub_new(name, lock_class);
        table_add(&h->all, &e->in_all);
    }
    e->nodes = 0;
    e->told = false;
}

void quorum_subs_remove(struct quorum_subs *h, struct span name,
                        enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e != NULL) {
        table_remove(&h->all, &e->in_all);
        free(e);
    }
}

bool quorum_subs_on(struct quorum_subs *h, unsigned node, struct span name,
                    enum lock_class lock_class)
{
    struct quorum_sub *e = find_sub(h, name, lock_class);

    if (e == NULL) {
        return false;
    }
    e->nodes |= 1U << node;
    if (e->told || !is_majority(h, e->nodes)) {
        return false;
    }
    e->told = true;
    return true;
}

bool quorum_subs_off(struct quorum_subs *h, unsigned node)
{
    struct table_walk walk;
    struct table_node *n;
    bool below = false;

    TABLE_FOREACH(n, &walk, &h->all)
    {
        struct quorum_sub *e = heard_in(n);

        e->nodes &= ~(1U << node);
        below = below || (e->told && !is_majority(h, e->nodes));
    }
    if (below) {
        TABLE_FOREACH(n, &walk, &h->all)
        {
            heard_in(n)->told = false;
        }
    }
    return below;
}

void quorum_subs_tell(struct quorum_subs *h, quorum_subs_fn *fn, void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &h->all)
    {
        struct quorum_sub *e = heard_in(n);

        if (!e->told && is_majority(h, e->nodes)) {
            e->told = true;
            fn(ctx, span_of(e->name, e->len), e->lock_class);
        }
    }
}
