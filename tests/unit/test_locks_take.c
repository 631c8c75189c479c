/* The engine: taking, waiting, handing over. */
#include "support/engine.h"
#include "support/runner.h"

static struct engine e;
static struct seen_op op;

#define WAIT(ms)                                                                       \
    (struct lock_req)                                                                  \
    {                                                                                  \
        .has = LOCK_HAS_WAIT, .wait_ms = (ms)                                          \
    }
#define FOREVER                                                                        \
    (struct lock_req)                                                                  \
    {                                                                                  \
        0                                                                              \
    }

static void setup(void)
{
    engine_init(&e);
}

static void teardown(void)
{
    engine_fini(&e);
}

/* Connection 1 holds "job" with token 100. */
static void hold_job(void)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)engine_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(a_free_lock_is_granted_by_one_op)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.name, "job");
    ck_assert_int_eq(op.op.claim.kind, OWNER_ANONYMOUS);
    ck_assert_uint_eq(op.op.claim.lease_ms, 30000);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_TOKEN).value, 7);
    engine_no_op(&e);
    ck_assert_str_eq(e.subs, "");
}
END_TEST

START_TEST(wait_0_on_a_held_lock_is_null)
{
    hold_job();
    engine_lock(&e, 2, "job", WAIT(0));
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    (void)engine_hears(&e, 2, REPLY_NULL);
}
END_TEST

START_TEST(only_the_head_asks_and_it_asks_again_once_subscribed)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_lock(&e, 2, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_no_op(&e);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 60000 });
    ck_assert_str_eq(e.subs, "+job");
    engine_no_op(&e);
    locks_subscribed(e.locks, SPAN("job"), false);
    engine_collect(&e);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 60000 });
    engine_no_op(&e);
    locks_message(e.locks, SPAN("job"), false);
    engine_collect(&e);
    engine_take_op(&e, OP_ACQUIRE, &op);
}
END_TEST

START_TEST(without_any_message_the_head_asks_when_the_ttl_ends_and_at_each_recheck)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 700 });
    engine_pass(&e, 701);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = -1 });
    engine_pass(&e, 4999);
    engine_no_op(&e);
    engine_pass(&e, 1);
    engine_take_op(&e, OP_ACQUIRE, &op);
}
END_TEST

START_TEST(a_release_hands_over_in_the_same_op)
{
    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.has_next);
    ck_assert_int_eq(op.op.yield, YIELD_NEVER);
    ck_assert_str_eq(op.target_field, "latchd:100");
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_INT).value, 0);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_TOKEN).value, 101);
    ck_assert_str_eq(e.notices, "granted:job released:job granted:job");
    engine_no_op(&e);
}
END_TEST

START_TEST(a_wait_that_ended_during_a_release_that_left_entries_is_null)
{
    struct lock_req as_owner = { .owner = SPAN("o") };

    engine_lock(&e, 1, "job", as_owner);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    engine_lock(&e, 2, "job", WAIT(4));
    engine_unlock(&e, 1, "job", (struct hold_req){ .owner = SPAN("o") });
    engine_take_op(&e, OP_RELEASE, &op);
    engine_pass(&e, 10);
    engine_hears_nothing(&e);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .count = 1 });
    (void)engine_hears(&e, 1, REPLY_INT);
    (void)engine_hears(&e, 2, REPLY_NULL);
}
END_TEST

START_TEST(a_waiter_that_left_during_the_hand_over_passes_it_on)
{
    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    engine_lock(&e, 3, "job", FOREVER);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    locks_conn_closed(e.locks, 2);
    engine_collect(&e);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)engine_hears(&e, 1, REPLY_INT);
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.target.kind, TARGET_REQUEST);
    ck_assert(op.op.own_accord && op.op.has_next);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 102 });
    ck_assert_int_eq(engine_hears(&e, 3, REPLY_TOKEN).value, 102);
}
END_TEST

START_TEST(a_hand_over_with_unknown_outcome_is_repeated_with_the_same_claim)
{
    char first[96];

    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    engine_lock(&e, 3, "job", FOREVER);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    strcpy(first, op.entry);
    locks_conn_closed(e.locks, 2);
    engine_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.entry, first);
    ck_assert_int_eq(op.op.yield, YIELD_ALWAYS);
    engine_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_INT).value, 0);
    engine_take_op(&e, OP_ACQUIRE, &op);
}
END_TEST

START_TEST(wait_ends_exactly_and_in_the_middle_of_the_queue)
{
    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    engine_lock(&e, 3, "job", WAIT(250));
    engine_pass(&e, 249);
    engine_hears_nothing(&e);
    engine_pass(&e, 1);
    (void)engine_hears(&e, 3, REPLY_NULL);
}
END_TEST

START_TEST(with_redis_away_a_wait_ends_with_backend)
{
    locks_store_down(e.locks);
    engine_lock(&e, 1, "job", WAIT(500));
    engine_lock(&e, 2, "job", WAIT(0));
    engine_pass(&e, 500);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_pass(&e, 2499);
    engine_hears_nothing(&e);
    engine_pass(&e, 1);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
}
END_TEST

START_TEST(an_answer_that_comes_after_the_end_of_the_wait_is_undone)
{
    engine_lock(&e, 1, "job", WAIT(10));
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_pass(&e, 2999);
    engine_hears_nothing(&e);
    engine_pass(&e, 1);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    engine_hears_nothing(&e);
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.own_accord);
}
END_TEST

