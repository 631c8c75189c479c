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

#include <stddef.h>
#include <stdint.h>

struct table_node {
    struct table_node *next; /* in its bucket; the table's */
    uint64_t key;            /* the caller's, before it is added */
};

struct table {
    struct table_node ***parts; /* the buckets, in arrays of the same length */
    size_t size;                /* buckets */
    size_t mask;                /* the least 2^n - 1 that numbers them all */
    size_t count;               /* nodes */
    size_t walks;               /* under way: the buckets stay as they are */
};

/* Returns how many nodes had to be moved, for those who doubt. */
size_t table_add(struct table *t, struct table_node *node);
/* It must be there. */
void table_remove(struct table *t, struct table_node *node);
/* The first node with this key, or NULL. */
struct table_node *table_find(const struct table *t, uint64_t key);
/* The next one with the same key. */
struct table_node *table_next(const struct table_node *node);
/* Frees the buckets. */
void table_fini(struct table *t);

/* All nodes, each once, in no order. The one that was given last may be removed, and
 * any may be added, which are given or not. A walk goes to its end; who breaks off
 * says so. */
struct table_walk {
    struct table *table;
    size_t bucket;
    struct table_node *next;
};

struct table_node *table_walk(struct table_walk *w, struct table *t);
struct table_node *table_walk_on(struct table_walk *w);
void table_walk_end(struct table_walk *w);

#define TABLE_FOREACH(node, walk, t)                                                   \
    for ((node) = table_walk((walk), (t)); (node) != NULL; (node) = table_walk_on(walk))

/* A walk in steps, with whatever changes between them. Gives the nodes of a bucket or
 * two and returns the cursor to go on with; 0 is where it starts and where it is over.
 * What is there all the time is given at least once; nothing is given twice unless the
 * table got smaller meanwhile. `fn` neither adds nor removes. */
typedef void table_fn(void *ctx, struct table_node *node);
uint64_t table_scan(const struct table *t, uint64_t cursor, table_fn *fn, void *ctx);

#endif
