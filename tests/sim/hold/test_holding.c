/* The hazards of docs/invariants.md that are about who holds: H2 to H17, H30, H31. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

#define R1 "11111111-aaaa-bbbb"
#define R2 "22222222-aaaa-bbbb"

START_TEST(a_late_copy_of_an_acquire_takes_nothing_H2)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    fault_pause(s, 8000);
    sim_say(s, c, "LOCK job WAIT 60000 LEASE 86400000");
    sim_run(s, 20000);
    heard(s, c, "token");
    answered(s, c, "0", "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
    sim_run(s, 20000);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(an_acquire_whose_answer_is_lost_is_found_again_not_doubled_H2)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job WAIT 10000 OWNER o ID " R1);
    sim_run(s, 1); /* it has run */
    ck_assert_str_eq(scenario_holder(s), "o");
    link_break(s, &s->daemons[0], 5, 500, true);
    sim_run(s, 600);
    heard(s, c, "token");
    ck_assert_int_eq(scenario_job(s)->fields[0].count, 1);
    scenario_end(s);
}

START_TEST(an_owner_with_entries_at_two_daemons_holds_until_both_are_left_H3)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);
    uint64_t token;

    sim_say(s, a, "LOCK job OWNER o");
    sim_run(s, 10);
    token = sim_token(s, a);
    sim_say(s, b, "LOCK job OWNER o");
    sim_run(s, 10);
    ck_assert_uint_eq(sim_token(s, b), token);
    ck_assert_int_eq(scenario_job(s)->fields[0].count, 2);
    answered(s, a, "1", "UNLOCK job OWNER o");
    sim_run(s, 40000);
    ck_assert_str_eq(scenario_holder(s), "o");
    answered(s, b, "0", "UNLOCK job OWNER o");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_hold_that_moved_to_another_daemon_survives_its_first_connection_H4)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    sim_say(s, a, "LOCK job GRACE 0");
    sim_run(s, 10);
    /* The lease, less the way to Redis and back. */
    answered(s, b, "29998", "RENEW job TOKEN %" PRIu64, sim_token(s, a));
    sim_close(s, a);
    sim_run(s, 60000);
    ck_assert_str_ne(scenario_holder(s), "");
    ck_assert_int_gt(scenario_ttl(s), 15000);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(a_request_granted_elsewhere_is_not_taken_back_by_the_first_daemon_H4)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    s->profile.undelivered = 1000;
    sim_say(s, a, "LOCK job GRACE 0 KEEP 50 ID " R1);
    sim_run(s, 1);
    sim_say(s, b, "LOCK job GRACE 0 KEEP 50 ID " R1);
    sim_run(s, 1); /* d0 has its answer, and nobody to give it to */
    s->profile.undelivered = 0;
    sim_run(s, 10);
    heard(s, b, "token");
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    scenario_end(s);
}

START_TEST(the_undo_of_a_grant_that_came_too_late_spares_who_has_it_elsewhere_H4)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    sim_say(s, a, "LOCK job KEEP 0 ID " R1);
    sim_run(s, 1); /* it has run at Redis */
    sim_close(s, a);
    answered(s, b, "token", "LOCK job ID " R1);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "latchd:id:" R1);
    scenario_end(s);
}

START_TEST(an_unlock_by_id_sent_twice_takes_one_entry_H5)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job OWNER o ID " R1);
    sim_run(s, 10);
    sim_say(s, c, "LOCK job OWNER o ID " R2);
    sim_run(s, 10);
    answered(s, c, "1", "UNLOCK job ID " R1);
    answered(s, c, "1", "UNLOCK job ID " R1);
    ck_assert_int_eq(scenario_job(s)->fields[0].count, 1);
    scenario_end(s);
}

