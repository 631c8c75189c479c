/* How a loan ends: its holder is settled, or the loan goes back to Redis. */
#include "unit/engine/hold/engine_loans.h"

TEST_GROUP(.setup = set_up, .teardown = stop_engine);

START_TEST(an_idle_loan_goes_back)
{
    borrow();
    unlock(1, FIRST);
    lock_local(2);
    is_granted(2, FIRST + 1);
    unlock(2, FIRST + 1);
    fixture_pass(&e, LOAN_IDLE_MIN_MS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    is_returned();
    fixture_answer(&e, &op, FREED);
    fixture_pass(&e, PULSE_MS);
    fixture_is_empty(&e);
}

/* A client takes the idle loan from memory so much later, and gives it up at once. */
static void take_after(uint64_t ms, uint64_t token)
{
    fixture_pass(&e, ms);
    fixture_no_op(&e);
    lock_local(2);
    is_granted(2, token);
    unlock(2, token);
}

START_TEST(an_idle_loan_is_kept_for_some_times_as_long_as_the_locks_were_apart)
{
    borrow();
    unlock(1, FIRST);
    take_after(1, FIRST + 1);
    fixture_pass(&e, LOAN_IDLE_GAPS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    is_returned();
}

START_TEST(an_idle_loan_goes_back_at_the_end_of_the_window_at_the_latest)
{
    borrow();
    unlock(1, FIRST);
    take_after(1, FIRST + 1);
    take_after(3, FIRST + 2);
    take_after(7, FIRST + 3);
    fixture_pass(&e, WINDOW_MS - 12);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    is_returned();
}

/* Redis says so, and then lends the name. */
static void borrow_from_others(void)
{
    lock_local(1);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    fixture_close(&e, 1);
    lock_local(1);
    fixture_gives(&e, OP_ACQUIRE, LENT);
    is_granted(1, FIRST);
}

START_TEST(an_idle_loan_of_a_name_that_others_use_goes_back_soon)
{
    borrow_from_others();
    unlock(1, FIRST);
    take_after(1, FIRST + 1);
    fixture_pass(&e, LOAN_IDLE_MIN_MS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    is_returned();
}

START_TEST(others_that_used_a_name_are_forgotten_after_a_while)
{
    borrow_from_others();
    unlock(1, FIRST);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    is_returned();
    fixture_answer(&e, &op, FREED);
    fixture_pass(&e, LOAN_OTHERS_MS);
    borrow();
    unlock(1, FIRST);
    take_after(1, FIRST + 1);
    fixture_pass(&e, LOAN_IDLE_GAPS - 1);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    is_returned();
}

START_TEST(who_comes_while_a_loan_goes_back_waits_for_that)
{
    borrow();
    unlock(1, FIRST);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    is_returned();
    lock_local(2);
    fixture_no_op(&e);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, FREED);
    fixture_gives(&e, OP_ACQUIRE, LENT);
    is_granted(2, FIRST);
}

START_TEST(a_hold_is_settled_at_the_end_of_the_window)
{
    borrow();
    fixture_pass(&e, WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].token, FIRST);
    ck_assert_uint_eq(op.items[0].loan_token, LAST);
    ck_assert_uint_eq(op.items[0].lease_ms, 30000);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = (enum renew_result[]){ RENEW_OK },
                                       .renew.count = 1 });
    ck_assert_uint_eq(stats().settled, 1);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:1000");
}

START_TEST(an_unlock_waits_for_the_renewal_that_settles)
{
    borrow();
    fixture_pass(&e, WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = (enum renew_result[]){ RENEW_OK },
                                       .renew.count = 1 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:1000");
    fixture_answer(&e, &op, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
}

START_TEST(a_renewal_that_may_have_settled_is_sent_again_before_an_unlock)
{
    borrow();
    fixture_pass(&e, WINDOW_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_answer(&e, &op, UNKNOWN);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].loan_token, LAST);
}

START_TEST(a_holder_whose_loan_was_taken_away_is_told)
{
    borrow();
    fixture_pass(&e, WINDOW_MS);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_ptr_nonnull(strstr(e.notices, "lost:job"));
    ck_assert_uint_eq(stats().settled, 0);
    fixture_pass(&e, PULSE_MS);
    fixture_is_empty(&e);
}

START_TEST(a_renew_settles_first)
{
    borrow();
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].loan_token, LAST);
}

START_TEST(a_forced_release_settles_first)
{
    borrow();
    fixture_force(&e, 2, "job", (struct hold_req){ .token = FIRST });
    fixture_renews(&e, RENEW_OK);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.force);
    ck_assert_uint_eq(op.op.release.target.token, FIRST);
}

START_TEST(tokens_grow_although_the_loan_went_back_and_redis_knows_none)
{
    borrow();
    unlock(1, FIRST);
    lock_local(2);
    is_granted(2, FIRST + 1);
    unlock(2, FIRST + 1);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    is_returned();
    fixture_answer(&e, &op, FREED);
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.seen_token, FIRST + 1);
}

