/* A name that is lent, in LOCKINFO, LOCKS, WAITERS and the status page. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "engine/loan.h"
#include "engine/survey.h"

#include <stdio.h>
#include <string.h>

enum {
    FIRST = 1000, /* the tokens of the loan, */
    LAST = 21000, /* and the one that ends them */
    ADMIN = 9,    /* the connection that asks */
};

#define LOCAL ((struct lock_terms){ .has = OPT_LOCAL })
#define LOAN_FIELD "latchd:21000"

/* Connection 1 holds the name from a loan. */
static void lend(void)
{
    start_engine();
    fixture_lock(&e, 1, "job", LOCAL);
    fixture_gives(
        &e, OP_ACQUIRE,
        (struct op_result){
            .status = OP_OK, .count = 1, .token = FIRST, .loan_token = LAST });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

static void unlock(uint64_t conn, uint64_t token)
{
    fixture_unlock(&e, conn, "job", (struct hold_req){ .token = token });
    (void)fixture_hears(&e, conn, REPLY_INT);
}

/* LOCKINFO is sent; `op` is the question to Redis. */
static void ask_info(void)
{
    engine_lock_info(e.engine, (struct call_ref){ ADMIN, 1 }, SPAN("job"));
    fixture_collect(&e);
    fixture_take_op(&e, OP_INSPECT, &op);
}

/* Redis answers that the name has this field alone, or none. */
static struct said hear_info(const char *field)
{
    struct op_field there = { .owner = span_str(field), .count = 1 };
    struct op_result r = { .status = OP_OK,
                           .token = LAST,
                           .ttl_ms = 29000,
                           .inspect.fields = &there,
                           .inspect.field_count = *field != '\0',
                           .inspect.who = SPAN("a00000000000000aa:1") };

    fixture_answer(&e, &op, r);
    return fixture_hears(&e, ADMIN, REPLY_INFO);
}

static void is_held_by(const struct said *said, uint64_t token, bool local)
{
    char owner[32];

    (void)snprintf(owner, sizeof(owner), "latchd:%d", (int)token);
    ck_assert_int_eq(said->info.state, INFO_STATE_HELD);
    ck_assert_uint_eq(said->info.hold_count, 1);
    ck_assert_str_eq(said->owner, owner);
    ck_assert_uint_eq(said->hold.token, token);
    ck_assert(said->hold.here);
    ck_assert(said->hold.local == local);
}

static void renew_ok(void)
{
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = (enum renew_result[]){ RENEW_OK },
                                       .renew.count = 1 });
}

TEST_GROUP(.setup = lend, .teardown = stop_engine);

START_TEST(lockinfo_tells_who_stands_in_the_field_of_the_loan)
{
    struct said said;

    ask_info();
    fixture_no_op(&e);
    said = hear_info(LOAN_FIELD);
    is_held_by(&said, FIRST, true);
    ck_assert_uint_eq(said.hold.conn, 1);
    ck_assert_int_eq(said.hold.lease, LEASE_WATCHDOG);
    ck_assert_int_eq(said.info.ttl_ms, 29000);
}

START_TEST(lockinfo_does_not_end_the_loan)
{
    struct said said;

    ask_info();
    unlock(1, FIRST);
    fixture_lock(&e, 2, "job", LOCAL);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, FIRST + 1);
    fixture_no_op(&e);
    said = hear_info(LOAN_FIELD);
    is_held_by(&said, FIRST + 1, true);
}

START_TEST(lockinfo_does_not_settle_the_hold)
{
    ask_info();
    fixture_no_op(&e);
    (void)hear_info(LOAN_FIELD);
    fixture_no_op(&e);
    unlock(1, FIRST); /* still without Redis */
    fixture_no_op(&e);
}

START_TEST(an_idle_loan_is_lent_and_nobody_holds)
{
    struct said said;

    ask_info();
    unlock(1, FIRST);
    said = hear_info(LOAN_FIELD);
    ck_assert_int_eq(said.info.state, INFO_STATE_LENT);
    ck_assert_uint_eq(said.info.hold_count, 0);
    ck_assert_int_eq(said.info.ttl_ms, 29000);
}

START_TEST(a_loan_that_goes_back_is_lent_until_redis_has_it)
{
    struct seen_op release;
    struct said said;

    unlock(1, FIRST);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    fixture_take_op(&e, OP_RELEASE, &release);
    ask_info();
    said = hear_info(LOAN_FIELD);
    ck_assert_int_eq(said.info.state, INFO_STATE_LENT);
    ck_assert_uint_eq(said.info.hold_count, 0);
    fixture_answer(&e, &release, FREED);
    ask_info();
    said = hear_info("");
    ck_assert_int_eq(said.info.state, INFO_STATE_FREE);
}

