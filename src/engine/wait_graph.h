/* wait_graph: the wait-for graph: all waits of each named owner, on whatever names.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_WAIT_GRAPH_H
#define LATCHD_ENGINE_WAIT_GRAPH_H

#include "engine/objects.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stddef.h>
#include <stdint.h>

struct owner_waits {
    struct table_node in_owners;
    struct list waiters;
    uint64_t seen; /* the last search that visited the owner, and with what limits */
    uint64_t wait_until;
    uint64_t lease_until;
    size_t owner_len;
    char owner[];
};

void wait_graph_add(struct engine *eng, struct waiter *w);
void wait_graph_remove(struct engine *eng, struct waiter *w);
struct owner_waits *wait_graph_find(const struct engine *eng, struct span owner);

#endif
