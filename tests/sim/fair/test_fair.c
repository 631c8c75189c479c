/* Fair locks: the hazards H20 to H22 (docs/invariants.md), and Redisson's defects F1 to
 * F6 that latchd does not have (tests/REDISSON.md). */
#include "sim/scenario.h"

#include "sim/redis/sim_redisson.h"
#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"

enum { CROWD = 40 };

static struct sim *new_calm(size_t daemons)
{
    struct sim *s = scenario_new(daemons);

    s->orderly = true;
    return s;
}

/* A Redisson client with FairLock.lock(), whose places are `wait_ms` apart. */
static struct sim_foreign *redisson_waits(struct sim *s, uint64_t wait_ms)
{
    struct sim_foreign *f = foreign_start(s, scenario_job(s), FOREIGN_FAIR, true);

    f->wait_ms = wait_ms;
    foreign_act_now(s, f);
    return f;
}

static size_t holds(struct sim *s, size_t daemon, const char *words)
{
    size_t c = sim_connect(s, daemon);

    answered(s, c, "token", "%s", words);
    return c;
}

static void unlocks(struct sim *s, size_t c)
{
    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
}

START_TEST(fair_waiters_of_one_daemon_are_served_in_order_of_arrival)
{
    struct sim *s = new_calm(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[CROWD];

    scenario_crowd(s, 0, conns, CROWD, "LOCK job FAIR");
    sim_run(s, 20);
    unlocks(s, first);
    scenario_served_in_order(s, conns, CROWD, 10);
    scenario_end(s);
}

START_TEST(fair_waiters_of_two_daemons_are_served_in_order_of_joining)
{
    struct sim *s = new_calm(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[CROWD];

    for (size_t i = 0; i < CROWD; i++) {
        scenario_crowd(s, i * 7 % 3 % 2, &conns[i], 1, "LOCK job FAIR");
        sim_run(s, 5);
    }
    unlocks(s, first);
    scenario_served_in_order(s, conns, CROWD, 20);
    scenario_end(s);
}

START_TEST(only_the_window_stands_in_redis_and_order_holds_behind_it)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    size_t conns[CROWD];
    size_t first;

    config.fair_window = 4;
    s = scenario_with(1, &config);
    s->orderly = true;
    first = holds(s, 0, "LOCK job FAIR");
    scenario_crowd(s, 0, conns, CROWD, "LOCK job FAIR");
    sim_run(s, 20);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 4);
    unlocks(s, first);
    scenario_served_in_order(s, conns, CROWD, 20);
    scenario_end(s);
}

START_TEST(a_live_waiter_keeps_its_place_however_long_it_takes_H20_F2)
{
    struct sim *s = new_calm(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[2];

    scenario_crowd(s, 0, &conns[0], 1, "LOCK job FAIR");
    sim_run(s, 10);
    scenario_crowd(s, 1, &conns[1], 1, "LOCK job FAIR");
    sim_run(s, 600000);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 2);
    ck_assert_uint_eq(s->check.thrown_out, 0);
    unlocks(s, first);
    scenario_served_in_order(s, conns, 2, 20);
    scenario_end(s);
}

START_TEST(redissons_long_wait_ahead_throws_nobody_out_when_it_is_granted_H20)
{
    struct sim *s = new_calm(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[3];

    (void)redisson_waits(s, 3600000);
    sim_run(s, 10);
    scenario_crowd(s, 0, conns, 3, "LOCK job FAIR");
    sim_run(s, 1000);
    unlocks(s, first);
    sim_run(s, 10);
    ck_assert(s->foreign[0].holds);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 3);
    sim_run(s, 5000);
    foreign_release(s, &s->foreign[0]);
    scenario_served_in_order(s, conns, 3, 20);
    ck_assert_uint_eq(s->check.thrown_out, 0);
    scenario_end(s);
}

