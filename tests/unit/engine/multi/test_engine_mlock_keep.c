/* The engine: MLOCK that is sent again, and kept for. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include "latchd/protocol.h"

#define ID_TRY                                                                         \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .id = ID_A, .has = OPT_WAIT                                                    \
    }

/* --- KEEP ------------------------------------------------------------------------- */

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(null_with_an_id_keeps_grants_and_the_place_for_keep)
{
    fixture_mlock(&e, 1, "a b c", ID_TRY);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_no_op(&e);
    fixture_pass(&e, 1999);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_gives_back(&e, "a");
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

START_TEST(polling_goes_on_where_it_was)
{
    fixture_mlock(&e, 1, "b a", ID_TRY);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    for (int i = 0; i < 3; i++) {
        fixture_pass(&e, 1500);
        fixture_mlock(&e, 1, "b a", ID_TRY);
        mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
        fixture_asks_for(&e, "b", &op);
        fixture_answer(&e, &op, BUSY);
        (void)fixture_hears(&e, 1, REPLY_NULL);
    }
    fixture_mlock(&e, 1, "b a", ID_TRY);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(20));
    (void)fixture_hears_tokens(&e, 1, TOKENS(20, 10));
    ck_assert_str_eq(e.notices, "granted:a granted:b");
}

START_TEST(a_turn_that_comes_while_nobody_asks_is_held_and_found)
{
    (void)fixture_grant(&e, 9, "b", FOREVER, 5);
    fixture_mlock(&e, 1, "a b c", ID_TRY);
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(10));
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_unlock(&e, 9, "b", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_uint_lt(op.op.release.next.lease_ms, 4000); /* for KEEP only */
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 11 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_no_op(&e); /* nothing new is begun for nobody */
    fixture_mlock(&e, 2, "a b c", WITH_ID);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    mlock_confirms(&e, "b", 11, "latchd:id:" ID_TEXT);
    fixture_asks_for(&e, "c", &op);
    fixture_answer(&e, &op, GRANTED(12));
    (void)fixture_hears_tokens(&e, 2, TOKENS(10, 11, 12));
}

START_TEST(keep_0_keeps_nothing)
{
    struct lock_terms req = ID_TRY;

    req.has |= OPT_KEEP;
    fixture_mlock(&e, 1, "a b", req);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
}

START_TEST(a_short_lease_does_not_end_before_keep)
{
    struct lock_terms req = ID_TRY;

    req.has |= OPT_LEASE;
    req.lease_ms = 500;
    fixture_mlock(&e, 1, "a b", req);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_ge(op.items[0].lease_ms, 2000);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = (enum renew_result[]){ RENEW_OK },
                                       .renew.count = 1 });
    fixture_pass(&e, 1900);
    ck_assert_str_eq(e.notices, "granted:a");
}

START_TEST(a_closed_connection_keeps_for_keep_and_the_next_goes_on_H26)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 1, 10, BUSY);
    fixture_close(&e, 1);
    fixture_no_op(&e);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(11));
    (void)fixture_hears_tokens(&e, 2, TOKENS(10, 11));
}

START_TEST(closed_during_the_op_of_many_what_comes_is_kept)
{
    fixture_mlock(&e, 1, "a b c", WITH_ID);
    fixture_close(&e, 1);
    fixture_gives_many(&e, 1, 10, BUSY);
    fixture_no_op(&e);
    fixture_pass(&e, 2000);
    fixture_gives_back(&e, "a");
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

/* --- the same ID again ------------------------------------------------------------ */

START_TEST(the_older_call_gets_null_and_the_newer_goes_on)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 1, 10, BUSY);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_close(&e, 1);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(11));
    (void)fixture_hears_tokens(&e, 2, TOKENS(10, 11));
}

START_TEST(again_while_all_is_asked_for)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_mlock(&e, 2, "b a", WITH_ID); /* the order of the tokens is the newer's */
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 2, TOKENS(11, 10));
    fixture_no_op(&e);
}

START_TEST(again_and_again_while_redis_confirms)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_mlock(&e, 2, "a b", WITH_ID);
    fixture_mlock(&e, 3, "a b", WITH_ID);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    for (int i = 0; i < 4; i++) {
        mlock_confirms(&e, i % 2 == 0 ? "a" : "b", 10 + (uint64_t)(i % 2),
                       "latchd:id:" ID_TEXT);
    }
    (void)fixture_hears_tokens(&e, 3, TOKENS(10, 11));
    fixture_close(&e, 2);
    fixture_close(&e, 3);
    fixture_no_op(&e);
}

START_TEST(after_the_grant_it_gives_the_same_tokens_and_counts_nothing_twice)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_close(&e, 1);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    mlock_confirms(&e, "b", 11, "latchd:id:" ID_TEXT);
    (void)fixture_hears_tokens(&e, 2, TOKENS(10, 11));
    fixture_unlock(&e, 2, "a", (struct hold_req){ .id = ID_A });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_mlock(&e, 3, "a b", WITH_ID); /* a late copy takes nothing, frees nothing */
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_no_op(&e);
}

