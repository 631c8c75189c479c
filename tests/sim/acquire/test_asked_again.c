/* A client that waits with an ID sends its LOCK again, through another daemon. */
#include "sim/scenario.h"

#include "support/runner.h"

#define R1 "11111111-aaaa-bbbb"
#define R2 "22222222-aaaa-bbbb"

static struct sim *s;
static size_t a, b;

static void setup(void)
{
    struct engine_config config = scenario_config();

    s = scenario_with(2, &config);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
}

TEST_GROUP(.setup = setup);

/* The place that it left is kept for a while, and asks for the lock as well. */
START_TEST(a_retained_place_takes_nothing_from_where_its_client_is)
{
    size_t x = sim_connect(s, 1);

    sim_say(s, x, "LOCK job LEASE 1000");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job WAIT 20000 KEEP 3000 ID " R1);
    sim_run(s, 10);
    sim_close(s, a);
    sim_run(s, 10);
    sim_say(s, b, "LOCK job WAIT 20000 ID " R1);
    sim_run(s, 10);
    fault_stall(s, 0, 1100); /* it asks later */
    sim_run(s, 1100);
    heard(s, b, "token");
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    answered(s, b, "0", "UNLOCK job");
    scenario_end(s);
}

/* A client whose connection is dead, as its daemon does not know yet, goes on through
 * another daemon; that the dead one's wait asks again later does not count. */
START_TEST(a_dead_connection_takes_nothing_from_where_its_client_is_H33)
{
    size_t x = sim_connect(s, 1);

    sim_say(s, x, "LOCK job LEASE 4000");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job WAIT 60000 ID " R1);
    sim_run(s, 2000);
    sim_say(s, b, "LOCK job WAIT 20000 ID " R1);
    sim_run(s, 10);
    fault_stall(s, 0, 3000); /* it asks later */
    sim_run(s, 3000);
    heard(s, b, "token");
    sim_run(s, 10000);
    heard(s, a, "nil");
    sim_close(s, a);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    answered(s, b, "0", "UNLOCK job");
    scenario_end(s);
}

/* The other way round: the daemon that grants has the older connection. */
START_TEST(what_a_dead_connection_is_granted_goes_to_where_its_client_is)
{
    size_t x = sim_connect(s, 1);

    sim_say(s, x, "LOCK job LEASE 4000");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job WAIT 60000 ID " R1);
    sim_run(s, 2000);
    sim_say(s, a, "LOCK job WAIT 20000 ID " R1);
    sim_run(s, 10);
    fault_stall(s, 0, 3000);
    sim_run(s, 3000);
    heard(s, b, "token");
    sim_run(s, 2000);
    heard(s, a, "token");
    sim_close(s, b);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    answered(s, a, "0", "UNLOCK job");
    scenario_end(s);
}

/* The request waits at d1, behind others, and is granted through d0, which d1 does not
 * hear of. Its client comes back to d1. */
static void keep_a_place_of_what_d0_grants(const char *lock, const char *renew)
{
    size_t x = scenario_says(s, 1, "LOCK job ID x");

    (void)scenario_says(s, 1, "LOCK job WAIT 60000");
    answered(s, b, "nil", "%s WAIT 0 KEEP 30000", lock);
    sim_say(s, a, "%s", lock);
    sim_run(s, 10);
    sim_close(s, x);
    x = scenario_says(s, 0, "RENEW job ID x");
    sim_say(s, x, "UNLOCK job ID x");
    sim_run(s, 10);
    heard(s, a, "token");
    if (renew != NULL) {
        sim_say(s, b, "%s", renew);
        sim_run(s, 10);
    }
}

static uint64_t places_kept_at_d1(void)
{
    struct engine_stats st;

    engine_stats(s->daemons[1].engine, &st);
    return st.retained_waiters;
}

