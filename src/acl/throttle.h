/* throttle: limits how often an address may fail to log in. Each address has a bucket
 * of THROTTLE_BURST failures, which refills at THROTTLE_PER_SECOND. While it is empty,
 * passwords from there are not even checked. Addresses without recent failures take no
 * memory; beyond THROTTLE_ADDRESSES at a time, the others share one bucket. */
#ifndef LATCHD_ACL_THROTTLE_H
#define LATCHD_ACL_THROTTLE_H

#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    THROTTLE_BURST = 100,
    THROTTLE_PER_SECOND = 20,
    THROTTLE_ADDRESSES = 4096,
    THROTTLE_ADDRESS_MAX = 64, /* bytes */
};

struct throttle;

struct throttle *throttle_new(void);
void throttle_free(struct throttle *t);
bool throttle_allows(struct throttle *t, struct span address, uint64_t now_ms);
void throttle_failed(struct throttle *t, struct span address, uint64_t now_ms);
size_t throttle_count(const struct throttle *t); /* addresses with a bucket */

#endif
