/* A hold that somebody else ends, by force or in Redis: who is told of the loss, and
 * what becomes of its request when that began anew through another daemon. */
#include "sim/scenario.h"

#include "support/runner.h"

#define R1 "11111111-aaaa-bbbb"

static struct sim *s;
static size_t a, b, other;

static void setup(void)
{
    s = scenario_new(2);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
    other = sim_connect(s, 0);
}

TEST_GROUP(.setup = setup);

static void delete_as_operator(void)
{
    check_external(s, scenario_job(s));
    redis_operator_del(scenario_job(s));
}

START_TEST(its_owner_is_told_of_the_loss_of_all_entries)
{
    static const char *const IDS[] = { "r1", "r2", "r3" };

    for (size_t i = 0; i < 3; i++) {
        sim_say(s, a, "LOCK job OWNER o ID %s", IDS[i]);
        sim_run(s, 10);
    }
    delete_as_operator();
    sim_run(s, scenario_config().watchdog_ms / 3 + 50);
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}

START_TEST(what_was_freed_by_force_is_lost_though_its_request_began_anew)
{
    s->orderly = true;
    sim_say(s, b, "LOCK job ID " R1);
    sim_run(s, 10);
    answered(s, other, "1", "FORCEUNLOCK job ANY");
    answered(s, a, "token", "LOCK job ID " R1);
    sim_say(s, a, "UNLOCK job ID " R1);
    sim_run(s, 1000);
    heard(s, a, "0");
    answered(s, b, "-NOTHELD", "RENEW job ID " R1);
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}

/* Deleted by an operator, and its request granted anew elsewhere: what the daemon of
 * the first grant sends for a bare UNLOCK names the ID and no token. */
START_TEST(a_bare_unlock_ends_what_its_request_was_granted_anew)
{
    sim_say(s, a, "LOCK job READ ID " R1);
    sim_run(s, 10);
    delete_as_operator();
    answered(s, b, "token", "LOCK job READ ID " R1);
    ck_assert_uint_gt(sim_token(s, b), sim_token(s, a));
    answered(s, a, "0", "UNLOCK job");
    ck_assert_str_eq(scenario_holder(s), "");
    /* Its second daemon learns of it. */
    sim_run(s, scenario_config().watchdog_ms / 3 + 1000);
    scenario_end(s);
}

START_TEST(what_an_operator_deleted_is_lost_before_anybody_else_has_it)
{
    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    delete_as_operator();
    sim_say(s, other, "LOCK job WAIT 0");
    sim_run(s, 3);
    ck_assert_uint_eq(s->check.lost, 0);
    heard(s, other, "...");
    sim_run(s, 1); /* the second way to Redis and back */
    ck_assert_uint_eq(s->check.lost, 1);
    heard(s, other, "token");
    scenario_end(s);
}
