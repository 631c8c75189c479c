/* The engine: MLOCK that does not get what it wants: faults, and whoever ends it. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include <stdio.h>

/* --- what an op of many can answer ------------------------------------------------ */

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(unknown_asks_again_for_the_first_and_undoes_the_others)
{
    fixture_mlock(&e, 1, "a b c", FOREVER);
    fixture_gives(&e, OP_ACQUIRE_BATCH, (struct op_result){ .status = OP_UNKNOWN });
    fixture_asks_for(&e, "a", &op);
    fixture_gives_back(&e, "b");
    fixture_gives_back(&e, "c");
    fixture_answer(&e, &op, GRANTED(1));
}

START_TEST(late_asks_again_after_a_pause_and_has_nothing_to_undo)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives(&e, OP_ACQUIRE_BATCH, (struct op_result){ .status = OP_LATE });
    fixture_no_op(&e);
    fixture_pass(&e, 10);
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(1));
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(2));
    (void)fixture_hears_tokens(&e, 1, TOKENS(1, 2));
}

START_TEST(granted_too_late_keeps_none_of_them)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    fixture_pass(&e, 16000); /* more than half of the lease */
    {
        struct op_result batch[2] = { GRANTED(1), GRANTED(2) };

        fixture_answer(&e, &op,
                       (struct op_result){
                           .status = OP_OK, .batch.results = batch, .batch.count = 2 });
    }
    fixture_gives(&e, OP_RELEASE, /* to the same wait, anew */
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 3 });
    fixture_gives_back(&e, "b");
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(4));
    (void)fixture_hears_tokens(&e, 1, TOKENS(3, 4));
}

START_TEST(an_id_of_another_kind_of_lock_is_refused)
{
    (void)fixture_grant(&e, 1, "b",
                        (struct lock_terms){ .id = ID_A, .lock_kind = KIND_READ }, 5);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    ck_assert_str_eq(fixture_hears(&e, 2, REPLY_ERROR).text,
                     "that ID was used with another kind");
    fixture_no_op(&e);
}

/* No wait and no hold more than there may be, in all. */
START_TEST(beyond_a_limit_nothing_is_begun)
{
    struct engine_config tight = {
        .watchdog_ms = 30000, .redis_timeout_ms = 3000, .max_waiters = 2, .max_holds = 2
    };

    engine_configure(e.engine, &tight);
    fixture_mlock(&e, 1, "a b c", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    fixture_mlock(&e, 2, "c", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_no_op(&e);
}

START_TEST(beyond_max_waiters_what_tries_once_is_tried)
{
    struct engine_config tight = { .watchdog_ms = 30000,
                                   .redis_timeout_ms = 3000,
                                   .max_waiters = 1,
                                   .max_holds = 10 };
    const struct lock_terms once = { .has = OPT_WAIT };

    engine_configure(e.engine, &tight);
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_mlock(&e, 2, "a b", once);
    for (uint64_t token = 10; token < 12; token++) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_OK, .token = token });
    }
    ck_assert_uint_eq(fixture_hears(&e, 2, REPLY_TOKENS).token_count, 2);
}

START_TEST(wrongtype_in_the_middle_gives_back_the_rest)
{
    fixture_mlock(&e, 1, "a b c", FOREVER);
    fixture_gives_many(&e, 1, 10, (struct op_result){ .status = OP_WRONGTYPE });
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_ERROR).text,
                     "the name is in use by another kind of lock or data: b");
    fixture_gives_back(&e, "a");
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(a_refusal_by_redis_undoes_what_may_have_run)
{
    fixture_mlock(&e, 1, "a b", WAIT(0));
    fixture_gives(&e, OP_ACQUIRE_BATCH,
                  (struct op_result){ .status = OP_ERROR, .text = SPAN("OOM") });
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_ERROR).text, "OOM");
    fixture_gives_back(&e, "b");
    fixture_pass(&e, 200);
    fixture_gives_back(&e, "a");
    fixture_is_empty(&e);
}

START_TEST(more_than_max_holds_is_refused)
{
    struct span names[1001];
    char text[1001][8];
    struct mlock_req req = { .from = { 1, 1 }, .names = names, .name_count = 1000 };

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "n%04d", i);
        names[i] = span_str(text[i]);
    }
    (void)fixture_grant(&e, 2, "job", FOREVER, 1);
    engine_mlock(e.engine, &req);
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_no_op(&e);
}

/* --- who else may end it ---------------------------------------------------------- */

START_TEST(a_closed_connection_gives_everything_back)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    fixture_close(&e, 1);
    fixture_gives_back(&e, "a");
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

START_TEST(closed_while_redis_is_asked_all_that_comes_is_given_back)
{
    fixture_mlock(&e, 1, "a b c", FOREVER);
    fixture_close(&e, 1);
    fixture_gives_many(&e, 2, 10, BUSY);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_is_empty(&e);
}

START_TEST(closed_while_redis_is_asked_and_nobody_knows_what_came_of_it)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_close(&e, 1);
    fixture_gives(&e, OP_ACQUIRE_BATCH, (struct op_result){ .status = OP_UNKNOWN });
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_is_empty(&e);
}

START_TEST(an_answer_that_did_not_arrive_takes_all_of_them_back)
{
    uint64_t grant;

    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 2, 10, ALL);
    grant = fixture_hears(&e, 1, REPLY_TOKENS).grant;
    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    fixture_close(&e, 1);
    fixture_gives_back(&e, "b");
    fixture_gives_back(&e, "a");
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(client_unblock_ends_it)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    ck_assert(engine_unblock(e.engine, 1, false));
    fixture_collect(&e);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
    fixture_mlock(&e, 1, "a b", FOREVER);
    ck_assert(engine_unblock(e.engine, 1, true));
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_UNBLOCKED);
    ck_assert(!engine_unblock(e.engine, 1, false));
}

START_TEST(cancel_of_any_of_its_names_ends_the_whole)
{
    static const char *const names[] = { "a", "b", "c" };
    struct lock_terms as = { .owner = SPAN("o") };

    for (int i = 0; i < 3; i++) {
        fixture_mlock(&e, 1, "a b c", as);
        fixture_gives_many(&e, 1, 10, BUSY);
        ck_assert_uint_eq(fixture_cancel(&e, span_str(names[i]), SPAN("o"), SPAN_NONE),
                          1);
        fixture_collect(&e);
        (void)fixture_hears(&e, 1, REPLY_NULL);
        fixture_gives_back(&e, "a");
        fixture_pass(&e, 2000);
        fixture_is_empty(&e);
    }
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("a"), SPAN("o"), SPAN_NONE), 0);
}

START_TEST(stop_ends_it_and_gives_back_what_nobody_was_told_of)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_GOAWAY);
    fixture_gives_back(&e, "a");
    fixture_mlock(&e, 1, "a b", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_GOAWAY);
    ck_assert(engine_stopped(e.engine));
}

START_TEST(an_engine_can_be_freed_at_any_moment)
{
    struct lock_terms with_id = { .id = SPAN("aaaaaaaaaaaaaaaa") };

    (void)fixture_grant(&e, 9, "b", FOREVER, 5);
    fixture_mlock(&e, 1, "a b c", with_id);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(10));
    fixture_mlock(&e, 2, "d e f", FOREVER);
    fixture_mlock(&e, 3, "g h", (struct lock_terms){ .id = SPAN("bbbbbbbbbbbbbbbb") });
}
