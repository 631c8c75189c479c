/* slot: in which of a Redis Cluster's slots a name is, and so all of its keys.
 *
 * Pure functions over bytes. */
#ifndef LATCHD_BACKEND_CLUSTER_SLOT_H
#define LATCHD_BACKEND_CLUSTER_SLOT_H

#include "util/span.h"

#include <stdint.h>

enum { SLOT_COUNT = 16384 };

/* By Redis's rule: what stands in the first `{...}`, if that is not empty, else all of
 * it. The same for a name and for every `prefix{N}suffix`, if the name has no brace or
 * one `{tag}` that is not empty. */
uint32_t slot_of(struct span key);

#endif
