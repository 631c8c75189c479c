/* The engine: LOCKs that came together on one connection. */
#include "support/engine_mlock.h"
#include "support/runner.h"

#include <string.h>

enum { RUN = 4 };

static struct engine e;
static struct seen_op op;

static void setup(void)
{
    engine_init(&e);
}

static void teardown(void)
{
    engine_fini(&e);
}

/* LOCKs of connection 1, for names of one letter each; those that have begun. The calls
 * are 1, 2, .. */
static size_t asks(const char *names, struct lock_req like)
{
    struct lock_req reqs[RUN];
    size_t count = strlen(names);
    size_t begun;

    ck_assert_uint_le(count, RUN);
    for (size_t i = 0; i < count; i++) {
        reqs[i] = like;
        reqs[i].from = (struct call_ref){ 1, i + 1 };
        reqs[i].name = span_of(names + i, 1);
    }
    begun = locks_lock_run(e.locks, reqs, count);
    engine_collect(&e);
    return begun;
}

static struct said hears(uint64_t call, enum reply_kind kind)
{
    struct said s = engine_hears(&e, 1, kind);

    ck_assert_uint_eq(s.to.call, call);
    return s;
}

START_TEST(free_names_are_taken_by_one_op_in_the_order_they_came)
{
    ck_assert_uint_eq(asks("cab", FOREVER), 3);
    ck_assert_uint_eq(e.ops[0].op.many_count, 3);
    ck_assert_str_eq(e.ops[0].many[0], "c");
    ck_assert_str_eq(e.ops[0].many[2], "b");
    engine_gives_many(&e, 3, 10, ALL);
    for (uint64_t i = 0; i < 3; i++) {
        ck_assert_int_eq(hears(i + 1, REPLY_TOKEN).value, (int64_t)(10 + i));
    }
    engine_no_op(&e);
}
END_TEST

START_TEST(those_behind_a_refusal_are_as_if_they_had_not_come)
{
    ck_assert_uint_eq(asks("abcd", WAIT(0)), 4);
    engine_gives_many(&e, 1, 10, BUSY);
    (void)hears(1, REPLY_TOKEN);
    (void)hears(2, REPLY_NULL);
    (void)hears(3, REPLY_UNREACHED);
    (void)hears(4, REPLY_UNREACHED);
    engine_no_op(&e);
    engine_lock(&e, 2, "c", FOREVER);
    engine_gives(&e, OP_ACQUIRE, GRANTED(20)); /* nobody is before it */
    (void)engine_hears(&e, 2, REPLY_TOKEN);
}
END_TEST

START_TEST(the_first_that_is_not_granted_waits_and_no_other)
{
    ck_assert_uint_eq(asks("ab", FOREVER), 2);
    engine_gives_many(&e, 0, 0, BUSY);
    (void)hears(2, REPLY_UNREACHED);
    engine_hears_nothing(&e);
    ck_assert_str_eq(e.subs, "+a");
    ck_assert(locks_unblock(e.locks, 1, false));
    engine_collect(&e);
    (void)hears(1, REPLY_NULL);
    ck_assert(!locks_unblock(e.locks, 1, false));
}
END_TEST

/* In whose way another is, or who is in the way of another, begins alone. */
START_TEST(a_run_ends_before_a_name_that_somebody_has_to_do_with)
{
    (void)engine_grant(&e, 2, "b", FOREVER, 1);
    ck_assert_uint_eq(asks("ab", FOREVER), 1);
    engine_gives(&e, OP_ACQUIRE, GRANTED(2));
    (void)hears(1, REPLY_TOKEN);
    ck_assert_uint_eq(asks("cca", FOREVER), 1); /* a name twice */
    engine_gives(&e, OP_ACQUIRE, GRANTED(3));
    (void)hears(1, REPLY_TOKEN);
    ck_assert_uint_eq(asks("bd", WAIT(0)), 1);
    engine_gives(&e, OP_ACQUIRE, BUSY);
    (void)hears(1, REPLY_NULL);
    engine_no_op(&e);
}
END_TEST

START_TEST(kinds_that_are_not_plain_begin_alone)
{
    ck_assert_uint_eq(asks("ab", (struct lock_req){ .kind = KIND_READ }), 1);
    engine_gives(&e, OP_ACQUIRE, GRANTED(2));
    (void)hears(1, REPLY_TOKEN);
}
END_TEST

