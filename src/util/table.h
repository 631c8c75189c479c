/* table: a hash table that never stops to grow. Chains through the objects themselves,
 * 16 bytes each; one bucket is split or joined with another at a time, so that no
 * insert or removal costs more than the few nodes of a bucket or two, however many
 * there are (linear hashing). It gets smaller as they go.
 *
 * A key is 64 bits: hash_bytes() of what users choose, or a number that we count up.
 * Whether one of the nodes with a key is the one that is meant, the caller says:
 *
 *   for (n = table_find(t, hash); n != NULL; n = table_next(n)) if (it_is(n)) ...
 *
 * The caller owns the struct, which owns its buckets; the objects are others'. A zeroed
 * table is empty and valid. */
#ifndef LATCHD_UTIL_TABLE_H
#define LATCHD_UTIL_TABLE_H

#include "util/list.h"

#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next; /* the next node of the bucket */
    uint64_t key;            /* set by the caller before table_add() */
};

struct table {
    struct table_node ***parts; /* the buckets, in arrays of the same length */
    size_t size;                /* buckets */
    size_t mask;                /* the least 2^n - 1 that is >= size - 1 */
    size_t count;               /* nodes */
    size_t walks; /* walks under way: buckets are neither split nor joined */
};

/* Adds a node. Returns how many nodes were moved, for the tests. */
size_t table_add(struct table *t, struct table_node *node);
/* Removes a node that is in the table. */
void table_remove(struct table *t, struct table_node *node);
/* Finds the first node with this key, or NULL. */
struct table_node *table_find(const struct table *t, uint64_t key);
/* The next node with the same key, or NULL. */
struct table_node *table_next(const struct table_node *node);
/* Frees the buckets. */
void table_fini(struct table *t);

/* A walk over all nodes, each once, in no order. The node returned last may be
 * removed. Nodes may be added; the walk may return them or not. A walk must go to its
 * end, or be broken off explicitly. */
struct table_walk {
    struct table *table;
    size_t bucket;
    struct table_node *next;
};

struct table_node *table_walk(struct table_walk *w, struct table *t);
struct table_node *table_walk_on(struct table_walk *w);
void table_walk_end(struct table_walk *w);

struct table_each {
    struct table_walk walk;
    struct table_node *node;
};

static inline struct table_each table_each(struct table *t)
{
    struct table_each each;

    each.node = table_walk(&each.walk, t);
    return each;
}

/* A loop over the items of a table, which it must not leave; `item` is a pointer to
 * what has the node `member`. */
/* NOLINTBEGIN(bugprone-macro-parentheses) */
#define TABLE_EACH(item, t, member) TABLE_EACH_(item, t, member, TABLE_NODE(__LINE__))
#define TABLE_EACH_(item, t, member, each)                                             \
    for (struct table_each each = table_each(t);                                       \
         each.node != NULL &&                                                          \
         ((item) = container_of(each.node, __typeof__(*(item)), member), 1);           \
         each.node = table_walk_on(&each.walk))
#define TABLE_NODE(line) TABLE_NODE_(line)
#define TABLE_NODE_(line) table_each_##line
/* NOLINTEND(bugprone-macro-parentheses) */

/* A walk in steps, between which the table may change. Calls `fn` for the nodes of one
 * or two buckets, and returns the cursor to continue with; 0 is both start and end. A
 * node that is there all the time is returned at least once, and no node twice unless
 * the table shrinks meanwhile. `fn` must neither add nor remove nodes. */
typedef void table_fn(void *ctx, struct table_node *node);
uint64_t table_scan(const struct table *t, uint64_t cursor, table_fn *fn, void *ctx);

#endif
