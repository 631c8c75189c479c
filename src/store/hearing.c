#include "store/hearing.h"

#include "util/alloc.h"
#include "util/hash.h"
#include "util/list.h"
#include "util/table.h"

#include <stdlib.h>

struct heard {
    struct table_node in_all;
    unsigned nodes; /* one bit for each that listens */
    bool told;
    size_t len;
    char text[]; /* its family, then the name */
};

struct hearing {
    struct table all;
    unsigned need;
};

static bool enough(const struct hearing *h, unsigned nodes)
{
    return (unsigned)__builtin_popcount(nodes) >= h->need;
}

static struct heard *make(struct span name, bool rw)
{
    struct heard *e = xcalloc(1, sizeof(*e) + 1 + name.len);

    e->len = 1 + name.len;
    e->text[0] = rw ? 'r' : 'p';
    memcpy(e->text + 1, name.ptr, name.len);
    e->in_all.key = hash_bytes(e->text, e->len);
    return e;
}

static struct heard *heard_in(struct table_node *n)
{
    return container_of(n, struct heard, in_all);
}

static bool is_same(const struct heard *a, const struct heard *b)
{
    return span_eq(span_of(a->text, a->len), span_of(b->text, b->len));
}

static struct heard *find(const struct hearing *h, struct span name, bool rw)
{
    struct heard *key = make(name, rw);
    struct table_node *n = table_find(&h->all, key->in_all.key);

    while (n != NULL && !is_same(heard_in(n), key)) {
        n = table_next(n);
    }
    free(key);
    return n == NULL ? NULL : heard_in(n);
}

struct hearing *hearing_new(unsigned node_count)
{
    struct hearing *h = xcalloc(1, sizeof(*h));

    h->need = node_count / 2 + 1;
    return h;
}

void hearing_free(struct hearing *h)
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

void hearing_add(struct hearing *h, struct span name, bool rw)
{
    struct heard *e = find(h, name, rw);

    if (e == NULL) {
        e = make(name, rw);
        table_add(&h->all, &e->in_all);
    }
    e->nodes = 0;
    e->told = false;
}

void hearing_remove(struct hearing *h, struct span name, bool rw)
{
    struct heard *e = find(h, name, rw);

    if (e != NULL) {
        table_remove(&h->all, &e->in_all);
        free(e);
    }
}

bool hearing_on(struct hearing *h, unsigned node, struct span name, bool rw)
{
    struct heard *e = find(h, name, rw);

    if (e == NULL) {
        return false;
    }
    e->nodes |= 1U << node;
    if (e->told || !enough(h, e->nodes)) {
        return false;
    }
    e->told = true;
    return true;
}

bool hearing_off(struct hearing *h, unsigned node)
{
    struct table_walk walk;
    struct table_node *n;
    bool below = false;

    TABLE_FOREACH(n, &walk, &h->all)
    {
        struct heard *e = heard_in(n);

        e->nodes &= ~(1U << node);
        below = below || (e->told && !enough(h, e->nodes));
    }
    if (below) {
        TABLE_FOREACH(n, &walk, &h->all)
        {
            heard_in(n)->told = false;
        }
    }
    return below;
}

void hearing_tell(struct hearing *h, hearing_fn *fn, void *ctx)
{
    struct table_walk walk;
    struct table_node *n;

    TABLE_FOREACH(n, &walk, &h->all)
    {
        struct heard *e = heard_in(n);

        if (!e->told && enough(h, e->nodes)) {
            e->told = true;
            fn(ctx, span_of(e->text + 1, e->len - 1), e->text[0] == 'r');
        }
    }
}
