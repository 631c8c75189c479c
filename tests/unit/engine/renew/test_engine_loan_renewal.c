/* A name that clients go on asking for stays lent: its loan is renewed. */
#include "unit/engine/hold/engine_loans.h"

TEST_GROUP(.setup = set_up, .teardown = stop_engine);

enum {
    LAST_PART_MS = WINDOW_MS / LOAN_LAST_PART,
    GATHERED_MS = 1, /* after which what is due leaves */
};

/* Connection 1 gives the name up, and has it again from the loan. */
static void take_again(uint64_t token)
{
    unlock(1, token - 1);
    lock_local(1);
    ck_assert_uint_eq((uint64_t)fixture_hears(&e, 1, REPLY_TOKEN).value, token);
}

/* The name is lent, and has been granted in the last part of the window. */
static void borrow_and_go_on(void)
{
    borrow();
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS);
    take_again(FIRST + 1);
    fixture_no_op(&e);
    fixture_pass(&e, GATHERED_MS);
}

static void is_renewal(void)
{
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert(op.op.renew.loans);
    ck_assert_uint_eq(op.op.renew.count, 1);
    ck_assert_str_eq(op.item_names[0], "job");
    ck_assert_uint_eq(op.items[0].token, LAST);
    ck_assert_uint_eq(op.items[0].lease_ms, CONFIG.watchdog_ms);
}

static void answer_renewal_op(const struct seen_op *renewal, enum renew_result result)
{
    fixture_answer(&e, renewal,
                   (struct op_result){
                       .status = OP_OK, .renew.items = &result, .renew.count = 1 });
}

static void answer_renewal(enum renew_result result)
{
    answer_renewal_op(&op, result);
}

/* No client gets the name from memory. */
static void is_over(uint64_t token)
{
    unlock(1, token);
    lock_local(1);
    fixture_hears_nothing(&e);
    is_returned();
}

START_TEST(a_grant_in_the_last_part_of_the_window_has_the_loan_renewed)
{
    borrow();
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS - 1);
    take_again(FIRST + 1);
    fixture_pass(&e, 1);
    fixture_no_op(&e);
    take_again(FIRST + 2);
    fixture_no_op(&e);
    fixture_pass(&e, GATHERED_MS);
    is_renewal();
    answer_renewal(RENEW_OK);
    ck_assert_uint_eq(stats().loan_renewals, 1);
    ck_assert_uint_eq(stats().loans, 1);
}

START_TEST(a_renewed_loan_lends_for_a_window_from_when_that_was_asked)
{
    borrow_and_go_on();
    is_renewal();
    fixture_pass(&e, 2);
    answer_renewal(RENEW_OK);
    take_again(FIRST + 2);
    fixture_pass(&e, WINDOW_MS - 3);
    take_again(FIRST + 3); /* too late to have it renewed once more */
    fixture_pass(&e, 1);
    is_over(FIRST + 3);
}

START_TEST(until_the_answer_the_old_window_counts)
{
    borrow_and_go_on();
    is_renewal();
    fixture_pass(&e, LAST_PART_MS - GATHERED_MS - 1);
    take_again(FIRST + 2);
    fixture_no_op(&e); /* one renewal is enough */
    fixture_pass(&e, 1);
    is_over(FIRST + 2);
}

START_TEST(a_renewal_that_comes_when_the_loan_goes_back_says_nothing)
{
    struct seen_op renewal;

    borrow_and_go_on();
    is_renewal();
    renewal = op;
    fixture_pass(&e, LAST_PART_MS);
    is_over(FIRST + 1);
    answer_renewal_op(&renewal, RENEW_OK);
    ck_assert_uint_eq(stats().loan_renewals, 0);
    fixture_hears_nothing(&e);
}

START_TEST(an_answer_about_a_loan_that_is_gone_says_nothing)
{
    struct seen_op renewal;

    borrow_and_go_on();
    is_renewal();
    renewal = op;
    fixture_pass(&e, LAST_PART_MS);
    unlock(1, FIRST + 1);
    is_returned();
    fixture_answer(&e, &op, FREED);
    answer_renewal_op(&renewal, RENEW_GONE);
    ck_assert_uint_eq(stats().lent, 0);
}

START_TEST(a_loan_that_others_wait_for_is_not_renewed_nor_are_the_next_ones)
{
    borrow_and_go_on();
    is_renewal();
    answer_renewal(RENEW_WANTED);
    take_again(FIRST + 2); /* the old window counts */
    fixture_pass(&e, LAST_PART_MS - GATHERED_MS);
    is_over(FIRST + 2);
    fixture_answer(&e, &op, FREED);
    fixture_gives(
        &e, OP_ACQUIRE,
        (struct op_result){
            .status = OP_OK, .count = 1, .token = LAST + 1, .loan_token = 2 * LAST });
    is_granted(1, LAST + 1);
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS);
    take_again(LAST + 2);
    fixture_pass(&e, GATHERED_MS);
    fixture_no_op(&e);
}

