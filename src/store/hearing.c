#include "store/hearing.h"

#include "util/alloc.h"
#include "util/map.h"

#include <stdlib.h>

struct heard {
    UT_hash_handle hh;
    unsigned nodes; /* one bit for each that listens */
    bool told;
    size_t len;
    char text[]; /* its family, then the name */
};

struct hearing {
    struct heard *all;
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
    return e;
}

static struct heard *find(const struct hearing *h, struct span name, bool rw)
{
    struct heard *key = make(name, rw);
    struct heard *e;

    HASH_FIND(hh, h->all, key->text, key->len, e);
    free(key);
    return e;
}

struct hearing *hearing_new(unsigned node_count)
{
    struct hearing *h = xcalloc(1, sizeof(*h));

    h->need = node_count / 2 + 1;
    return h;
}

void hearing_free(struct hearing *h)
{
    struct heard *e, *tmp;

    if (h == NULL) {
        return;
    }
    HASH_ITER(hh, h->all, e, tmp)
    {
        HASH_DEL(h->all, e);
        free(e);
    }
    free(h);
}

void hearing_add(struct hearing *h, struct span name, bool rw)
{
    struct heard *e = find(h, name, rw);

    if (e == NULL) {
        e = make(name, rw);
        HASH_ADD_KEYPTR(hh, h->all, e->text, e->len, e);
    }
    e->nodes = 0;
    e->told = false;
}

void hearing_remove(struct hearing *h, struct span name, bool rw)
{
    struct heard *e = find(h, name, rw);

    if (e != NULL) {
        HASH_DEL(h->all, e);
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
    struct heard *e, *tmp;
    bool below = false;

    HASH_ITER(hh, h->all, e, tmp)
    {
        e->nodes &= ~(1U << node);
        below = below || (e->told && !enough(h, e->nodes));
    }
    if (below) {
        HASH_ITER(hh, h->all, e, tmp)
        {
            e->told = false;
        }
    }
    return below;
}

void hearing_tell(struct hearing *h, hearing_fn *fn, void *ctx)
{
    struct heard *e, *tmp;

    HASH_ITER(hh, h->all, e, tmp)
    {
        if (!e->told && enough(h, e->nodes)) {
            e->told = true;
            fn(ctx, span_of(e->text + 1, e->len - 1), e->text[0] == 'r');
        }
    }
}
