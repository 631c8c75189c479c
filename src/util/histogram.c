#include "util/histogram.h"

/* Bucket b of octave o ends at 2^o + (b + 1) * 2^o / 4, inclusive. Durations of 1 or
 * less are in the last bucket of the octave below 1, the only one there. So every
 * power of two ends a bucket. */
enum { FIRST = HISTOGRAM_PARTS - 1 };

static size_t bucket_of(uint64_t us)
{
    uint64_t below = us - 1;
    unsigned octave, part;
    size_t at;

    if (us <= 1) {
        return FIRST;
    }
    octave = 63 - (unsigned)__builtin_clzll(below);
    part = (unsigned)(octave >= 2 ? below >> (octave - 2) : below << (2 - octave)) &
           (HISTOGRAM_PARTS - 1);
    at = (size_t)(octave + 1) * HISTOGRAM_PARTS + part;
    return at < HISTOGRAM_BUCKETS ? at : HISTOGRAM_BUCKETS - 1;
}

static uint64_t end_of(size_t bucket)
{
    unsigned octave = (unsigned)(bucket / HISTOGRAM_PARTS);
    uint64_t part = bucket % HISTOGRAM_PARTS + 1;
    uint64_t start;

    if (octave == 0) {
        return 1;
    }
    start = (uint64_t)1 << (octave - 1);
    return start + start * part / HISTOGRAM_PARTS;
}

void histogram_add(struct histogram *h, uint64_t us)
{
    h->count++;
    h->sum_us += us;
    h->max_us = us > h->max_us ? us : h->max_us;
    h->buckets[bucket_of(us)]++;
}

uint64_t histogram_quantile(const struct histogram *h, unsigned per_mille)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen != 0 && seen * 1000 >= h->count * per_mille) {
            uint64_t end = end_of(i);

            return end < h->max_us ? end : h->max_us;
        }
    }
    return h->max_us;
}

uint64_t histogram_longest_since(const struct histogram *h, struct histogram *before)
{
    size_t i = HISTOGRAM_BUCKETS;
    uint64_t end = 0;

    if (h->count == before->count) {
        return 0;
    }
    while (end == 0 && i-- > 0) {
        end = h->buckets[i] > before->buckets[i] ? end_of(i) : 0;
    }
    *before = *h;
    return end < h->max_us ? end : h->max_us;
}

uint64_t histogram_within(const struct histogram *h, unsigned octave)
{
    uint64_t seen = 0;

    for (size_t i = 0; i < HISTOGRAM_BUCKETS && i / HISTOGRAM_PARTS <= octave; i++) {
        seen += h->buckets[i];
    }
    return seen;
}
