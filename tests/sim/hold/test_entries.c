/* Entries of one owner that are given back, or cut, while something fails: what is
 * answered, and what becomes of the others. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

enum { RTT = 10 };

#define R1 "11111111-aaaa-bbbb"
#define R2 "22222222-aaaa-bbbb"

static size_t holds(struct sim *s, size_t daemon, const char *words)
{
    size_t c = sim_connect(s, daemon);

    sim_say(s, c, "%s", words);
    sim_run(s, RTT);
    heard(s, c, "token");
    return c;
}

/* The answers to what is under way get lost. */
static void lose_answers(struct sim *s)
{
    link_break(s, &s->daemons[0], 1, 5, true);
    sim_run(s, 5 * RTT);
}

/* It comes too late by the new clock, and finds nothing when it is sent again. So it
 * has not released anything. */
START_TEST(a_clock_that_jumps_ahead_of_an_unlock_ends_all_entries)
{
    struct sim *s = scenario_new(1);
    size_t c = holds(s, 0, "LOCK job OWNER o LEASE 10000 ID " R1);
    size_t inner = holds(s, 0, "LOCK job OWNER o LEASE 10000 ID " R2);

    ck_assert_uint_eq(sim_token(s, c), sim_token(s, inner));
    sim_say(s, inner, "UNLOCK job OWNER o ID " R2);
    fault_clock(s, 20000);
    sim_run(s, 300);
    heard(s, inner, "-NOTHELD");
    ck_assert_uint_eq(s->check.lost, 1);
    sim_say(s, c, "UNLOCK job OWNER o ID " R1);
    sim_run(s, RTT);
    heard(s, c, "-NOTHELD");
    scenario_end(s);
}

START_TEST(a_clock_that_jumps_ahead_of_an_unlock_ends_the_hold_before_it)
{
    struct sim *s = scenario_new(1);
    size_t c = holds(s, 0, "LOCK job LEASE 10000");

    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
    fault_clock(s, 20000);
    sim_run(s, 300);
    heard(s, c, "-NOTHELD");
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}

START_TEST(an_unlock_whose_answer_is_lost_says_how_many_entries_are_left)
{
    struct sim *s = scenario_new(1);
    size_t c = holds(s, 0, "LOCK job OWNER o");
    size_t inner = holds(s, 0, "LOCK job OWNER o");

    sim_say(s, inner, "UNLOCK job OWNER o");
    sim_run(s, 1); /* it has run */
    lose_answers(s);
    heard(s, inner, "1");
    ck_assert_str_eq(scenario_holder(s), "o");
    ck_assert_uint_eq(s->check.lost, 0);
    sim_say(s, c, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, c, "0");
    scenario_end(s);
}

/* It leaves no mark, as its ID may come again. */
START_TEST(an_entry_that_ends_with_its_connection_takes_no_other_along)
{
    struct sim *s = scenario_new(1);
    size_t c = holds(s, 0, "LOCK job OWNER o");
    size_t inner = holds(s, 0, "LOCK job OWNER o GRACE 0");

    sim_close(s, inner);
    sim_run(s, 1);
    lose_answers(s);
    ck_assert_str_eq(scenario_holder(s), "o");
    ck_assert_uint_eq(s->check.lost, 0);
    sim_say(s, c, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, c, "0");
    scenario_end(s);
}

/* Whether they are there is looked at. */
START_TEST(an_entry_that_ends_with_its_connection_tells_of_the_loss_of_others)
{
    struct sim *s = scenario_new(1);
    size_t c = holds(s, 0, "LOCK job OWNER o");
    size_t inner = holds(s, 0, "LOCK job OWNER o GRACE 0");

    sim_close(s, inner);
    sim_run(s, 1);
    check_external(s, scenario_job(s));
    redis_operator_del(scenario_job(s));
    lose_answers(s);
    ck_assert_uint_eq(s->check.lost, 1);
    sim_say(s, c, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, c, "-NOTHELD");
    scenario_end(s);
}

/* Of a hold that was not known here: what the shorter one left is less. */
START_TEST(a_renewal_before_a_shorter_one_is_not_vouched_for)
{
    struct sim *s = scenario_new(2);
    size_t c = sim_connect(s, 1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);
    uint64_t token;

    sim_say(s, c, "LOCK job");
    sim_run(s, 10);
    token = sim_token(s, c);
    s->profile.rtt_ms = 10;
    sim_say(s, a, "RENEW job TOKEN %" PRIu64, token);
    sim_run(s, 5);
    sim_say(s, b, "RENEW job LEASE 1000 TOKEN %" PRIu64, token);
    sim_run(s, 17);
    link_break(s, &s->daemons[0], 1, 2000, true); /* the second answer is lost */
    sim_run(s, 1000);
    ck_assert_str_ne(sim_heard(s, a), "...");
    heard(s, b, "...");
    ck_assert_uint_eq(s->check.lost, 1);
    sim_run(s, 1100);
    heard(s, b, "-NOTHELD");
    scenario_end(s);
}

/* Redis hangs for longer than the lease that one client wants to leave. It may run that
 * RENEW and the next one far apart, so that the hold is over, for both of them. */
START_TEST(a_renewal_behind_a_shorter_one_ends_with_it)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);
    uint64_t token;

    sim_say(s, c, "LOCK job WAIT 0 ATLEAST 9000");
    sim_run(s, RTT);
    token = sim_token(s, c);
    sim_say(s, b, "RENEW job TOKEN %" PRIu64, token);
    sim_run(s, 1);
    sim_say(s, a, "RENEW job LEASE 400 TOKEN %" PRIu64, token);
    fault_pause(s, 500);
    sim_run(s, 3);
    ck_assert_int_gt(atoi(sim_heard(s, b)), 9000);
    sim_say(s, b, "RENEW job LEASE 3000 TOKEN %" PRIu64, token);
    sim_run(s, 450);
    ck_assert_uint_eq(s->check.lost, 1);
    sim_run(s, 100);
    heard(s, a, "-NOTHELD");
    heard(s, b, "-NOTHELD");
    scenario_end(s);
}
