/* Names that are lent: what Redis has meanwhile, and what others see of it. */
#include "sim/scenario.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdlib.h>

enum { WINDOW_MS = 20 };

static struct sim *s;
static size_t a, b, other;

static void setup(void)
{
    s = scenario_new(2);
    sim_run(s, LOCAL_WINDOW_MAX_MS);
    a = sim_connect(s, 0);
    b = sim_connect(s, 0);
    other = sim_connect(s, 1);
}

static void asks(size_t c)
{
    sim_say(s, c, "LOCK job LOCAL");
}

static void gives_back(size_t c)
{
    sim_say(s, c, "UNLOCK job TOKEN %" PRIu64, sim_token(s, c));
}

/* The name was asked for shortly before; then `a` holds it from a loan. */
static void borrow(void)
{
    for (int i = 0; i < 2; i++) {
        asks(a);
        sim_run(s, 3);
        heard(s, a, "token");
        if (i == 0) {
            gives_back(a);
            sim_run(s, 3);
        }
    }
    ck_assert_uint_ne(s->check.loan_count, 0);
}

static const struct sim_loan *last_loan(void)
{
    return &s->check.loans[(s->check.loan_count - 1) % LOANS_KEPT];
}

static bool stands_under(uint64_t token)
{
    struct rtext field = rtext_printf("latchd:%" PRIu64, token);

    return strcmp(scenario_holder(s), field.s) == 0;
}

TEST_GROUP(.setup = setup);

START_TEST(a_hold_from_memory_stands_under_the_loan_until_it_is_settled)
{
    uint64_t token;

    borrow();
    gives_back(a);
    asks(b);
    heard(s, b, "token");
    token = sim_token(s, b);
    ck_assert_uint_eq(token, last_loan()->first + 1);
    ck_assert(stands_under(last_loan()->token));
    sim_run(s, WINDOW_MS + SCENARIO_RTT_MS);
    ck_assert(stands_under(token));
    ck_assert_int_gt(scenario_ttl(s), 29000);
    scenario_end(s);
}

/* The other daemon knows nothing of the tokens that were given here; a loan begins with
 * tokens of the last window. */
START_TEST(tokens_go_on_when_redis_lost_everything_H35)
{
    uint64_t given;
    size_t loans;

    borrow();
    gives_back(a);
    sim_run(s, 5);
    borrow();
    given = sim_token(s, a);
    gives_back(a);
    sim_run(s, 5);
    fault_flush(s);
    loans = s->check.loan_count;
    for (int i = 0; i < 3; i++) {
        asks(other);
        sim_run(s, 3);
        heard(s, other, "token");
        ck_assert_uint_gt(sim_token(s, other), given);
        given = sim_token(s, other);
        gives_back(other);
        sim_run(s, 3);
    }
    ck_assert_uint_gt(s->check.loan_count, loans);
    scenario_end(s);
}

START_TEST(a_waiter_of_another_daemon_has_its_turn_within_a_window)
{
    borrow();
    sim_say(s, other, "LOCK job");
    for (int ms = 0; ms < 2 * WINDOW_MS + 10; ms++) {
        size_t holds = ms % 2 == 0 ? a : b;
        size_t waits = ms % 2 == 0 ? b : a;

        if (strcmp(sim_heard(s, holds), "token") == 0) {
            asks(waits);
            gives_back(holds);
        }
        sim_run(s, 1);
    }
    heard(s, other, "token");
    gives_back(other);
    scenario_end(s);
}

START_TEST(after_a_crash_nobody_has_the_name_before_the_lease_is_over)
{
    uint64_t token;

    borrow();
    gives_back(a);
    asks(b);
    token = sim_token(s, b);
    sim_kill_daemon(s, 0);
    sim_say(s, other, "LOCK job");
    sim_run(s, 25000);
    heard(s, other, "...");
    sim_run(s, 6000);
    heard(s, other, "token");
    ck_assert_uint_gt(sim_token(s, other), token);
    scenario_end(s);
}

START_TEST(a_settled_hold_survives_a_crash_of_its_daemon)
{
    borrow();
    gives_back(a);
    asks(b);
    sim_run(s, WINDOW_MS + SCENARIO_RTT_MS);
    sim_kill_daemon(s, 0);
    sim_say(s, other, "RENEW job TOKEN %" PRIu64, sim_token(s, b));
    sim_run(s, 5);
    ck_assert_int_gt(atoi(sim_heard(s, other)), 29000);
    scenario_end(s);
}

static void stops(struct sim_daemon *d)
{
    d->stopping = true;
    engine_stop(sim_turn_begin(s, d));
    sim_turn_end(s, d);
    sim_run(s, SCENARIO_RTT_MS);
    ck_assert(engine_stopped(d->engine));
}

START_TEST(a_daemon_that_stops_returns_its_idle_loans)
{
    borrow();
    gives_back(a);
    stops(&s->daemons[0]);
    sim_kill_daemon(s, 0);
    answered(s, other, "token", "LOCK job");
    scenario_end(s);
}

START_TEST(a_daemon_that_stops_settles_who_holds_from_a_loan)
{
    uint64_t token;

    borrow();
    gives_back(a);
    asks(b);
    token = sim_token(s, b);
    stops(&s->daemons[0]);
    sim_kill_daemon(s, 0);
    ck_assert(stands_under(token));
    ck_assert_int_gt(scenario_ttl(s), 29000);
    sim_say(s, other, "RENEW job TOKEN %" PRIu64, token);
    sim_run(s, SCENARIO_RTT_MS);
    ck_assert_int_gt(atoi(sim_heard(s, other)), 29000);
    scenario_end(s);
}

START_TEST(a_hold_from_memory_is_put_back_after_a_failover_that_lost_the_loan_H37)
{
    scenario_mark(s);
    borrow();
    gives_back(a);
    asks(b);
    heard(s, b, "token");
    scenario_lose(s);
    sim_run(s, SCENARIO_GONE_MS + 300);
    ck_assert(stands_under(sim_token(s, b)));
    ck_assert_uint_eq(s->check.lost, 0);
    gives_back(b);
    sim_run(s, 10);
    heard(s, b, "0");
    ck_assert_str_eq(scenario_holder(s), "");
    scenario_end(s);
}

START_TEST(a_holder_that_was_deleted_from_outside_is_told_within_a_window)
{
    borrow();
    gives_back(a);
    asks(b);
    fault_flush(s);
    sim_run(s, WINDOW_MS + SCENARIO_RTT_MS);
    ck_assert_uint_eq(s->check.lost, 1);
    scenario_end(s);
}

START_TEST(a_reader_after_a_local_unlock_gets_the_lock)
{
    borrow();
    gives_back(a);
    answered(s, b, "token", "LOCK job READ");
    scenario_end(s);
}