static void fail_over_and_restore(void)
{
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.restore.token, FIRST);
    ck_assert_uint_eq(op.op.restore.loan_token, LAST);
}

START_TEST(another_server_is_told_of_the_holder_and_of_the_loan)
{
    borrow();
    lock_local(2);
    fail_over_and_restore();
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_hears_nothing(&e); /* it may have a field of its own there */
}

/* Its tokens were never given to anybody, so the hold may stand below them. */
START_TEST(a_hold_from_another_daemons_loan_is_put_back_like_any_other)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = FIRST });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = FIRST,
                                      .loan_token = LAST,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:1000") });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fail_over_and_restore();
}

/* Somebody deleted the lock: the undo of a grant that came too late moves it anew. */
START_TEST(another_loan_may_come_while_one_goes_back)
{
    borrow();
    lock_local(2);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    lock_local(3);
    fixture_close(&e, 2);
    unlock(1, FIRST);
    fixture_answer(
        &e, &op,
        (struct op_result){
            .status = OP_OK, .count = 1, .token = LAST + 1, .loan_token = LAST + 9 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .moved = true,
                                       .token = LAST + 10,
                                       .loan_token = LAST + 19 });
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    fixture_renews(&e, RENEW_OK);
    is_returned();
    fixture_answer(&e, &op, NOTHELD);
    fixture_no_op(&e);
    ck_assert_uint_eq(stats().settled, 1);
}

START_TEST(an_unlock_that_is_sent_again_has_the_same_answer_for_a_while)
{
    borrow();
    unlock(1, FIRST);
    unlock(2, FIRST);
    fixture_pass(&e, LOAN_IDLE_MIN_MS);
    is_returned();
    unlock(2, FIRST);
    fixture_answer(&e, &op, FREED);
    unlock(2, FIRST);
    fixture_pass(&e, OP_ENDED_MS);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .token = FIRST });
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
}

START_TEST(a_token_that_was_not_given_is_not_held)
{
    borrow();
    unlock(1, FIRST);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .token = FIRST + 1 });
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
    is_returned();
}

/* A loan of that name with one token, whose hold ended in memory, ends. */
static void remember(uint64_t token)
{
    struct loan loan = { .lock = lock_find(e.engine, SPAN("job")),
                         .first = token,
                         .next = token + 1 };

    loan_log_add(e.engine, &loan);
}

START_TEST(of_too_many_loans_the_oldest_is_forgotten)
{
    borrow();
    for (uint64_t i = 0; i <= LOAN_LOG_MAX; i++) {
        remember(LAST + i * 7);
    }
    ck_assert(!loan_log_has(e.engine, SPAN("job"), LAST));
    ck_assert(loan_log_has(e.engine, SPAN("job"), LAST + 7));
    ck_assert(!loan_log_has(e.engine, SPAN("job"), LAST + 8));
    ck_assert(!loan_log_has(e.engine, SPAN("door"), LAST + 7));
    ck_assert(loan_log_has(e.engine, SPAN("job"), LAST + LOAN_LOG_MAX * 7));
}

START_TEST(a_token_at_the_end_of_a_long_block_is_found)
{
    struct loan loan = { .first = OP_BLOCK_MAX - 1,
                         .next = 2 * OP_BLOCK_MAX - 2,
                         .token = 2 * OP_BLOCK_MAX - 2 };

    borrow();
    loan.lock = lock_find(e.engine, SPAN("job"));
    loan_log_add(e.engine, &loan);
    ck_assert(!loan_log_has(e.engine, SPAN("job"), OP_BLOCK_MAX - 2));
    ck_assert(loan_log_has(e.engine, SPAN("job"), OP_BLOCK_MAX - 1));
    ck_assert(loan_log_has(e.engine, SPAN("job"), 2 * OP_BLOCK_MAX - 3));
    ck_assert(!loan_log_has(e.engine, SPAN("job"), 2 * OP_BLOCK_MAX - 2));
}

START_TEST(a_grant_that_comes_too_late_is_given_back_by_the_field_of_the_loan)
{
    lock_local(1);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, LENT);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_uint_eq(stats().loans, 0);
    ck_assert(op.op.release.if_keeper);
}

START_TEST(a_stop_gives_an_idle_loan_back_at_once)
{
    borrow();
    unlock(1, FIRST);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert(!engine_stopped(e.engine));
    is_returned();
    fixture_answer(&e, &op, FREED);
    ck_assert(engine_stopped(e.engine));
}

START_TEST(what_a_loan_may_become)
{
    const struct transitions *t = &LOAN_TRANSITIONS;

    ck_assert(transition_is_allowed(t, LOAN_HELD, LOAN_IDLE));
    ck_assert(transition_is_allowed(t, LOAN_IDLE, LOAN_HELD));
    ck_assert(!transition_is_allowed(t, LOAN_SETTLING, LOAN_IDLE));
    ck_assert(!transition_is_allowed(t, LOAN_RETURNING, LOAN_HELD));
    ck_assert(!transition_is_allowed(t, LOAN_HELD, LOAN_RETURNING));
}
