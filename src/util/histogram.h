/* histogram: counts durations in microseconds without storing each. Every power of two
 * up to 2^35 us (9.5 hours) has four buckets: a quantile is exact to a quarter, and at
 * powers of two exactly. Adding is O(1) and allocates nothing. A zeroed histogram is
 * empty; nothing has to be freed. */
#ifndef LATCHD_UTIL_HISTOGRAM_H
#define LATCHD_UTIL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_OCTAVES = 36, /* longer durations count as the longest */
    HISTOGRAM_PARTS = 4,    /* buckets per octave */
    HISTOGRAM_BUCKETS = HISTOGRAM_OCTAVES * HISTOGRAM_PARTS,
};

struct histogram {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t us);

/* The smallest bound that at least `per_mille` of all durations do not exceed (500:
 * the median). 0 when empty; never more than max_us. */
uint64_t histogram_quantile(const struct histogram *h, unsigned per_mille);

/* The longest duration added since *before, an earlier copy, which is then updated;
 * exact to a quarter. 0: none. */
uint64_t histogram_longest_since(const struct histogram *h, struct histogram *before);

/* Counts durations of at most 2^octave us. */
uint64_t histogram_within(const struct histogram *h, unsigned octave);

#endif