/* Only a tombstone would tell Redis that the request is over, and Redis loses that. */
START_TEST(a_kept_place_ends_with_the_unlock_of_its_request, 4)
{
    static const char *const LOCKS[] = { "LOCK job OWNER o ID " R1, "LOCK job ID " R1 };
    static const char *const RENEWS[] = { "RENEW job OWNER o ID " R1,
                                          "RENEW job ID " R1 };
    static const char *const UNLOCKS[] = { "UNLOCK job OWNER o ID " R1,
                                           "UNLOCK job ID " R1 };

    keep_a_place_of_what_d0_grants(LOCKS[_i / 2], _i % 2 == 0 ? NULL : RENEWS[_i / 2]);
    answered(s, b, "0", "%s", UNLOCKS[_i / 2]);
    ck_assert_uint_eq(places_kept_at_d1(), 0);
    fault_flush(s);
    sim_run(s, 15000); /* whoever is granted the name after that loses it */
    ck_assert_str_ne(scenario_holder(s), "o");
    ck_assert_str_ne(scenario_holder(s), "latchd:id:" R1);
    sim_say(s, b, "%s", UNLOCKS[_i / 2]); /* sent again */
    sim_run(s, 10);
    heard(s, b, "0");
    scenario_end(s);
}

/* Of an UNLOCK through d0, d1 knows only what Redis tells. */
START_TEST(a_place_at_another_daemon_may_be_granted_for_keep_once_redis_has_lost_all)
{
    size_t c;

    keep_a_place_of_what_d0_grants("LOCK job OWNER o ID " R1, NULL);
    answered(s, a, "0", "UNLOCK job OWNER o ID " R1);
    ck_assert_uint_eq(places_kept_at_d1(), 1);
    fault_flush(s);
    sim_run(s, 15000);
    ck_assert_str_eq(scenario_holder(s), "o");
    c = scenario_says(s, 0, "LOCK job OWNER o ID " R2);
    heard(s, c, "token");
    answered(s, c, "1", "UNLOCK job OWNER o ID " R2); /* an entry that no client has */
    sim_run(s, 35000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* A client asks through both daemons at once; d1 stands still before it answers. The
 * hold ends with the newer connection, which is gone before it is told. */
START_TEST(a_daemon_that_stood_still_tells_of_a_hold_that_ended_elsewhere)
{
    size_t x = sim_connect(s, 0);

    sim_say(s, b, "LOCK job WAIT 0 KEEP 100 ID " R1);
    sim_run(s, 1);
    fault_stall(s, 1, 1000);
    sim_run(s, 1);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    s->profile.undelivered = 1000;
    sim_say(s, a, "LOCK job WAIT 0 KEEP 100 ID " R1);
    sim_run(s, 10);
    s->profile.undelivered = 0;
    sim_say(s, x, "LOCK job WAIT 20000");
    sim_run(s, 500);
    heard(s, x, "token");
    sim_run(s, 600);
    heard(s, b, "token");
    sim_run(s, 20000); /* d1 renews */
    answered(s, b, "-NOTHELD", "UNLOCK job ID " R1);
    answered(s, x, "0", "UNLOCK job");
    scenario_end(s);
}

/* The request is granted through d1. A RENEW attaches it to d0, whose waiter of that
 * request asks meanwhile, and the connection of the RENEW closes before the answer. */
START_TEST(a_request_that_its_waiter_finds_is_not_ended_for_who_left_H44)
{
    struct engine_config config = scenario_config();
    size_t x, holder, found;

    scenario_end(s);
    config.grace_ms = 0;
    s = scenario_with(2, &config);
    holder = scenario_says(s, 1, "LOCK job");
    found = scenario_says(s, 0, "LOCK job WAIT 60000 ID " R1);
    (void)scenario_says(s, 1, "LOCK job WAIT 60000 ID " R1);
    x = sim_connect(s, 0);
    sim_say(s, holder, "UNLOCK job");
    sim_run(s, 10);
    s->profile.rtt_ms = 20;
    sim_say(s, x, "RENEW job ID " R1);
    redis_publish(&s->redis, scenario_job(s));
    sim_run(s, 45);
    sim_close(s, x);
    sim_run(s, 200);
    heard(s, found, "token");
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    scenario_end(s);
}
