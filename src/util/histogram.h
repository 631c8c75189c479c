/* histogram: how long things took, in microseconds, without keeping each.
 *
 * Four buckets to every power of two up to 2^35 us (9.5 hours): a quantile is right to
 * a quarter, powers of two exactly. Adding is O(1) and allocates nothing. Not a thing
 * that needs to be freed; all zero is an empty one. */
#ifndef LATCHD_UTIL_HISTOGRAM_H
#define LATCHD_UTIL_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_OCTAVES = 36, /* what is longer counts as the longest */
    HISTOGRAM_PARTS = 4,    /* buckets to an octave */
    HISTOGRAM_BUCKETS = HISTOGRAM_OCTAVES * HISTOGRAM_PARTS,
};

struct histogram {
    uint64_t count;
    uint64_t sum_us;
    uint64_t max_us;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, uint64_t us);

/* The smallest bound below or at which at least `per_mille` of all lie: 500 the median.
 * 0 when empty; never more than max_us. */
uint64_t histogram_quantile(const struct histogram *h, unsigned per_mille);

/* The longest that was added since *before, an earlier copy, which is brought up to
 * date; right to a quarter, 0: none. */
uint64_t histogram_longest_since(const struct histogram *h, struct histogram *before);

/* How many took 2^octave us or less. */
uint64_t histogram_within(const struct histogram *h, unsigned octave);

#endif
