/* latch_ways: how latches are counted down and opened, through latchd, and as Redisson
 * does it, straight at Redis; of the workloads NAMES_LATCHES and NAMES_GATE. */
#ifndef LATCHD_BENCH_LATCH_WAYS_H
#define LATCHD_BENCH_LATCH_WAYS_H

#include "ways.h"

static inline bool workload_is_of_latches(const struct workload *w)
{
    return w->names == NAMES_LATCHES || w->names == NAMES_GATE;
}

/* Loads the scripts into the stand's Redis. */
void latch_ways_init(void);

/* As way.start. */
void latch_start_latchd(struct load *l, unsigned i);
void latch_start_redisson(struct load *l, unsigned i);

#endif
