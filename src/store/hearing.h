/* hearing: which channels of lock names are listened to at a majority of the nodes.
 *
 * A release is published at every node that had the lock, which are a majority; so who
 * listens at a majority misses none. Pure: no link, no clock. */
#ifndef LATCHD_STORE_HEARING_H
#define LATCHD_STORE_HEARING_H

#include "util/span.h"

#include <stdbool.h>

struct hearing;

struct hearing *hearing_new(unsigned node_count);
void hearing_free(struct hearing *h);

/* It is asked for at all nodes, from anew. */
void hearing_add(struct hearing *h, struct span name, bool rw);
void hearing_remove(struct hearing *h, struct span name, bool rw);
/* That node listens. True: these are a majority since now. */
bool hearing_on(struct hearing *h, unsigned node, struct span name, bool rw);
/* That node does not listen to anything any more. True: some channel is not listened to
 * at a majority now; then none is `told`, until hearing_tell(). */
bool hearing_off(struct hearing *h, unsigned node);
/* Those that are listened to at a majority, and were not told since hearing_off(). */
typedef void hearing_fn(void *ctx, struct span name, bool rw);
void hearing_tell(struct hearing *h, hearing_fn *fn, void *ctx);

#endif