START_TEST(what_its_client_was_told_of_is_not_given_back_by_a_copy)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_unlock(&e, 2, "b", (struct hold_req){ .token = 11 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_mlock(&e, 1, "a b", WITH_ID); /* crosses it */
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_no_op(&e);
}

START_TEST(who_was_told_keeps_it_when_another_connection_asks_again)
{
    struct lock_terms req = WITH_ID;

    req.has = OPT_GRACE; /* GRACE 0 */
    fixture_mlock(&e, 1, "a b", req);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_mlock(&e, 1, "a b", req);
    fixture_mlock(&e, 2, "a b", req);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    for (int i = 0; i < 4; i++) {
        mlock_confirms(&e, i % 2 == 0 ? "a" : "b", 10 + (uint64_t)(i % 2),
                       "latchd:id:" ID_TEXT);
    }
    (void)fixture_hears_tokens(&e, 2, TOKENS(10, 11));
    fixture_close(&e, 2);
    fixture_no_op(&e);
    fixture_close(&e, 1);
    fixture_gives_back(&e, "b");
    fixture_gives_back(&e, "a");
}

START_TEST(a_release_that_overtakes_a_copy_does_not_give_back_the_others)
{
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_unlock(&e, 2, "b", (struct hold_req){ .token = 11 });
    e.op_count = 2; /* ATTACH a, ATTACH b; the release is answered first */
    ck_assert_int_eq(e.ops[2].op.kind, OP_RELEASE);
    op = e.ops[2];
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 2, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    ck_assert_uint_eq(e.op_count, 2);
}

START_TEST(wait_is_exact_while_a_name_is_being_released)
{
    struct lock_terms req = WITH_ID;

    req.has = OPT_WAIT | OPT_KEEP; /* KEEP 0 */
    req.wait_ms = 1000;
    (void)fixture_grant(&e, 9, "c", (struct lock_terms){ 0 }, 5);
    fixture_mlock(&e, 1, "a c", req);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(10));
    fixture_unlock(&e, 2, "a", (struct hold_req){ .token = 10 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_pass(&e, 999);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    (void)fixture_hears(&e, 1, REPLY_NULL);
}

START_TEST(through_another_daemon_it_finds_each_grant)
{
    struct op_result batch[2] = { GRANTED(10), GRANTED(11) };

    batch[0].attached = batch[1].attached = true;
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives(&e, OP_ACQUIRE_BATCH,
                  (struct op_result){
                      .status = OP_OK, .batch.results = batch, .batch.count = 2 });
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
}

START_TEST(other_names_owner_or_use_of_the_id_are_errors)
{
    struct lock_terms other = WITH_ID;

    other.owner = SPAN("o");
    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 1, 10, BUSY);
    fixture_mlock(&e, 2, "a c", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_mlock(&e, 2, "a b c", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_mlock(&e, 2, "a b", other);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_lock(&e, 2, "a", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_lock(&e, 2, "b", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_no_op(&e);
    fixture_hears_nothing(&e);
}

START_TEST(a_lock_s_id_is_not_taken_over)
{
    (void)fixture_grant(&e, 9, "b", FOREVER, 5);
    fixture_lock(&e, 1, "b", WITH_ID);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_hears_nothing(&e);
}

START_TEST(cancel_by_id_ends_it_for_good)
{
    fixture_mlock(&e, 1, "a b c", WITH_ID);
    fixture_gives_many(&e, 1, 10, BUSY);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("c"), SPAN_NONE, ID_A), 1);
    fixture_collect(&e);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
    fixture_mlock(&e, 1, "a b c", WITH_ID);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

START_TEST(what_is_kept_can_be_cancelled)
{
    fixture_mlock(&e, 1, "a b c", ID_TRY);
    fixture_gives_many(&e, 1, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("a"), SPAN_NONE, ID_A), 1);
    fixture_collect(&e);
    fixture_hears_nothing(&e);
    fixture_gives_back(&e, "a");
}

START_TEST(an_answer_that_did_not_arrive_is_kept_for_keep)
{
    uint64_t grant;

    fixture_mlock(&e, 1, "a b", WITH_ID);
    fixture_gives_many(&e, 2, 10, ALL);
    grant = fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    fixture_close(&e, 1);
    fixture_no_op(&e);
    fixture_mlock(&e, 2, "a b", WITH_ID);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    mlock_confirms(&e, "b", 11, "latchd:id:" ID_TEXT);
    grant = fixture_hears_tokens(&e, 2, TOKENS(10, 11));
    engine_on_undelivered(e.engine, 2, grant);
    fixture_collect(&e);
    fixture_close(&e, 2);
    fixture_pass(&e, 2000);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(backend_with_an_id_is_continued_not_undone)
{
    struct lock_terms req = WITH_ID;

    req.has = OPT_WAIT | OPT_KEEP;
    req.wait_ms = 1000;
    req.keep_ms = 20000;
    fixture_mlock(&e, 1, "a b", req);
    fixture_gives_many(&e, 1, 10, BUSY);
    engine_on_store_down(e.engine);
    fixture_pass(&e, 1000);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(11));
    fixture_mlock(&e, 1, "a b", WITH_ID);
    mlock_confirms(&e, "a", 10, "latchd:id:" ID_TEXT);
    mlock_confirms(&e, "b", 11, "latchd:id:" ID_TEXT);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
}
