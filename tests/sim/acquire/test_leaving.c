/* Clients that leave, waits that end, and a Redis that is away. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

START_TEST(a_client_that_leaves_between_asking_and_the_answer_leaves_no_lock)
{
    for (uint64_t ms = 0; ms < 4; ms++) {
        struct sim *s = scenario_new(1);
        size_t c = sim_connect(s, 0);

        sim_say(s, c, "LOCK job");
        sim_run(s, ms);
        if (strcmp(sim_heard(s, c), "...") == 0) {
            sim_close(s, c);
            sim_run(s, 5);
            ck_assert_str_eq(scenario_holder(s), "");
        }
        scenario_end(s);
    }
}

/* By its ID alone: as its LOCK was not answered, it does not know whether it holds. */
START_TEST(a_client_that_comes_back_by_RENEW_before_the_answer_keeps_the_lock, 3)
{
    struct sim *s = scenario_new(1);
    const char *mode = _i == 1 ? "WRITE" : "";
    const char *owner = _i == 2 ? "OWNER o" : "";
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job %s KEEP 0 %s ID 11111111-aaaa-bbbb", mode, owner);
    sim_close(s, c);
    c = sim_connect(s, 0);
    answered(s, c, "29998", "RENEW job %s ID 11111111-aaaa-bbbb", owner);
    sim_run(s, 60000);
    ck_assert_str_ne(scenario_holder(s), "");
    scenario_end(s);
}

/* The release of what it left was sent, and did not arrive. */
START_TEST(a_client_that_comes_back_by_RENEW_before_the_release_ran_keeps_the_lock, 2)
{
    struct sim *s = scenario_new(2);
    size_t c = sim_connect(s, 0);
    uint64_t token;

    answered(s, c, "token", "LOCK job GRACE 0 ID 11111111-aaaa-bbbb");
    token = sim_token(s, c);
    sim_close(s, c);
    link_lose_scripts(s, &s->daemons[0]);
    link_break(s, &s->daemons[0], 10, 100, true);
    sim_run(s, 50);
    c = sim_connect(s, 0);
    if (_i == 0) {
        sim_say(s, c, "RENEW job ID 11111111-aaaa-bbbb");
    } else {
        sim_say(s, c, "RENEW job TOKEN %" PRIu64, token);
    }
    sim_run(s, 100);
    heard(s, c, "29998");
    sim_run(s, 60000);
    ck_assert_str_ne(scenario_holder(s), "");
    sim_close(s, c);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(nor_does_it_leave_a_lock_if_it_does_not_stay)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job LEASE 86400000 KEEP 0 ID 11111111-aaaa-bbbb");
    sim_close(s, c);
    c = sim_connect(s, 0);
    sim_say(s, c, "RENEW job ID 11111111-aaaa-bbbb");
    sim_close(s, c);
    sim_run(s, 10);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_client_that_leaves_while_the_answer_is_lost_leaves_no_lock)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job LEASE 86400000");
    sim_run(s, 1);
    ck_assert_str_ne(scenario_holder(s), "");
    link_break(s, &s->daemons[0], 1, 100, true);
    sim_run(s, 50);
    sim_close(s, c);
    sim_run(s, 60);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_token_that_could_not_be_delivered_is_taken_back)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    s->profile.undelivered = 1000;
    sim_say(s, c, "LOCK job LEASE 86400000");
    sim_run(s, 6);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_waiter_that_leaves_during_the_handover_is_passed_by)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    s->calm = true;
    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job");
    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    ck_assert(scenario_unlocks(s, &holder, 1));
    sim_close(s, a); /* its claim is in the script */
    sim_run(s, 10);
    heard(s, holder, "0");
    heard(s, b, "token");
    scenario_end(s);
}

START_TEST(a_wait_that_ends_while_the_script_is_under_way_leaves_no_lock)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    s->profile.rtt_ms = 15;
    sim_say(s, c, "LOCK job WAIT 20");
    sim_run(s, 100);
    if (strcmp(sim_heard(s, c), "token") != 0) {
        ck_assert_str_eq(scenario_holder(s), "");
    }
    scenario_end(s);
}

START_TEST(a_wait_that_ends_while_an_entry_is_left_is_null_at_once)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);
    size_t c = sim_connect(s, 0);

    s->profile.rtt_ms = 5;
    sim_say(s, a, "LOCK job OWNER o");
    sim_say(s, b, "LOCK job OWNER o");
    sim_run(s, 50);
    sim_say(s, c, "LOCK job WAIT 100");
    sim_run(s, 98);
    sim_say(s, b, "UNLOCK job OWNER o");
    sim_run(s, 14);
    heard(s, b, "1");
    heard(s, c, "nil");
    scenario_end(s);
}

START_TEST(waits_are_exact_while_redis_is_down_for_longer_than_a_lease)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    fault_pause(s, 40000);
    sim_say(s, a, "LOCK job WAIT 5000");
    sim_say(s, b, "LOCK job WAIT 60000");
    sim_run(s, 4999);
    heard(s, a, "...");
    sim_run(s, 22);
    heard(s, a, "-BACKEND");
    sim_run(s, 12000);
    ck_assert_uint_eq(s->check.uncertain, 1);
    ck_assert_uint_eq(s->check.lost, 0);
    sim_run(s, 15000);
    ck_assert_uint_eq(s->check.lost, 1);
    sim_run(s, 10000);
    heard(s, b, "token");
    scenario_end(s);
}

START_TEST(after_flushall_the_old_holder_hears_of_it_before_the_next_is_granted)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    fault_flush(s);
    sim_run(s, 12000);
    heard(s, b, "token");
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}
