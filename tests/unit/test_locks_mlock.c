/* The engine: MLOCK takes its names in order, and all or none. */
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

START_TEST(free_names_are_taken_by_one_op_in_byte_order)
{
    engine_mlock(&e, 1, "c a b", FOREVER);
    ck_assert_uint_eq(e.ops[0].op.many_count, 3);
    ck_assert_str_eq(e.ops[0].many[0], "a");
    ck_assert_str_eq(e.ops[0].many[1], "b");
    ck_assert_str_eq(e.ops[0].many[2], "c");
    engine_gives_many(&e, 3, 10, ALL);
    (void)engine_hears_tokens(&e, 1, TOKENS(12, 10, 11));
    engine_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:a granted:b granted:c");
}
END_TEST

START_TEST(one_name_is_an_ordinary_lock)
{
    engine_mlock(&e, 1, "a", FOREVER);
    engine_gives(&e, OP_ACQUIRE, GRANTED(7));
    (void)engine_hears_tokens(&e, 1, TOKENS(7));
}
END_TEST

START_TEST(a_name_twice_is_refused)
{
    engine_mlock(&e, 1, "b a b", FOREVER);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    engine_is_empty(&e);
}
END_TEST

START_TEST(a_held_name_is_waited_for_and_then_the_rest_is_taken)
{
    engine_mlock(&e, 1, "a b c d", FOREVER);
    engine_gives_many(&e, 1, 10, BUSY);
    ck_assert_str_eq(e.subs, "+b");
    engine_no_op(&e); /* c and d wait for their turn */
    locks_subscribed(e.locks, SPAN("b"), false);
    engine_collect(&e);
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, BUSY);
    engine_no_op(&e);
    locks_message(e.locks, SPAN("b"), false);
    engine_collect(&e);
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(20));
    ck_assert_str_eq(e.ops[0].many[0], "c");
    engine_gives_many(&e, 2, 30, ALL);
    (void)engine_hears_tokens(&e, 1, TOKENS(10, 20, 30, 31));
}
END_TEST

START_TEST(names_behind_a_held_one_are_free_for_others)
{
    engine_mlock(&e, 1, "a b c", FOREVER);
    engine_lock(&e, 2, "c", FOREVER); /* behind the op in flight */
    ck_assert_uint_eq(e.op_count, 1);
    engine_gives_many(&e, 0, 0, BUSY);
    engine_asks_for(&e, "c", &op);
    engine_answer(&e, &op, GRANTED(5));
    (void)engine_hears(&e, 2, REPLY_TOKEN);
}
END_TEST

START_TEST(a_name_held_here_is_not_asked_for_but_handed_over)
{
    (void)engine_grant(&e, 9, "b", FOREVER, 5);
    engine_mlock(&e, 1, "b a c", FOREVER);
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(10));
    engine_no_op(&e);
    engine_unlock(&e, 9, "b", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.has_next);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 11 });
    (void)engine_hears(&e, 9, REPLY_INT);
    engine_asks_for(&e, "c", &op);
    engine_answer(&e, &op, GRANTED(12));
    (void)engine_hears_tokens(&e, 1, TOKENS(11, 10, 12));
}
END_TEST

START_TEST(more_names_than_one_script_takes_go_in_runs)
{
    struct span names[OP_MANY_MAX + 3];
    char text[OP_MANY_MAX + 3][8];
    struct mlock_req req = { .one.from = { 1, 1 },
                             .names = names,
                             .name_count = OP_MANY_MAX + 3 };

    for (int i = 0; i < OP_MANY_MAX + 3; i++) {
        (void)snprintf(text[i], sizeof(text[i]), "n%03d", i);
        names[i] = span_str(text[i]);
    }
    locks_mlock(e.locks, &req);
    engine_collect(&e);
    ck_assert_uint_eq(e.ops[0].op.many_count, OP_MANY_MAX);
    engine_gives_many(&e, OP_MANY_MAX, 1, ALL);
    ck_assert_uint_eq(e.ops[0].op.many_count, 3);
    ck_assert_str_eq(e.ops[0].many[0], "n100");
}
END_TEST

/* --- WAIT ------------------------------------------------------------------------- */

START_TEST(wait_0_tries_each_once_and_gives_back_what_it_got)
{
    engine_mlock(&e, 1, "a b c", WAIT(0));
    engine_gives_many(&e, 2, 10, BUSY);
    (void)engine_hears(&e, 1, REPLY_NULL);
    engine_gives_back(&e, "a");
    engine_gives_back(&e, "b");
    engine_pass(&e, 2000);
    engine_is_empty(&e);
}
END_TEST

START_TEST(wait_is_one_for_all_names_and_exact_M10)
{
    engine_mlock(&e, 1, "a b", WAIT(1000));
    engine_gives_many(&e, 0, 0, BUSY);
    engine_pass(&e, 600);
    locks_message(e.locks, SPAN("a"), false);
    engine_collect(&e);
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(1));
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, BUSY);
    engine_pass(&e, 399);
    engine_hears_nothing(&e);
    engine_pass(&e, 1);
    (void)engine_hears(&e, 1, REPLY_NULL);
    engine_gives_back(&e, "a");
}
END_TEST

