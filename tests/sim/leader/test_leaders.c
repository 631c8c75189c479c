/* What followers are told of leaders, whatever happens to daemons and to Redis. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

#define HEIR "1111111111111111"

enum { RTT = SCENARIO_RTT_MS, FEW_RTT = 3 * SCENARIO_RTT_MS, LOOK_MS = 1000 };

/* A client of that daemon waits for another leader than that. */
static size_t follows(struct sim *s, size_t daemon, uint64_t after)
{
    size_t c = sim_connect(s, daemon);

    sim_say(s, c, "LEADER job AFTER %" PRIu64, after);
    sim_run(s, FEW_RTT);
    heard(s, c, "...");
    return c;
}

static void is_told(struct sim *s, size_t c, uint64_t token)
{
    heard(s, c, token == 0 ? "nobody" : "leader");
    ck_assert_uint_eq((uint64_t)s->clients.conns[c].answer.value, token);
}

START_TEST(followers_everywhere_are_told_within_some_round_trips)
{
    struct sim *s = scenario_new(2);
    size_t near = follows(s, 0, 0), far = follows(s, 1, 0);
    size_t c = scenario_says(s, 0, "LOCK job DATA here");

    sim_run(s, FEW_RTT);
    is_told(s, near, sim_token(s, c));
    is_told(s, far, sim_token(s, c));
    ck_assert_str_eq(s->clients.conns[far].answer.text.s, "here");
    far = follows(s, 1, sim_token(s, c));
    sim_say(s, c, "UNLOCK job");
    sim_run(s, FEW_RTT);
    is_told(s, far, 0);
    scenario_end(s);
}

START_TEST(a_hand_over_to_the_named_waiter_is_told_elsewhere)
{
    struct sim *s = scenario_new(2);
    size_t c = scenario_says(s, 0, "LOCK job DATA first");
    size_t other = scenario_says(s, 0, "LOCK job DATA second");
    size_t heir = scenario_says(s, 0, "LOCK job DATA third ID " HEIR);
    size_t far = follows(s, 1, sim_token(s, c));

    sim_say(s, c, "UNLOCK job TO " HEIR);
    sim_run(s, FEW_RTT);
    heard(s, c, "0");
    heard(s, other, "...");
    is_told(s, far, sim_token(s, heir));
    ck_assert_str_eq(s->clients.conns[far].answer.text.s, "third");
    scenario_end(s);
}

/* Nobody tells of a lease that ends. */
START_TEST(the_end_of_a_dead_daemons_hold_is_seen)
{
    struct sim *s = scenario_new(2);
    size_t c = scenario_says(s, 0, "LOCK job");
    size_t far = follows(s, 1, sim_token(s, c));
    int64_t left = scenario_ttl(s);

    sim_kill_daemon(s, 0);
    sim_run(s, (uint64_t)left - FEW_RTT);
    heard(s, far, "...");
    sim_run(s, 2 * FEW_RTT);
    is_told(s, far, 0);
    scenario_end(s);
}

/* The grant of the next leader is lost, and nobody is there to put it back. */
START_TEST(who_was_followed_by_another_one_does_not_lead_again)
{
    struct sim *s = scenario_new(2);
    size_t first = scenario_says(s, 0, "LOCK job LEASE 60000 DATA first");
    size_t second, far;

    sim_run(s, LOOK_MS); /* for longer than a name can be lent */
    scenario_mark(s);
    sim_say(s, first, "UNLOCK job");
    sim_run(s, RTT);
    second = scenario_says(s, 1, "LOCK job DATA second");
    far = follows(s, 0, sim_token(s, second));
    sim_kill_daemon(s, 1);
    scenario_lose(s);
    ck_assert_str_ne(scenario_holder(s), ""); /* the first one */
    sim_run(s, scenario_config().quarantine_ms + 2 * SCENARIO_GONE_MS);
    heard(s, far, "...");
    ck_assert_str_ne(scenario_holder(s), ""); /* until its lease is over */
    sim_run(s, (uint64_t)scenario_ttl(s) + 2 * LOOK_MS);
    is_told(s, far, 0);
    scenario_end(s);
}

/* Its holder has it still: an outage is no vacancy, nor is a Redis that is empty. */
START_TEST(a_leader_that_redis_has_lost_leads_on)
{
    struct sim *s = scenario_new(2);
    size_t c, far;

    scenario_mark(s);
    c = scenario_says(s, 0, "LOCK job DATA here");
    far = follows(s, 1, sim_token(s, c));
    scenario_lose(s);
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 60000);
    heard(s, far, "...");
    sim_say(s, c, "UNLOCK job");
    sim_run(s, FEW_RTT);
    is_told(s, far, 0);
    scenario_end(s);
}

/* Redis's clock was ahead for a moment, which nobody has noticed, and its fence key is
 * lost: a daemon that does not know the newest token gives it once more. */
START_TEST(an_answer_tells_of_the_leader_before_where_a_token_is_given_twice)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0), b = sim_connect(s, 1), follower = sim_connect(s, 0);

    s->redis_ahead_ms += 60000;
    answered(s, b, "token", "LOCK job");
    answered(s, b, "0", "UNLOCK job");
    s->redis_ahead_ms -= 60000;
    s->set_back_ms += 60000;
    s->check.clock_set_back = true;
    sim_run(s, LOOK_MS);
    answered(s, a, "token", "LOCK job DATA first");
    sim_say(s, follower, "LEADER job");
    sim_run(s, 1); /* Redis is asked */
    fault_stall(s, 0, LOOK_MS);
    sim_run(s, 1);
    fault_flush(s);
    answered(s, b, "token", "LOCK job DATA second");
    ck_assert_uint_eq(sim_token(s, a), sim_token(s, b));
    heard(s, follower, "...");
    sim_run(s, LOOK_MS);
    is_told(s, follower, sim_token(s, a));
    ck_assert_str_eq(s->clients.conns[follower].answer.text.s, "first");
    scenario_end(s);
}

/* The other daemon has the name on loan: what Redis shows is nobody's token. */
START_TEST(a_loan_elsewhere_is_no_leader)
{
    struct sim *s = scenario_new(2);
    size_t c = sim_connect(s, 0), far = sim_connect(s, 1);

    sim_run(s, LOCAL_WINDOW_MAX_MS);
    for (int i = 0; i < 2; i++) {
        sim_say(s, c, "LOCK job LOCAL");
        sim_run(s, 3);
        heard(s, c, "token");
        if (i == 0) {
            sim_say(s, c, "UNLOCK job");
            sim_run(s, 3);
        }
    }
    ck_assert_uint_ne(s->check.loan_count, 0);
    sim_say(s, far, "LEADER job");
    sim_run(s, RTT);
    heard(s, far, "...");
    sim_run(s, LOCAL_WINDOW_MAX_MS);
    is_told(s, far, sim_token(s, c));
    scenario_end(s);
}
