/* A name that is lent: what is granted from memory, and what Redis is asked for. */
#include "unit/engine/hold/engine_loans.h"

TEST_GROUP(.setup = set_up, .teardown = stop_engine);

START_TEST(only_a_name_that_is_asked_for_twice_within_a_window_is_to_be_lent)
{
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
    fixture_answer(&e, &op, BUSY);
    fixture_pass(&e, WINDOW_MS + 1);
    fixture_close(&e, 1);
    lock_local(2);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
    fixture_answer(&e, &op, BUSY);
    fixture_close(&e, 2);
    lock_local(3);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.block_us, WINDOW_MS * 1000);
}

START_TEST(a_name_is_asked_for_often_however_long_redis_takes)
{
    lock_local(1);
    fixture_pass(&e, 2 * WINDOW_MS);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .count = 1, .token = 900 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 900 });
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, WINDOW_MS);
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_ne(op.op.acquire.claim.block_us, 0);
}

START_TEST(when_redis_may_have_gone_back_no_name_is_lent_for_a_while)
{
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_pass(&e, LOCAL_WINDOW_MAX_MS - 1);
    for (uint64_t conn = 1; conn <= 2; conn++) {
        lock_local(conn);
        fixture_take_op(&e, OP_ACQUIRE, &op);
        ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
        fixture_answer(&e, &op, BUSY);
        fixture_close(&e, conn);
    }
    fixture_pass(&e, 1);
    lock_local(3);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_ne(op.op.acquire.claim.block_us, 0);
}

START_TEST(a_name_with_a_local_waiter_behind_the_head_is_to_be_lent)
{
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, BUSY);
    fixture_pass(&e, WINDOW_MS + 1);
    lock_local(2);
    fixture_pass(&e, WINDOW_MS + 1);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_ne(op.op.acquire.claim.block_us, 0);
}

START_TEST(lease_id_owner_and_other_kinds_make_an_ordinary_lock)
{
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, BUSY);
    fixture_close(&e, 1);
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .has = OPT_LOCAL | OPT_LEASE, .lease_ms = 5000 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
    fixture_answer(&e, &op, BUSY);
    fixture_close(&e, 2);
    fixture_lock(&e, 3, "job",
                 (struct lock_terms){ .has = OPT_LOCAL, .owner = SPAN("o") });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
}

START_TEST(the_next_client_has_the_name_without_redis)
{
    borrow();
    lock_local(2);
    fixture_no_op(&e);
    unlock(1, FIRST);
    is_granted(2, FIRST + 1);
    unlock(2, FIRST + 1);
    lock_local(3);
    is_granted(3, FIRST + 2);
    ck_assert_uint_eq(stats().loans, 1);
    ck_assert_uint_eq(stats().local_grants, 2);
}

START_TEST(a_run_of_pipelined_locks_ends_before_a_name_that_is_lent)
{
    struct lock_req reqs[] = { LOCAL_REQ, LOCAL_REQ, LOCAL_REQ };

    borrow();
    unlock(1, FIRST);
    for (uint64_t i = 0; i < 3; i++) {
        reqs[i].from = (struct call_ref){ 1, 10 + i };
        reqs[i].name = i == 2 ? SPAN("job") : i == 1 ? SPAN("b") : SPAN("a");
    }
    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 3), 2);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
    ck_assert_uint_eq(op.op.batch.count, 2);
    fixture_no_op(&e);
}

/* Two names were granted from loans, and are idle. */
static void borrow_two(struct lock_req reqs[static 2])
{
    static const struct span NAMES[] = { SPAN("a"), SPAN("b") };

    for (uint64_t i = 0; i < 2; i++) {
        reqs[i] = (struct lock_req){ .from = { 1, 10 + i },
                                     .name = NAMES[i],
                                     .terms = LOCAL };
        for (int times = 0; times < 2; times++) {
            engine_lock(e.engine, &reqs[i]);
            fixture_collect(&e);
            fixture_gives(&e, OP_ACQUIRE, times == 0 ? BUSY : LENT);
            if (times == 0) {
                fixture_close(&e, 1);
            }
        }
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
        fixture_unlock(&e, 1, i == 0 ? "a" : "b", (struct hold_req){ .token = FIRST });
        (void)fixture_hears(&e, 1, REPLY_INT);
    }
}

START_TEST(a_run_of_names_that_are_lent_is_granted_at_once)
{
    struct lock_req reqs[3];

    borrow_two(reqs);
    reqs[2] = reqs[1];
    reqs[2].name = SPAN("c");
    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 3), 2);
    fixture_collect(&e);
    is_granted(1, FIRST + 1);
    is_granted(1, FIRST + 1);
}

START_TEST(behind_a_name_that_redis_is_asked_for_nothing_is_granted)
{
    struct lock_req reqs[2];

    borrow_two(reqs);
    clock_now = e.now + WINDOW_MS;
    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 2), 1);
    fixture_collect(&e);
    is_returned();
    fixture_hears_nothing(&e);
}

