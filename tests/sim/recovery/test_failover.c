/* Failovers that lose the last writes: H17, and the rules of "Failover" in
 * latchd-protocol(7). */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

enum { RTT = SCENARIO_RTT_MS, GONE_MS = SCENARIO_GONE_MS };

START_TEST(a_lost_grant_is_put_back_under_its_token)
{
    struct sim *s = scenario_new(1);
    size_t c;
    uint64_t token;

    scenario_mark(s);
    c = scenario_says(s, 0, "LOCK job");
    token = sim_token(s, c);
    scenario_lose(s);
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_uint_eq(scenario_job(s)->fence_token, token);
    ck_assert_str_ne(scenario_holder(s), "");
    sim_say(s, c, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, c, "0");
    scenario_end(s);
}

/* The daemon that learns first of the failover does not take a hold that the other one
 * has not put back. */
START_TEST(another_daemons_lost_grant_is_not_granted_again)
{
    struct sim *s = scenario_new(2);
    size_t c, w;

    scenario_mark(s);
    c = scenario_says(s, 1, "LOCK job");
    ck_assert_uint_ne(sim_token(s, c), 0);
    scenario_lose(s);
    fault_stall(s, 1, 5000); /* d1 is late */
    sim_run(s, 2 * GONE_MS + 200);
    w = scenario_says(s, 0, "LOCK job");
    heard(s, w, "...");
    sim_run(s, 10000);
    heard(s, w, "..."); /* by now d1 has it again */
    ck_assert_str_ne(scenario_holder(s), "");
    sim_say(s, c, "UNLOCK job");
    sim_run(s, 31000);
    heard(s, w, "token");
    scenario_end(s);
}

/* The links stay open to a master that was demoted, and the daemon of who holds has
 * nothing to ask it: it looks once a second. */
START_TEST(an_idle_daemons_lost_grant_is_not_granted_again)
{
    struct sim *s = scenario_new(2);
    struct engine_stats stats;
    size_t c, w;

    scenario_mark(s);
    c = scenario_says(s, 1, "LOCK job");
    fault_demote(s, 1, 1500);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    w = scenario_says(s, 0, "LOCK job");
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 1500);
    ck_assert_str_ne(scenario_holder(s), ""); /* d1 has put it back */
    sim_run(s, 5000);
    heard(s, w, "...");
    for (size_t d = 0; d < 2; d++) {
        engine_stats(s->daemons[d].engine, &stats);
        ck_assert_uint_eq(stats.failovers, 1);
    }
    answered(s, c, "0", "UNLOCK job");
    sim_run(s, 31000);
    heard(s, w, "token");
    scenario_end(s);
}

START_TEST(a_lost_handover_is_made_again)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job");
    size_t b = scenario_says(s, 0, "LOCK job");
    uint64_t token;

    scenario_mark(s);
    sim_say(s, a, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, a, "0");
    heard(s, b, "token");
    token = sim_token(s, b);
    scenario_lose(s); /* and who held before stands there again */
    ck_assert_uint_lt(scenario_job(s)->fence_token, token);
    sim_run(s, 2 * GONE_MS + 200);
    ck_assert_uint_eq(scenario_job(s)->fence_token, token);
    ck_assert_uint_eq(scenario_job(s)->field_count, 1);
    sim_say(s, b, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, b, "0");
    scenario_end(s);
}

START_TEST(service_goes_on_at_once_on_names_that_were_held)
{
    struct sim *s = scenario_new(1);
    size_t a = scenario_says(s, 0, "LOCK job");
    size_t b = scenario_says(s, 0, "LOCK job");

    scenario_mark(s);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    sim_say(s, a, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, b, "token");
    sim_say(s, b, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, scenario_says(s, 0, "LOCK job"), "token");
    scenario_end(s);
}

START_TEST(other_names_are_granted_when_the_quarantine_is_over)
{
    struct sim *s = scenario_new(1);
    size_t w, once;

    scenario_mark(s);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    w = scenario_says(s, 0, "LOCK job");
    once = scenario_says(s, 0, "LOCK job WAIT 100");
    sim_run(s, 200);
    heard(s, once, "-BACKEND");
    sim_run(s, 28000);
    heard(s, w, "...");
    sim_run(s, 3000);
    heard(s, w, "token");
    scenario_end(s);
}

