#include "util/table.h"

#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIZE_MIN = 8,
    PART = 256,     /* buckets per array; a single array may be shorter */
    STEPS = 2,      /* buckets that one insert may split, or one removal may join */
    NODE_SHARE = 2, /* buckets per node at most */
};

static struct table_node **bucket_at(const struct table *t, size_t i)
{
    return &t->parts[i / PART][i % PART];
}

/* Buckets up to `mask` where they are that many, else up to half of it: those from
 * there on were split off the ones below. */
static struct table_node **bucket_of(const struct table *t, uint64_t key)
{
    size_t i = key & t->mask;

    return bucket_at(t, i < t->size ? i : i & t->mask >> 1);
}

/* --- splitting and joining -------------------------------------------- */

static void begin_split(struct table *t)
{
    t->parts = xmalloc(sizeof(*t->parts));
    t->parts[0] = xcalloc(SIZE_MIN, sizeof(**t->parts));
    t->size = SIZE_MIN;
    t->mask = SIZE_MIN - 1;
}

/* Makes room for the buckets up to `mask`: in the one array, or for pointers to more
 * arrays. */
static void set_mask(struct table *t, size_t mask)
{
    size_t before = t->mask + 1, room = mask + 1;

    t->mask = mask;
    if (room > PART) {
        t->parts = xrealloc(t->parts, room / PART * sizeof(*t->parts));
    } else {
        t->parts[0] = xrealloc(t->parts[0], room * sizeof(**t->parts));
        if (room > before) {
            memset(t->parts[0] + before, 0, (room - before) * sizeof(**t->parts));
        }
    }
}

static size_t split_bucket(struct table *t)
{
    struct table_node **from, **to, *node;
    size_t moved = 0;

    if (t->size > t->mask) {
        set_mask(t, t->mask * 2 + 1);
    }
    if (t->size % PART == 0) {
        t->parts[t->size / PART] = xcalloc(PART, sizeof(**t->parts));
    }
    from = bucket_at(t, t->size & t->mask >> 1);
    to = bucket_at(t, t->size);
    while ((node = *from) != NULL) {
        if ((node->key & t->mask) == t->size) {
            *from = node->next;
            node->next = *to;
            *to = node;
            moved++;
        } else {
            from = &node->next;
        }
    }
    t->size++;
    return moved;
}

static void join_buckets(struct table *t)
{
    struct table_node **end, **last = bucket_at(t, t->size - 1);

    t->size--;
    end = bucket_at(t, t->size & t->mask >> 1);
    while (*end != NULL) {
        end = &(*end)->next;
    }
    *end = *last;
    *last = NULL;
    if (t->size % PART == 0) {
        free(t->parts[t->size / PART]);
    }
    if (t->size == (t->mask >> 1) + 1) {
        set_mask(t, t->mask >> 1);
    }
}

static size_t get_larger(struct table *t)
{
    size_t moved = 0;

    for (int i = 0; i < STEPS && t->count > t->size && t->walks == 0; i++) {
        moved += split_bucket(t);
    }
    return moved;
}

static void get_smaller(struct table *t, size_t steps)
{
    while (steps-- > 0 && t->size > SIZE_MIN && t->size > t->count * NODE_SHARE &&
           t->walks == 0) {
        join_buckets(t);
    }
}

/* --- the table -------------------------------------------------------- */

size_t table_add(struct table *t, struct table_node *node)
{
    struct table_node **first;
    size_t moved;

    if (t->size == 0) {
        begin_split(t);
    }
    t->count++;
    moved = get_larger(t);
    first = bucket_of(t, node->key);
    node->next = *first;
    *first = node;
    return moved;
}

void table_remove(struct table *t, struct table_node *node)
{
    struct table_node **at = bucket_of(t, node->key);

    while (*at != node) {
        at = &(*at)->next;
    }
    *at = node->next;
    t->count--;
    get_smaller(t, STEPS);
}

static struct table_node *with_key(struct table_node *node, uint64_t key)
{
    while (node != NULL && node->key != key) {
        node = node->next;
    }
    return node;
}

struct table_node *table_find(const struct table *t, uint64_t key)
{
    return t->count == 0 ? NULL : with_key(*bucket_of(t, key), key);
}

struct table_node *table_next(const struct table_node *node)
{
    return with_key(node->next, node->key);
}

void table_fini(struct table *t)
{
    for (size_t i = 0; i < t->size; i += PART) {
        free(t->parts[i / PART]);
    }
    free(t->parts);
    *t = (struct table){ 0 };
}

/* --- walks ------------------------------------------------------------ */

struct table_node *table_walk(struct table_walk *w, struct table *t)
{
    *w = (struct table_walk){ .table = t };
    t->walks++;
    return table_walk_on(w);
}

struct table_node *table_walk_on(struct table_walk *w)
{
    struct table_node *node = w->next;

    while (node == NULL && w->bucket < w->table->size) {
        node = *bucket_at(w->table, w->bucket++);
    }
    if (node == NULL) {
        table_walk_end(w);
        return NULL;
    }
    w->next = node->next;
    return node;
}

void table_walk_end(struct table_walk *w)
{
    w->table->walks--;
    get_smaller(w->table, w->table->size);
}

/* --- scan ------------------------------------------------------------- */

static uint64_t reverse_bits(uint64_t v)
{
    uint64_t r = 0;

    for (int i = 0; i < 64; i++) {
        r = (r << 1) | (v & 1);
        v >>= 1;
    }
    return r;
}

static void visit_chain(struct table_node *node, table_fn *fn, void *ctx)
{
    for (; node != NULL; node = node->next) {
        fn(ctx, node);
    }
}

/* A bucket is split into itself and the one whose number has one more bit. Counting the
 * cursor up from its high bit visits all that were one bucket together, so splitting in
 * between repeats nothing that was given and misses nothing that was not. After a join
 * the whole bucket is given again, of which the cursor had passed a part. */
uint64_t table_scan(const struct table *t, uint64_t cursor, table_fn *fn, void *ctx)
{
    size_t mask = t->size == t->mask + 1 ? t->mask : t->mask >> 1;
    size_t i = cursor & mask;

    if (t->size == 0) {
        return 0;
    }
    visit_chain(*bucket_at(t, i), fn, ctx);
    if (mask != t->mask && i + mask + 1 < t->size) {
        visit_chain(*bucket_at(t, i + mask + 1), fn, ctx);
    }
    return reverse_bits(reverse_bits(cursor | ~(uint64_t)mask) + 1);
}
