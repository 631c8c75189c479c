/* Fair waiters while something fails: daemons die, Redis forgets, messages are lost;
 * and waits that are kept, sent again or cancelled. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"
#define R2 "22222222-aaaa-bbbb"

enum { CROWD = 40, MANY = 1000 };

static size_t holds(struct sim *s, size_t daemon, const char *words)
{
    size_t c = scenario_says(s, daemon, words);

    heard(s, c, "token");
    return c;
}

static void unlocks(struct sim *s, size_t c)
{
    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
}

START_TEST(a_killed_daemons_thousand_waiters_are_gone_in_time)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job LEASE 20000");
    static size_t dead[MANY];
    size_t live;

    scenario_crowd(s, 1, dead, MANY, "LOCK job FAIR");
    sim_run(s, 50);
    ck_assert_uint_eq(scenario_job(s)->queue_count, MANY);
    live = scenario_says(s, 0, "LOCK job FAIR");
    sim_kill_daemon(s, 1);
    sim_run(s, 20000 + 30000 + 5100); /* lease, fair-wait-timeout, a recheck */
    heard(s, live, "token");
    ck_assert_uint_eq(scenario_job(s)->queue_count, 0);
    (void)first;
    sim_start_daemon(s, 1, &s->daemons[1].config);
    scenario_end(s);
}

START_TEST(a_daemon_that_dies_heading_the_queue_is_waited_for_but_not_longer_H34)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t head = scenario_says(s, 1, "LOCK job FAIR");
    size_t conns[5];

    (void)head;
    scenario_crowd(s, 0, conns, 5, "LOCK job FAIR");
    sim_run(s, 20);
    sim_kill_daemon(s, 1);
    unlocks(s, first);
    sim_run(s, 1000);
    heard(s, conns[0], "...");
    scenario_served_in_order(s, conns, 5, 66000); /* 30 s of lease, 30 s of patience */
    sim_start_daemon(s, 1, &s->daemons[1].config);
    scenario_end(s);
}

/* As it holds already it never stood in the queue, and has no place there to go back
 * to.
 */
START_TEST(who_enters_again_too_late_passes_nobody)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR OWNER o");
    size_t other = scenario_says(s, 1, "LOCK job FAIR");
    size_t again = sim_connect(s, 0);

    s->orderly = true;
    ck_assert_str_eq(scenario_queue(s), "d1:1");
    sim_say(s, again, "LOCK job FAIR LEASE 300 OWNER o");
    sim_run(s, 1);
    fault_stall(s, 0, 250);
    sim_run(s, 300);
    ck_assert_str_eq(scenario_queue(s), "d1:1");
    heard(s, again, "token");
    sim_run(s, 300); /* the lease of that entry */
    sim_say(s, first, "UNLOCK job OWNER o");
    sim_run(s, 10);
    heard(s, other, "token");
    scenario_end(s);
}

START_TEST(redisson_gets_its_turn_behind_a_dead_daemons_waiters)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t dead[10];
    struct sim_foreign *f;

    scenario_crowd(s, 1, dead, 10, "LOCK job FAIR");
    sim_run(s, 20);
    f = foreign_start(s, scenario_job(s), FOREIGN_FAIR, true);
    foreign_act_now(s, f);
    sim_run(s, 20);
    sim_kill_daemon(s, 1);
    unlocks(s, first);
    for (int i = 0; i < 70 && !f->holds; i++) {
        sim_run(s, 1000);
    }
    ck_assert(f->holds);
    sim_start_daemon(s, 1, &s->daemons[1].config);
    scenario_end(s);
}

START_TEST(after_flushall_the_queue_stands_again_in_order)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[CROWD];

    (void)first;
    scenario_crowd(s, 0, conns, CROWD, "LOCK job FAIR");
    sim_run(s, 20);
    fault_flush(s);
    scenario_served_in_order(s, conns, CROWD, 12000);
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}

