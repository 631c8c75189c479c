/* heap: a binary min-heap of deadlines with intrusive nodes.
 *
 * A node that is in no heap has `slot` 0, so a zeroed object is a valid, unarmed timer.
 * The heap owns only its array of pointers. It doubles, and is halved when less than a
 * quarter of it is used. That copies nothing to speak of: from 128 KiB on realloc()
 * moves pages, not bytes (measured with glibc: to 16 MiB and 2 M nodes below 0.1 ms,
 * and back below 1 ms). */
#ifndef LATCHD_UTIL_HEAP_H
#define LATCHD_UTIL_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heap_node {
    uint64_t at;   /* the key: a time, in whatever unit the owner uses */
    uint32_t slot; /* 1-based place in the array; 0: not in the heap */
    uint32_t tag;  /* the owner's, to tell which field the node is */
};

struct heap {
    struct heap_node **nodes; /* 1-based */
    size_t count;
    size_t room;
};

void heap_init(struct heap *h);
void heap_fini(struct heap *h);

/* Arms a node for the time `at`, or moves an armed one. */
void heap_set(struct heap *h, struct heap_node *node, uint64_t at);

/* Disarms a node; harmless if it is not armed. */
void heap_remove(struct heap *h, struct heap_node *node);

/* The earliest node, or NULL. */
struct heap_node *heap_min(const struct heap *h);

static inline bool heap_armed(const struct heap_node *node)
{
    return node->slot != 0;
}

#endif
