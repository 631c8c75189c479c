#include "daemon/status/history.h"

/* Returns the quantile of the values that `now` has and `before` lacks, and brings
 * `before` up to date. */
static uint32_t quantile_since(struct histogram *before, const struct histogram *now,
                               unsigned per_mille)
{
    struct histogram diff = { .count = now->count - before->count,
                              .max_us = now->max_us };
    uint64_t us;

    if (diff.count == 0) {
        return 0;
    }
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        diff.buckets[i] = now->buckets[i] - before->buckets[i];
    }
    *before = *now;
    us = histogram_quantile(&diff, per_mille);
    return us < HISTORY_NONE ? (uint32_t)us : HISTORY_NONE - 1;
}

static uint32_t clip_u32(uint64_t value)
{
    return value < HISTORY_NONE ? (uint32_t)value : HISTORY_NONE - 1;
}

static void push_sample(struct history *h, const uint32_t *values)
{
    for (size_t i = 0; i < HISTORY_SERIES; i++) {
        h->points[i][h->end] = values[i];
    }
    h->end = (h->end + 1) % HISTORY_POINTS;
    h->count += h->count < HISTORY_POINTS;
}

void history_start(struct history *h, uint64_t now_ms,
                   const struct history_sample *sample)
{
    h->next_ms = now_ms + HISTORY_STEP_MS;
    h->grants = sample->grants;
    h->wait = *sample->wait;
    h->redis = *sample->redis;
}

/* Steps that passed without a point, as nobody ran: that is shown, too. */
static void push_gap(struct history *h, uint64_t now_ms)
{
    static const uint32_t NONE[HISTORY_SERIES] = {
        HISTORY_NONE, HISTORY_NONE, HISTORY_NONE,
        HISTORY_NONE, HISTORY_NONE, HISTORY_NONE,
    };
    uint64_t missed = (now_ms - h->next_ms) / HISTORY_STEP_MS;

    h->next_ms += missed * HISTORY_STEP_MS;
    for (uint64_t i = 0; i < missed && i < HISTORY_POINTS; i++) {
        push_sample(h, NONE);
    }
}

void history_add(struct history *h, uint64_t now_ms,
                 const struct history_sample *sample)
{
    uint32_t values[HISTORY_SERIES] = {
        [HISTORY_GRANTS] = clip_u32(sample->grants - h->grants),
        [HISTORY_HELD] = clip_u32(sample->held),
        [HISTORY_WAITING] = clip_u32(sample->waiting),
        [HISTORY_CONNECTIONS] = clip_u32(sample->connections),
        [HISTORY_WAIT_US] = quantile_since(&h->wait, sample->wait, 990),
        [HISTORY_REDIS_US] = quantile_since(&h->redis, sample->redis, 990),
    };

    h->grants = sample->grants;
    if (now_ms > h->next_ms) {
        push_gap(h, now_ms);
    }
    push_sample(h, values);
    h->next_ms += HISTORY_STEP_MS;
}

uint32_t history_at(const struct history *h, enum history_series series, size_t i)
{
    size_t first = (h->end + HISTORY_POINTS - h->count) % HISTORY_POINTS;

    return h->points[series][(first + i) % HISTORY_POINTS];
}
