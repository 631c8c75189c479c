/* latency: when something took longer than it should, for LATENCY. A ring of samples
 * for each kind of event, one for a second, the worst in it. Plain memory, no clock. */
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
    size_t next; /* where the next one goes */
    size_t count;
    uint64_t max_ms; /* of all times */
};

struct latency {
    struct latency_series of[LATENCY_EVENT_COUNT];
};

void latency_add(struct latency_series *s, uint64_t at_s, uint64_t ms);
/* The oldest is number 0. */
const struct latency_sample *latency_sample(const struct latency_series *s, size_t i);

const char *latency_name(enum latency_event event);
/* What happened, and what an operator can do about it. */
const char *latency_advice(enum latency_event event);

/* A picture of the samples, as LATENCY GRAPH shows it. */
void latency_graph(const struct latency_series *s, const char *name, uint64_t now_s,
                   struct buf *out);
/* All events in words, for LATENCY DOCTOR; 0: the monitor is off. */
void latency_report(const struct latency *l, uint64_t threshold_ms, struct buf *out);

#endif
