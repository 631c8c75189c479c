/* sim_schedule: one random schedule from one seed. */
#ifndef LATCHD_SIM_SCHEDULE_H
#define LATCHD_SIM_SCHEDULE_H

#include "sim/sim_world.h"

/* What is kept of its events: nothing, the last ones, or all are printed. */
enum schedule_trace { SCHEDULE_QUIET, SCHEDULE_TRACED, SCHEDULE_LOUD };

/* Runs it; the result tells whether, and how, it failed. sim_free() it. */
struct sim *schedule_run(uint64_t seed, unsigned steps, unsigned faults,
                         enum schedule_trace trace);

/* Nobody asks for more, whoever holds releases: everybody who waits is served. */
void schedule_drain(struct sim *s);

#endif
