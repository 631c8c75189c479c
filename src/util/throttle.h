/* throttle: limits how often somebody may do something. Each key, an address or a user,
 * has a bucket of `burst` takes, which refills at `per_second`. Keys without recent
 * takes use no memory; beyond `keys_max` at a time, the others share one bucket. */
#ifndef LATCHD_UTIL_THROTTLE_H
#define LATCHD_UTIL_THROTTLE_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THROTTLE_KEY_MAX = 64 }; /* bytes of a key that count */

struct throttle_limits {
    uint32_t burst;
    uint32_t per_second;
    size_t keys_max;
};

struct throttle;

struct throttle *throttle_new(const struct throttle_limits *limits);
void throttle_free(struct throttle *t);
/* Whether there is one more in the key's bucket. */
bool throttle_allows(struct throttle *t, struct span key, uint64_t now_ms);
void throttle_take(struct throttle *t, struct span key, uint64_t now_ms);
size_t throttle_count(const struct throttle *t); /* keys with a bucket */

#endif
