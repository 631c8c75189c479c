/* A Redis that keeps nothing is restarted while several daemons live: what the clients
 * of one of them hold is granted to nobody else. */
#include "engine/peers.h"
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

enum { RTT = 10, GONE_MS = 200, BACK_MS = 2 * GONE_MS + 200 };

static void restart_empty(struct sim *s)
{
    bool known = peers_know_each_other(s);

    fault_restart(s, GONE_MS);
    check_lost(s, known);
    redis_flushall(sim_redis_now(s));
}

static struct engine_stats stats_of(const struct sim *s, size_t daemon)
{
    struct engine_stats stats;

    engine_stats(s->daemons[daemon].engine, &stats);
    return stats;
}

/* However late its daemon comes back. */
START_TEST(what_another_daemons_client_holds_is_put_back)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job");
    size_t w = scenario_says(s, 1, "LOCK job");
    size_t z;

    heard(s, a, "token");
    restart_empty(s);
    fault_stall(s, 0, 2500);
    sim_run(s, BACK_MS);
    ck_assert_str_eq(scenario_holder(s), "");
    z = scenario_says(s, 1, "LOCK job WAIT 0");
    heard(s, w, "...");
    sim_run(s, 5000);
    heard(s, w, "...");
    heard(s, z, "-BACKEND");
    ck_assert_str_ne(scenario_holder(s), "");
    sim_say(s, a, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, a, "0");
    heard(s, w, "token");
    scenario_end(s);
}

/* Nobody holds it, as far as anybody knows, so it is not null. */
START_TEST(a_wait_that_ends_meanwhile_hears_of_the_backend)
{
    struct sim *s = scenario_new(2);
    size_t a, b;

    restart_empty(s);
    sim_run(s, BACK_MS);
    ck_assert_uint_ne(stats_of(s, 0).quarantine_left_ms, 0);
    a = scenario_says(s, 0, "LOCK job WAIT 0");
    heard(s, a, "-BACKEND");
    a = scenario_says(s, 0, "LOCK job WAIT 100");
    b = scenario_says(s, 1, "LOCK job");
    sim_run(s, 200);
    heard(s, a, "-BACKEND");
    heard(s, b, "...");
    sim_run(s, PEER_RETURN_MS);
    heard(s, b, "token");
    ck_assert_uint_eq(stats_of(s, 0).quarantine_left_ms, 0);
    scenario_end(s);
}