/* A replica that lacks the leaving takes over: whose daemon lives does not stand in the
 * way, though nobody of it waits there any more. */
START_TEST(a_living_daemons_waiters_who_left_before_a_failover_are_nobodys_head)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job"), gone[3], live;

    scenario_crowd(s, 0, gone, 3, "LOCK job FAIR");
    sim_run(s, 50);
    fault_replica_at(s, UINT32_MAX);
    for (size_t i = 0; i < 3; i++) {
        sim_close(s, gone[i]);
    }
    unlocks(s, first);
    sim_run(s, 50);
    first = holds(s, 1, "LOCK job");
    live = scenario_says(s, 1, "LOCK job FAIR");
    fault_failover(s, 200);
    sim_run(s, 1000);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 1);
    unlocks(s, first);
    sim_run(s, 100);
    heard(s, live, "token");
    scenario_end(s);
}

/* The replica's data are older than the daemon remembers where it had places. To others
 * that place is stale. */
START_TEST(a_place_that_comes_back_late_leaves_with_the_next_release)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job"), gone = scenario_says(s, 0, "LOCK job FAIR");

    sim_run(s, 50);
    fault_replica_at(s, UINT32_MAX);
    sim_close(s, gone);
    unlocks(s, first);
    sim_run(s, 200000);
    fault_failover(s, 200);
    sim_run(s, 40000);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 1);
    first = holds(s, 0, "LOCK job");
    unlocks(s, first);
    sim_run(s, 100);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 0);
    scenario_end(s);
}

/* Of two daemons: whichever puts its own back first, each finds its place. */
static void keeps_the_order_of_two(size_t late)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job"), conns[7];

    sim_redis_save(sim_redis_now(s), &s->backup);
    for (size_t i = 0; i < 7; i++) {
        conns[i] = scenario_says(s, i % 3 == 1, "LOCK job FAIR");
        sim_run(s, 5);
    }
    fault_restart(s, 100);
    check_external(s, NULL);
    sim_redis_restore(sim_redis_now(s), s->backup);
    s->check.resurrected = true;
    fault_stall(s, late, 1000);
    sim_run(s, 2000);
    ck_assert_str_eq(scenario_queue(s), "d0:2 d1:1 d0:3 d0:4 d1:2 d0:5 d0:6");
    unlocks(s, first);
    scenario_served_in_order(s, conns, 7, 12000);
    scenario_end(s);
}

START_TEST(the_waiters_of_two_daemons_have_their_order_again)
{
    keeps_the_order_of_two(0);
    keeps_the_order_of_two(1);
}

START_TEST(a_redis_that_comes_back_empty_keeps_the_order)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[CROWD];

    scenario_crowd(s, 1, conns, CROWD, "LOCK job FAIR");
    sim_run(s, 20);
    fault_restart(s, 500);
    fault_flush(s);
    sim_run(s, 5000);
    heard(s, conns[0], "..."); /* it is held still, and was put back */
    unlocks(s, first);
    scenario_served_in_order(s, conns, CROWD, 12000);
    scenario_end(s);
}

START_TEST(a_redis_that_lost_the_last_waiters_takes_them_back_behind_the_others)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[CROWD];

    scenario_crowd(s, 0, conns, CROWD / 2, "LOCK job FAIR");
    sim_run(s, 20);
    sim_redis_save(sim_redis_now(s), &s->backup);
    scenario_crowd(s, 0, conns + CROWD / 2, CROWD / 2, "LOCK job FAIR");
    sim_run(s, 20);
    fault_restart(s, 500);
    check_external(s, NULL);
    sim_redis_restore(sim_redis_now(s), s->backup);
    s->check.resurrected = true;
    sim_run(s, 12000);
    ck_assert_uint_eq(scenario_job(s)->queue_count, CROWD);
    unlocks(s, first);
    scenario_served_in_order(s, conns, CROWD, 6000);
    scenario_end(s);
}