/* Nothing says since when it waits, so what its grant will take off seems less. */
START_TEST(who_came_late_behind_a_patient_redisson_is_back_at_the_head_in_time)
{
    struct sim *s = new_calm(1);
    size_t first = holds(s, 0, "LOCK job");
    size_t conns[3];

    (void)redisson_waits(s, 3600000);
    sim_run(s, 70000); /* the lock's lease is renewed */
    scenario_crowd(s, 0, conns, 3, "LOCK job FAIR");
    sim_run(s, 1000);
    unlocks(s, first);
    sim_run(s, 100);
    ck_assert(s->foreign[0].holds);
    foreign_release(s, &s->foreign[0]);
    ck_assert_uint_gt(s->check.thrown_out, 0);
    scenario_served_in_order(s, conns, 3, 5100); /* a recheck */
    scenario_end(s);
}

/* The score is over, but the daemon was heard of a moment ago. */
START_TEST(no_latchd_throws_out_a_waiter_whose_time_a_redisson_took_with_it_H20)
{
    struct sim *s = new_calm(2);
    size_t first = holds(s, 0, "LOCK job");
    size_t conns[2];

    (void)redisson_waits(s, 3600000);
    sim_run(s, 70000); /* the lock's lease is renewed */
    scenario_crowd(s, 0, conns, 1, "LOCK job FAIR");
    sim_run(s, 20);
    foreign_stop(s);
    scenario_crowd(s, 1, conns + 1, 1, "LOCK job FAIR");
    sim_run(s, 20);
    ck_assert_uint_eq(s->check.thrown_out, 0);
    unlocks(s, first);
    scenario_served_in_order(s, conns, 2, 20);
    scenario_end(s);
}

START_TEST(a_redisson_waiter_behind_many_of_ours_is_not_put_off_for_hours_H20)
{
    struct sim *s = new_calm(1);
    size_t conns[CROWD];
    const struct redis_name *n;

    (void)holds(s, 0, "LOCK job FAIR");
    scenario_crowd(s, 0, conns, CROWD, "LOCK job FAIR");
    sim_run(s, 20);
    (void)redisson_waits(s, 300000);
    sim_run(s, 10);
    n = scenario_job(s);
    ck_assert_uint_eq(n->score_count, CROWD + 1);
    for (size_t i = 0; i < n->score_count; i++) {
        ck_assert_int_le(n->scores[i].score,
                         (int64_t)s->redis.now_ms + 30000 + 300000 + 30000);
    }
    scenario_end(s);
}

START_TEST(who_leaves_when_it_was_told_of_a_free_lock_tells_the_next_H21)
{
    struct sim *s = new_calm(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t a, b;

    scenario_crowd(s, 0, &a, 1, "LOCK job FAIR");
    sim_run(s, 10);
    scenario_crowd(s, 1, &b, 1, "LOCK job FAIR");
    sim_run(s, 10);
    s->profile.rtt_ms = 5;
    sim_say(s, first, "FORCEUNLOCK job ANY"); /* frees it, and tells the head */
    sim_run(s, 6);
    sim_close(s, a);
    sim_run(s, 60);
    heard(s, b, "token");
    scenario_end(s);
}

START_TEST(a_plain_release_sees_redissons_fair_waiters_H22)
{
    struct sim *s = new_calm(1);
    size_t first = holds(s, 0, "LOCK job");
    size_t others[5];

    scenario_crowd(s, 0, others, 5, "LOCK job");
    (void)redisson_waits(s, 300000);
    sim_run(s, 20);
    unlocks(s, first);
    sim_run(s, 10);
    ck_assert(s->foreign[0].holds);
    foreign_release(s, &s->foreign[0]);
    scenario_served_in_order(s, others, 5, 6000);
    scenario_end(s);
}

START_TEST(a_plain_lock_that_finds_a_fair_queue_joins_it)
{
    struct sim *s = new_calm(2);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[3];

    scenario_crowd(s, 1, &conns[0], 1, "LOCK job FAIR");
    sim_run(s, 10);
    scenario_crowd(s, 0, &conns[1], 1, "LOCK job");
    sim_run(s, 10);
    scenario_crowd(s, 1, &conns[2], 1, "LOCK job FAIR");
    sim_run(s, 10);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 3);
    unlocks(s, first);
    scenario_served_in_order(s, conns, 3, 20);
    scenario_end(s);
}

