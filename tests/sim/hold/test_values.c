/* Value holds: taken, found and ended by a value that may be used again and again. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

static struct sim *s;
static size_t a, b, other;

static void setup(void)
{
    s = scenario_new(2);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
    other = sim_connect(s, 0);
}

static void take(size_t c, const char *value)
{
    sim_say(s, c, "LOCK job WAIT 0 LEASE 10000 VALUE %s", value);
    sim_run(s, 10);
}

TEST_GROUP(.setup = setup);

START_TEST(the_same_value_again_is_null)
{
    take(a, "v");
    heard(s, a, "token");
    take(a, "v");
    heard(s, a, "nil");
    take(b, "v");
    heard(s, b, "nil");
    scenario_end(s);
}

START_TEST(only_its_value_ends_it)
{
    take(a, "v");
    answered(s, a, "-NOTHELD", "UNLOCK job VALUE w");
    answered(s, a, "0", "UNLOCK job VALUE v");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(it_excludes_lock_and_lock_excludes_it)
{
    take(a, "v");
    answered(s, b, "nil", "LOCK job WAIT 0");
    sim_say(s, a, "UNLOCK job VALUE v");
    sim_say(s, b, "LOCK job WAIT 5000");
    sim_run(s, 20);
    heard(s, b, "token");
    take(a, "v");
    heard(s, a, "nil");
    scenario_end(s);
}

START_TEST(another_daemon_ends_it_by_its_value)
{
    take(a, "v");
    answered(s, b, "0", "UNLOCK job VALUE v");
    take(other, "v");
    heard(s, other, "token");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(another_daemon_sets_its_lease_and_keeps_it)
{
    take(a, "v");
    sim_say(s, b, "RENEW job VALUE v LEASE 4000");
    sim_run(s, 10);
    ck_assert_int_le(scenario_ttl(s), 4000);
    sim_run(s, 8000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* A token is no secret of one user to all daemons. */
