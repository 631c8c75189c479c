/* The engine: MLOCK takes its names in order, and all or none. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include <stdio.h>

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(free_names_are_taken_by_one_op_in_byte_order)
{
    fixture_mlock(&e, 1, "c a b", FOREVER);
    ck_assert_uint_eq(e.ops[0].op.batch.count, 3);
    ck_assert_str_eq(e.ops[0].batch[0], "a");
    ck_assert_str_eq(e.ops[0].batch[1], "b");
    ck_assert_str_eq(e.ops[0].batch[2], "c");
    fixture_gives_many(&e, 3, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(12, 10, 11));
    fixture_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:a granted:b granted:c");
}

START_TEST(one_name_is_an_ordinary_lock)
{
    fixture_mlock(&e, 1, "a", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(7));
    (void)fixture_hears_tokens(&e, 1, TOKENS(7));
}

/* A lock library's try. */
#define AT_ONCE                                                                        \
    ((struct lock_terms){                                                              \
        .has = OPT_WAIT | OPT_LEASE, .lease_ms = 10000, .value = SPAN("me:v") })

START_TEST(a_lock_librarys_keys_are_asked_for_all_or_none)
{
    struct op_result batch[] = { { .status = OP_SKIPPED },
                                 { .status = OP_BUSY, .ttl_ms = 30000 } };

    fixture_mlock(&e, 1, "c a b", AT_ONCE);
    ck_assert_uint_eq(e.ops[0].op.batch.count, 3);
    ck_assert(e.ops[0].op.batch.all_or_none);
    fixture_gives(&e, OP_ACQUIRE_BATCH,
                  (struct op_result){ .status = OP_OK, .batch = { batch, 2 } });
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_is_empty(&e); /* nothing was taken, and nothing is given back */
    fixture_mlock(&e, 1, "c a b", AT_ONCE);
    fixture_gives_many(&e, 3, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(12, 10, 11));
    fixture_mlock(&e, 2, "d e", WAIT(0));
    ck_assert(!e.ops[0].op.batch.all_or_none);
}

START_TEST(where_one_of_these_keys_is_held_here_none_is_asked_for)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    fixture_mlock(&e, 2, "a job z", AT_ONCE);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_no_op(&e);
}

START_TEST(a_name_twice_is_refused)
{
    fixture_mlock(&e, 1, "b a b", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    fixture_is_empty(&e);
}

START_TEST(a_held_name_is_waited_for_and_then_the_rest_is_taken)
{
    fixture_mlock(&e, 1, "a b c d", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    ck_assert_str_eq(e.subs, "+b");
    fixture_no_op(&e); /* c and d wait for their turn */
    engine_on_subscribed(e.engine, SPAN("b"), false);
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, BUSY);
    fixture_no_op(&e);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(20));
    ck_assert_str_eq(e.ops[0].batch[0], "c");
    fixture_gives_many(&e, 2, 30, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 20, 30, 31));
}

START_TEST(names_behind_a_held_one_are_free_for_others)
{
    fixture_mlock(&e, 1, "a b c", FOREVER);
    fixture_lock(&e, 2, "c", FOREVER); /* behind the op in flight */
    ck_assert_uint_eq(e.op_count, 1);
    fixture_gives_many(&e, 0, 0, BUSY);
    fixture_asks_for(&e, "c", &op);
    fixture_answer(&e, &op, GRANTED(5));
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(a_name_held_here_is_not_asked_for_but_handed_over)
{
    (void)fixture_grant(&e, 9, "b", FOREVER, 5);
    fixture_mlock(&e, 1, "b a c", FOREVER);
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(10));
    fixture_no_op(&e);
    fixture_unlock(&e, 9, "b", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 11 });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_asks_for(&e, "c", &op);
    fixture_answer(&e, &op, GRANTED(12));
    (void)fixture_hears_tokens(&e, 1, TOKENS(11, 10, 12));
}

