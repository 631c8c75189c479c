/* One hold through two daemons. Released through one of them, believed in at the other:
 * whatever that one learns first, nobody is told of a loss (H30). */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

#define R1 "11111111-aaaa-bbbb"
#define R2 "22222222-aaaa-bbbb"

static struct sim *s;
static size_t a, b, other;
static uint64_t lease_ms;

static void setup_with(uint64_t watchdog_ms)
{
    struct engine_config config = scenario_config();

    config.watchdog_ms = lease_ms = watchdog_ms;
    s = scenario_with(2, &config);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
    other = sim_connect(s, 0);
}

static void setup(void)
{
    setup_with(30000);
}

static void nobody_lost_it(void)
{
    ck_assert_uint_eq(s->check.lost, 0);
    ck_assert_uint_eq(s->check.uncertain, 0);
    scenario_end(s);
}

static const struct {
    const char *lock, *renew, *unlock;
} UNMARKED[] = {
    { "LOCK job", "RENEW job", "UNLOCK job" },
    { "LOCK job OWNER o", "RENEW job OWNER o", "UNLOCK job OWNER o" },
    { "LOCK job READ", "RENEW job", "UNLOCK job" },
    { "LOCK job WRITE", "RENEW job", "UNLOCK job" },
    { "LOCK job READ OWNER o", "RENEW job OWNER o", "UNLOCK job OWNER o" },
};

/* Each is tried twice: where daemons often ask after what they believe in, and where
 * they ask long after it was released. */
enum { UNMARKED_TRIES = 2 * TEST_ROWS(UNMARKED) };

/* The hold was taken over by RENEW, and is then released by one of its two clients, in
 * words that leave no mark otherwise. */
static void release_unmarked(int i, const size_t *by)
{
    int row = i % TEST_ROWS(UNMARKED);

    setup_with(i < TEST_ROWS(UNMARKED) ? 30000 : 300000);
    sim_say(s, a, "%s", UNMARKED[row].lock);
    sim_run(s, SCENARIO_RTT_MS);
    sim_say(s, b, "%s TOKEN %" PRIu64, UNMARKED[row].renew, sim_token(s, a));
    sim_run(s, SCENARIO_RTT_MS);
    answered(s, *by, "0", "%s", UNMARKED[row].unlock);
    sim_run(s, lease_ms / 3 + 1000); /* till the other one's daemon renews it */
    nobody_lost_it();
}

START_TEST(its_new_keeper_hears_of_a_release_that_leaves_no_mark, UNMARKED_TRIES)
{
    release_unmarked(_i, &a);
}

START_TEST(its_old_keeper_hears_of_a_release_that_leaves_no_mark, UNMARKED_TRIES)
{
    release_unmarked(_i, &b);
}

TEST_GROUP(.setup = setup);

START_TEST(its_daemon_grants_the_name_to_who_waited)
{
    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, other, "LOCK job");
    sim_say(s, b, "RENEW job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job"); /* it needs no name there */
    sim_run(s, 10);
    heard(s, b, "0");
    heard(s, other, "token");
    nobody_lost_it();
}

START_TEST(its_daemon_grants_the_name_to_who_tries_once)
{
    sim_say(s, a, "LOCK job OWNER o");
    sim_run(s, 10);
    sim_say(s, b, "RENEW job OWNER o");
    sim_run(s, 10);
    answered(s, b, "0", "UNLOCK job OWNER o");
    answered(s, other, "token", "LOCK job WAIT 0");
    nobody_lost_it();
}

START_TEST(its_daemon_releases_another_entry_of_the_owner)
{
    sim_say(s, a, "LOCK job OWNER o ID " R1);
    sim_say(s, other, "LOCK job OWNER o ID " R2);
    sim_run(s, 10);
    answered(s, b, "1", "UNLOCK job OWNER o ID " R1);
    answered(s, other, "0", "UNLOCK job OWNER o ID " R2);
    nobody_lost_it();
}

START_TEST(its_daemon_is_asked_to_renew_it)
{
    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    answered(s, a, "-NOTHELD", "RENEW job");
    nobody_lost_it();
}

START_TEST(its_daemon_is_asked_to_free_it_by_force)
{
    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    answered(s, other, "0", "FORCEUNLOCK job ANY");
    nobody_lost_it();
}

START_TEST(its_daemon_had_the_request_from_another_that_released_it)
{
    sim_say(s, b, "LOCK job ID " R1);
    sim_run(s, 10);
    answered(s, a, "token", "LOCK job ID " R1);
    sim_say(s, b, "UNLOCK job"); /* that daemon still takes it for its own */
    sim_run(s, 10);
    heard(s, b, "0");
    answered(s, other, "token", "LOCK job WAIT 0");
    nobody_lost_it();
}