START_TEST(a_hold_that_is_settled_is_like_any_other)
{
    struct said said;

    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    renew_ok();
    ask_info();
    said = hear_info("latchd:1000");
    is_held_by(&said, FIRST, false);
}

START_TEST(a_field_that_the_hold_has_left_meanwhile_is_still_known_as_its_own)
{
    struct seen_op renew, inspect;
    struct said said;

    ask_info();
    inspect = op;
    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &renew);
    op = renew;
    renew_ok();
    op = inspect;
    said = hear_info(LOAN_FIELD);
    is_held_by(&said, FIRST, false);
}

START_TEST(somebody_else_in_place_of_the_loan_is_shown)
{
    struct said said;

    ask_info();
    said = hear_info("latchd:31000");
    ck_assert_int_eq(said.info.state, INFO_STATE_HELD);
    ck_assert_str_eq(said.owner, "latchd:31000");
    ck_assert(!said.hold.here);
    ck_assert(!said.hold.local);
}

START_TEST(what_is_known_here_of_an_uncertain_hold_is_local_too)
{
    struct said said;

    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_pass(&e, 3000);
    engine_lock_info(e.engine, (struct call_ref){ ADMIN, 1 }, SPAN("job"));
    fixture_pass(&e, 50);
    said = fixture_hears(&e, ADMIN, REPLY_INFO);
    ck_assert_int_eq(said.info.state, INFO_STATE_UNCERTAIN);
    ck_assert_uint_eq(said.hold.token, FIRST);
    ck_assert(said.hold.local);
}

static void count_name(void *ctx, struct span name)
{
    ++*(int *)ctx;
}

static int names_listed(void)
{
    uint64_t cursor = 0;
    int count = 0;

    do {
        cursor = engine_scan(e.engine, cursor, 10, count_name, &count);
    } while (cursor != 0);
    return count;
}

START_TEST(a_name_with_nothing_but_an_idle_loan_is_not_listed)
{
    struct name_view view;

    ck_assert_int_eq(names_listed(), 1);
    ck_assert(survey_name(e.engine, SPAN("job"), &view));
    ck_assert(view.lent && view.newest.local);
    ck_assert_uint_eq(view.newest.token, FIRST);
    unlock(1, FIRST);
    ck_assert_int_eq(names_listed(), 0);
    ck_assert(!survey_name(e.engine, SPAN("job"), &view));
}

static void note_waiter(void *ctx, const struct waiter_info *info)
{
    bool **at = ctx;

    *(*at)++ = info->local;
}

static void note_wait(void *ctx, const struct wait_view *view)
{
    bool **at = ctx;

    *(*at)++ = view->lent && view->waiter.local;
}

START_TEST(waiters_tell_whether_they_may_be_granted_from_memory)
{
    bool told[3] = { false };
    bool *at = told;

    fixture_lock(&e, 2, "job", LOCAL);
    fixture_lock(&e, 3, "job", AS_O);
    fixture_lock(&e, 4, "job",
                 (struct lock_terms){ .has = OPT_LOCAL | OPT_LEASE, .lease_ms = 5000 });
    engine_waiters(e.engine, SPAN("job"), 3, note_waiter, &at);
    ck_assert_ptr_eq(at, told + 3);
    ck_assert(told[0] && !told[1] && !told[2]);
    memset(told, 0, sizeof(told));
    at = told;
    survey_waits_of(e.engine, SPAN("job"), 3, note_wait, &at);
    ck_assert(told[0] && !told[1] && !told[2]);
}

static struct engine_stats stats(void)
{
    struct engine_stats s;

    engine_stats(e.engine, &s);
    return s;
}

START_TEST(a_loan_that_goes_back_is_counted_once_it_is_sent)
{
    unlock(1, FIRST);
    fixture_lock(&e, 2, "job", LOCAL);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    unlock(2, FIRST + 1);
    ck_assert_uint_eq(stats().lent, 1);
    ck_assert_uint_eq(stats().returned, 0);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    ck_assert_uint_eq(stats().returned, 1);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_uint_eq(stats().lent, 0);
    ck_assert_uint_eq(stats().loans, 1);
    ck_assert_uint_eq(stats().local_grants, 1);
    ck_assert_uint_eq(stats().settled, 0);
}

START_TEST(a_loan_that_is_settled_is_lent_no_more)
{
    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(stats().lent, 1);
    renew_ok();
    ck_assert_uint_eq(stats().lent, 0);
    ck_assert_uint_eq(stats().settled, 1);
    ck_assert_uint_eq(stats().returned, 0);
}

START_TEST(the_memory_of_a_name_has_its_loan)
{
    size_t lent = engine_memory(e.engine, SPAN("job"), SIZE_MAX);

    fixture_pass(&e, ENGINE_WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    renew_ok();
    ck_assert_uint_ge(lent, engine_memory(e.engine, SPAN("job"), SIZE_MAX) +
                                sizeof(struct loan));
}