START_TEST(what_is_held_here_goes_on_at_once)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job");
    size_t b = scenario_says(s, 0, "LOCK job");

    restart_empty(s);
    sim_run(s, BACK_MS);
    sim_say(s, a, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, b, "token");
    sim_say(s, b, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, scenario_says(s, 0, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

/* The other daemon has an entry of the same owner, and comes back later. */
START_TEST(an_owners_last_entry_here_may_not_be_its_last_one)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job OWNER o");
    size_t b = scenario_says(s, 1, "LOCK job OWNER o");
    size_t w = scenario_says(s, 1, "LOCK job");

    heard(s, b, "token");
    restart_empty(s);
    fault_stall(s, 0, 2000);
    sim_run(s, BACK_MS);
    sim_say(s, b, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, b, "0");
    heard(s, w, "...");
    sim_run(s, 5000);
    ck_assert_str_eq(scenario_holder(s), "o");
    sim_say(s, a, "UNLOCK job OWNER o");
    sim_run(s, RTT);
    heard(s, a, "0");
    heard(s, w, "token");
    scenario_end(s);
}

START_TEST(a_daemon_alone_waits_for_nobody)
{
    struct sim *s = scenario_new(1);

    restart_empty(s);
    sim_run(s, BACK_MS);
    ck_assert_uint_eq(stats_of(s, 0).quarantine_left_ms, 0);
    heard(s, scenario_says(s, 0, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

START_TEST(who_comes_to_a_redis_that_runs_waits_for_nobody)
{
    struct sim *s = scenario_new(2);

    ck_assert_uint_eq(stats_of(s, 0).other_daemons, 1);
    ck_assert_uint_eq(stats_of(s, 1).other_daemons, 1);
    sim_kill_daemon(s, 1);
    sim_start_daemon(s, 1, &s->daemons[1].config);
    ck_assert(stats_of(s, 1).store_up);
    heard(s, scenario_says(s, 1, "LOCK job WAIT 0"), "token");
    ck_assert_uint_eq(stats_of(s, 1).quarantine_left_ms, 0);
    scenario_end(s);
}

/* The others reconnect a moment after it came: it has to have asked. */
START_TEST(who_comes_right_after_the_restart_asks_first)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK job");
    size_t w;

    sim_kill_daemon(s, 1);
    restart_empty(s);
    fault_stall(s, 0, GONE_MS + 250);
    sim_run(s, GONE_MS + 5);
    sim_start_daemon(s, 1, &s->daemons[1].config);
    w = scenario_says(s, 1, "LOCK job");
    sim_run(s, 240);
    heard(s, w, "...");
    sim_run(s, 2 * PEER_RETURN_MS);
    heard(s, w, "...");
    sim_say(s, a, "UNLOCK job");
    sim_run(s, RTT);
    heard(s, w, "token");
    scenario_end(s);
}

/* All have just begun: nothing can have been lost. */
START_TEST(a_first_start_withholds_nothing)
{
    struct sim *s = scenario_new(2);

    sim_kill_daemon(s, 0);
    sim_kill_daemon(s, 1);
    restart_empty(s);
    sim_run(s, GONE_MS + 5);
    sim_start_daemon(s, 0, &s->daemons[0].config);
    sim_start_daemon(s, 1, &s->daemons[1].config);
    sim_run(s, PEER_ASK_MS + RTT);
    ck_assert_uint_eq(stats_of(s, 0).other_daemons, 1);
    ck_assert_uint_eq(stats_of(s, 0).quarantine_left_ms, 0);
    ck_assert_uint_eq(stats_of(s, 1).quarantine_left_ms, 0);
    heard(s, scenario_says(s, 1, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

START_TEST(who_has_died_is_waited_for_once)
{
    struct sim *s = scenario_new(2);

    sim_kill_daemon(s, 1);
    restart_empty(s);
    sim_run(s, BACK_MS);
    heard(s, scenario_says(s, 0, "LOCK job WAIT 0"), "-BACKEND");
    sim_run(s, PEER_RETURN_MS);
    ck_assert_uint_eq(stats_of(s, 0).other_daemons, 0);
    restart_empty(s);
    sim_run(s, BACK_MS);
    heard(s, scenario_says(s, 0, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

START_TEST(who_has_stopped_is_not_waited_for)
{
    struct sim *s = scenario_new(2);

    engine_stop(sim_turn_begin(s, &s->daemons[1]));
    s->daemons[1].stopping = true;
    sim_turn_end(s, &s->daemons[1]);
    sim_run(s, RTT);
    ck_assert_uint_eq(stats_of(s, 0).other_daemons, 0);
    sim_kill_daemon(s, 1);
    restart_empty(s);
    sim_run(s, BACK_MS);
    heard(s, scenario_says(s, 0, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

/* An operator who has switched that off wants service back at once. */
START_TEST(after_a_failover_only_its_quarantine_counts)
{
    struct engine_config config = scenario_config();
    struct sim *s;

    config.quarantine_ms = 0;
    s = scenario_with(2, &config);
    fault_replica_at(s, UINT32_MAX);
    fault_failover(s, GONE_MS);
    sim_run(s, BACK_MS);
    ck_assert_uint_eq(stats_of(s, 0).quarantine_left_ms, 0);
    heard(s, scenario_says(s, 1, "LOCK job WAIT 0"), "token");
    scenario_end(s);
}

/* The release after which a permit would be free again is another daemon's, which
 * stands still. */
START_TEST(permits_that_others_have_got_are_lost_and_hold_up_nobody)
{
    struct sim *s = scenario_new(2);
    size_t a = scenario_says(s, 0, "LOCK pool PERMITS 1 OF 1");
    size_t b, c;

    heard(s, a, "token");
    scenario_mark(s);
    sim_say(s, a, "UNLOCK pool TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, RTT);
    heard(s, a, "0");
    b = scenario_says(s, 1, "LOCK pool PERMITS 1 OF 1");
    heard(s, b, "token");
    fault_stall(s, 0, 20000);
    scenario_lose(s);
    sim_run(s, BACK_MS + PEER_RETURN_MS);
    ck_assert_uint_eq(stats_of(s, 1).lost, 1);
    ck_assert_uint_eq(stats_of(s, 1).restoring, 0);
    c = scenario_says(s, 1, "LOCK pool PERMITS 1 OF 1 WAIT 0");
    heard(s, c, "nil");
    scenario_end(s);
}
