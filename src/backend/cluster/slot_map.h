/* slot_map: which node of a Redis Cluster has which slots, as one of its nodes sees it,
 * and what came between two such views.
 *
 * Plain data. The caller owns the struct, which owns its arrays; a zeroed one knows
 * nothing and is valid. */
#ifndef LATCHD_BACKEND_CLUSTER_SLOT_MAP_H
#define LATCHD_BACKEND_CLUSTER_SLOT_MAP_H

#include "backend/cluster/slot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
    bool is_failing;                 /* so the others say, or suspect */
    char master_id[SLOT_ID_LEN + 1]; /* of a replica; else empty */
    uint64_t epoch;                  /* of its configuration, or of its master's */
};

struct slot_map {
    struct slot_node *nodes;
    size_t node_count;
    /* Into nodes[]; SLOT_NODES_MAX: nobody's. NULL: nothing is known. */
    uint16_t *owners;
};

/* Takes the answer to CLUSTER NODES apart. `host`: where it was asked, as a node may
 * not know its own. False: it is no such answer. */
bool slot_map_parse(struct span text, const char *host, struct slot_map *ret);
void slot_map_fini(struct slot_map *map);

/* NULL: nobody has it. */
const struct slot_node *slot_map_owner(const struct slot_map *map, uint32_t slot);
const struct slot_node *slot_map_find(const struct slot_map *map, const char *id);

/* `now` is what somebody saw who has not heard of all that is in `was`: a slot goes
 * from one to another only under a higher epoch. */
bool slot_map_is_older(const struct slot_map *now, const struct slot_map *was);

enum slot_fate {
    SLOT_STAYS,
    SLOT_MOVED,       /* resharded: with all that was in it */
    SLOT_FAILED_OVER, /* to who was a replica, or else while its old owner was not
                         there: writes may be lost */
};

/* What became of that slot, which had an owner before. One that nobody has now stays
 * where it was. */
enum slot_fate slot_map_fate(const struct slot_map *was, const struct slot_map *now,
                             uint32_t slot);

#endif
