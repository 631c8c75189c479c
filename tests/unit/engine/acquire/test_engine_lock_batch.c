/* The engine: LOCKs that came together on one connection. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include <string.h>

enum { RUN = 4 };

/* LOCKs of connection 1, for names of one letter each; those that have begun. The calls
 * are 1, 2, .. */
static size_t asks(const char *names, struct lock_terms like)
{
    struct lock_req reqs[RUN];
    size_t count = strlen(names);
    size_t begun;

    ck_assert_uint_le(count, RUN);
    for (size_t i = 0; i < count; i++) {
        reqs[i] = (struct lock_req){ .from = { 1, i + 1 },
                                     .name = span_of(names + i, 1),
                                     .terms = like };
    }
    begun = engine_lock_batch(e.engine, reqs, count);
    fixture_collect(&e);
    return begun;
}

static struct said hears(uint64_t call, enum reply_kind kind)
{
    struct said s = fixture_hears(&e, 1, kind);

    ck_assert_uint_eq(s.to.call, call);
    return s;
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(free_names_are_taken_by_one_op_in_the_order_they_came)
{
    ck_assert_uint_eq(asks("cab", FOREVER), 3);
    ck_assert_uint_eq(e.ops[0].op.batch.count, 3);
    ck_assert_str_eq(e.ops[0].batch[0], "c");
    ck_assert_str_eq(e.ops[0].batch[2], "b");
    fixture_gives_many(&e, 3, 10, ALL);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(hears(i + 1, REPLY_TOKEN).value, (int64_t)(10 + i));
    }
    fixture_no_op(&e);
}

START_TEST(those_behind_a_refusal_are_as_if_they_had_not_come)
{
    ck_assert_uint_eq(asks("abcd", WAIT(0)), 4);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)hears(1, REPLY_TOKEN);
    (void)hears(2, REPLY_NULL);
    (void)hears(3, REPLY_UNREACHED);
    (void)hears(4, REPLY_UNREACHED);
    fixture_no_op(&e);
    fixture_lock(&e, 2, "c", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(20)); /* nobody is before it */
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(the_first_that_is_not_granted_waits_and_no_other)
{
    ck_assert_uint_eq(asks("ab", FOREVER), 2);
    fixture_gives_many(&e, 0, 0, BUSY);
    (void)hears(2, REPLY_UNREACHED);
    fixture_hears_nothing(&e);
    ck_assert_str_eq(e.subs, "+a");
    ck_assert(engine_unblock(e.engine, 1, false));
    fixture_collect(&e);
    (void)hears(1, REPLY_NULL);
    ck_assert(!engine_unblock(e.engine, 1, false));
}

/* In whose way another is, or who is in the way of another, begins alone. */
START_TEST(a_run_ends_before_a_name_that_somebody_has_to_do_with)
{
    (void)fixture_grant(&e, 2, "b", FOREVER, 1);
    ck_assert_uint_eq(asks("ab", FOREVER), 1);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(2));
    (void)hears(1, REPLY_TOKEN);
    ck_assert_uint_eq(asks("cca", FOREVER), 1); /* a name twice */
    fixture_gives(&e, OP_ACQUIRE, GRANTED(3));
    (void)hears(1, REPLY_TOKEN);
    ck_assert_uint_eq(asks("bd", WAIT(0)), 1);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)hears(1, REPLY_NULL);
    fixture_no_op(&e);
}

START_TEST(kinds_that_are_not_plain_begin_alone)
{
    ck_assert_uint_eq(asks("ab", (struct lock_terms){ .lock_kind = KIND_READ }), 1);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(2));
    (void)hears(1, REPLY_TOKEN);
}

START_TEST(limits_bound_a_run, 2)
{
    struct engine_config few = { .watchdog_ms = 30000,
                                 .redis_timeout_ms = 3000,
                                 .recheck_ms = 5000,
                                 .grace_ms = -1,
                                 .max_waiters = _i == 0 ? 2 : 100,
                                 .max_holds = _i == 0 ? 100 : 2 };

    engine_configure(e.engine, &few);
    ck_assert(engine_has_room(e.engine));
    ck_assert_uint_eq(asks("abcd", FOREVER), 2);
    ck_assert_int_eq(engine_has_room(e.engine), _i == 1);
    fixture_gives_many(&e, 2, 10, ALL);
    ck_assert_int_eq(engine_has_room(e.engine), _i == 0);
    (void)hears(1, REPLY_TOKEN);
    (void)hears(2, REPLY_TOKEN);
}

START_TEST(without_redis_they_begin_one_by_one)
{
    engine_on_store_down(e.engine);
    ck_assert_uint_eq(asks("ab", WAIT(1000)), 1);
    fixture_pass(&e, 1000);
    ck_assert_int_eq(hears(1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_on_store_up(e.engine, true);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_uint_eq(asks("cd", FOREVER), 1);
    ck_assert_int_eq(hears(1, REPLY_ERROR).error, LOCK_GOAWAY);
}

START_TEST(what_may_have_been_granted_is_given_back)
{
    bool back_first;

    ck_assert_uint_eq(asks("ab", FOREVER), 2);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    engine_on_store_down(e.engine);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    (void)hears(2, REPLY_UNREACHED);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    back_first = e.ops[0].op.kind == OP_RELEASE; /* names come in no order */
    if (back_first) {
        fixture_gives_back(&e, "b");
    }
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(3));
    if (!back_first) {
        fixture_gives_back(&e, "b");
    }
    (void)hears(1, REPLY_TOKEN);
    fixture_no_op(&e);
}

START_TEST(a_grant_that_comes_too_late_takes_those_behind_it_along)
{
    ck_assert_uint_eq(asks("ab", (struct lock_terms){ .has = OPT_LEASE | OPT_WAIT,
                                                      .lease_ms = 1000,
                                                      .wait_ms = 60000 }),
                      2);
    fixture_pass(&e, 600); /* more than half of it */
    fixture_gives_many(&e, 2, 10, ALL);
    (void)hears(2, REPLY_UNREACHED);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_pass(&e, 200);
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(20));
    ck_assert_int_eq(hears(1, REPLY_TOKEN).value, 20);
}

START_TEST(nothing_is_left_of_a_connection_that_closes_in_between)
{
    ck_assert_uint_eq(asks("abc", FOREVER), 3);
    fixture_close(&e, 1);
    fixture_gives_many(&e, 2, 10, BUSY);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_hears_nothing(&e);
    fixture_pass(&e, 2000);
    fixture_is_empty(&e);
}

/* The ID comes again on another connection, which did not send it behind others. */
START_TEST(who_took_a_wait_over_is_not_sent_away)
{
    struct lock_req reqs[] = {
        { .from = { 1, 1 }, .name = SPAN("a") },
        { .from = { 1, 2 }, .name = SPAN("b"), .terms.id = ID_A },
    };

    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 2), 2);
    fixture_collect(&e);
    fixture_lock(&e, 2, "b", WITH_ID);
    (void)hears(2, REPLY_NULL);
    fixture_gives_many(&e, 0, 0, BUSY);
    fixture_hears_nothing(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(5));
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}
