/* Grants and renewals that replicas have to acknowledge: H11, and what happens while
 * they do not. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>

static struct sim *new_acked(size_t daemons)
{
    struct sim *s = scenario_new(daemons);

    s->profile.min_replicas = true;
    return s;
}

/* A daemon whose master was isolated holds; the new master's lease of it runs out, and
 * another daemon grants there. */
static struct sim *isolate_holder(bool unheeded, size_t *retold, size_t *retnew)
{
    struct sim *s = new_acked(2);

    s->profile.unheeded = unheeded;
    *retold = sim_connect(s, 0);
    *retnew = sim_connect(s, 1);
    answered(s, *retold, "token", "LOCK job");
    fault_isolate(s, 0);
    sim_say(s, *retnew, "LOCK job WAIT 60000");
    sim_run(s, 40000);
    return s;
}

START_TEST(an_isolated_master_cannot_keep_a_holder_believing_H11)
{
    size_t old, new;
    struct sim *s = isolate_holder(false, &old, &new);

    ck_assert_msg(!s->failed, "%s", s->failure);
    heard(s, new, "token");
    ck_assert_uint_eq(s->check.uncertain, 1);
    ck_assert_uint_eq(s->check.lost, 1);
    /* The old master knows it still. */
    answered(s, old, "0", "UNLOCK job TOKEN %" PRIu64, sim_token(s, old));
    sim_close(s, old);
    s->daemons[0].isolated = false;
    scenario_end(s);
}

START_TEST(without_the_rule_two_would_hold_H11)
{
    size_t old, new;
    struct sim *s = isolate_holder(true, &old, &new);

    ck_assert(s->failed);
    ck_assert_ptr_nonnull(strstr(s->failure, "vouches for job"));
    sim_free(s);
}

START_TEST(an_isolated_master_grants_nothing)
{
    struct sim *s = new_acked(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);

    fault_isolate(s, 0);
    sim_say(s, a, "LOCK job WAIT 5000");
    answered(s, b, "token", "LOCK job");
    sim_run(s, 10000);
    heard(s, a, "-NOREPLICAS");
    ck_assert_uint_eq(s->isolated->names[0].field_count, 0); /* and leaves nothing */
    s->daemons[0].isolated = false;
    scenario_end(s);
}

START_TEST(a_wait_rides_out_the_absence_of_replicas)
{
    struct sim *s = new_acked(1);
    size_t c = sim_connect(s, 0);

    s->replicas_gone_until = s->now + 20000;
    sim_say(s, c, "LOCK job WAIT 30000");
    sim_run(s, 19000);
    heard(s, c, "...");
    sim_run(s, 3000);
    heard(s, c, "token");
    scenario_end(s);
}

START_TEST(an_unlock_is_one_also_when_the_next_one_is_not_granted)
{
    struct sim *s = new_acked(1);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 0);

    sim_say(s, a, "LOCK job");
    sim_run(s, 10);
    sim_say(s, b, "LOCK job WAIT 10000");
    sim_run(s, 10);
    s->replicas_gone_until = s->now + 3000;
    sim_say(s, a, "UNLOCK job TOKEN %" PRIu64, sim_token(s, a));
    sim_run(s, 1100);
    heard(s, a, "0");
    heard(s, b, "...");
    sim_run(s, 4000);
    heard(s, b, "token");
    scenario_end(s);
}

