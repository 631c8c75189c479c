/* cluster_priv: what cluster.c (the backend: ops, events, time), cluster_map.c (which
 * member has which slots), cluster_failover_check.c (what a failover lost),
 * cluster_fair.c (members of fair queues, which are no members of the cluster) and
 * cluster_daemons.c (what daemons announce to each other) share. For nobody else.
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
    CLUSTER_REFRESH_MS = 1000, /* the map is asked for so often.. */
    CLUSTER_HURRY_MS = 100,    /* ..while something is wrong */
    CLUSTER_SUSPECT_MAP_MS =
        1000,                 /* what a node refused makes it look so for so long */
    CLUSTER_REFUSE_MS = 5000, /* views older than the last are refused for so long */
    CLUSTER_CHECK_MS = 10000, /* so long it may turn out that nothing was lost */
    CLUSTER_LATER_MS = 30,    /* what a node refused is not asked again before */
    CLUSTER_LATER_MAX_MS = 500,
    CLUSTER_LATER_EACH = 50, /* and a millisecond more for so many that wait so */
};

/* A master: who has slots, or had some. */
struct member {
    struct cluster *cluster;
    struct node *node;
    char host[SLOT_HOST_MAX + 1];
    char port[6];
    size_t slots;
    bool up;
    bool was_up;
    bool listens; /* to what daemons announce, which all nodes tell */
    /* Its last failover, see cluster_failover_check.c: */
    uint32_t failover;
    struct member *successor;     /* NULL: it is settled */
    struct redis_history history; /* when it was noticed */
    uint64_t reconnects;          /* the same */
    uint64_t prove_until_ms;
};

struct cluster {
    uv_timer_t timer;
    struct store_setup setup; /* to make nodes of; its place is a copy */
    struct store_events events;
    struct cluster_discovery *discoveries[CLUSTER_DISCOVERIES];
    bool lost[CLUSTER_DISCOVERIES]; /* that one is to go elsewhere */
    size_t next_server;             /* of those where scouts go */
    struct slot_map map;            /* the last view that was believed */
    struct member *owners[SLOT_COUNT];
    struct member *before[SLOT_COUNT]; /* while a view is taken over */
    bool failed[SLOT_COUNT];           /* the same */
    uint32_t failover_of[SLOT_COUNT];  /* the last one that took it away; 0: none */
    uint32_t failovers;
    struct member **members;
    size_t member_count;
    struct member **gone; /* closed, to be freed a bit later */
    size_t gone_count;
    struct call_fifo
        later; /* refused ops: deadline_us is when that is told; our clock */
    bool up, was_up, closed;
    uint64_t map_suspect_ms; /* the last sign that the map is wrong */
    uint64_t asked_ms;       /* scouts were sent last */
    uint64_t believed_ms;    /* the last view that was believed */
    uint64_t seed;
};

/* cluster.c */
/* The map may be wrong: it is looked at soon. */
void cluster_suspect_map(struct cluster *c);
extern const struct store_events CLUSTER_MEMBER_EVENTS;
void cluster_on_moved(void *member);

/* cluster_daemons.c */
void cluster_on_listening(void *member);
void cluster_on_announced(void *member, struct span text);
void cluster_announce(void *cluster, struct span text);

/* cluster_fair.c */
/* Listens to the members that the op gives a place in a fair queue. */
void cluster_listen(struct member *m, const struct op *op);
void cluster_unlisten(void *cluster, struct span name, struct span member);

/* cluster_failover_check.c */
/* Its slots failed over to the successor (NULL: to itself). */
void cluster_suspect(struct cluster *c, struct member *m, struct member *successor);
/* Looks whether failovers lost nothing, and says so. */
void cluster_check_failover(struct cluster *c);

/* cluster_map.c */
/* What some node answered to CLUSTER NODES; false: that is no map. */
bool cluster_on_view(void *cluster, struct span text, const char *host);
/* Whatever that member had may be lost. */
void cluster_failed_over(struct cluster *c, struct member *m);
void cluster_retire(struct cluster *c);

#endif
