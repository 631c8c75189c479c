/* MLOCK: H27, and what Redisson's MultiLock does wrong (M1, M3, M6, M8). */
#include "sim/multi/many.h"

#include "sim/redis/sim_redisson.h"

START_TEST(free_names_are_taken_in_one_script_and_tokens_come_in_the_order_given)
{
    struct sim *s = new_many(1);
    size_t c;
    uint64_t scripts = s->redis.scripts;
    uint64_t tokens[3];

    c = holds(s, 0, "MLOCK 3 c a b");
    heard(s, c, "tokens");
    ck_assert_uint_eq(s->redis.scripts - scripts, 1);
    for (size_t i = 0; i < 3; i++) {
        tokens[i] = sim_token_of(s, c, i);
    }
    unlocks(s, c, "c", tokens[0]);
    ck_assert(is_free(s, "c") && !is_free(s, "a") && !is_free(s, "b"));
    unlocks(s, c, "a", tokens[1]);
    unlocks(s, c, "b", tokens[2]);
    scenario_end(s);
}

START_TEST(nothing_is_held_after_null)
{
    struct sim *s = new_many(2);
    size_t holder = holds(s, 1, "LOCK b");
    size_t c = scenario_says(s, 0, "MLOCK 3 c a b WAIT 0");

    heard(s, c, "nil");
    sim_run(s, 10);
    ck_assert(is_free(s, "a") && is_free(s, "c"));
    sim_say(s, c, "MLOCK 3 a b c WAIT 500");
    sim_run(s, 499);
    ck_assert(!is_free(s, "a"));
    sim_run(s, 60);
    heard(s, c, "nil");
    ck_assert(is_free(s, "a") && is_free(s, "c"));
    (void)holder;
    scenario_end(s);
}

START_TEST(nothing_is_held_when_its_client_leaves_while_it_takes)
{
    for (uint64_t ms = 0; ms < 8; ms++) {
        struct sim *s = new_many(2);
        size_t holder = holds(s, 1, "LOCK b");
        size_t c = sim_connect(s, 0);

        sim_say(s, c, "MLOCK 3 a b c GRACE 0");
        sim_run(s, ms);
        sim_close(s, c);
        sim_run(s, 20);
        ck_assert(is_free(s, "a") && is_free(s, "c"));
        unlocks(s, holder, "b", sim_token(s, holder));
        scenario_end(s);
    }
}

START_TEST(mlocks_in_opposite_orders_do_not_block_each_other_H27_M6)
{
    struct sim *s = new_many(2);
    size_t conns[4];
    uint64_t began = s->now;
    size_t served = 0;

    for (size_t i = 0; i < 4; i++) {
        conns[i] = sim_connect(s, i % 2);
        sim_say(s, conns[i], i / 2 == 0 ? "MLOCK 2 a b" : "MLOCK 2 b a");
    }
    while (served < 4 && s->now < began + 2000) {
        sim_run(s, 1);
        for (size_t i = 0; i < 4; i++) {
            uint64_t t0 = sim_token_of(s, conns[i], 0);
            uint64_t t1 = sim_token_of(s, conns[i], 1);

            if (t0 != 0 && s->clients.conns[conns[i]].answer.kind == REPLY_TOKENS &&
                !s->clients.conns[conns[i]].asking) {
                unlocks(s, conns[i], i / 2 == 0 ? "a" : "b", t0);
                unlocks(s, conns[i], i / 2 == 0 ? "b" : "a", t1);
                served++;
            }
        }
    }
    ck_assert_uint_eq(served, 4);
    scenario_end(s);
}

START_TEST(an_mlock_gets_in_between_single_locks_of_its_names_in_turn_H27)
{
    struct sim *s = new_many(1);
    size_t a = holds(s, 0, "LOCK a");
    size_t b = holds(s, 0, "LOCK b");
    size_t batch = scenario_says(s, 0, "MLOCK 2 a b");
    size_t next_a = scenario_says(s, 0, "LOCK a");
    size_t next_b;

    unlocks(s, a, "a", sim_token(s, a));
    heard(s, next_a, "..."); /* the MLOCK has it, and keeps it */
    next_b = scenario_says(s, 0, "LOCK b");
    unlocks(s, b, "b", sim_token(s, b));
    heard(s, batch, "tokens");
    heard(s, next_b, "...");
    sim_close(s, batch);
    scenario_end(s);
}

START_TEST(what_an_mlock_lost_while_it_waited_is_taken_anew_M1_M8)
{
    struct sim *s = new_many(1);
    size_t holder = holds(s, 0, "LOCK b");
    size_t batch = scenario_says(s, 0, "MLOCK 2 a b LEASE 60000");

    ck_assert(!is_free(s, "a"));
    check_external(s, name(s, "a"));
    redis_operator_del(name(s, "a")); /* and nobody is told */
    ck_assert(redis_foreign_take(&s->redis, name(s, "a"), SPAN("u:1"), 25000));
    sim_run(s, 21000); /* the daemon has looked after its lease by now */
    unlocks(s, holder, "b", sim_token(s, holder));
    heard(s, batch, "..."); /* not both are its own */
    sim_run(s, 6000);
    heard(s, batch, "tokens");
    scenario_end(s);
}