START_TEST(a_dead_redisson_head_costs_time_but_no_spinning_F1)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t c;
    uint64_t scripts;

    (void)redisson_waits(s, 20000);
    sim_run(s, 5);
    foreign_die(s, &s->foreign[0]);
    scenario_crowd(s, 0, &c, 1, "LOCK job FAIR");
    sim_run(s, 10);
    unlocks(s, first);
    sim_run(s, 10);
    heard(s, c, "...");
    scripts = s->redis.scripts;
    sim_run(s, 10000);
    heard(s, c, "...");
    ck_assert_uint_lt(s->redis.scripts - scripts, 20);
    sim_run(s, 45000); /* its lease when it joined, and its wait */
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(a_redisson_clock_that_is_off_does_not_put_us_off_F3)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    struct sim_foreign *f;
    size_t conns[2];

    scenario_crowd(s, 0, conns, 2, "LOCK job FAIR");
    sim_run(s, 10);
    f = redisson_waits(s, 5000);
    f->skew_ms = 600000; /* it throws out whoever heads the queue */
    sim_run(s, 20);
    ck_assert_uint_gt(s->check.thrown_out, 0);
    sim_run(s, 11000); /* the next look at the queue puts them back */
    unlocks(s, first);
    scenario_served_in_order(s, conns, 2,
                             60000); /* Redisson may have been before them */
    scenario_end(s);
}

static void lose_scores(struct redis_name *n)
{
    redis_del_scores(n);
}

static void lose_list(struct redis_name *n)
{
    redis_del_queue(n);
}

static void lose_both(struct redis_name *n)
{
    redis_del_queue(n);
    redis_del_scores(n);
}

static void served_although(void (*lose)(struct redis_name *n))
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[5];

    scenario_crowd(s, 0, conns, 5, "LOCK job FAIR");
    sim_run(s, 20);
    lose(scenario_job(s));
    sim_run(s, 11000);
    ck_assert_uint_eq(scenario_job(s)->queue_count, 5);
    ck_assert_uint_eq(scenario_job(s)->score_count, 5);
    unlocks(s, first);
    scenario_served_in_order(s, conns, 5, 100);
    scenario_end(s);
}

START_TEST(a_lost_list_or_zset_is_repaired_F4)
{
    served_although(lose_scores);
    served_although(lose_list);
    served_although(lose_both);
}

START_TEST(a_redisson_place_without_a_score_gets_one_and_ends_F4)
{
    struct sim *s = scenario_new(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t c;

    (void)redisson_waits(s, 5000);
    sim_run(s, 10);
    foreign_die(s, &s->foreign[0]);
    scenario_job(s)->score_count = 0;
    scenario_crowd(s, 0, &c, 1, "LOCK job FAIR");
    sim_run(s, 10);
    unlocks(s, first);
    sim_run(s, 75000);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(nothing_is_left_of_a_queue_whose_waiters_are_gone_F5)
{
    struct sim *s = new_calm(1);
    size_t first = holds(s, 0, "LOCK job FAIR");
    size_t conns[10];
    const struct redis_name *n;

    scenario_crowd(s, 0, conns, 10, "LOCK job FAIR");
    sim_run(s, 20);
    for (size_t i = 0; i < 10; i++) {
        sim_close(s, conns[i]);
    }
    sim_run(s, 20);
    n = scenario_job(s);
    ck_assert_uint_eq(n->queue_count + n->score_count, 0);
    unlocks(s, first);
    sim_run(s, 20);
    scenario_end(s);
}

START_TEST(unlock_of_a_fair_lock_that_is_over_says_so_F6)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job FAIR LEASE 200");
    sim_run(s, 1000);
    unlocks(s, c);
    sim_run(s, 10);
    heard(s, c, "-NOTHELD");
    scenario_end(s);
}
