/* LOCK's null: what it may not be answered from. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

/* The daemon stood still meanwhile, and the lease that the answer tells goes on. */
START_TEST(an_answer_from_longer_ago_than_a_recheck_makes_nothing_null)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    size_t head, once;

    config.recheck_ms = 500;
    s = scenario_with(1, &config);
    head = sim_connect(s, 0);
    once = sim_connect(s, 0);
    scenario_foreign_takes(s, 60000);
    sim_say(s, head, "LOCK job");
    fault_stall(s, 0, 2000);
    sim_run(s, 100);
    scenario_foreign_releases(s, false);
    sim_run(s, 1900);
    sim_say(s, once, "LOCK job WAIT 0");
    heard(s, once, "...");
    sim_close(s, head);
    sim_run(s, SCENARIO_RTT_MS);
    heard(s, once, "token");
    scenario_end(s);
}

/* The hold may be over in Redis, which does not say so. */
START_TEST(a_release_that_is_not_answered_in_time_makes_nothing_null)
{
    struct sim *s = scenario_new(1);
    size_t holder = scenario_says(s, 0, "LOCK job");
    size_t first, second;

    link_break(s, &s->daemons[0], 15000, 100, true); /* nothing is answered till then */
    sim_say(s, holder, "UNLOCK job TOKEN %" PRIu64, sim_token(s, holder));
    sim_run(s, 1000);
    first = sim_connect(s, 0);
    second = sim_connect(s, 0);
    sim_say(s, first, "LOCK job WAIT 0");
    /* For all that is known, the name is held. */
    answered(s, second, "nil", "LOCK job WAIT 0");
    sim_run(s, 3000);
    sim_say(s, first, "LOCK job WAIT 0");
    sim_say(s, second, "LOCK job WAIT 0");
    sim_run(s, 3000 + SCENARIO_RTT_MS);
    heard(s, first, "-BACKEND");
    heard(s, second, "-BACKEND");
    scenario_end(s);
}
