/* backend: a store, and what one topology does otherwise than another.
 *
 * The store owns the nodes and does with all of them what does not depend on the
 * topology. It begins the struct of a topology that has more than that. Every op that a
 * topology is given gets exactly one result. */
#ifndef LATCHD_BACKEND_BACKEND_H
#define LATCHD_BACKEND_BACKEND_H

#include "backend/node.h"
#include "backend/store.h"
#include "util/alloc.h"

/* Members that are NULL are left out, or done by the first node. */
struct topology {
    const char *name; /* as in INFO */
    size_t size;      /* of its struct */
    bool relays;      /* hears the channels of lock libraries, at the first node */
    void (*init)(struct store *s);
    void (*start)(struct store *s);     /* instead of starting all nodes */
    void (*configure)(struct store *s); /* options, TLS or logins are others now */
    void (*submit)(struct store *s, const struct op *op);
    bool (*seek_part)(const struct store *s, uint32_t *part); /* NULL: one server */
    void (*subscribe)(struct store *s, struct span name, enum lock_class lock_class,
                      bool wanted);
    void (*unlisten)(struct store *s, struct span name, struct span member);
    void (*watch)(struct store *s, struct span name);
    void (*begin_turn)(struct store *s); /* beside the nodes', as end_turn is */
    void (*end_turn)(struct store *s);
    /* Adds its counters to *ret. */
    void (*info)(const struct store *s, struct store_info *ret);
    void (*each_node)(const struct store *s, store_node_fn *fn, void *ctx);
    void (*close)(struct store *s); /* beside the nodes; so are all that follow */
    void (*free)(struct store *s);
};

struct store {
    const struct topology *topology;
    struct store_setup
        setup; /* its config is a copy, its options are the current ones */
    struct node **nodes;
    size_t node_count;
    bool closed;
    struct histogram round_trips;
};

extern const struct topology SENTINEL_TOPOLOGY;
extern const struct topology CLUSTER_TOPOLOGY;
extern const struct topology QUORUM_TOPOLOGY;

static inline struct node *store_add_node(struct store *s,
                                          const struct node_setup *setup)
{
    s->nodes = xrealloc(s->nodes, (s->node_count + 1) * sizeof(struct node *));
    return s->nodes[s->node_count++] = node_new(setup);
}

/* The node is the caller's then. */
static inline void store_remove_node(struct store *s, size_t at)
{
    memmove(&s->nodes[at], &s->nodes[at + 1],
            (--s->node_count - at) * sizeof(struct node *));
}

#endif