START_TEST(a_name_granted_when_time_is_up_is_given_back_if_others_are_left)
{
    engine_mlock(&e, 1, "a b", WAIT(1000));
    engine_gives_many(&e, 0, 0, BUSY);
    engine_pass(&e, 999);
    locks_message(e.locks, SPAN("a"), false);
    engine_collect(&e);
    engine_asks_for(&e, "a", &op);
    engine_pass(&e, 10);
    engine_hears_nothing(&e);
    engine_answer(&e, &op, GRANTED(1));
    (void)engine_hears(&e, 1, REPLY_NULL);
    engine_gives_back(&e, "a");
}
END_TEST

START_TEST(without_redis_it_is_backend_and_never_null)
{
    locks_store_down(e.locks);
    engine_mlock(&e, 1, "a b", WAIT(1000));
    engine_mlock(&e, 2, "a b", WAIT(0));
    engine_pass(&e, 999);
    engine_hears_nothing(&e);
    engine_pass(&e, 1);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_pass(&e, 2000);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    engine_is_empty(&e);
}
END_TEST

START_TEST(an_outage_is_ridden_out)
{
    bool back_first;

    engine_mlock(&e, 1, "a b", FOREVER);
    engine_take_op(&e, OP_ACQUIRE_MANY, &op);
    locks_store_down(e.locks);
    engine_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    engine_pass(&e, 60000);
    engine_no_op(&e);
    locks_store_up(e.locks, true);
    engine_collect(&e);
    back_first = e.ops[0].op.kind == OP_RELEASE; /* names come in no order */
    if (back_first) {
        engine_gives_back(&e, "b"); /* perhaps it was granted */
    }
    engine_asks_for(&e, "a", &op);
    engine_answer(&e, &op, GRANTED(3));
    if (!back_first) {
        engine_gives_back(&e, "b");
    }
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(4));
    (void)engine_hears_tokens(&e, 1, TOKENS(3, 4));
}
END_TEST

/* --- no circles ------------------------------------------------------------------- */

START_TEST(two_in_opposite_order_never_wait_for_each_other_H27_M6)
{
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_mlock(&e, 2, "b a", FOREVER); /* both want a first */
    engine_gives_many(&e, 2, 10, ALL);
    (void)engine_hears_tokens(&e, 1, TOKENS(10, 11));
    engine_no_op(&e);
    engine_unlock(&e, 1, "a", (struct hold_req){ 0 });
    engine_unlock(&e, 1, "b", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.has_next);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 20 });
    engine_gives(&e, OP_RELEASE, DONE);
    engine_asks_for(&e, "b", &op);
    engine_answer(&e, &op, GRANTED(21));
    (void)engine_hears(&e, 1, REPLY_INT);
    (void)engine_hears(&e, 1, REPLY_INT);
    (void)engine_hears_tokens(&e, 2, TOKENS(21, 20));
}
END_TEST

START_TEST(single_locks_in_turn_do_not_starve_it_H27)
{
    (void)engine_grant(&e, 8, "a", FOREVER, 1);
    engine_mlock(&e, 1, "a b", FOREVER);
    engine_lock(&e, 9, "a", FOREVER); /* behind it */
    (void)engine_grant(&e, 7, "b", FOREVER, 2);
    engine_unlock(&e, 8, "a", (struct hold_req){ 0 });
    engine_gives(&e, OP_RELEASE,
                 (struct op_result){ .status = OP_OK, .moved = true, .token = 3 });
    (void)engine_hears(&e, 8, REPLY_INT);
    engine_lock(&e, 6, "b", FOREVER); /* behind it, too */
    engine_unlock(&e, 7, "b", (struct hold_req){ 0 });
    engine_gives(&e, OP_RELEASE,
                 (struct op_result){ .status = OP_OK, .moved = true, .token = 4 });
    (void)engine_hears(&e, 7, REPLY_INT);
    (void)engine_hears_tokens(&e, 1, TOKENS(3, 4));
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_mlock");
    TCase *t = tcase_create("engine");

    tcase_add_checked_fixture(t, setup, teardown);
    suite_add_tcase(s, t);
    tcase_add_test(t, free_names_are_taken_by_one_op_in_byte_order);
    tcase_add_test(t, one_name_is_an_ordinary_lock);
    tcase_add_test(t, a_name_twice_is_refused);
    tcase_add_test(t, a_held_name_is_waited_for_and_then_the_rest_is_taken);
    tcase_add_test(t, names_behind_a_held_one_are_free_for_others);
    tcase_add_test(t, a_name_held_here_is_not_asked_for_but_handed_over);
    tcase_add_test(t, more_names_than_one_script_takes_go_in_runs);
    tcase_add_test(t, wait_0_tries_each_once_and_gives_back_what_it_got);
    tcase_add_test(t, wait_is_one_for_all_names_and_exact_M10);
    tcase_add_test(t, a_name_granted_when_time_is_up_is_given_back_if_others_are_left);
    tcase_add_test(t, without_redis_it_is_backend_and_never_null);
    tcase_add_test(t, an_outage_is_ridden_out);
    tcase_add_test(t, two_in_opposite_order_never_wait_for_each_other_H27_M6);
    tcase_add_test(t, single_locks_in_turn_do_not_starve_it_H27);
    return s;
}
