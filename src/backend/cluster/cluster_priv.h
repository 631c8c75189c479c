/* cluster_priv: what cluster.c (the backend: ops, events, time), cluster.c (which
 * member has which slots), cluster.c (what a failover lost),
 * cluster.c (members of fair queues, which are no members of the cluster) and
 * cluster.c (what daemons announce to each other) share. For nobody else.
 */
#ifndef LATCHD_BACKEND_CLUSTER_CLUSTER_PRIV_H
#define LATCHD_BACKEND_CLUSTER_CLUSTER_PRIV_H

#include "backend/backend.h"
#include "backend/cluster/cluster_discovery.h"
#include "backend/cluster/slot_map.h"
#include "backend/node.h"
#include "backend/redis/call_fifo.h"
#include "backend/redis/redis_link.h"

#include <uv.h>

enum {
    CLUSTER_DISCOVERIES = 3,
    CLUSTER_REFRESH_MS = 1000,     /* how often the map is asked for.. */
    CLUSTER_HURRY_MS = 100,        /* ..and while something is wrong */
    CLUSTER_SUSPECT_MAP_MS = 1000, /* how long a refusal makes the map suspect */
    CLUSTER_REFUSE_MS = 5000,      /* how long views older than the last are refused */
    CLUSTER_CHECK_MS = 10000,      /* how long it may turn out that nothing was lost */
    CLUSTER_LATER_MS = 30,         /* a refused op is not sent again before */
    CLUSTER_LATER_MAX_MS = 500,
    CLUSTER_LATER_EACH = 50, /* and a millisecond more for each so many refused ops */
};

/* A master: a node that has slots, or had some. */
struct member {
    struct cluster *cluster;
    struct node *node;
    char host[SLOT_HOST_MAX + 1];
    char port[6];
    size_t slots;
    bool up;
    bool was_up;
    bool listens; /* to what daemons announce; all nodes pass it on */
    /* The node's last failover, see cluster.c: */
    uint32_t failover;
    struct member *successor;     /* NULL: the failover is settled */
    struct redis_history history; /* as it was when the failover was noticed */
    uint64_t reconnects;          /* the same */
    uint64_t prove_until_ms;
};

struct cluster {
    uv_timer_t timer;
    struct store_setup setup; /* for new nodes; its config is a copy */
    struct store_events events;
    struct store_listener listener;
    struct cluster_discovery *discoveries[CLUSTER_DISCOVERIES];
    bool lost[CLUSTER_DISCOVERIES]; /* that discovery needs another node */
    size_t next_server;             /* where a discovery goes next */
    struct slot_map map;            /* the last view that was believed */
    struct member *owners[SLOT_COUNT];
    struct member *before[SLOT_COUNT]; /* while a view is taken over */
    bool failed[SLOT_COUNT];           /* the same */
    /* the last failover that took the slot away; 0: none */
    uint32_t failover_of[SLOT_COUNT];
    uint32_t failovers;
    struct member **members;
    size_t member_count;
    struct member **gone; /* closed, to be freed a bit later */
    size_t gone_count;
    struct call_fifo
        later; /* refused ops: deadline_us is when the refusal is reported; our clock */
    bool up, was_up, closed;
    uint64_t map_suspect_ms; /* when the map last seemed wrong */
    uint64_t asked_ms;       /* when the discoveries last asked */
    uint64_t believed_ms;    /* the last view that was believed */
    uint64_t seed;
};

/* cluster.c */

extern const struct store_events CLUSTER_MEMBER_EVENTS;
extern const struct store_listener CLUSTER_MEMBER_LISTENER;

/* cluster.c */

/* cluster.c */

/* cluster.c */

#endif
