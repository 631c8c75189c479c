/* ATLEAST: what becomes of a name whose hold ends before its time. */
#include "sim/redis/sim_redisson.h"
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ATLEAST_MS = 60000 };

static struct sim *s;
static size_t a, b;
static uint64_t token;
static uint64_t since;

static void setup(void)
{
    s = scenario_new(2);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
}

static void take(const char *more)
{
    since = s->now;
    answered(s, a, "token", "LOCK job WAIT 0 ATLEAST %d%s", ATLEAST_MS, more);
    token = sim_token(s, a);
}

static void say_token(size_t c, const char *verb, const char *answer)
{
    answered(s, c, answer, "%s job TOKEN %" PRIu64, verb, token);
}

static bool rests(void)
{
    return strncmp(scenario_holder(s), "latchd:rest:", 12) == 0;
}

/* Until ATLEAST is over, less `ms`. */
static void run_until_before(uint64_t ms)
{
    sim_run(s, ATLEAST_MS - ms - (s->now - since));
}

static uint64_t resting(size_t daemon)
{
    struct engine_stats st;

    engine_stats(s->daemons[daemon].engine, &st);
    return st.resting;
}

static uint64_t uncertain(size_t daemon)
{
    struct engine_stats st;

    engine_stats(s->daemons[daemon].engine, &st);
    return st.uncertain;
}

TEST_GROUP(.setup = setup);

