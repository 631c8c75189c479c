/* quorum_subs: which channels of lock names are listened to at a majority of the nodes.
 *
 * A release is published at every node that had the lock, which are a majority; so who
 * listens at a majority misses none. Pure: no link, no clock. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_SUBS_H
#define LATCHD_BACKEND_QUORUM_QUORUM_SUBS_H

#include "util/span.h"

#include <stdbool.h>

struct quorum_subs;

struct quorum_subs *quorum_subs_new(unsigned node_count);
void quorum_subs_free(struct quorum_subs *h);

/* It is asked for at all nodes, from anew. */
void quorum_subs_add(struct quorum_subs *h, struct span name, bool rw);
void quorum_subs_remove(struct quorum_subs *h, struct span name, bool rw);
/* That node listens. True: these are a majority since now. */
bool quorum_subs_on(struct quorum_subs *h, unsigned node, struct span name, bool rw);
/* That node does not listen to anything any more. True: some channel is not listened to
 * at a majority now; then none is `told`, until quorum_subs_tell(). */
bool quorum_subs_off(struct quorum_subs *h, unsigned node);
/* Those that are listened to at a majority, and were not told since quorum_subs_off().
 */
typedef void quorum_subs_fn(void *ctx, struct span name, bool rw);
void quorum_subs_tell(struct quorum_subs *h, quorum_subs_fn *fn, void *ctx);

#endif