START_TEST(limits_bound_a_run)
{
    struct locks_config few = { .watchdog_ms = 30000,
                                .redis_timeout_ms = 3000,
                                .recheck_ms = 5000,
                                .grace_ms = -1,
                                .max_waiters = _i == 0 ? 2 : 100,
                                .max_holds = _i == 0 ? 100 : 2 };

    locks_configure(e.locks, &few);
    ck_assert(locks_has_room(e.locks));
    ck_assert_uint_eq(asks("abcd", FOREVER), 2);
    ck_assert_int_eq(locks_has_room(e.locks), _i == 1);
    engine_gives_many(&e, 2, 10, ALL);
    ck_assert_int_eq(locks_has_room(e.locks), _i == 0);
    (void)hears(1, REPLY_TOKEN);
    (void)hears(2, REPLY_TOKEN);
}
END_TEST

START_TEST(without_redis_they_begin_one_by_one)
{
    locks_store_down(e.locks);
    ck_assert_uint_eq(asks("ab", WAIT(1000)), 1);
    engine_pass(&e, 1000);
    ck_assert_int_eq(hears(1, REPLY_ERROR).error, LOCK_BACKEND);
    locks_store_up(e.locks, true);
    locks_stop(e.locks);
    engine_collect(&e);
    ck_assert_uint_eq(asks("cd", FOREVER), 1);
    ck_assert_int_eq(hears(1, REPLY_ERROR).error, LOCK_GOAWAY);
}
END_TEST

START_TEST(what_may_have_been_granted_is_given_back)
{
    bool back_first;

    ck_assert_uint_eq(asks("ab", FOREVER), 2);
    engine_take_op(&e, OP_ACQUIRE_MANY, &op);
    locks_store_down(e.locks);
    engine_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    (void)hears(2, REPLY_UNREACHED);
    locks_store_up(e.locks, true);
    engine_collect(&e);
    back_first = e.ops[0].op.kind == OP_RELEASE; /* names come in no order */
    if (back_first) {
        engine_gives_back(&e, "b");
    }
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(3));
    if (!back_first) {
        engine_gives_back(&e, "b");
    }
    (void)hears(1, REPLY_TOKEN);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_grant_that_comes_too_late_takes_those_behind_it_along)
{
    ck_assert_uint_eq(
        asks("ab", (struct lock_req){ .has = LOCK_HAS_LEASE | LOCK_HAS_WAIT,
                                      .lease_ms = 1000,
                                      .wait_ms = 60000 }),
        2);
    engine_pass(&e, 600); /* more than half of it */
    engine_gives_many(&e, 2, 10, ALL);
    (void)hears(2, REPLY_UNREACHED);
    engine_gives_back(&e, "a");
    engine_gives_back(&e, "b");
    engine_pass(&e, 200);
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(20));
    ck_assert_int_eq(hears(1, REPLY_TOKEN).value, 20);
}
END_TEST

START_TEST(nothing_is_left_of_a_connection_that_closes_in_between)
{
    ck_assert_uint_eq(asks("abc", FOREVER), 3);
    engine_close(&e, 1);
    engine_gives_many(&e, 2, 10, BUSY);
    engine_gives_back(&e, "a");
    engine_gives_back(&e, "b");
    engine_hears_nothing(&e);
    engine_pass(&e, 2000);
    engine_is_empty(&e);
}
END_TEST

/* The ID comes again on another connection, which did not send it behind others. */
START_TEST(who_took_a_wait_over_is_not_sent_away)
{
    struct lock_req reqs[] = {
        { .from = { 1, 1 }, .name = SPAN("a") },
        { .from = { 1, 2 }, .name = SPAN("b"), .id = SPAN(ID_A) },
    };

    ck_assert_uint_eq(locks_lock_run(e.locks, reqs, 2), 2);
    engine_collect(&e);
    engine_lock(&e, 2, "b", WITH_ID);
    (void)hears(2, REPLY_NULL);
    engine_gives_many(&e, 0, 0, BUSY);
    engine_hears_nothing(&e);
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(5));
    (void)engine_hears(&e, 2, REPLY_TOKEN);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_run");
    TCase *tc = tcase_create("run");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, free_names_are_taken_by_one_op_in_the_order_they_came);
    tcase_add_test(tc, those_behind_a_refusal_are_as_if_they_had_not_come);
    tcase_add_test(tc, the_first_that_is_not_granted_waits_and_no_other);
    tcase_add_test(tc, a_run_ends_before_a_name_that_somebody_has_to_do_with);
    tcase_add_test(tc, kinds_that_are_not_plain_begin_alone);
    tcase_add_loop_test(tc, limits_bound_a_run, 0, 2);
    tcase_add_test(tc, without_redis_they_begin_one_by_one);
    tcase_add_test(tc, what_may_have_been_granted_is_given_back);
    tcase_add_test(tc, a_grant_that_comes_too_late_takes_those_behind_it_along);
    tcase_add_test(tc, nothing_is_left_of_a_connection_that_closes_in_between);
    tcase_add_test(tc, who_took_a_wait_over_is_not_sent_away);
    suite_add_tcase(s, tc);
    return s;
}
