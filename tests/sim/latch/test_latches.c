/* Latches, and what may be lost, come late or be sent again around them. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <stdio.h>

enum { RTT = SCENARIO_RTT_MS, GONE_MS = SCENARIO_GONE_MS, RECHECK_MS = 5000 };

static struct sim *begin(size_t daemons)
{
    struct sim *s = scenario_new(daemons);

    latches_begin(s);
    return s;
}

/* The answer to those words, said through the daemon. */
static void says(struct sim *s, size_t daemon, const char *words, const char *answer)
{
    heard(s, scenario_says(s, daemon, words), answer);
}

START_TEST(who_awaits_through_another_daemon_goes_on_at_once)
{
    struct sim *s = begin(2);
    size_t a, b;

    says(s, 0, "LATCH-SET gate OF 2", "1");
    a = scenario_says(s, 0, "LATCH-AWAIT gate");
    b = scenario_says(s, 1, "LATCH-AWAIT gate");
    says(s, 0, "LATCH-COUNT gate ID r1", "1");
    says(s, 1, "LATCH-COUNT gate ID r1", "1");
    heard(s, a, "...");
    says(s, 1, "LATCH-COUNT gate ID r2", "0");
    heard(s, a, "1");
    heard(s, b, "1");
    scenario_end(s);
}

/* The script has run, and nobody heard its answer. */
START_TEST(a_count_whose_answer_was_lost_counts_once)
{
    struct sim *s = begin(1);
    size_t a, b;

    says(s, 0, "LATCH-SET gate OF 2", "1");
    a = sim_connect(s, 0);
    sim_say(s, a, "LATCH-COUNT gate");
    sim_run(s, 1);
    link_break(s, &s->daemons[0], 5, 50, true);
    sim_run(s, 200);
    heard(s, a, "1");
    b = scenario_says(s, 0, "LATCH-COUNT gate");
    heard(s, b, "0");
    scenario_end(s);
}

START_TEST(who_missed_the_message_looks_within_recheck)
{
    struct sim *s = begin(2);
    size_t a;

    says(s, 0, "LATCH-SET gate OF 1", "1");
    a = scenario_says(s, 0, "LATCH-AWAIT gate");
    sub_break(s, &s->daemons[0], 10 * RECHECK_MS, 10);
    says(s, 1, "LATCH-COUNT gate", "0");
    says(s, 1, "LATCH-SET gate OF 1", "1");
    heard(s, a, "...");
    sim_run(s, RECHECK_MS);
    heard(s, a, "1");
    says(s, 1, "LATCH-COUNT gate", "0");
    scenario_end(s);
}

START_TEST(counts_that_a_failover_lost_are_made_again)
{
    struct sim *s = begin(2);
    size_t a;

    says(s, 0, "LATCH-SET gate OF 2", "1");
    a = scenario_says(s, 1, "LATCH-AWAIT gate");
    scenario_mark(s);
    says(s, 0, "LATCH-COUNT gate ID r1", "1");
    says(s, 0, "LATCH-COUNT gate ID r2", "0");
    heard(s, a, "1");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    says(s, 0, "LATCH-AWAIT gate", "1");
    says(s, 1, "LATCH-COUNT gate ID r1", "0");
    scenario_end(s);
}

/* Its latch is lost as well, and another one of that name is there. */
START_TEST(a_count_that_was_lost_with_its_latch_counts_in_no_other)
{
    struct sim *s = begin(1);

    says(s, 0, "LATCH-SET gate OF 1", "1");
    scenario_mark(s);
    says(s, 0, "LATCH-COUNT gate ID r1", "0");
    says(s, 0, "LATCH-SET gate OF 2", "1");
    says(s, 0, "LATCH-COUNT gate ID r2", "1");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    says(s, 0, "LATCH-AWAIT gate", "1"); /* by r1, made again; r2 was of the other */
    says(s, 0, "LATCH-SET gate OF 2", "1");
    says(s, 0, "LATCH-COUNT gate ID r2", "1");
    says(s, 0, "LATCH-COUNT gate ID r1", "0");
    says(s, 0, "LATCH-COUNT gate ID r3", "0");
    scenario_end(s);
}