START_TEST(more_names_than_one_script_takes_go_in_runs)
{
    struct span names[OP_BATCH_MAX + 3];
    char text[OP_BATCH_MAX + 3][8];
    struct mlock_req req = { .from = { 1, 1 },
                             .names = names,
                             .name_count = OP_BATCH_MAX + 3 };

    for (int i = 0; i < OP_BATCH_MAX + 3; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "n%03d", i);
        names[i] = span_str(text[i]);
    }
    engine_mlock(e.engine, &req);
    fixture_collect(&e);
    ck_assert_uint_eq(e.ops[0].op.batch.count, OP_BATCH_MAX);
    fixture_gives_many(&e, OP_BATCH_MAX, 1, ALL);
    ck_assert_uint_eq(e.ops[0].op.batch.count, 3);
    ck_assert_str_eq(e.ops[0].batch[0], "n100");
}

/* --- WAIT ------------------------------------------------------------------------- */

START_TEST(wait_0_tries_each_once_and_gives_back_what_it_got)
{
    fixture_mlock(&e, 1, "a b c", WAIT(0));
    fixture_gives_many(&e, 2, 10, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
    fixture_pass(&e, 2000);
    fixture_is_empty(&e);
}

START_TEST(wait_is_one_for_all_names_and_exact_M10)
{
    fixture_mlock(&e, 1, "a b", WAIT(1000));
    fixture_gives_many(&e, 0, 0, BUSY);
    fixture_pass(&e, 600);
    engine_on_message(e.engine, SPAN("a"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(1));
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, BUSY);
    fixture_pass(&e, 399);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
}

START_TEST(a_name_granted_when_time_is_up_is_given_back_if_others_are_left)
{
    fixture_mlock(&e, 1, "a b", WAIT(1000));
    fixture_gives_many(&e, 0, 0, BUSY);
    fixture_pass(&e, 999);
    engine_on_message(e.engine, SPAN("a"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "a", &op);
    fixture_pass(&e, 10);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, GRANTED(1));
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_gives_back(&e, "a");
}

START_TEST(without_redis_it_is_backend_and_never_null)
{
    engine_on_store_down(e.engine);
    fixture_mlock(&e, 1, "a b", WAIT(1000));
    fixture_mlock(&e, 2, "a b", WAIT(0));
    fixture_pass(&e, 999);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_pass(&e, 2000);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_is_empty(&e);
}

START_TEST(an_outage_is_ridden_out)
{
    bool back_first;

    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    engine_on_store_down(e.engine);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    fixture_pass(&e, 60000);
    fixture_no_op(&e);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    back_first = e.ops[0].op.kind == OP_RELEASE; /* names come in no order */
    if (back_first) {
        fixture_gives_back(&e, "b"); /* perhaps it was granted */
    }
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(3));
    if (!back_first) {
        fixture_gives_back(&e, "b");
    }
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(4));
    (void)fixture_hears_tokens(&e, 1, TOKENS(3, 4));
}

/* --- no cycles ------------------------------------------------------------------- */

START_TEST(two_in_opposite_order_never_wait_for_each_other_H27_M6)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_mlock(&e, 2, "b a", FOREVER); /* both want a first */
    fixture_gives_many(&e, 2, 10, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
    fixture_no_op(&e);
    fixture_unlock(&e, 1, "a", (struct hold_req){ 0 });
    fixture_unlock(&e, 1, "b", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 20 });
    fixture_gives(&e, OP_RELEASE, DONE);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(21));
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears_tokens(&e, 2, TOKENS(21, 20));
}

START_TEST(single_locks_in_turn_do_not_starve_it_H27)
{
    (void)fixture_grant(&e, 8, "a", FOREVER, 1);
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_lock(&e, 9, "a", FOREVER); /* behind it */
    (void)fixture_grant(&e, 7, "b", FOREVER, 2);
    fixture_unlock(&e, 8, "a", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 3 });
    (void)fixture_hears(&e, 8, REPLY_INT);
    fixture_lock(&e, 6, "b", FOREVER); /* behind it, too */
    fixture_unlock(&e, 7, "b", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 4 });
    (void)fixture_hears(&e, 7, REPLY_INT);
    (void)fixture_hears_tokens(&e, 1, TOKENS(3, 4));
}
