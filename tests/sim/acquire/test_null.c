/* LOCK's null: what it may not be answered from. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdlib.h>

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

/* Redis's timeout is over once for all: what comes later is not kept waiting for it. */
START_TEST(in_an_outage_that_lasts_everything_is_answered_at_once)
{
    static const char *const WORDS[] = {
        "LOCK job WAIT 0",    "LOCK job QUEUE 0",  "MLOCK 2 job other WAIT 0",
        "LOCKINFO job",       "LEADER job",        "RENEW job TOKEN 7",
        "UNLOCK job TOKEN 7", "FORCEUNLOCK other",
    };
    struct sim *s = scenario_new(1);
    size_t holder = scenario_says(s, 0, "LOCK held"), once, again;
    size_t gone = scenario_says(s, 0, "LOCK left GRACE 0");
    uint64_t left = sim_token(s, gone);

    link_break(s, &s->daemons[0], 10, 8000, true);
    sim_run(s, 1000);
    once = sim_connect(s, 0);
    answered(s, once, "...",
             "LOCK job WAIT 0"); /* the outage of a moment is ridden out */
    sim_run(s, 1000);
    heard(s, once, "...");
    sim_run(s, 1500);
    heard(s, once, "-BACKEND"); /* redis-timeout after it began */
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        heard(s, scenario_says(s, 0, WORDS[i]), "-BACKEND");
    }
    again = scenario_says(s, 0, "LOCK job WAIT 3000");
    heard(s, again, "...");
    answered(s, holder, "-BACKEND", "UNLOCK held");
    sim_close(s, gone);
    sim_run(s, 2900);
    heard(s, again, "...");
    /* But who comes back keeps a hold that is freed otherwise, when Redis is back. */
    gone = sim_connect(s, 0);
    answered(s, gone, "...", "RENEW left TOKEN %" PRIu64, left);
    sim_run(s, 3000);
    heard(s, again, "-BACKEND");
    ck_assert_uint_eq(sim_redis_name(sim_redis_now(s), SPAN("held"))->field_count, 0);
    heard(s, scenario_says(s, 0, "LOCK held WAIT 0"), "token"); /* it was released */
    ck_assert_uint_gt(strtoull(sim_heard(s, gone), NULL, 10), 20000);
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
