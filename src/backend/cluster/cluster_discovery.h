/* cluster_discovery: asks the nodes of a Redis Cluster, one after the other, how they
 * see the cluster.
 *
 * Has a connection of its own, to one node at a time, so that a silent node delays no
 * op. Events come from the loop only. */
#ifndef LATCHD_BACKEND_CLUSTER_CLUSTER_DISCOVERY_H
#define LATCHD_BACKEND_CLUSTER_CLUSTER_DISCOVERY_H

#include "backend/redis/redis_conn.h"
#include "util/span.h"

struct cluster_discovery;

struct cluster_discovery_events {
    /* Takes the answer of `host` to CLUSTER NODES. Returns false if the answer is
     * unusable. */
    bool (*on_view)(void *ctx, struct span text, const char *host);
    /* The node is out of reach, or of no use: call cluster_discovery_go() for another
     * node, a bit later. */
    void (*on_failed)(void *ctx, struct cluster_discovery *s);
};

struct cluster_discovery_setup {
    struct io *io;
    const struct backend_url *url; /* copied: the first node, and the login */
    bool is_quiet;                 /* another one logs for it */
    uint64_t timeout_ms;
    uint64_t seed;
    const struct cluster_discovery_events *events; /* outlive it */
    void *ctx;
};

struct cluster_discovery *
cluster_discovery_new(const struct cluster_discovery_setup *setup);
/* Connects to that node at once. */
void cluster_discovery_go(struct cluster_discovery *s, const char *host,
                          const char *port);
/* Asks the node, unless a question is due anyway. */
void cluster_discovery_ask(struct cluster_discovery *s);
/* Takes login and TLS for later connections. */
void cluster_discovery_configure(struct cluster_discovery *s,
                                 const struct backend_url *from, uint64_t timeout_ms);
void cluster_discovery_close(struct cluster_discovery *s);
/* After the loop has run out. */
void cluster_discovery_free(struct cluster_discovery *s);

#endif
