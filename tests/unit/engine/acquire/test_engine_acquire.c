/* The engine: taking, waiting, handing over. */
#include "unit/engine/engine_cases.h"

#define WAIT(ms)                                                                       \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .has = OPT_WAIT, .wait_ms = (ms)                                               \
    }

/* Connection 1 holds "job" with token 100. */
static void hold_job(void)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_free_lock_is_granted_by_one_op)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.name, "job");
    ck_assert_int_eq(op.op.acquire.claim.owner_kind, OWNER_ANONYMOUS);
    ck_assert_uint_eq(op.op.acquire.claim.lease_ms, 30000);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 7);
    fixture_no_op(&e);
    ck_assert_str_eq(e.subs, "");
}

START_TEST(wait_0_on_a_held_lock_is_null)
{
    hold_job();
    fixture_lock(&e, 2, "job", WAIT(0));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

START_TEST(only_the_head_asks_and_it_asks_again_once_subscribed)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_no_op(&e);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 60000 });
    ck_assert_str_eq(e.subs, "+job");
    fixture_no_op(&e);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 60000 });
    fixture_no_op(&e);
    engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

START_TEST(without_any_message_the_head_asks_when_the_ttl_ends_and_at_each_recheck)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 700 });
    fixture_pass(&e, 701);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_BUSY, .ttl_ms = TTL_NONE });
    fixture_pass(&e, 4999);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

START_TEST(a_release_hands_over_in_the_same_op)
{
    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    ck_assert_int_eq(op.op.release.yield, YIELD_NEVER);
    ck_assert_str_eq(op.target_field, "latchd:100");
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
    ck_assert_str_eq(e.notices, "granted:job released:job granted:job");
    fixture_no_op(&e);
}

START_TEST(a_wait_that_ended_during_a_release_that_left_entries_is_null)
{
    struct lock_terms as_owner = { .owner = SPAN("o") };

    fixture_lock(&e, 1, "job", as_owner);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", WAIT(4));
    fixture_unlock(&e, 1, "job", (struct hold_req){ .owner = SPAN("o") });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_pass(&e, 10);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

/* The script would find the waiter's grant, and take it for its own hand-over. */
START_TEST(a_release_hands_nothing_over_to_who_may_hold_already)
{
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 1000 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 7 });
    fixture_pass(&e, 501);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_uint_eq(op.op.release.target.token, 7);
    ck_assert(!op.op.release.has_next);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

START_TEST(a_waiter_that_left_during_the_handover_passes_it_on)
{
    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    engine_on_conn_closed(e.engine, 2);
    fixture_collect(&e);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_REQUEST);
    ck_assert(op.op.release.if_keeper && op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 102 });
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 102);
}

START_TEST(a_handover_with_unknown_outcome_is_repeated_with_the_same_claim)
{
    char first[96];

    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    strcpy(first, op.entry);
    engine_on_conn_closed(e.engine, 2);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.entry, first);
    ck_assert_int_eq(op.op.release.yield, YIELD_ALWAYS);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

START_TEST(wait_ends_exactly_and_in_the_middle_of_the_queue)
{
    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", WAIT(250));
    fixture_pass(&e, 249);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    (void)fixture_hears(&e, 3, REPLY_NULL);
}

START_TEST(with_redis_away_a_wait_ends_with_backend)
{
    engine_on_store_down(e.engine);
    fixture_lock(&e, 1, "job", WAIT(500));
    fixture_lock(&e, 2, "job", WAIT(0));
    fixture_pass(&e, 500);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_pass(&e, 2499);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
}

START_TEST(an_answer_that_comes_after_the_end_of_the_wait_is_undone)
{
    fixture_lock(&e, 1, "job", WAIT(10));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 2999);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
}

START_TEST(a_grant_with_less_than_half_of_its_lease_left_is_given_back_H10)
{
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 2000 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 1001);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    ck_assert(
        op.op.release.has_next); /* it is still the head: the undo may grant it anew */
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 6 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 6);
}

START_TEST(a_late_grant_with_an_id_that_nobody_waits_for_any_more_is_given_back)
{
    struct lock_terms req = { .id = SPAN("aaaaaaaaaaaaaaaa"),
                              .has = OPT_WAIT | OPT_LEASE | OPT_KEEP,
                              .wait_ms = 10,
                              .lease_ms = 500 };

    fixture_lock(&e, 1, "job", req);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 300);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    ck_assert_str_eq(op.target_field, "latchd:id:aaaaaaaaaaaaaaaa");
}

START_TEST(a_message_that_came_while_nobody_waited_makes_the_next_one_ask)
{
    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    engine_on_conn_closed(e.engine, 2);
    engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
    fixture_lock(&e, 3, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

START_TEST(others_are_looked_for_once_in_as_many_handovers_as_the_limit)
{
    enum { LIMIT = 64, ROUNDS = 2 };

    hold_job();
    for (uint64_t conn = 2; conn <= 2 + ROUNDS * LIMIT + 1; conn++) {
        fixture_lock(&e, conn, "job", FOREVER);
    }
    for (uint64_t i = 0; i < ROUNDS * LIMIT + 1; i++) {
        fixture_unlock(&e, i + 1, "job", (struct hold_req){ 0 });
        fixture_take_op(&e, OP_RELEASE, &op);
        ck_assert_int_eq(op.op.release.yield,
                         i > 0 && i % LIMIT == 0 ? YIELD_IF_OTHERS : YIELD_NEVER);
        fixture_answer(
            &e, &op,
            (struct op_result){ .status = OP_OK, .moved = true, .token = 101 + i });
        (void)fixture_hears(&e, i + 1, REPLY_INT);
        (void)fixture_hears(&e, i + 2, REPLY_TOKEN);
    }
}

START_TEST(after_a_second_of_handovers_the_lock_is_truly_released_H23)
{
    struct engine_stats stats;

    hold_job();
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_lock(&e, 3, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.yield, YIELD_NEVER);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    fixture_pass(&e, 1000);
    fixture_unlock(&e, 2, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.yield, YIELD_ALWAYS);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    engine_stats(e.engine, &stats);
    ck_assert_uint_eq(stats.yields, 1);
    engine_on_message(e.engine, SPAN("job"), false,
                      SPAN("0")); /* our own release is no reason to hurry */
    fixture_collect(&e);
    fixture_no_op(&e);
    fixture_pass(&e, 2);
    fixture_take_op(&e, OP_ACQUIRE, &op);
}

START_TEST(who_yielded_leaves_one_release_of_others_to_the_rest_as_well_H23)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    fixture_pass(&e, 2);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    for (int i = 0; i < 2; i++) {
        fixture_pass(&e, 10);
        engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
        fixture_collect(&e);
        if (i == 0) {
            fixture_no_op(&e); /* the first time it stands back */
            fixture_pass(&e, 2);
        }
        fixture_take_op(&e, OP_ACQUIRE, &op);
        fixture_answer(&e, &op,
                       (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
}

START_TEST(a_name_that_nobody_wants_any_more_is_forgotten)
{
    struct engine_stats stats;

    hold_job();
    fixture_lock(&e, 2, "job", WAIT(10));
    fixture_pass(&e, 20);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    fixture_pass(&e, 5000);
    engine_stats(e.engine, &stats);
    ck_assert_uint_eq(stats.locks, 0);
    ck_assert_uint_eq(engine_next_deadline(e.engine), UINT64_MAX);
    ck_assert_str_eq(e.subs, "+job -job");
}
