/* latency: the events behind LATENCY: what took longer than it should, and when. Each
 * kind of event has a ring of samples, one per second with the worst in it. No I/O, no
 * clock. */
#ifndef LATCHD_CMD_OBSERVE_LATENCY_H
#define LATCHD_CMD_OBSERVE_LATENCY_H

#include "cmd/cmd.h"

enum { LATENCY_SAMPLES = 160 };

struct latency_sample {
    uint64_t at_s; /* wall clock */
    uint64_t ms;
};

struct latency_series {
    struct latency_sample samples[LATENCY_SAMPLES];
    size_t next; /* index of the next sample */
    size_t count;
    uint64_t max_ms; /* since the start or LATENCY RESET */
};

struct latency {
    struct latency_series of[LATENCY_EVENT_COUNT];
};

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms);
/* Sample `i` of a series; 0 is the oldest. */
const struct latency_sample *latency_sample(const struct latency_series *s, size_t i);

#endif
