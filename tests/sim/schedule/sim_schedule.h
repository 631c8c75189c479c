/* sim_schedule: one random schedule from one seed. */
#ifndef LATCHD_SIM_SCHEDULE_H
#define LATCHD_SIM_SCHEDULE_H

#include "sim/world/sim_world.h"

/* The events that are kept: none, the last ones, or all are printed. */
enum schedule_trace { SCHEDULE_QUIET, SCHEDULE_TRACED, SCHEDULE_LOUD };

/* Which kinds of lock a schedule may use besides plain ones. */
enum {
    KINDS_FAIR = 1 << 0,
    KINDS_RW = 1 << 1,
    KINDS_MANY = 1 << 2,
    KINDS_MIXED = 1 << 3, /* a name is asked for in the wrong family, too */
    KINDS_PERMITS = 1 << 4,
    KINDS_LEADERS = 1 << 5,
    KINDS_LATCHES = 1 << 6,
    KINDS_ALL = (1 << 7) - 1,
    KINDS_USUAL = KINDS_ALL,
};

struct schedule_options {
    unsigned steps, faults, kinds;
    enum schedule_trace trace;
};

/* Runs it; the result tells whether, and how, it failed. sim_free() it. */
struct sim *schedule_run(uint64_t seed, const struct schedule_options *o);

/* Nobody asks for more, all holders release: everybody who waits is served. */
void schedule_drain(struct sim *s);
/* Releases the locks that were taken without an end, as nothing else does. False: there
 * was none. */
bool schedule_free_values(struct sim *s);

/* Everything works again: each follower of a leader learns who it is. */
void schedule_learn(struct sim *s);

/* The places of the dead are gone by now: one more waiter finds nobody before it. */
void schedule_poke(struct sim *s);

#endif