START_TEST(its_token_is_of_no_use_at_another_daemon_that_was_not_told_its_value)
{
    uint64_t token;

    take(a, "v");
    token = sim_token(s, a);
    answered(s, b, "-NOTHELD", "UNLOCK job TOKEN %" PRIu64, token);
    answered(s, b, "-NOTHELD", "RENEW job TOKEN %" PRIu64 " LEASE 9000", token);
    sim_say(s, b, "RENEW job VALUE v LEASE 9000");
    sim_run(s, 10);
    answered(s, b, "0", "UNLOCK job TOKEN %" PRIu64, token);
    take(a, "v");
    sim_say(s, b, "FORCEUNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* The value is the same: only the release's own mark tells that it ran. */
START_TEST(a_release_that_is_sent_again_does_not_end_the_next_hold_of_that_value)
{
    take(a, "v");
    sim_say(s, b, "UNLOCK job VALUE v");
    sim_run(s, 1); /* it has run */
    ck_assert_str_eq(scenario_holder(s), "");
    link_break(s, &s->daemons[1], 1, 500, true);
    take(other, "v");
    heard(s, other, "token");
    sim_run(s, 1000);
    heard(s, b, "0");
    sim_say(s, other, "RENEW job VALUE v LEASE 9000");
    sim_run(s, 10);
    ck_assert_str_ne(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(who_waits_gets_it_from_a_release_by_value)
{
    take(a, "v");
    sim_say(s, other, "LOCK job WAIT 60000 LEASE 10000 VALUE v");
    sim_run(s, 10);
    sim_say(s, a, "UNLOCK job VALUE v");
    sim_run(s, 10);
    heard(s, other, "token");
    scenario_end(s);
}

START_TEST(who_polls_stands_before_who_came_after_it_had_asked_first)
{
    size_t poller = sim_connect(s, 0);

    take(a, "v");
    sim_run(s, 1000);
    sim_say(s, other, "LOCK job WAIT 60000");
    sim_run(s, 10);
    sim_say(s, poller, "LOCK job WAIT 80 LEASE 10000 VALUE w POLLS 900");
    sim_run(s, 10);
    sim_say(s, a, "UNLOCK job VALUE v");
    sim_run(s, 10);
    heard(s, poller, "token");
    sim_say(s, poller, "UNLOCK job VALUE w");
    sim_run(s, 10);
    heard(s, other, "token");
    scenario_end(s);
}

/* Nothing is kept for a poller while it is away, and its client may leave at any time.
 */
START_TEST(a_poller_that_is_gone_holds_nobody_up)
{
    size_t poller = sim_connect(s, 0);

    take(a, "v");
    sim_say(s, other, "LOCK job WAIT 60000");
    sim_say(s, poller, "LOCK job WAIT 80 LEASE 10000 VALUE w POLLS 900");
    sim_run(s, 200);
    heard(s, poller, "nil");
    sim_say(s, poller, "LOCK job WAIT 80 LEASE 10000 VALUE w POLLS 1100");
    sim_run(s, 10);
    sim_say(s, a, "UNLOCK job VALUE v");
    sim_close(s, poller); /* the lock is on its way */
    sim_run(s, 30);
    heard(s, other, "token");
    scenario_end(s);
}

START_TEST(its_end_comes_by_itself_although_its_client_has_gone)
{
    take(a, "v");
    sim_close(s, a);
    sim_run(s, 5000);
    ck_assert_str_ne(scenario_holder(s), "");
    sim_run(s, 6000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

static void take_endless(size_t c)
{
    answered(s, c, "token", "LOCK job WAIT 0 ENDLESS VALUE v");
}

START_TEST(without_an_end_it_outlives_its_client_until_it_is_released)
{
    take_endless(a);
    ck_assert_int_gt(scenario_ttl(s), 99000);
    sim_close(s, a);
    sim_run(s, 500000);
    ck_assert_int_gt(scenario_ttl(s), 80000);
    answered(s, b, "0", "UNLOCK job VALUE v");
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 50000);
    ck_assert_str_eq(scenario_holder(s), "");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(without_an_end_it_is_put_back_when_redis_lost_it)
{
    scenario_mark(s);
    take_endless(a);
    sim_close(s, a);
    sim_run(s, 20000);
    scenario_lose(s);
    sim_run(s, 5000);
    ck_assert_str_ne(scenario_holder(s), "");
    ck_assert_int_gt(scenario_ttl(s), 80000);
    sim_say(s, b, "UNLOCK job VALUE v");
    sim_run(s, 60000);
    scenario_end(s);
}

START_TEST(without_an_end_it_gets_one_when_its_daemon_has_died)
{
    take_endless(a);
    sim_run(s, 50000);
    sim_kill_daemon(s, 0);
    sim_run(s, 80000);
    ck_assert_str_ne(scenario_holder(s), "");
    sim_run(s, 30000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* From then on the other daemon keeps it, and the first one forgets it. */
START_TEST(without_an_end_it_gets_one_through_another_daemon)
{
    take_endless(a);
    sim_close(s, a);
    sim_run(s, 20000);
    sim_say(s, b, "RENEW job VALUE v LEASE 4000");
    sim_run(s, 10);
    ck_assert_int_le(scenario_ttl(s), 4000);
    sim_run(s, 8000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* A third of the watchdog's lease is longer than all of this one. */
START_TEST(a_lease_that_is_shorter_than_the_watchdogs_is_renewed_in_its_middle)
{
    struct engine_config config = scenario_config();
    struct engine_stats before, after;

    scenario_end(s);
    config.watchdog_ms = 600000;
    config.endless_lease_ms = 60000;
    s = scenario_with(1, &config);
    a = sim_connect(s, 0);
    take_endless(a);
    engine_stats(s->daemons[0].engine, &before);
    sim_run(s, 300000);
    engine_stats(s->daemons[0].engine, &after);
    ck_assert_uint_ge(after.renewals - before.renewals, 9);
    ck_assert_uint_le(after.renewals - before.renewals, 14);
    sim_say(s, a, "UNLOCK job VALUE v");
    sim_run(s, 10);
    scenario_end(s);
}