START_TEST(h10_a_grant_with_less_than_half_of_its_lease_left_is_given_back)
{
    engine_lock(&e, 1, "job",
                (struct lock_req){ .has = LOCK_HAS_LEASE, .lease_ms = 2000 });
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_pass(&e, 1001);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    engine_hears_nothing(&e);
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.own_accord);
    ck_assert(op.op.has_next); /* it is still the head: the undo may grant it anew */
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 6 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_TOKEN).value, 6);
}
END_TEST

START_TEST(a_late_grant_with_an_id_that_nobody_waits_for_any_more_is_given_back)
{
    struct lock_req req = { .id = SPAN("aaaaaaaaaaaaaaaa"),
                            .has = LOCK_HAS_WAIT | LOCK_HAS_LEASE | LOCK_HAS_KEEP,
                            .wait_ms = 10,
                            .lease_ms = 500 };

    engine_lock(&e, 1, "job", req);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_pass(&e, 300);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.own_accord);
    ck_assert_str_eq(op.target_field, "latchd:id:aaaaaaaaaaaaaaaa");
}
END_TEST

START_TEST(a_message_that_came_while_nobody_waited_makes_the_next_one_ask)
{
    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    locks_subscribed(e.locks, SPAN("job"), false);
    engine_collect(&e);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    locks_conn_closed(e.locks, 2);
    locks_message(e.locks, SPAN("job"), false);
    engine_lock(&e, 3, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
}
END_TEST

START_TEST(h23_after_a_second_of_hand_overs_the_lock_is_truly_released)
{
    hold_job();
    engine_lock(&e, 2, "job", FOREVER);
    engine_lock(&e, 3, "job", FOREVER);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.yield, YIELD_NEVER);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    engine_pass(&e, 1000);
    engine_unlock(&e, 2, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.yield, YIELD_ALWAYS);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .freed = true });
    locks_message(e.locks, SPAN("job"),
                  false); /* our own release is no reason to hurry */
    engine_collect(&e);
    engine_no_op(&e);
    engine_pass(&e, 2);
    engine_take_op(&e, OP_ACQUIRE, &op);
}
END_TEST

START_TEST(h23_who_yielded_leaves_one_release_of_others_to_the_rest_as_well)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    engine_lock(&e, 2, "job", FOREVER);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .freed = true });
    engine_pass(&e, 2);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    for (int i = 0; i < 2; i++) {
        engine_pass(&e, 10);
        locks_message(e.locks, SPAN("job"), false);
        engine_collect(&e);
        if (i == 0) {
            engine_no_op(&e); /* the first time it stands back */
            engine_pass(&e, 2);
        }
        engine_take_op(&e, OP_ACQUIRE, &op);
        engine_answer(&e, &op,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
}
END_TEST

START_TEST(a_name_that_nobody_wants_any_more_is_forgotten)
{
    struct locks_stats stats;

    hold_job();
    engine_lock(&e, 2, "job", WAIT(10));
    engine_pass(&e, 20);
    engine_unlock(&e, 1, "job", (struct hold_req){ 0 });
    engine_take_op(&e, OP_RELEASE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .freed = true });
    engine_pass(&e, 5000);
    locks_stats(e.locks, &stats);
    ck_assert_uint_eq(stats.locks, 0);
    ck_assert_uint_eq(locks_next_deadline(e.locks), UINT64_MAX);
    ck_assert_str_eq(e.subs, "+job -job");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_take");
    TCase *tc = tcase_create("take");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_free_lock_is_granted_by_one_op);
    tcase_add_test(tc, wait_0_on_a_held_lock_is_null);
    tcase_add_test(tc, only_the_head_asks_and_it_asks_again_once_subscribed);
    tcase_add_test(
        tc, without_any_message_the_head_asks_when_the_ttl_ends_and_at_each_recheck);
    tcase_add_test(tc, a_release_hands_over_in_the_same_op);
    tcase_add_test(tc, a_wait_that_ended_during_a_release_that_left_entries_is_null);
    tcase_add_test(tc, a_waiter_that_left_during_the_hand_over_passes_it_on);
    tcase_add_test(tc,
                   a_hand_over_with_unknown_outcome_is_repeated_with_the_same_claim);
    tcase_add_test(tc, wait_ends_exactly_and_in_the_middle_of_the_queue);
    tcase_add_test(tc, with_redis_away_a_wait_ends_with_backend);
    tcase_add_test(tc, an_answer_that_comes_after_the_end_of_the_wait_is_undone);
    tcase_add_test(tc, h10_a_grant_with_less_than_half_of_its_lease_left_is_given_back);
    tcase_add_test(
        tc, a_late_grant_with_an_id_that_nobody_waits_for_any_more_is_given_back);
    tcase_add_test(tc, a_message_that_came_while_nobody_waited_makes_the_next_one_ask);
    tcase_add_test(tc, h23_after_a_second_of_hand_overs_the_lock_is_truly_released);
    tcase_add_test(tc,
                   h23_who_yielded_leaves_one_release_of_others_to_the_rest_as_well);
    tcase_add_test(tc, a_name_that_nobody_wants_any_more_is_forgotten);
    suite_add_tcase(s, tc);
    return s;
}