START_TEST(a_request_that_ends_is_not_handed_over_to_itself)
{
    size_t twin = sim_connect(s, 1);
    size_t again = sim_connect(s, 0);

    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job ID " R1);
    sim_say(s, twin, "LOCK job ID " R1);
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job");
    sim_run(s, 10);
    heard(s, twin, "token");
    sim_say(s, again, "RENEW job ID " R1); /* now it is known where `a` waits as well */
    sim_run(s, 10);
    sim_say(s, again, "UNLOCK job TOKEN %" PRIu64, sim_token(s, twin));
    sim_run(s, 20);
    heard(s, again, "0");
    heard(s, a, "-NOTHELD");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_request_that_is_held_elsewhere_is_not_handed_over_to_itself)
{
    size_t twin = sim_connect(s, 1);
    size_t again = sim_connect(s, 0);

    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job ID " R1);
    sim_say(s, twin, "LOCK job ID " R1);
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job");
    sim_run(s, 10);
    heard(s, twin, "token");
    sim_say(s, again, "UNLOCK job TOKEN %" PRIu64, sim_token(s, twin));
    sim_run(s, 20); /* only Redis knows that it is what `a` waits for */
    heard(s, again, "0");
    heard(s, a, "-NOTHELD");
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 11000);
    nobody_lost_it();
}

START_TEST(its_new_keeper_hears_of_a_handover_that_leaves_no_mark)
{
    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, other, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "RENEW job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    sim_say(s, a, "UNLOCK job");
    sim_run(s, 10);
    heard(s, other, "token");
    sim_run(s, 11000);
    nobody_lost_it();
}

START_TEST(its_daemon_lets_a_writer_in_after_readers)
{
    sim_say(s, a, "LOCK job READ");
    sim_say(s, other, "LOCK job READ");
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 10);
    answered(s, b, "0", "UNLOCK job TOKEN %" PRIu64, sim_token(s, other));
    answered(s, other, "token", "LOCK job WRITE WAIT 100");
    nobody_lost_it();
}

/* Its daemon asks after them one by one, and of some when no mark of them is left. */
START_TEST(its_owner_goes_on_although_entries_were_released_long_ago)
{
    static const char *const IDS[] = { "r1", "r2", "r3", "r4", "r5" };

    for (size_t i = 0; i < 5; i++) {
        sim_say(s, a, "LOCK job OWNER o ID %s", IDS[i]);
        sim_run(s, 10);
    }
    for (size_t i = 0; i < 3; i++) {
        sim_say(s, b, "UNLOCK job OWNER o ID %s", IDS[i]);
        sim_run(s, 10);
    }
    sim_run(s, 3 * lease_ms);
    answered(s, a, "1", "UNLOCK job OWNER o ID r5");
    answered(s, a, "0", "UNLOCK job OWNER o ID r4");
    nobody_lost_it();
}

/* The hold is its newest connection's. The other daemon's next renewal finds it gone,
 * or finds first that it is kept elsewhere, and then says nothing any more. */
START_TEST(one_id_through_two_daemons_ends_with_its_newest_connection, 2)
{
    sim_say(s, a, "LOCK job KEEP 0 GRACE 0 ID " R1);
    sim_run(s, 10);
    sim_say(s, b, "LOCK job KEEP 0 GRACE 0 ID " R1);
    sim_run(s, _i == 0 ? 10 : 11000);
    ck_assert_uint_eq(sim_token(s, a), sim_token(s, b));
    sim_close(s, b);
    sim_run(s, 10);
    ck_assert_str_eq(scenario_holder(s), "");
    sim_run(s, 11000);
    ck_assert_uint_eq(s->check.lost, _i == 0 ? 1 : 0);
    answered(s, a, "-NOTHELD", "RENEW job ID " R1);
    scenario_end(s);
}

/* The first answer waits until `a` is asked about, which the daemon believes in; the
 * second one has nobody to go to, and finds no hold that it shortens. */
START_TEST(a_lease_that_was_shortened_for_nobody_is_asked_for_again)
{
    size_t c = sim_connect(s, 1);
    uint64_t token;

    sim_say(s, a, "LOCK job OWNER o");
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job OWNER o");
    sim_run(s, 10);
    sim_say(s, c, "LOCK job LEASE 20000");
    sim_run(s, 10);
    token = sim_token(s, c);
    sim_say(s, a, "RENEW job TOKEN %" PRIu64, token);
    sim_say(s, other, "RENEW job LEASE 3000 TOKEN %" PRIu64, token);
    sim_close(s, other);
    sim_run(s, 20);
    ck_assert_int_gt(scenario_ttl(s), 20000);
    sim_run(s, 60000);
    answered(s, a, "0", "UNLOCK job TOKEN %" PRIu64, token);
    scenario_end(s);
}

/* A daemon that does not know the name takes it for a plain lock's, and asks twice. */
START_TEST(an_unlock_that_may_not_end_the_hold_says_so_each_time, 2)
{
    static const char *const ASKS[] = { "LOCK job WRITE OWNER o",
                                        "LOCK job READ OWNER o" };
    char holder[64];

    answered(s, a, "token", "%s", ASKS[_i]);
    (void)snprintf(holder, sizeof holder, "%s", scenario_holder(s));
    for (int i = 0; i < 3; i++) {
        answered(s, b, "-NOTHELD", "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    }
    ck_assert_str_eq(scenario_holder(s), holder);
    scenario_end(s);
}