START_TEST(a_token_goes_on_although_the_new_clock_is_behind_H17)
{
    struct sim *s = scenario_new(1);
    size_t c;
    uint64_t token;

    scenario_mark(s);
    c = scenario_says(s, 0, "LOCK job");
    token = sim_token(s, c);
    fault_clock(s, -3600000);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    sim_say(s, c, "UNLOCK job");
    sim_run(s, 31000);
    c = scenario_says(s, 0, "LOCK job");
    ck_assert_uint_gt(sim_token(s, c), token);
    scenario_end(s);
}

/* A hold that its owner gave back does not return with a master that never heard so. */
/* A daemon that believes in a hold released through another one, and lost, knows no
 * more than others what was granted since. */
START_TEST(a_name_that_was_released_elsewhere_is_withheld_as_well)
{
    struct sim *s = scenario_new(2);
    size_t first, other, second, waits;

    scenario_mark(s);
    first = scenario_says(s, 0, "LOCK job GRACE 0");
    other = scenario_says(s, 1, "LOCK other");
    sim_say(s, other, "UNLOCK job TOKEN %" PRIu64, sim_token(s, first));
    sim_run(s, RTT);
    heard(s, other, "0");
    second = scenario_says(s, 1, "LOCK job");
    waits = scenario_says(s, 0, "LOCK job");
    heard(s, second, "token");
    fault_stall(s, 1, 3000); /* it is late with putting back */
    scenario_lose(s);
    sim_close(s, first);
    sim_run(s, 2000);
    heard(s, waits, "...");
    sim_run(s, 2000);
    ck_assert_uint_eq(s->check.lost, 0);
    sim_say(s, second, "UNLOCK job TOKEN %" PRIu64, sim_token(s, second));
    sim_run(s, 60000);
    heard(s, second, "0");
    heard(s, waits, "token");
    scenario_end(s);
}

/* Data and time are lost, and a daemon that has not seen that token gives it again:
 * what says no more than the token means either hold. */
START_TEST(a_token_that_was_given_twice_ends_the_hold_of_the_daemon_that_is_asked)
{
    struct sim *s = scenario_new(2);
    size_t old = scenario_says(s, 0, "LOCK job");
    uint64_t token = sim_token(s, old);
    size_t new, other;

    fault_flush(s);
    fault_clock(s, -RTT);
    new = scenario_says(s, 1, "LOCK job");
    ck_assert_uint_eq(sim_token(s, new), token);
    other = sim_connect(s, 1);
    sim_say(s, other, "UNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, RTT);
    heard(s, other, "0");
    ck_assert_str_eq(scenario_holder(s), "");
    new = scenario_says(s, 1, "LOCK job");
    ck_assert_uint_gt(sim_token(s, new), token);
    scenario_end(s);
}

/* A release, and another daemon's grant after it, are lost: who held before stands
 * there again, with a lower token. It goes, by whichever daemon hears of it first. */
static void the_later_one_is_put_back(const char *before, const char *after,
                                      size_t late)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, before), b;
    char words[64];
    uint64_t token;

    scenario_mark(s);
    (void)snprintf(words, sizeof words, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    (void)scenario_says(s, 0, words);
    b = scenario_says(s, 1, after);
    token = sim_token(s, b);
    ck_assert_uint_gt(token, sim_token(s, a));
    scenario_lose(s);
    fault_stall(s, late, 3000);
    sim_run(s, 15000);
    ck_assert_uint_eq(scenario_job(s)->fence_token, token);
    ck_assert_uint_eq(s->check.lost, 0);
    (void)snprintf(words, sizeof words, "UNLOCK job TOKEN %" PRIu64, token);
    heard(s, scenario_says(s, 1, words), "0");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(who_was_granted_last_is_put_back_and_who_held_before_goes)
{
    for (size_t late = 0; late < 2; late++) {
        the_later_one_is_put_back("LOCK job", "LOCK job", late);
        the_later_one_is_put_back("LOCK job ID r1", "LOCK job ID r2", late);
        the_later_one_is_put_back("LOCK job READ", "LOCK job WRITE", late);
        the_later_one_is_put_back("LOCK job WRITE", "LOCK job READ", late);
        the_later_one_is_put_back("LOCK job WRITE ID r1", "LOCK job WRITE", late);
    }
}
