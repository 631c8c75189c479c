/* The engine: MLOCK that does not get what it wants: faults, and whoever ends it. */
#include "support/engine_mlock.h"
#include "support/runner.h"

#include <stdio.h>

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

/* --- what an op of many can answer ------------------------------------------------ */

START_TEST(unknown_asks_again_for_the_first_and_undoes_the_others)
{
    engine_mlock(&e, 1, "a b c", FOREVER);
    engine_gives(&e, OP_ACQUIRE_MANY, (struct op_result){ .status = OP_UNKNOWN });
    engine_asks_for(&e, "a", &op);
    engine_gives_back(&e, "b");
    engine_gives_back(&e, "c");
    engine_answer(&e, &op, GRANTED(1));
}
END_TEST

START_TEST(late_asks_again_after_a_pause_and_has_nothing_to_undo)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_gives(&e, OP_ACQUIRE_MANY, (struct op_result){ .status = OP_LATE });
    engine_no_op(&e);
    engine_pass(&e, 10);
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(1));
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(2));
    (void)engine_hears_tokens(&e, 1, TOKENS(1, 2));
}
END_TEST

START_TEST(granted_too_late_keeps_none_of_them)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_take_op(&e, OP_ACQUIRE_MANY, &op);
    engine_pass(&e, 16000); /* more than half of the lease */
    {
        struct op_result many[2] = { GRANTED(1), GRANTED(2) };

        engine_answer(
            &e, &op,
            (struct op_result){ .status = OP_OK, .many = many, .many_count = 2 });
    }
    engine_gives(&e, OP_RELEASE, /* to the same wait, anew */
                 (struct op_result){ .status = OP_OK, .moved = true, .token = 3 });
    engine_gives_back(&e, "b");
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(4));
    (void)engine_hears_tokens(&e, 1, TOKENS(3, 4));
}
END_TEST

START_TEST(an_id_of_another_kind_of_lock_is_refused)
{
    (void)engine_grant(&e, 1, "b",
                       (struct lock_req){ .id = SPAN(ID_A), .kind = KIND_READ }, 5);
    engine_mlock(&e, 2, "a b", WITH_ID);
    ck_assert_str_eq(engine_hears(&e, 2, REPLY_ERROR).text,
                     "that ID was used with another kind");
    engine_no_op(&e);
}
END_TEST

/* No wait and no hold more than there may be, in all. */
START_TEST(beyond_a_limit_nothing_is_begun)
{
    struct locks_config tight = { .watchdog_ms = 30000,
                                  .redis_timeout_ms = 3000,
                                  .max_lease_ms = 86400000,
                                  .max_waiters = 2,
                                  .max_holds = 2 };

    locks_configure(e.locks, &tight);
    engine_mlock(&e, 1, "a b c", FOREVER);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_take_op(&e, OP_ACQUIRE_MANY, &op);
    engine_mlock(&e, 2, "c", FOREVER);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_LIMIT);
    engine_no_op(&e);
}
END_TEST

START_TEST(beyond_max_waiters_what_tries_once_is_tried)
{
    struct locks_config tight = { .watchdog_ms = 30000,
                                  .redis_timeout_ms = 3000,
                                  .max_lease_ms = 86400000,
                                  .max_waiters = 1,
                                  .max_holds = 10 };
    const struct lock_req once = { .has = LOCK_HAS_WAIT };

    locks_configure(e.locks, &tight);
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_mlock(&e, 2, "a b", once);
    for (uint64_t token = 10; token < 12; token++) {
        engine_gives(&e, OP_ACQUIRE,
                     (struct op_result){ .status = OP_OK, .token = token });
    }
    ck_assert_uint_eq(engine_hears(&e, 2, REPLY_TOKENS).token_count, 2);
}
END_TEST

START_TEST(wrongtype_in_the_middle_gives_back_the_rest)
{
    engine_mlock(&e, 1, "a b c", FOREVER);
    engine_gives_many(&e, 1, 10, (struct op_result){ .status = OP_WRONGTYPE });
    ck_assert_str_eq(engine_hears(&e, 1, REPLY_ERROR).text,
                     "the name is in use by another kind of lock or data: b");
    engine_gives_back(&e, "a");
    engine_pass(&e, 1000);
    engine_is_empty(&e);
}
END_TEST

START_TEST(a_refusal_by_redis_undoes_what_may_have_run)
{
    engine_mlock(&e, 1, "a b", WAIT(0));
    engine_gives(&e, OP_ACQUIRE_MANY,
                 (struct op_result){ .status = OP_ERROR, .text = SPAN("OOM") });
    ck_assert_str_eq(engine_hears(&e, 1, REPLY_ERROR).text, "OOM");
    engine_gives_back(&e, "b");
    engine_pass(&e, 200);
    engine_gives_back(&e, "a");
    engine_is_empty(&e);
}
END_TEST

START_TEST(more_than_max_holds_is_refused)
{
    struct span names[1001];
    char text[1001][8];
    struct mlock_req req = { .one.from = { 1, 1 }, .names = names, .name_count = 1000 };

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "n%04d", i);
        names[i] = span_str(text[i]);
    }
    (void)engine_grant(&e, 2, "job", FOREVER, 1);
    locks_mlock(e.locks, &req);
    engine_collect(&e);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    engine_no_op(&e);
}
END_TEST

/* --- who else may end it ---------------------------------------------------------- */