START_TEST(a_lost_message_costs_no_more_than_the_recheck)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[3];

    scenario_crowd(s, 1, conns, 3, "LOCK job FAIR");
    sim_run(s, 20);
    sub_break(s, &s->daemons[1], 2000, 60000);
    sim_run(s, 10);
    unlocks(s, first);
    scenario_served_in_order(s, conns, 3, 5100);
    scenario_end(s);
}

START_TEST(a_queue_outlives_a_long_outage_of_the_link)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR LEASE 80000");
    size_t conns[4];

    scenario_crowd(s, 1, conns, 2, "LOCK job FAIR");
    sim_run(s, 20);
    link_break(s, &s->daemons[1], 10, 70000, true);
    sim_run(s, 30000);
    scenario_crowd(s, 0, conns + 2, 2, "LOCK job FAIR");
    sim_run(s, 41000); /* it is back, and its places have been refreshed */
    unlocks(s, first);
    for (int ms = 0; ms < 40000 && !scenario_unlocks(s, conns, 4); ms++) {
        sim_run(s, 1);
    }
    sim_run(s, 1000);
    for (int i = 0; i < 3; i++) {
        size_t *rest = conns;

        for (size_t k = 0; k < 4; k++) {
            if (strcmp(sim_heard(s, rest[k]), "token") == 0) {
                unlocks(s, rest[k]);
            }
        }
        sim_run(s, 1000);
    }
    for (size_t k = 0; k < 4; k++) {
        heard(s, conns[k], "0");
    }
    scenario_end(s);
}

START_TEST(a_retried_fair_lock_keeps_its_place_H26)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[2];

    conns[0] = scenario_says(s, 0, "LOCK job FAIR WAIT 60000 ID " R1);
    conns[1] = scenario_says(s, 0, "LOCK job FAIR WAIT 60000 ID " R2);
    sim_close(s, conns[0]);
    sim_run(s, 500);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 2);
    conns[0] = scenario_says(s, 0, "LOCK job FAIR WAIT 60000 ID " R1);
    unlocks(s, first);
    sim_run(s, 10);
    heard(s, conns[0], "token");
    heard(s, conns[1], "...");
    scenario_end(s);
}

START_TEST(a_kept_place_ends_with_keep_and_leaves_the_queue)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t c = scenario_says(s, 0, "LOCK job FAIR WAIT 0 KEEP 3000 ID " R1);

    heard(s, c, "nil");
    ck_assert_uint_eq(scenario_job(s)->queue_count, 1);
    sim_run(s, 3100);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 0);
    unlocks(s, first);
    scenario_end(s);
}

START_TEST(a_cancelled_wait_leaves_the_queue_at_once)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t a = scenario_says(s, 0, "LOCK job FAIR ID " R1);
    size_t b = scenario_says(s, 0, "LOCK job FAIR OWNER o");
    size_t by = sim_connect(s, 0);

    ck_assert_uint_eq(scenario_job(s)->queue_count, 2);
    answered(s, by, "1", "CANCEL job ID " R1);
    heard(s, a, "nil");
    ck_assert_uint_eq(scenario_job(s)->queue_count, 1);
    sim_say(s, by, "CANCEL job OWNER o");
    sim_run(s, 10);
    heard(s, b, "nil");
    ck_assert_uint_eq(scenario_job(s)->queue_count, 0);
    unlocks(s, first);
    scenario_end(s);
}

START_TEST(an_owner_re_enters_past_those_who_wait_H25)
{
    struct sim *s = scenario_new(2);
    size_t first = holds(s, 0, "LOCK job FAIR OWNER o");
    size_t waits = scenario_says(s, 1, "LOCK job FAIR");
    size_t again = holds(s, 1, "LOCK job FAIR OWNER o");

    ck_assert_uint_eq(sim_token(s, again), sim_token(s, first));
    heard(s, waits, "...");
    scenario_end(s);
}
