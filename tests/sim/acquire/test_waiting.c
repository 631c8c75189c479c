/* The hazards of docs/invariants.md that are about waiting: H23 to H29, and clients
 * that leave. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"

enum { CROWD = 120 };

START_TEST(a_hundred_waiters_are_served_in_order_with_one_script_each)
{
    struct sim *s = scenario_new(1);
    size_t first = sim_connect(s, 0);
    size_t conns[CROWD];
    uint64_t scripts;

    s->calm = true;
    sim_say(s, first, "LOCK job");
    sim_run(s, 10);
    for (size_t i = 0; i < CROWD; i++) {
        conns[i] = sim_connect(s, 0);
        sim_say(s, conns[i], "LOCK job");
    }
    sim_run(s, 10);
    scripts = s->redis.scripts;
    sim_say(s, first, "UNLOCK job TOKEN %" PRIu64, sim_token(s, first));
    for (size_t i = 0; i < CROWD; i++) {
        sim_run(s, 2);
        heard(s, conns[i], "token");
        ck_assert(i + 1 == CROWD || strcmp(sim_heard(s, conns[i + 1]), "...") == 0);
        ck_assert(scenario_unlocks(s, &conns[i], 1));
    }
    sim_run(s, 2);
    ck_assert_uint_le((s->redis.scripts - scripts) * 10, (uint64_t)CROWD * 11);
    scenario_end(s);
}

START_TEST(redisson_gets_its_turn_after_the_limit_of_handovers_H23)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    size_t conns[20];
    int handovers = 0;

    config.handover_limit = 4;
    s = scenario_with(1, &config);
    for (size_t i = 0; i < 20; i++) {
        conns[i] = sim_connect(s, 0);
        sim_say(s, conns[i], "LOCK job");
    }
    sim_run(s, 10);
    scenario_foreign_waits(s);
    while (!scenario_foreign_holds(s) && handovers <= 6) {
        handovers += scenario_unlocks(s, conns, 20) ? 1 : 0;
        sim_run(s, 1); /* the script runs */
        sim_run(s, 1);
    }
    ck_assert_int_le(handovers, 5);
    scenario_end(s);
}

START_TEST(the_head_stands_back_while_redisson_is_on_its_way_H23)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    size_t conns[3];

    config.handover_limit = 1;
    config.handover_pause_ms = 20;
    s = scenario_with(1, &config);
    s->profile.foreign_ms = 10;
    for (size_t i = 0; i < 3; i++) {
        conns[i] = sim_connect(s, 0);
        sim_say(s, conns[i], "LOCK job");
    }
    sim_run(s, 50);
    scenario_foreign_waits(s);
    ck_assert(scenario_unlocks(s, conns, 3)); /* handed over */
    sim_run(s, 5);
    ck_assert(scenario_unlocks(s, conns, 3)); /* released */
    sim_run(s, 15);
    ck_assert(scenario_foreign_holds(s));
    scenario_end(s);
}

START_TEST(a_spinlock_gets_its_chance_once_a_second_H23)
{
    struct sim *s = scenario_new(1);
    size_t conns[10];
    bool free_once = false;

    for (size_t i = 0; i < 10; i++) {
        conns[i] = sim_connect(s, 0);
        sim_say(s, conns[i], "LOCK job");
    }
    sim_run(s, 10);
    for (int ms = 0; ms < 1200 && !free_once; ms++) {
        for (size_t i = 0; i < 10; i++) {
            if (sim_heard(s, conns[i])[0] == '0') {
                sim_say(s, conns[i], "LOCK job");
            }
        }
        (void)scenario_unlocks(s, conns, 10);
        sim_run(s, 1);
        free_once = strcmp(scenario_holder(s), "") == 0;
    }
    ck_assert(free_once);
    scenario_end(s);
}

START_TEST(a_message_wakes_the_head_at_once)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    scenario_foreign_takes(s, 60000);
    sim_say(s, c, "LOCK job");
    sim_run(s, 1000);
    scenario_foreign_releases(s, true);
    sim_run(s, 3);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(a_release_without_a_message_is_found_by_the_recheck_H24)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    scenario_foreign_takes(s, 60000);
    sim_say(s, c, "LOCK job");
    sim_run(s, 100);
    scenario_foreign_releases(s, false);
    sim_run(s, 4000);
    heard(s, c, "...");
    sim_run(s, 1100);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(a_lease_that_runs_out_wakes_the_head_H24)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    scenario_foreign_takes(s, 1500);
    sim_say(s, c, "LOCK job");
    sim_run(s, 1600);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(the_next_head_asks_when_the_head_died_with_the_message_H24)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    scenario_foreign_takes(s, 60000);
    sim_say(s, a, "LOCK job");
    sim_say(s, b, "LOCK job");
    sim_run(s, 100);
    scenario_foreign_releases(s, true);
    sim_close(s, a);
    sim_run(s, 20);
    heard(s, b, "token");
    scenario_end(s);
}