START_TEST(a_lease_is_whole_when_tokens_are_given_however_long_it_took_M8)
{
    struct sim *s = new_many(1);
    size_t holder = holds(s, 0, "LOCK b");
    size_t batch = scenario_says(s, 0, "MLOCK 2 a b LEASE 2000");

    sim_run(s, 9000);
    unlocks(s, holder, "b", sim_token(s, holder));
    sim_run(s, 20);
    heard(s, batch, "tokens");
    ck_assert_int_ge(redis_pttl(sim_redis_now(s), name(s, "a")), 1000);
    ck_assert_int_ge(redis_pttl(sim_redis_now(s), name(s, "b")), 1000);
    scenario_end(s);
}

/* Enough of its lease is left: the answer does not wait for what is to come of that. */
START_TEST(an_mlock_is_answered_while_a_renewal_is_on_its_way)
{
    struct sim *s = new_many(1);
    size_t holder = holds(s, 0, "LOCK b");
    size_t batch = sim_connect(s, 0);

    s->profile.rtt_ms = 100;
    sim_say(s, batch, "MLOCK 2 a b LEASE 900"); /* a is renewed at 300, 600, ... */
    sim_run(s, 1120);
    sim_say(s, holder, "UNLOCK b");
    sim_run(s, 210); /* that of 1200 is answered at 1400 */
    heard(s, batch, "tokens");
    s->profile.rtt_ms = 1;
    sim_run(s, 200);
    unlocks(s, batch, "a", sim_token_of(s, batch, 0));
    unlocks(s, batch, "b", sim_token_of(s, batch, 1));
    ck_assert(is_free(s, "a") && is_free(s, "b"));
    scenario_end(s);
}

START_TEST(multilocks_last_expire_does_not_cut_our_lease_H14_M1)
{
    struct sim *s = new_many(1);
    size_t c = holds(s, 0, "LOCK job LEASE 60000");

    scenario_job(s)->expires = s->redis.now_ms + 15000; /* PEXPIRE by somebody */
    sim_run(s, 55000);
    ck_assert_str_ne(scenario_holder(s), "");
    ck_assert_uint_eq(s->check.lost, 0);
    (void)c;
    scenario_end(s);
}

START_TEST(multilocks_last_expire_does_not_lose_our_places_M3)
{
    struct sim *s = new_many(1);
    size_t holder = holds(s, 0, "LOCK job FAIR");
    size_t conns[4];

    scenario_crowd(s, 0, conns, 4, "LOCK job FAIR");
    sim_run(s, 20);
    sim_run(s, 3000);
    redis_del_queue(scenario_job(s)); /* its TTL ended */
    redis_del_scores(scenario_job(s));
    sim_run(s, 11000);
    unlocks(s, holder, "job", sim_token(s, holder));
    scenario_served_in_order(s, conns, 4, 20);
    scenario_end(s);
}

START_TEST(an_mlock_sent_again_is_the_same_request)
{
    struct sim *s = new_many(2);
    size_t a = holds(s, 0, "MLOCK 2 a b ID " R1);
    uint64_t token = sim_token_of(s, a, 1);
    size_t again = holds(s, 0, "MLOCK 2 a b ID " R1);

    ck_assert_uint_eq(sim_token_of(s, again, 1), token);
    sim_say(s, again, "UNLOCK a ID " R1);
    sim_run(s, 10);
    sim_say(s, again, "UNLOCK b ID " R1);
    sim_run(s, 10);
    ck_assert(is_free(s, "a") && is_free(s, "b"));
    scenario_end(s);
}

START_TEST(what_its_client_had_renewed_is_not_given_back_with_a_failed_mlock)
{
    struct sim *s = new_many(2);
    size_t a = holds(s, 1, "MLOCK 2 a b ID " R1);
    size_t c = scenario_says(s, 0, "RENEW a ID " R1);

    sim_say(s, a, "UNLOCK b ID " R1);
    sim_run(s, 10);
    sim_say(s, c, "MLOCK 2 a b ID " R1);
    sim_run(s, 20);
    heard(s, c, "-NOTHELD"); /* b is over */
    ck_assert(!is_free(s, "a"));
    answered(s, c, "0", "UNLOCK a ID " R1);
    scenario_end(s);
}

/* Else a bare UNLOCK there would end what another connection holds. */
START_TEST(a_failed_mlock_leaves_its_connection_with_nothing)
{
    struct sim *s = new_many(1);
    size_t a = holds(s, 0, "MLOCK 2 a b ID " R1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "MLOCK 2 a b ID " R1);
    sim_say(s, sim_connect(s, 0), "UNLOCK b ID " R1);
    sim_run(s, 300);
    heard(s, c, "-NOTHELD"); /* b is over */
    answered(s, c, "-ERR", "UNLOCK a");
    ck_assert(!is_free(s, "a"));
    answered(s, a, "0", "UNLOCK a");
    scenario_end(s);
}

START_TEST(what_a_failed_mlocks_connection_renewed_itself_is_its_own)
{
    struct sim *s = new_many(1);
    size_t a = holds(s, 0, "MLOCK 2 a b ID " R1);
    size_t c = scenario_says(s, 0, "RENEW a ID " R1);

    sim_say(s, c, "MLOCK 2 a b ID " R1);
    sim_say(s, sim_connect(s, 0), "UNLOCK b ID " R1);
    sim_run(s, 300);
    heard(s, c, "-NOTHELD");
    sim_close(s, a);
    answered(s, c, "0", "UNLOCK a");
    scenario_end(s);
}
