/* top_granted: the names that are granted most, without counting all names.
 *
 * A table of fixed size, in sets: a name that is new to a full set takes the place of
 * the one that was granted least, with its count, so that a busy name gets in and stays
 * in. Rates are thus right for names that are busy, and an upper bound for others.
 * Kept only while somebody looks. */
#ifndef LATCHD_DAEMON_STATUS_TOP_GRANTED_H
#define LATCHD_DAEMON_STATUS_TOP_GRANTED_H

#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

enum { TOP_GRANTED_SETS = 64, TOP_GRANTED_WAYS = 8, TOP_GRANTED_NAME_MAX = 512 };

struct top_granted_name {
    uint64_t hash;
    uint32_t count;      /* grants in this second, or inherited */
    uint32_t rate_milli; /* a second, smoothed, times 1000 */
    uint16_t len;        /* 0: free */
    char name[TOP_GRANTED_NAME_MAX];
};

struct top_granted;

struct top_granted *top_granted_new(void);
void top_granted_free(struct top_granted *h);
/* Counts a grant of that name. Names of more than TOP_GRANTED_NAME_MAX bytes are not
 * counted.
 */
void top_granted_count(struct top_granted *h, struct span name);
/* A second has passed. */
void top_granted_second(struct top_granted *h);
/* The busiest at most `max`, busiest first, into `ret`; returns how many. */
size_t top_granted_list(const struct top_granted *h,
                        const struct top_granted_name **ret, size_t max);

#endif