/* Once the channel is subscribed, the waiter asks Redis who holds: its own daemon. */
START_TEST(what_this_daemon_itself_keeps_from_a_waiter_is_nobody_elses)
{
    struct seen_op asked;

    borrow();
    lock_local(2);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &asked);
    unlock(1, FIRST);
    fixture_answer(&e, &asked,
                   (struct op_result){ .status = OP_BUSY, .ttl_ms = WINDOW_MS });
    is_granted(2, FIRST + 1);
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS);
    unlock(2, FIRST + 1);
    lock_local(1);
    is_granted(1, FIRST + 2);
    fixture_pass(&e, GATHERED_MS);
    is_renewal();
}

START_TEST(a_loan_that_redis_has_lost_is_in_doubt)
{
    borrow_and_go_on();
    is_renewal();
    answer_renewal(RENEW_GONE);
    is_over(FIRST + 1);
}

START_TEST(too_few_replicas_and_an_error_renew_nothing)
{
    static const enum op_status STATUS[] = { OP_NOREPLICAS, OP_ERROR, OP_LATE,
                                             OP_UNKNOWN };

    borrow_and_go_on();
    for (size_t i = 0; i < sizeof(STATUS) / sizeof(STATUS[0]); i++) {
        is_renewal();
        fixture_answer(
            &e, &op,
            (struct op_result){ .status = STATUS[i],
                                .renew.items = &(enum renew_result){ RENEW_OK },
                                .renew.count = 1 });
        ck_assert_uint_eq(stats().loan_renewals, 0);
        take_again(FIRST + 2 + i); /* has it asked for again */
        fixture_pass(&e, GATHERED_MS);
    }
    fixture_no_op(&e);
    is_over(FIRST + 1 + sizeof(STATUS) / sizeof(STATUS[0]));
}

START_TEST(no_name_is_lent_for_more_than_so_many_windows_in_one_piece)
{
    uint64_t token = FIRST, began = e.now;

    borrow();
    while (e.now < began + LOAN_WINDOWS_MAX * WINDOW_MS - LAST_PART_MS) {
        fixture_pass(&e, 1);
        take_again(++token);
        if (e.op_count > 0) {
            is_renewal();
            answer_renewal(RENEW_OK);
        }
    }
    ck_assert_uint_ge(stats().loan_renewals, LOAN_WINDOWS_MAX - 1);
    while (e.now < began + LOAN_WINDOWS_MAX * WINDOW_MS - 1) {
        fixture_pass(&e, 1);
        take_again(++token);
        fixture_no_op(&e);
    }
    fixture_pass(&e, 1);
    is_over(token);
}

START_TEST(a_message_a_failover_and_a_jump_of_the_clock_end_what_would_be_renewed, 3)
{
    borrow_and_go_on();
    is_renewal();
    if (_i == 0) {
        engine_on_message(e.engine, SPAN("job"), false, SPAN("0"));
    } else if (_i == 1) {
        engine_on_failover(e.engine, NULL, NULL);
    } else {
        engine_on_clock_jump(e.engine);
    }
    fixture_collect(&e);
    answer_renewal(RENEW_OK);
    ck_assert_uint_eq(stats().loan_renewals, 0);
}

START_TEST(loans_of_a_moment_are_renewed_together)
{
    static const char *const NAMES[] = { "a", "b", "c" };
    struct op_result lent = LENT;

    for (uint64_t i = 0; i < 3; i++) {
        fixture_lock(&e, i, NAMES[i], LOCAL);
        fixture_lock(&e, 10 + i, NAMES[i], LOCAL);
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_OK, .count = 1, .token = 900 });
        (void)fixture_hears(&e, i, REPLY_TOKEN);
        fixture_unlock(&e, i, NAMES[i], (struct hold_req){ .token = 900 });
        lent.moved = true;
        fixture_gives(&e, OP_RELEASE, lent);
        (void)fixture_hears(&e, i, REPLY_INT);
        (void)fixture_hears(&e, 10 + i, REPLY_TOKEN);
    }
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS);
    for (uint64_t i = 0; i < 3; i++) {
        fixture_unlock(&e, 10 + i, NAMES[i], (struct hold_req){ .token = FIRST });
        (void)fixture_hears(&e, 10 + i, REPLY_INT);
        fixture_lock(&e, i, NAMES[i], LOCAL);
        (void)fixture_hears(&e, i, REPLY_TOKEN);
    }
    fixture_pass(&e, GATHERED_MS);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_no_op(&e);
    ck_assert_uint_eq(op.op.renew.count, 3);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_str_eq(op.item_names[i], NAMES[i]);
    }
}

START_TEST(a_daemon_that_stops_renews_nothing)
{
    borrow();
    fixture_pass(&e, WINDOW_MS - LAST_PART_MS);
    take_again(FIRST + 1);
    engine_stop(e.engine);
    fixture_collect(&e);
    fixture_pass(&e, GATHERED_MS);
    while (e.op_count > 0) {
        ck_assert(e.ops[0].op.kind != OP_RENEW || !e.ops[0].op.renew.loans);
        fixture_take_op(&e, e.ops[0].op.kind, &op);
    }
}