START_TEST(the_name_rests_after_an_unlock_until_its_time)
{
    take("");
    say_token(a, "UNLOCK", "0");
    ck_assert(rests());
    ck_assert_uint_eq(resting(0), 1);
    answered(s, a, "nil", "LOCK job WAIT 0");
    answered(s, b, "nil", "LOCK job WAIT 0");
    run_until_before(200);
    answered(s, a, "nil", "LOCK job WAIT 0");
    sim_run(s, 200);
    answered(s, b, "token", "LOCK job WAIT 0");
    ck_assert_uint_eq(resting(0), 0);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(waiters_get_it_when_the_rest_is_over)
{
    size_t here = sim_connect(s, 0);

    take("");
    sim_say(s, here, "LOCK job");
    sim_say(s, b, "LOCK job");
    sim_run(s, 100);
    say_token(a, "UNLOCK", "0");
    run_until_before(100);
    heard(s, here, "...");
    heard(s, b, "...");
    sim_run(s, 100 + 2 * SCENARIO_RTT_MS);
    ck_assert(sim_token(s, here) != 0 || sim_token(s, b) != 0);
    scenario_end(s);
}

START_TEST(an_unlock_through_another_daemon_leaves_the_rest_and_is_no_loss)
{
    take("");
    say_token(b, "UNLOCK", "0");
    ck_assert(rests());
    say_token(b, "UNLOCK", "0");
    say_token(a, "UNLOCK", "0");
    sim_run(s, 30000);
    ck_assert(rests());
    ck_assert_uint_eq(resting(1), 1);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(a_close_with_grace_0_leaves_it)
{
    take(" GRACE 0");
    sim_close(s, a);
    sim_run(s, SCENARIO_RTT_MS);
    ck_assert(rests());
    ck_assert_int_gt(scenario_ttl(s), ATLEAST_MS - 1000);
    scenario_end(s);
}

START_TEST(a_close_without_grace_leaves_it_when_the_lease_is_over)
{
    take("");
    sim_close(s, a);
    sim_run(s, 45000);
    ck_assert(rests());
    ck_assert_uint_eq(resting(0), 1);
    answered(s, b, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_fixed_lease_that_is_over_leaves_it)
{
    take(" LEASE 1000");
    sim_run(s, 2000);
    ck_assert(rests());
    say_token(a, "RENEW", "-NOTHELD");
    answered(s, b, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_short_lease_does_not_cut_it)
{
    take("");
    sim_say(s, a, "RENEW job TOKEN %" PRIu64 " LEASE 1000", token);
    sim_run(s, SCENARIO_RTT_MS);
    ck_assert_int_gt(scenario_ttl(s), ATLEAST_MS - 1000);
    ck_assert_int_le(s->clients.conns[a].answer.value, 1000);
    sim_kill_daemon(s, 0);
    sim_run(s, 2000);
    answered(s, b, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_daemon_that_dies_leaves_the_hold_until_then)
{
    take("");
    sim_kill_daemon(s, 0);
    run_until_before(200);
    answered(s, b, "nil", "LOCK job WAIT 0");
    sim_run(s, 200);
    answered(s, b, "token", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_grant_that_nobody_read_leaves_none)
{
    s->profile.undelivered = 1000;
    sim_say(s, a, "LOCK job WAIT 0 ATLEAST 60000");
    sim_run(s, 2 * SCENARIO_RTT_MS);
    s->profile.undelivered = 0;
    answered(s, b, "token", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_grant_that_was_read_elsewhere_leaves_one)
{
    take(" ID 0123456789abcdef");
    s->profile.undelivered = 1000;
    sim_say(s, b, "LOCK job WAIT 0 ATLEAST 60000 ID 0123456789abcdef KEEP 0");
    sim_run(s, 3 * SCENARIO_RTT_MS);
    ck_assert(rests());
    s->profile.undelivered = 0;
    scenario_end(s);
}

START_TEST(a_kept_grant_that_nobody_came_for_leaves_none)
{
    s->profile.undelivered = 1000;
    sim_say(s, a, "LOCK job WAIT 0 ATLEAST 60000 ID 0123456789abcdef KEEP 1000");
    sim_run(s, 500);
    s->profile.undelivered = 0;
    answered(s, b, "nil", "LOCK job WAIT 0");
    sim_run(s, 1000);
    answered(s, b, "token", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_refused_lock_keeps_no_place)
{
    take("");
    answered(s, b, "nil",
             "LOCK job WAIT 0 ATLEAST 60000 ID 0123456789abcdef KEEP 10000");
    ck_assert_uint_eq(s->daemons[1].engine == NULL, 0);
    say_token(a, "FORCEUNLOCK", "1");
    sim_run(s, 100);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(the_same_id_again_does_not_make_it_longer)
{
    const char *lock = "LOCK job WAIT 0 ATLEAST 60000 ID 0123456789abcdef";

    since = s->now;
    answered(s, a, "token", "%s", lock);
    sim_run(s, 20000);
    answered(s, a, "token", "%s", lock);
    answered(s, b, "token", "%s", lock);
    answered(s, b, "0", "UNLOCK job ID 0123456789abcdef");
    ck_assert(rests());
    ck_assert_int_le(scenario_ttl(s), 40000);
    answered(s, b, "-NOTHELD", "%s", lock);
    run_until_before(0);
    sim_run(s, SCENARIO_RTT_MS);
    answered(s, b, "token", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(force_ends_the_hold_without_a_rest)
{
    take("");
    answered(s, b, "1", "FORCEUNLOCK job ANY");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(force_ends_a_rest_through_any_daemon)
{
    take("");
    say_token(a, "UNLOCK", "0");
    say_token(b, "FORCEUNLOCK", "1");
    ck_assert_str_eq(scenario_holder(s), "");
    answered(s, b, "token", "LOCK job WAIT 0");
    sim_run(s, 30000);
    ck_assert_uint_eq(resting(0), 0);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* The daemon that granted the hold takes it for over by its lease, as it has not heard.
 */
START_TEST(force_ends_a_hold_without_a_rest_also_as_its_lease_ends, 2)
{
    take(" LEASE 1000");
    sim_run(s, 930 - (s->now - since));
    sim_say(s, _i == 0 ? a : b, "FORCEUNLOCK job ANY");
    sim_run(s, 2000);
    heard(s, _i == 0 ? a : b, "1");
    ck_assert(!rests());
    answered(s, b, "token", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(redissons_locks_do_not_get_into_a_rest)
{
    const struct span redisson = SPAN("7d1f6bd4-83a1-4ce0-9b43-0f6a1d7b2a10:42");

    take("");
    say_token(a, "UNLOCK", "0");
    run_until_before(10);
    ck_assert(!redis_foreign_take(&s->redis, scenario_job(s), redisson, 1000));
    ck_assert(rests());
    sim_run(s, 2 * SCENARIO_RTT_MS);
    ck_assert(redis_foreign_take(&s->redis, scenario_job(s), redisson, 1000));
    scenario_end(s);
}

START_TEST(a_rest_is_put_back_where_redis_lost_it)
{
    scenario_mark(s);
    take("");
    say_token(a, "UNLOCK", "0");
    scenario_lose(s);
    sim_run(s, 2000);
    ck_assert(rests());
    answered(s, a, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_rest_is_put_back_in_place_of_its_hold)
{
    take("");
    scenario_mark(s);
    say_token(b, "UNLOCK", "0");
    scenario_lose(s);
    sim_run(s, 20000);
    ck_assert(rests());
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* The daemon that granted it believes in the hold still, and puts it back, too. */
START_TEST(a_rest_is_put_back_in_place_of_an_ids_hold_that_another_daemon_keeps)
{
    take(" ID 0123456789abcdef");
    scenario_mark(s);
    say_token(b, "UNLOCK", "0");
    scenario_lose(s);
    sim_run(s, 20000);
    ck_assert(rests());
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* Redis goes back to before the hold's end, and its client comes back to it through
 * another daemon, before the one that has the rest knows. */
START_TEST(a_rest_is_not_put_back_in_place_of_a_hold_that_has_a_client_again)
{
    take(" LEASE 30000");
    scenario_mark(s);
    sim_say(s, a, "RENEW job LEASE 500 TOKEN %" PRIu64, token);
    sim_run(s, 1000);
    ck_assert(rests());
    ck_assert_uint_eq(s->check.expired, 1);
    scenario_lose(s);
    fault_stall(s, 0, 5000);
    sim_run(s, 4000);
    sim_say(s, b, "RENEW job LEASE 20000 TOKEN %" PRIu64, token);
    sim_run(s, SCENARIO_RTT_MS);
    ck_assert_int_gt(atoi(sim_heard(s, b)), 19000);
    sim_run(s, 5000);
    ck_assert(!rests());
    ck_assert_int_gt(scenario_ttl(s), ATLEAST_MS - 15000);
    say_token(b, "UNLOCK", "0");
    ck_assert(rests());
    scenario_end(s);
}

START_TEST(a_hold_that_is_put_back_has_its_rest)
{
    scenario_mark(s);
    take("");
    scenario_lose(s);
    sim_run(s, 2000);
    say_token(b, "UNLOCK", "0");
    ck_assert(rests());
    ck_assert_int_gt(scenario_ttl(s), ATLEAST_MS - 5000);
    scenario_end(s);
}

/* The hold was uncertain when its UNLOCK was sent, so that its end may have another
 * cause; the name rests all the same. */
START_TEST(an_unlock_of_an_uncertain_hold_that_redis_loses_leaves_the_rest)
{
    scenario_mark(s);
    take("");
    fault_clock(s, 1);
    while (uncertain(0) == 0) {
        sim_run(s, 1);
    }
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64, token);
    scenario_lose(s);
    sim_run(s, 2000);
    ck_assert(rests());
    answered(s, b, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}

START_TEST(a_daemon_without_redis_keeps_the_rest_of_what_it_gives_up)
{
    take("");
    fault_restart(s, 40000);
    redis_flushall(sim_redis_now(s));
    s->check.fences_lost = true;
    check_lost(s, false);
    sim_run(s, 42000);
    ck_assert(rests());
    answered(s, a, "nil", "LOCK job WAIT 0");
    scenario_end(s);
}
