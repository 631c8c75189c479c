/* quorum_subs: which channels of lock names are subscribed at a majority of the nodes.
 *
 * A release is published at every node that had the lock, and those are a majority; so
 * a subscription at a majority misses none. Pure: no link, no clock. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_SUBS_H
#define LATCHD_BACKEND_QUORUM_QUORUM_SUBS_H

#include "engine/lock_kind.h"
#include "util/span.h"

#include <stdbool.h>

struct quorum_subs;

struct quorum_subs *quorum_subs_new(unsigned node_count);
void quorum_subs_free(struct quorum_subs *h);

/* Adds a channel: all nodes are asked for it, from anew. */
void quorum_subs_add(struct quorum_subs *h, struct span name,
                     enum lock_class lock_class);
void quorum_subs_remove(struct quorum_subs *h, struct span name,
                        enum lock_class lock_class);
/* The node has subscribed. Returns true if the subscribed nodes become a majority by
 * this. */
bool quorum_subs_on(struct quorum_subs *h, unsigned node, struct span name,
                    enum lock_class lock_class);
/* The node has no subscriptions any more. Returns true if some channel has lost its
 * majority; then no channel is `told`, until quorum_subs_tell(). */
bool quorum_subs_off(struct quorum_subs *h, unsigned node);
/* Calls `fn` for the channels that have a majority and were not told since
 * quorum_subs_off(). */
typedef void quorum_subs_fn(void *ctx, struct span name, enum lock_class lock_class);
void quorum_subs_tell(struct quorum_subs *h, quorum_subs_fn *fn, void *ctx);

#endif
