/* scenario: the world of tests/scenarios/stage_sim.c. The world of sim_world.h with
 * nothing left to chance: each way takes 1 ms, nothing fails unless the scenario says
 * so. The checks of sim_check.h look on; scenario_end() fails the test with what they
 * found. */
#ifndef LATCHD_SIM_SCENARIO_H
#define LATCHD_SIM_SCENARIO_H

#include "sim/world/sim_faults.h"
#include "sim/world/sim_world.h"

#include <check.h>

enum {
    SCENARIO_RTT_MS = 10,   /* in which what a client says is answered */
    SCENARIO_GONE_MS = 200, /* how long a failover takes */
};

/* Daemons d0, d1 and one Redis. */
struct sim *scenario_with(size_t daemons, const struct engine_config *config);
struct engine_config scenario_config(void); /* the defaults of latchd.conf(5) */
/* No check failed so far; then everybody leaves, and nothing may be left. */
void scenario_end(struct sim *s);

/* The lock `job` as Redis has it now. */
struct redis_name *scenario_job(struct sim *s);
/* Redis's fair queue of `job` as text: members, the head first, without their daemon's
 * instance: `d0:3`, `r:42`. The text lives until the next call. */
const char *scenario_queue(struct sim *s);
/* The ones of `conns` are served one after the other, in that order, each unlocking
 * as soon as it is granted. */
void scenario_served_in_order(struct sim *s, const size_t *conns, size_t count,
                              uint64_t within_ms);

/* A Redisson client takes it, or waits until it is free and takes it then. */
void scenario_foreign_takes(struct sim *s, uint64_t lease_ms);
void scenario_foreign_waits(struct sim *s);
void scenario_foreign_releases(struct sim *s, bool publish);
bool scenario_foreign_holds(struct sim *s);

/* Each of these connections that has a token unlocks; true when one did. */
bool scenario_unlocks(struct sim *s, const size_t *conns, size_t count);

#define heard(s, c, text) ck_assert_str_eq(sim_heard((s), (c)), (text))

#endif
