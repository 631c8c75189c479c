/* hot: the names that are granted most, without counting all names.
 *
 * A table of fixed size, in sets: a name that is new to a full set takes the place of
 * the one that was granted least, with its count, so that a busy name gets in and stays
 * in. Rates are thus right for names that are busy, and an upper bound for others.
 * Kept only while somebody looks. */
#ifndef LATCHD_DAEMON_HOT_H
#define LATCHD_DAEMON_HOT_H

#include "util/span.h"

#include <stddef.h>
#include <stdint.h>

enum { HOT_SETS = 64, HOT_WAYS = 8, HOT_NAME_MAX = 512 };

struct hot_name {
    uint64_t hash;
    uint32_t count;      /* grants in this second, or inherited */
    uint32_t rate_milli; /* a second, smoothed, times 1000 */
    uint16_t len;        /* 0: free */
    char name[HOT_NAME_MAX];
};

struct hot;

struct hot *hot_new(void);
void hot_free(struct hot *h);
/* That name was granted. Names of more than HOT_NAME_MAX bytes are not counted. */
void hot_count(struct hot *h, struct span name);
/* A second has passed. */
void hot_second(struct hot *h);
/* The busiest at most `max`, busiest first, into `ret`; returns how many. */
size_t hot_list(const struct hot *h, const struct hot_name **ret, size_t max);

#endif
