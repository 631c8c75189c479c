/* slot: the slot of a Redis Cluster in which a name is, and with it all of its keys.
 *
 * Pure functions over bytes. */
#ifndef LATCHD_BACKEND_CLUSTER_SLOT_H
#define LATCHD_BACKEND_CLUSTER_SLOT_H

#include "util/span.h"

#include <stdint.h>

enum { SLOT_COUNT = 16384 };

/* The slot by Redis's rule: that of the text in the first `{...}`, if that is not
 * empty, else of the whole key. A name and every `prefix{N}suffix` have the same slot
 * if the name has no brace, or one `{tag}` that is not empty. */
uint32_t slot_of(struct span key);

#endif