START_TEST(a_closed_connection_gives_everything_back)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_gives_many(&e, 1, 10, BUSY);
    engine_close(&e, 1);
    engine_gives_back(&e, "a");
    engine_pass(&e, 5000);
    engine_is_empty(&e);
}
END_TEST

START_TEST(closed_while_redis_is_asked_all_that_comes_is_given_back)
{
    engine_mlock(&e, 1, "a b c", FOREVER);
    engine_close(&e, 1);
    engine_gives_many(&e, 2, 10, BUSY);
    engine_gives_back(&e, "a");
    engine_gives_back(&e, "b");
    engine_is_empty(&e);
}
END_TEST

START_TEST(closed_while_redis_is_asked_and_nobody_knows_what_came_of_it)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_close(&e, 1);
    engine_gives(&e, OP_ACQUIRE_MANY, (struct op_result){ .status = OP_UNKNOWN });
    engine_gives_back(&e, "a");
    engine_gives_back(&e, "b");
    engine_is_empty(&e);
}
END_TEST

START_TEST(an_answer_that_did_not_arrive_takes_all_of_them_back)
{
    uint64_t grant;

    engine_mlock(&e, 1, "a b", FOREVER);
    engine_gives_many(&e, 2, 10, ALL);
    grant = engine_hears(&e, 1, REPLY_TOKENS).grant;
    locks_undelivered(e.locks, 1, grant);
    engine_collect(&e);
    engine_close(&e, 1);
    engine_gives_back(&e, "b");
    engine_gives_back(&e, "a");
    engine_pass(&e, 1000);
    engine_is_empty(&e);
}
END_TEST

START_TEST(client_unblock_ends_it)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_gives_many(&e, 1, 10, BUSY);
    ck_assert(locks_unblock(e.locks, 1, false));
    engine_collect(&e);
    (void)engine_hears(&e, 1, REPLY_NULL);
    engine_gives_back(&e, "a");
    engine_mlock(&e, 1, "a b", FOREVER);
    ck_assert(locks_unblock(e.locks, 1, true));
    engine_collect(&e);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_UNBLOCKED);
    ck_assert(!locks_unblock(e.locks, 1, false));
}
END_TEST

START_TEST(cancel_of_any_of_its_names_ends_the_whole)
{
    static const char *const names[] = { "a", "b", "c" };
    struct lock_req as = { .owner = SPAN("o") };

    for (int i = 0; i < 3; i++) {
        engine_mlock(&e, 1, "a b c", as);
        engine_gives_many(&e, 1, 10, BUSY);
        ck_assert_uint_eq(engine_cancel(&e, span_str(names[i]), SPAN("o"), SPAN_NONE),
                          1);
        engine_collect(&e);
        (void)engine_hears(&e, 1, REPLY_NULL);
        engine_gives_back(&e, "a");
        engine_pass(&e, 2000);
        engine_is_empty(&e);
    }
    ck_assert_uint_eq(engine_cancel(&e, SPAN("a"), SPAN("o"), SPAN_NONE), 0);
}
END_TEST

START_TEST(stop_ends_it_and_gives_back_what_nobody_was_told_of)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_gives_many(&e, 1, 10, BUSY);
    locks_stop(e.locks);
    engine_collect(&e);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_GOAWAY);
    engine_gives_back(&e, "a");
    engine_mlock(&e, 1, "a b", FOREVER);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_GOAWAY);
    ck_assert(locks_stopped(e.locks));
}
END_TEST

START_TEST(an_engine_can_be_freed_at_any_moment)
{
    struct lock_req with_id = { .id = SPAN("aaaaaaaaaaaaaaaa") };

    (void)engine_grant(&e, 9, "b", FOREVER, 5);
    engine_mlock(&e, 1, "a b c", with_id);
    engine_gives(&e, OP_ACQUIRE, GRANTED(10));
    engine_mlock(&e, 2, "d e f", FOREVER);
    engine_mlock(&e, 3, "g h", (struct lock_req){ .id = SPAN("bbbbbbbbbbbbbbbb") });
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_mlock_ends");
    TCase *t = tcase_create("engine");

    tcase_add_checked_fixture(t, setup, teardown);
    suite_add_tcase(s, t);
    tcase_add_test(t, unknown_asks_again_for_the_first_and_undoes_the_others);
    tcase_add_test(t, late_asks_again_after_a_pause_and_has_nothing_to_undo);
    tcase_add_test(t, granted_too_late_keeps_none_of_them);
    tcase_add_test(t, an_id_of_another_kind_of_lock_is_refused);
    tcase_add_test(t, beyond_a_limit_nothing_is_begun);
    tcase_add_test(t, beyond_max_waiters_what_tries_once_is_tried);
    tcase_add_test(t, wrongtype_in_the_middle_gives_back_the_rest);
    tcase_add_test(t, a_refusal_by_redis_undoes_what_may_have_run);
    tcase_add_test(t, more_than_max_holds_is_refused);
    tcase_add_test(t, a_closed_connection_gives_everything_back);
    tcase_add_test(t, closed_while_redis_is_asked_all_that_comes_is_given_back);
    tcase_add_test(t, closed_while_redis_is_asked_and_nobody_knows_what_came_of_it);
    tcase_add_test(t, an_answer_that_did_not_arrive_takes_all_of_them_back);
    tcase_add_test(t, client_unblock_ends_it);
    tcase_add_test(t, cancel_of_any_of_its_names_ends_the_whole);
    tcase_add_test(t, stop_ends_it_and_gives_back_what_nobody_was_told_of);
    tcase_add_test(t, an_engine_can_be_freed_at_any_moment);
    return s;
}
