/* slot_map: which node of a Redis Cluster has which slots, as one of its nodes sees it,
 * and what came between two such views.
 *
 * Plain data. The caller owns the struct, which owns its arrays; a zeroed one knows
 * nothing and is valid. */
#ifndef LATCHD_BACKEND_SLOT_MAP_H
#define LATCHD_BACKEND_SLOT_MAP_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* slot: the slot of a Redis Cluster in which a name is, and with it all of its keys.
 *
 * Pure functions over bytes. */

enum { SLOT_COUNT = 16384 };

/* The slot by Redis's rule: that of the text in the first `{...}`, if that is not
 * empty, else of the whole key. A name and every `prefix{N}suffix` have the same slot
 * if the name has no brace, or one `{tag}` that is not empty. */
uint32_t slot_of(struct span key);

enum {
    SLOT_NODES_MAX = 4096, /* of one cluster; Redis's own advice is 1000 */
    SLOT_ID_LEN = 40,
    SLOT_HOST_MAX = 255,
};

struct slot_node {
    char id[SLOT_ID_LEN + 1];
    char host[SLOT_HOST_MAX + 1];
    char port[6];
    bool is_master;
    bool is_failing;                 /* as the other nodes say, or suspect */
    char master_id[SLOT_ID_LEN + 1]; /* of a replica; else empty */
    uint64_t epoch;                  /* of its configuration, or of its master's */
};

struct slot_map {
    struct slot_node *nodes;
    size_t node_count;
    /* Indexes into nodes[]; SLOT_NODES_MAX: no owner. NULL: nothing is known. */
    uint16_t *owners;
};

/* Parses the answer to CLUSTER NODES. `host`: the host that answered, as a node may not
 * know its own. Returns false if it is no such answer. */
bool slot_map_parse(struct span text, const char *host, struct slot_map *ret);
void slot_map_fini(struct slot_map *map);

/* The node that has the slot; NULL: none. */
const struct slot_node *slot_map_owner(const struct slot_map *map, uint32_t slot);
const struct slot_node *slot_map_find(const struct slot_map *map, const char *id);

/* Whether `now` is the view of a node that has not heard of everything in `was`: a slot
 * changes its owner only under a higher epoch. */
bool slot_map_is_older(const struct slot_map *now, const struct slot_map *was);

enum slot_fate {
    SLOT_STAYS,
    SLOT_MOVED, /* resharded, with everything in it */
    /* to a replica, or to another node while the old owner was gone: writes may be lost
     */
    SLOT_FAILED_OVER,
};

/* Compares the owners of a slot in two maps. A slot without an owner in `now` counts as
 * staying where it was. */
enum slot_fate slot_map_fate(const struct slot_map *was, const struct slot_map *now,
                             uint32_t slot);

#endif