START_TEST(who_awaits_a_latch_that_was_lost_is_told)
{
    struct sim *s = begin(1);
    size_t a, b;

    scenario_mark(s);
    says(s, 0, "LATCH-SET gate OF 1", "1");
    a = scenario_says(s, 0, "LATCH-AWAIT gate");
    b = scenario_says(s, 0, "LATCH-AWAIT gate WAIT 60000");
    heard(s, a, "...");
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    heard(s, a, "-ERR");
    heard(s, b, "-ERR");
    scenario_end(s);
}

/* After the failover, through another daemon, the latch before is opened and a new one
 * set: the marks of that past tell nothing of the latch that was lost. */
START_TEST(what_became_of_a_lost_latch_is_not_read_from_another_past)
{
    struct sim *s = begin(2);
    size_t a;

    says(s, 1, "LATCH-SET gate OF 1", "1");
    scenario_mark(s);
    says(s, 1, "LATCH-COUNT gate ID r1", "0");
    says(s, 1, "LATCH-SET gate OF 1", "1");
    a = scenario_says(s, 0, "LATCH-AWAIT gate");
    heard(s, a, "...");
    link_break(s, &s->daemons[0], 1, 10 * GONE_MS, false);
    scenario_lose(s);
    sim_run(s, 2 * GONE_MS + 200);
    says(s, 1, "LATCH-COUNT gate ID r1", "0");
    says(s, 1, "LATCH-SET gate OF 1", "1");
    sim_run(s, 10 * GONE_MS + 200);
    heard(s, a, "-ERR");
    scenario_end(s);
}

/* Sentinels may take longer than a lease to replace a master. */
START_TEST(counts_are_made_again_after_an_outage_that_is_longer_than_a_lease)
{
    struct sim *s = begin(1);

    says(s, 0, "LATCH-SET gate OF 2", "1");
    scenario_mark(s);
    says(s, 0, "LATCH-COUNT gate ID r1", "1");
    link_break(s, &s->daemons[0], 1, 40000, false);
    scenario_lose(s);
    sim_run(s, 40000 + 200);
    says(s, 0, "LATCH-COUNT gate ID r2", "0");
    scenario_end(s);
}

START_TEST(an_outage_costs_no_wait_but_its_time)
{
    struct sim *s = begin(1);
    size_t a, b;

    says(s, 0, "LATCH-SET gate OF 1", "1");
    a = scenario_says(s, 0, "LATCH-AWAIT gate");
    b = scenario_says(s, 0, "LATCH-AWAIT gate WAIT 5000");
    link_break(s, &s->daemons[0], 5, 20000, true);
    sim_run(s, 6000);
    heard(s, a, "...");
    heard(s, b, "-BACKEND");
    sim_run(s, 15000);
    says(s, 0, "LATCH-COUNT gate", "0");
    heard(s, a, "1");
    scenario_end(s);
}

START_TEST(a_daemon_that_stood_still_misses_no_opening)
{
    struct sim *s = begin(2);
    size_t a;

    says(s, 0, "LATCH-SET gate OF 1", "1");
    a = scenario_says(s, 1, "LATCH-AWAIT gate");
    fault_stall(s, 1, 3000);
    says(s, 0, "LATCH-COUNT gate", "0");
    says(s, 0, "LATCH-SET gate OF 1", "1");
    says(s, 0, "LATCH-DELETE gate", "1");
    says(s, 0, "LATCH-SET gate OF 1", "1");
    sim_run(s, 3000 + RTT);
    heard(s, a, "-ERR"); /* two have ended meanwhile, and one of them was deleted */
    a = scenario_says(s, 1, "LATCH-AWAIT gate");
    fault_stall(s, 1, 3000);
    says(s, 0, "LATCH-COUNT gate", "0");
    says(s, 0, "LATCH-SET gate OF 1", "1");
    says(s, 0, "LATCH-COUNT gate", "0");
    sim_run(s, 3000 + RTT);
    heard(s, a, "1");
    scenario_end(s);
}
