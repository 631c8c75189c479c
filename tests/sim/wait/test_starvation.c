/* Waiters that pass others, for how long: PRIORITY over time, and a slow Redisson. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

enum { CROWD = 60, AGING_MS = 20, ROUNDS_MAX = 2000 };

static struct sim *start(void)
{
    struct engine_config config = scenario_config();
    struct sim *s;

    config.priority_aging_ms = AGING_MS;
    s = scenario_with(1, &config);
    s->calm = s->orderly = true;
    return s;
}

/* There are always some of the highest priority in line. */
START_TEST(nobody_starves_behind_a_stream_of_higher_priorities)
{
    struct sim *s = start();
    size_t conns[CROWD];
    size_t patient = sim_connect(s, 0);
    size_t rounds = 0;

    for (size_t i = 0; i < CROWD; i++) {
        conns[i] = sim_connect(s, 0);
    }
    sim_say(s, conns[0], "LOCK job");
    sim_run(s, 2);
    sim_say(s, patient, "LOCK job");
    while (strcmp(sim_heard(s, patient), "...") == 0 && rounds++ < ROUNDS_MAX) {
        for (size_t i = 0; i < CROWD; i++) {
            if (!sim_is_busy(&s->clients.conns[conns[i]]) && i % 3 == rounds % 3) {
                sim_say(s, conns[i], "LOCK job PRIORITY 9");
            }
        }
        sim_run(s, 1);
        (void)scenario_unlocks(s, conns, CROWD);
        sim_run(s, 1);
    }
    heard(s, patient, "token");
    ck_assert_uint_ge(rounds * 2, 9 * AGING_MS);
    scenario_end(s);
}

START_TEST(each_hand_over_is_one_script_whatever_the_priorities)
{
    struct sim *s = start();
    size_t first = sim_connect(s, 0);
    size_t conns[CROWD];
    uint64_t scripts;

    sim_say(s, first, "LOCK job");
    sim_run(s, 10);
    for (size_t i = 0; i < CROWD; i++) {
        conns[i] = sim_connect(s, 0);
        sim_say(s, conns[i], "LOCK job PRIORITY %zu", i * 7 % 10);
    }
    sim_run(s, 10);
    scripts = s->redis.scripts;
    sim_say(s, first, "UNLOCK job TOKEN %" PRIu64, sim_token(s, first));
    for (size_t i = 0; i < CROWD; i++) {
        sim_run(s, 2);
        ck_assert(scenario_unlocks(s, conns, CROWD));
    }
    sim_run(s, 2);
    ck_assert_uint_le((s->redis.scripts - scripts) * 10, (uint64_t)CROWD * 11);
    scenario_end(s);
}

/* How long a Redisson takes to react, beside how many daemons. */
static const struct {
    size_t daemons;
    unsigned react_ms;
} SLOW[] = { { 1, 4 }, { 1, 9 }, { 1, 40 }, { 2, 4 }, { 2, 9 }, { 2, 40 }, { 2, 100 } };

/* The daemons' clients always want the lock. Time runs on until Redisson has it. */
START_TEST(a_redisson_that_is_slow_to_react_gets_in_after_a_few_yields,
           sizeof(SLOW) / sizeof(SLOW[0]))
{
    enum { CLIENTS = 12, YIELDS_MAX = 30, LATEST_MS = 2000 };
    size_t count = SLOW[_i].daemons * CLIENTS;
    struct sim *s = scenario_new(SLOW[_i].daemons);
    size_t conns[2 * CLIENTS];
    uint64_t latest, yields = 0;

    s->profile.foreign_ms = SLOW[_i].react_ms;
    for (size_t i = 0; i < count; i++) {
        conns[i] = sim_connect(s, i % SLOW[_i].daemons);
        sim_say(s, conns[i], "LOCK job");
    }
    sim_run(s, 50);
    scenario_foreign_waits(s);
    latest = s->now + LATEST_MS;
    while (!scenario_foreign_holds(s) && s->now < latest) {
        (void)scenario_unlocks(s, conns, count);
        sim_run(s, 1);
        for (size_t i = 0; i < count; i++) {
            if (sim_heard(s, conns[i])[0] == '0') {
                sim_say(s, conns[i], "LOCK job");
            }
        }
    }
    for (size_t i = 0; i < SLOW[_i].daemons; i++) {
        struct engine_stats stats;

        engine_stats(s->daemons[i].engine, &stats);
        yields += stats.yields;
    }
    ck_assert_msg(scenario_foreign_holds(s), "not after %" PRIu64 " yields", yields);
    ck_assert_uint_le(yields, YIELDS_MAX);
    scenario_foreign_releases(s, true);
    scenario_end(s);
}