START_TEST(messages_missed_while_the_link_was_gone_are_made_up_for_H24)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    scenario_foreign_takes(s, 60000);
    sim_say(s, c, "LOCK job");
    sim_run(s, 100);
    sub_break(s, &s->daemons[0], 5, 200);
    sim_run(s, 10);
    scenario_foreign_releases(s, true);
    sim_run(s, 250);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(an_owner_reenters_through_another_daemon_past_those_who_wait_H25)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t w = sim_connect(s, 1);
    size_t b = sim_connect(s, 1);

    sim_say(s, a, "LOCK job OWNER o");
    sim_run(s, 10);
    sim_say(s, w, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job OWNER o");
    sim_run(s, 10);
    heard(s, w, "...");
    ck_assert_uint_eq(sim_token(s, b), sim_token(s, a));
    scenario_end(s);
}

START_TEST(a_request_keeps_its_place_over_a_new_connection_H26)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job WAIT 60000 ID " R1);
    sim_run(s, 10);
    sim_say(s, b, "LOCK job WAIT 60000");
    sim_run(s, 10);
    sim_close(s, a);
    sim_run(s, 1500);
    a = sim_connect(s, 0);
    sim_say(s, a, "LOCK job WAIT 60000 ID " R1);
    sim_run(s, 10);
    ck_assert(scenario_unlocks(s, &holder, 1));
    sim_run(s, 10);
    heard(s, a, "token");
    heard(s, b, "...");
    scenario_end(s);
}

START_TEST(a_poll_that_comes_back_within_keep_is_granted_what_was_kept_H26)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    answered(s, a, "nil", "LOCK job WAIT 0 KEEP 1000 ID " R1);
    ck_assert(scenario_unlocks(s, &holder, 1));
    sim_run(s, 500);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    answered(s, a, "token", "LOCK job WAIT 0 KEEP 1000 ID " R1);
    ck_assert_int_gt(scenario_ttl(s), 29000);
    scenario_end(s);
}

START_TEST(a_kept_grant_of_a_dead_client_goes_to_the_next_H29)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, a, "LOCK job WAIT 60000 KEEP 2000 ID " R1);
    sim_run(s, 10);
    sim_say(s, b, "LOCK job WAIT 60000");
    sim_run(s, 10);
    sim_close(s, a);
    ck_assert(scenario_unlocks(s, &holder, 1));
    sim_run(s, 10);
    heard(s, b, "...");
    sim_run(s, 2100);
    heard(s, b, "token");
    scenario_end(s);
}

/* Redisson's forceUnlock(); whoever of its own waits comes in before ours. */
START_TEST(who_waits_hears_that_the_lock_was_taken_from_its_holder)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t waits = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, waits, "LOCK job");
    sim_run(s, 3000);
    check_external(s, scenario_job(s));
    redis_operator_del(scenario_job(s));
    redis_publish(&s->redis, scenario_job(s));
    scenario_foreign_takes(s, 30000);
    sim_run(s, 10);
    ck_assert_uint_eq(s->check.lost, 1);
    heard(s, waits, "...");
    scenario_foreign_releases(s, true);
    sim_run(s, 10);
    heard(s, waits, "token");
    scenario_end(s);
}

/* Each message may mean it, but a hold is not looked at for each. */
START_TEST(many_messages_are_few_looks)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t waits = sim_connect(s, 0);
    uint64_t scripts;

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, waits, "LOCK job");
    sim_run(s, 3000);
    sim_close(s, waits); /* it listens for a while */
    sim_run(s, 10);
    scripts = s->redis.scripts;
    for (int i = 0; i < 400; i++) {
        redis_publish(&s->redis, scenario_job(s));
        sim_run(s, 2);
    }
    ck_assert_uint_ge(s->redis.scripts - scripts, 1);
    ck_assert_uint_le(s->redis.scripts - scripts, 5);
    scenario_end(s);
}

START_TEST(messages_do_not_put_off_that_a_renewal_is_overdue)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t waits = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, waits, "LOCK job");
    sim_run(s, 9000);
    link_break(s, &s->daemons[0], 15000, 100, true); /* nothing is answered till then */
    for (int i = 0; i < 140; i++) {
        redis_publish(&s->redis, scenario_job(s));
        sim_run(s, 100);
    }
    ck_assert_msg(!s->failed, "%s", s->failure);
    ck_assert_uint_eq(s->check.uncertain, 1);
    sim_run(s, 2000);
    scenario_end(s);
}

/* Granted for KEEP, it needs the whole lease, of a Redis that stands still by then. */
START_TEST(who_comes_back_for_a_kept_grant_is_answered_in_time)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t polls = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    answered(s, polls, "nil", "LOCK job WAIT 0 KEEP 20000 ID " R1);
    s->profile.rtt_ms = 500;
    sim_say(s, holder, "UNLOCK job");
    sim_run(s, 100);
    sim_say(s, polls, "LOCK job WAIT 0 KEEP 20000 ID " R1);
    sim_run(s, 920);
    fault_pause(s, 2900);
    sim_run(s, 2000);
    heard(s, polls, "...");
    sim_run(s, 200);
    heard(s, polls, "-BACKEND");
    s->profile.rtt_ms = 1;
    scenario_end(s);
}