START_TEST(of_a_run_those_names_are_lent_that_are_asked_for_often)
{
    struct lock_req reqs[] = { LOCAL_REQ, LOCAL_REQ };

    for (int times = 0; times < 3; times++) {
        for (uint64_t i = 0; i < 2; i++) {
            reqs[i].from = (struct call_ref){ 1, 10 + i };
            reqs[i].name = i == 0 ? SPAN("a") : times == 0 ? SPAN("b") : SPAN("c");
        }
        ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 2), 2);
        fixture_collect(&e);
        fixture_take_op(&e, OP_ACQUIRE_BATCH, &op);
        ck_assert_uint_eq(op.blocks_us[0], times > 0 ? WINDOW_MS * 1000 : 0);
        ck_assert_uint_eq(op.blocks_us[1], times == 2 ? WINDOW_MS * 1000 : 0);
        fixture_answer(&e, &op, (struct op_result){ .status = OP_LATE });
        fixture_close(&e, 1);
    }
}

START_TEST(a_run_of_one_lock_may_be_lent)
{
    struct lock_req req = LOCAL_REQ;

    req.name = SPAN("job");
    for (uint64_t i = 0; i < 2; i++) {
        req.from = (struct call_ref){ 1, 10 + i };
        ck_assert_uint_eq(engine_lock_batch(e.engine, &req, 1), 1);
        fixture_collect(&e);
        fixture_take_op(&e, OP_ACQUIRE, &op);
        ck_assert_uint_eq(op.op.acquire.claim.block_us != 0, i == 1);
        fixture_answer(&e, &op, BUSY);
        fixture_close(&e, 1);
    }
}

START_TEST(after_the_window_redis_is_asked)
{
    borrow();
    lock_local(2);
    fixture_pass(&e, WINDOW_MS - 1);
    unlock(1, FIRST);
    is_granted(2, FIRST + 1);
    lock_local(3);
    fixture_pass(&e, 1);
    unlock(2, FIRST + 1);
    fixture_hears_nothing(&e);
    is_returned();
    ck_assert(op.op.release.has_next);
    ck_assert_uint_ne(op.op.release.next.block_us, 0);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .moved = true,
                                       .token = LAST + 1,
                                       .loan_token = LAST + 9 });
    is_granted(3, LAST + 1);
    ck_assert_uint_eq(stats().loans, 2);
}

START_TEST(a_turn_that_began_within_the_window_but_takes_long_asks_redis_H36)
{
    borrow();
    lock_local(2);
    clock_now = e.now + WINDOW_MS;
    unlock(1, FIRST);
    fixture_hears_nothing(&e);
    is_returned();
}

START_TEST(the_window_counts_from_when_redis_was_asked)
{
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, BUSY);
    fixture_close(&e, 1);
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, WINDOW_MS);
    fixture_answer(&e, &op, LENT);
    is_granted(1, FIRST); /* Redis granted it: as ever */
    lock_local(2);
    unlock(1, FIRST);
    fixture_hears_nothing(&e);
    is_returned();
}

START_TEST(a_head_that_is_not_local_gets_the_name_from_redis)
{
    borrow();
    fixture_lock(&e, 2, "job", AS_O);
    lock_local(3);
    unlock(1, FIRST);
    is_returned();
    ck_assert(op.op.release.has_next);
    ck_assert_uint_eq(op.op.release.next.block_us, 0);
    fixture_answer(&e, &op, MOVED(LAST + 1));
    is_granted(2, LAST + 1);
}

START_TEST(a_local_head_does_not_pass_who_stands_in_redis_in_a_fair_queue)
{
    borrow();
    lock_local(2);
    fixture_lock(&e, 3, "job", (struct lock_terms){ .lock_kind = KIND_FAIR });
    unlock(1, FIRST);
    fixture_hears_nothing(&e);
}

START_TEST(a_loan_whose_tokens_are_used_up_goes_back)
{
    borrow();
    unlock(1, FIRST);
    for (uint64_t token = FIRST + 1; token < LAST; token++) {
        lock_local(1);
        is_granted(1, token);
        unlock(1, token);
    }
    lock_local(2);
    is_returned();
}

START_TEST(a_message_that_the_name_is_free_ends_the_loan)
{
    borrow();
    unlock(1, FIRST);
    engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
    lock_local(2);
    fixture_hears_nothing(&e);
    is_returned();
}

START_TEST(a_clock_that_jumped_ends_the_loan)
{
    borrow();
    unlock(1, FIRST);
    engine_on_clock_jump(e.engine);
    lock_local(2);
    fixture_hears_nothing(&e);
    is_returned();
}

START_TEST(while_redis_is_out_of_reach_nothing_is_granted)
{
    borrow();
    engine_on_store_down(e.engine);
    unlock(1, FIRST);
    lock_local(2);
    fixture_hears_nothing(&e);
    fixture_no_op(&e);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    is_returned();
}

/* Another daemon would take the loan's token for a leader's. */
START_TEST(a_name_whose_leader_others_follow_is_not_lent)
{
    borrow();
    engine_announced(e.engine, SPAN("follow 00000000000000bb 1 job"));
    fixture_collect(&e);
    unlock(1, FIRST);
    is_returned();
    fixture_answer(&e, &op, FREED);
    for (uint64_t conn = 1; conn <= 2; conn++) {
        lock_local(conn);
        fixture_take_op(&e, OP_ACQUIRE, &op);
        ck_assert_uint_eq(op.op.acquire.claim.block_us, 0);
        fixture_answer(&e, &op, BUSY);
        fixture_close(&e, conn);
    }
}