START_TEST(a_hold_outlives_an_absence_shorter_than_its_lease)
{
    struct sim *s = new_acked(1);
    size_t c = sim_connect(s, 0);

    sim_say(s, c, "LOCK job");
    sim_run(s, 5000);
    s->replicas_gone_until = s->now + 20000;
    sim_run(s, 60000);
    ck_assert_uint_eq(s->check.uncertain, 1);
    ck_assert_uint_eq(s->check.lost, 0);
    answered(s, c, "0", "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
    scenario_end(s);
}

START_TEST(messages_do_not_hide_that_a_renewal_was_not_acknowledged)
{
    for (uint64_t early = 0; early < 400; early += 50) {
        struct sim *s = new_acked(1);
        size_t holder = sim_connect(s, 0);
        size_t waits = sim_connect(s, 0);

        sim_say(s, holder, "LOCK job");
        sim_run(s, 10);
        sim_say(s, waits, "LOCK job");
        sim_run(s, 9000 - early);
        s->replicas_gone_until = s->now + 15000;
        for (int i = 0; i < 1300; i++) { /* also between two renewals */
            redis_publish(&s->redis, scenario_job(s));
            sim_run(s, 10);
        }
        ck_assert_msg(!s->failed, "%s", s->failure);
        ck_assert_uint_eq(s->check.uncertain, 1);
        sim_run(s, 15000);
        scenario_end(s);
    }
}

START_TEST(an_mlock_without_replicas_leaves_nothing)
{
    struct sim *s = new_acked(1);
    size_t c = sim_connect(s, 0);

    s->profile.names = 3;
    s->replicas_gone_until = s->now + 60000;
    sim_say(s, c, "MLOCK 3 job door tap WAIT 4000");
    sim_run(s, 9000);
    heard(s, c, "-NOREPLICAS");
    ck_assert_str_eq(scenario_holder(s), "");
    s->replicas_gone_until = 0;
    sim_say(s, c, "MLOCK 3 job door tap WAIT 4000");
    sim_run(s, 100);
    heard(s, c, "tokens");
    scenario_end(s);
}

/* As what follows is not in the replica, it has the grant, but not that it was given
 * back. */
START_TEST(a_grant_that_was_not_acknowledged_does_not_come_back)
{
    struct sim *s = new_acked(1);
    size_t c = sim_connect(s, 0);

    s->replicas_gone_until = s->now + 60000;
    sim_say(s, c, "LOCK job WAIT 0 OWNER o");
    sim_run(s, 2);
    ck_assert_str_eq(scenario_holder(s), "o");
    fault_replica_at(s, UINT32_MAX);
    sim_run(s, 5000);
    heard(s, c, "-NOREPLICAS");
    ck_assert_str_eq(scenario_holder(s), "");
    s->replicas_gone_until = 0;
    fault_failover(s, 200);
    ck_assert_str_eq(scenario_holder(s), "o");
    sim_run(s, 600);
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* The client was told of the hold before, and relies on it until the lease is over. */
START_TEST(a_hold_that_is_found_again_without_replicas_is_not_undone)
{
    struct sim *s = new_acked(2);
    size_t c = sim_connect(s, 0);

    answered(s, c, "token", "LOCK job ID client-of-latchd-1");
    sim_close(s, c);
    sim_run(s, 10);
    s->replicas_gone_until = s->now + 3000;
    c = sim_connect(s, 1);
    sim_say(s, c, "LOCK job ID client-of-latchd-1 WAIT 0");
    sim_run(s, 2000);
    heard(s, c, "-NOREPLICAS");
    ck_assert_str_ne(scenario_holder(s), "");
    sim_run(s, 2000);
    answered(s, c, "token", "LOCK job ID client-of-latchd-1 WAIT 0");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

/* With an ID, each try finds what the one before was granted. */
START_TEST(a_request_that_no_try_was_acknowledged_of_leaves_nothing, 2)
{
    struct sim *s = new_acked(1);
    size_t c = sim_connect(s, 0);

    s->replicas_gone_until = s->now + 10000;
    sim_say(s, c, "LOCK job ID client-of-latchd-1 WAIT 3500");
    if (_i == 1) { /* nothing is known of the first try */
        link_break(s, &s->daemons[0], 100, 100, true);
    }
    sim_run(s, 6000);
    heard(s, c, "-NOREPLICAS");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

/* Redis has lost what came after its backup. */
static void go_back(struct sim *s)
{
    fault_restart(s, 200);
    for (size_t i = 0; i < s->daemon_count; i++) {
        link_lose_scripts(s, &s->daemons[i]);
    }
    check_external(s, NULL);
    s->check.resurrected = true;
    sim_redis_restore(sim_redis_now(s), s->backup);
}

/* Its token is less than the one that was given meanwhile: it is given back again. */
START_TEST(a_grant_that_was_undone_is_not_given_out_when_it_comes_back)
{
    struct sim *s = new_acked(2);
    size_t a = sim_connect(s, 0);
    size_t b = sim_connect(s, 1);
    uint64_t between;

    s->replicas_gone_until = s->now + 100;
    sim_say(s, a, "LOCK job");
    sim_run(s, 2);
    ck_assert_str_ne(scenario_holder(s), "");
    sim_redis_save(sim_redis_now(s), &s->backup);
    sim_say(s, b, "LOCK job");
    sim_run(s, 1100); /* a's grant was not acknowledged in time */
    heard(s, b, "token");
    heard(s, a, "...");
    between = sim_token(s, b);
    sim_say(s, b, "UNLOCK job TOKEN %" PRIu64, between);
    go_back(s);
    sim_run(s, 6000);
    heard(s, b, "0");
    heard(s, a, "token");
    ck_assert_uint_gt(sim_token(s, a), between);
    scenario_end(s);
}

/* Without a quarantine, so that only the acknowledgements are between two holders. */
static struct sim *fail_over(bool acked, size_t *retold, size_t *retnew)
{
    struct engine_config config = scenario_config();
    struct sim *s;

    config.quarantine_ms = 0;
    s = scenario_with(2, &config);
    s->profile.min_replicas = acked;
    *retold = sim_connect(s, 0);
    *retnew = sim_connect(s, 1);
    fault_replica_at(s, UINT32_MAX); /* what follows is not in it */
    sim_say(s, *retold, "LOCK job WAIT 100");
    sim_run(s, 50);
    fault_stall(s, 0, 5000); /* it is late with putting back */
    fault_failover(s, 200);
    sim_run(s, 1000);
    sim_say(s, *retnew, "LOCK job WAIT 100");
    sim_run(s, 3000);
    return s;
}

START_TEST(no_acknowledged_grant_is_lost_in_a_failover)
{
    size_t old, new;
    struct sim *s = fail_over(true, &old, &new);

    ck_assert_msg(!s->failed, "%s", s->failure);
    heard(s, new, "token");
    sim_run(s, 10000);
    ck_assert_str_ne(sim_heard(s, old), "token");
    ck_assert_uint_eq(s->check.lost, 0);
    scenario_end(s);
}

START_TEST(without_acknowledgements_a_grant_may_be_lost_in_a_failover)
{
    size_t old, new;
    struct sim *s = fail_over(false, &old, &new);

    heard(s, old, "token");
    heard(s, new, "token");
    sim_free(s);
}