START_TEST(a_forceunlock_sent_twice_spares_the_next_holder_H5)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);
    size_t f = sim_connect(s, 0);
    uint64_t token;

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    token = sim_token(s, a);
    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    sim_say(s, f, "FORCEUNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, 20);
    heard(s, f, "1");
    heard(s, b, "token");
    ck_assert_uint_eq(s->check.lost, 1);
    sim_say(s, f, "FORCEUNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, 20);
    heard(s, f, "0");
    ck_assert_str_ne(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(an_owner_and_an_id_of_the_same_text_are_two_H6)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    answered(s, a, "token", "LOCK job OWNER " R1);
    answered(s, b, "nil", "LOCK job WAIT 0 KEEP 0 ID " R1);
    scenario_end(s);
}

START_TEST(a_lock_sent_again_after_its_unlock_takes_nothing_H6)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t late = sim_connect(s, 0);

    sim_say(s, a, "LOCK job ID " R1);
    sim_run(s, 10);
    answered(s, a, "0", "UNLOCK job ID " R1);
    answered(s, late, "-NOTHELD", "LOCK job ID " R1);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(an_owner_on_two_connections_keeps_its_lease_when_one_closes_H8)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, a, "LOCK job OWNER o GRACE 0");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job OWNER o GRACE 0");
    sim_run(s, 10);
    sim_close(s, a);
    sim_run(s, 60000);
    ck_assert_str_eq(scenario_holder(s), "o");
    ck_assert_int_eq(scenario_job(s)->fields[0].count, 1);
    ck_assert_int_gt(scenario_ttl(s), 15000);
    sim_close(s, b);
    sim_run(s, 10);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_daemon_that_stood_still_for_longer_than_a_lease_vouches_for_nothing_H9)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, a, "LOCK job ID " R1);
    sim_run(s, 10);
    fault_stall(s, 0, 40000);
    sim_run(s, 40000);
    ck_assert_uint_eq(s->check.lost, 1);
    answered(s, b, "-NOTHELD", "LOCK job WAIT 0 ID " R1);
    scenario_end(s);
}

START_TEST(a_daemon_that_stood_still_is_uncertain_until_redis_confirms_H9)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    fault_stall(s, 0, 12000);
    sim_run(s, 12000);
    ck_assert_uint_eq(s->check.uncertain, 1);
    sim_run(s, 100);
    ck_assert_int_gt(scenario_ttl(s), 29000);
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(what_nobody_was_to_renew_expires_and_is_not_lost)
{
    struct sim *s = scenario_new(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, a, "LOCK job LEASE 500");
    sim_run(s, 1000);
    ck_assert_uint_eq(s->check.expired, 1);
    sim_say(s, a, "LOCK job OWNER o LEASE 500");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job OWNER o LEASE 1000");
    sim_run(s, 2000);
    ck_assert_uint_eq(s->check.expired, 2);
    sim_say(s, b, "LOCK job");
    sim_run(s, 10);
    sim_close(s, b); /* what it held runs out */
    sim_run(s, 40000);
    ck_assert_uint_eq(s->check.expired, 3);
    ck_assert_uint_eq(s->check.lost, 0);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_lease_that_others_end_before_its_time_is_lost)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t far = sim_connect(s, 1);

    sim_say(s, a, "LOCK job LEASE 5000");
    sim_run(s, 10);
    answered(s, far, "1", "FORCEUNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 6000);
    ck_assert_uint_eq(s->check.lost, 1);
    ck_assert_uint_eq(s->check.expired, 0);
    scenario_end(s);
}

START_TEST(an_answer_that_takes_more_than_half_of_the_lease_is_no_grant_H10)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    fault_pause(s, 1200);
    sim_say(s, c, "LOCK job LEASE 2000 WAIT 10000");
    sim_run(s, 1000);
    heard(s, c, "...");
    sim_run(s, 500);
    heard(s, c, "token");
    ck_assert_int_gt(scenario_ttl(s), 1000);
    scenario_end(s);
}

/* The hand-over was asked for while its place was kept, with KEEP as the lease. */
START_TEST(a_grant_for_keep_that_comes_too_late_for_the_lease_is_none_H10)
{
    struct sim *s = scenario_new(1);
    size_t holder = sim_connect(s, 0);
    size_t c = sim_connect(s, 0);

    sim_say(s, holder, "LOCK job");
    sim_run(s, 10);
    sim_say(s, c, "LOCK job WAIT 10 LEASE 500 OWNER o ID " R1 " KEEP 3000");
    sim_run(s, 30);
    heard(s, c, "nil");
    fault_pause(s, 460);
    sim_say(s, holder, "UNLOCK job");
    sim_say(s, c, "LOCK job WAIT 1000 LEASE 500 OWNER o ID " R1);
    sim_run(s, 480);
    ck_assert_uint_eq(s->check.lost, 0);
    sim_run(s, 20);
    heard(s, c, "token");
    ck_assert_int_gt(scenario_ttl(s), 400);
    ck_assert_str_eq(scenario_holder(s), "o");
    scenario_end(s);
}

