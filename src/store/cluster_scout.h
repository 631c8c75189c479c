/* cluster_scout: asks one node of a Redis Cluster after another how they see it.
 *
 * A connection of its own, to one node at a time, so that a node that is silent holds
 * up no op. Events come from the loop only. */
#ifndef LATCHD_STORE_CLUSTER_SCOUT_H
#define LATCHD_STORE_CLUSTER_SCOUT_H

#include "store/redis_conn.h"
#include "util/span.h"

struct cluster_scout;

struct cluster_scout_events {
    void (*on_wake)(void *ctx);
    /* What that host answered to CLUSTER NODES. False: that is of no use. */
    bool (*on_view)(void *ctx, struct span text, const char *host);
    /* The node is out of reach, or of no use: cluster_scout_go() elsewhere, a bit
     * later. */
    void (*on_failed)(void *ctx, struct cluster_scout *s);
};

struct cluster_scout_setup {
    struct io *io;
    const struct store_url *url; /* copied: where to begin, and as whom */
    bool is_quiet;               /* another one beside it tells the log */
    uint64_t timeout_ms;
    uint64_t seed;
    const struct cluster_scout_events *events; /* outlive it */
    void *ctx;
};

struct cluster_scout *cluster_scout_new(const struct cluster_scout_setup *setup);
/* To that node, at once. */
void cluster_scout_go(struct cluster_scout *s, const char *host, const char *port);
/* Asks, unless it is about to. */
void cluster_scout_ask(struct cluster_scout *s);
void cluster_scout_set_tls(struct cluster_scout *s, struct tls *tls);
void cluster_scout_set_timeout(struct cluster_scout *s, uint64_t timeout_ms);
void cluster_scout_close(struct cluster_scout *s);
/* After the loop has run out. */
void cluster_scout_free(struct cluster_scout *s);

#endif