START_TEST(a_bare_unlock_is_refused_once_the_connection_has_lost_one_H15)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job LEASE 200");
    sim_run(s, 1000);
    answered(s, c, "token", "LOCK job");
    answered(s, c, "-ERR", "UNLOCK job");
    ck_assert_str_ne(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(tokens_grow_when_data_and_time_are_lost_H17)
{
    struct sim *s = scenario_new(1);
    size_t c = sim_connect(s, 0);
    uint64_t token;

    sim_say(s, c, "LOCK job");
    sim_run(s, 10);
    token = sim_token(s, c);
    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, 10);
    fault_flush(s);
    fault_clock(s, -3600000);
    sim_run(s, 300);
    answered(s, c, "token", "LOCK job");
    ck_assert_uint_gt(sim_token(s, c), token);
    scenario_end(s);
}

/* The other daemon has seen no token of that name: the fence key alone tells. */
START_TEST(tokens_grow_through_another_daemon_when_the_clock_is_set_back_H17)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0), b = sim_connect(s, 1);
    uint64_t token;

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    token = sim_token(s, a);
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, 10);
    fault_clock(s, -3600000);
    sim_run(s, 300);
    answered(s, b, "token", "LOCK job");
    ck_assert_uint_gt(sim_token(s, b), token);
    scenario_end(s);
}

/* No fence key tells any more, as the name was free for long: a daemon knows where the
 * clock was, and one that starts later is told by the others. */
START_TEST(tokens_grow_when_the_clock_is_set_back_and_the_fence_key_is_over_H17)
{
    struct engine_config config = scenario_config();
    struct sim *s;
    uint64_t token;
    size_t a, b, c;

    config.fence_ttl_ms = 60000;
    s = scenario_with(2, &config);
    a = sim_connect(s, 0);
    b = sim_connect(s, 1);
    answered(s, a, "token", "LOCK job");
    token = sim_token(s, a);
    answered(s, a, "0", "UNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, config.watchdog_ms + config.fence_ttl_ms);
    ck_assert_uint_eq(scenario_job(s)->fence_token, 0);
    fault_clock(s, -3600000);
    sim_run(s, 300);
    answered(s, b, "token", "LOCK job");
    ck_assert_uint_gt(sim_token(s, b), token);
    token = sim_token(s, b);
    answered(s, b, "0", "UNLOCK job TOKEN %" PRIu64, token);
    sim_run(s, config.watchdog_ms + config.fence_ttl_ms);
    sim_kill_daemon(s, 0);
    sim_start_daemon(s, 0, &config);
    sim_run(s, 300);
    c = sim_connect(s, 0);
    answered(s, c, "token", "LOCK job");
    ck_assert_uint_gt(sim_token(s, c), token);
    scenario_end(s);
}

START_TEST(a_hold_released_through_another_daemon_is_not_lost_H30)
{
    struct sim *s = scenario_new(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 15000);
    heard(s, b, "0");
    ck_assert_uint_eq(s->check.lost, 0);
    ck_assert_uint_eq(s->check.uncertain, 0);
    scenario_end(s);
}

START_TEST(a_daemon_that_stops_leaves_grace_0_holds_with_a_full_lease_H31)
{
    struct sim *s = scenario_new(1);
    struct sim_daemon *d = &s->daemons[0];
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job GRACE 0");
    sim_run(s, 5000);
    d->stopping = true;
    engine_stop(sim_turn_begin(s, d));
    sim_turn_end(s, d);
    ck_assert_uint_eq(s->check.uncertain, 1);
    sim_run(s, 10);
    ck_assert(engine_stopped(d->engine));
    sim_close(s, c);
    sim_run(s, 10);
    ck_assert_int_gt(scenario_ttl(s), 29000);
    ck_assert(!s->failed);
    sim_free(s);
}
