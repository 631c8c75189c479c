/* The engine: places in Redis's fair queue, when Redis lost what was done to them. */
#include "unit/engine/engine_cases.h"

#include "support/engine_fair.h"

/* Redis is another one, or has not all that it had. */
static void lose(void)
{
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
}

static void waits_and_leaves(void)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_subscribed(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_close(&e, 1);
    fair_leaves(&e, "1", NO_MORE);
    fixture_no_op(&e);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(who_has_left_leaves_again_after_a_loss)
{
    waits_and_leaves();
    lose();
    fair_refreshes(&e, "", 0, NO_MORE);
    fixture_no_op(&e);
    lose(); /* once more, as that may have been lost as well */
    fair_refreshes(&e, "", 0, NO_MORE);
}

START_TEST(who_was_granted_leaves_again_after_a_loss)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_subscribed(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_OK });
    (void)fixture_hears(&e, 1, REPLY_INT);
    lose();
    fair_refreshes(&e, "", 0, NO_MORE);
}

START_TEST(who_never_had_a_place_leaves_none)
{
    (void)fixture_grant(&e, 1, "job", FAIR, 7);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_OK });
    (void)fixture_hears(&e, 1, REPLY_INT);
    lose();
    fixture_no_op(&e);
}

START_TEST(a_sweep_is_made_again_until_it_has_run)
{
    waits_and_leaves();
    lose();
    fair_refreshes(&e, "", 0, UNKNOWN);
    fair_refreshes(&e, "", 0, LATE);
    fixture_no_op(&e);
    fixture_pass(&e, 1000);
    fair_refreshes(&e, "", 0, FAILED); /* refused: scores end them */
    fixture_pass(&e, 5000);
    fixture_no_op(&e);
}

START_TEST(places_that_are_long_gone_are_forgotten)
{
    waits_and_leaves();
    fixture_pass(&e, 30000 + 2 * 30000);
    lose();
    fixture_no_op(&e);
}

START_TEST(one_naming_of_all_does_for_who_waits_and_who_left)
{
    fair_wait(&e, 3);
    fixture_close(&e, 2);
    fair_leaves(&e, "2", LEFT);
    lose();
    fair_refreshes(&e, "1 3", 2, HELD);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_subscribed(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_no_op(&e);
}

START_TEST(since_when_each_waits_is_told_after_a_loss_and_not_else)
{
    fair_wait(&e, 2);
    fixture_pass(&e, 1000);
    fixture_lock(&e, 3, "job", FAIR);
    fair_joins(&e, "3", HELD);
    fixture_pass(&e, 500);
    lose();
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert_str_eq(op.members, "1 2 3");
    ck_assert(op.op.queue.whole);
    ck_assert_uint_eq(op.waited_ms[0], 1500);
    ck_assert_uint_eq(op.waited_ms[1], 1500);
    ck_assert_uint_eq(op.waited_ms[2], 500);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_take_op(&e, OP_QUEUE, &op); /* it may not have run */
    ck_assert_uint_eq(op.waited_ms[2], 500);
    fixture_answer(&e, &op, HELD);
    fair_subscribed(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_pass(&e, 10000);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    ck_assert_ptr_null(op.op.queue.waited_ms);
    fixture_answer(&e, &op, HELD);
}

/* All waiters of a name with a fair queue have places, however they asked. */
START_TEST(a_plain_holder_that_had_a_place_leaves_again_when_put_back)
{
    fixture_lock(&e, 1, "job", PLAIN);
    fixture_lock(&e, 2, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "1 2", HELD);
    fair_subscribed(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    lose();
    fixture_gives(
        &e, OP_RESTORE,
        (struct op_result){ .status = OP_OK, .token = 7, .restore.restored = true });
    fair_leaves(&e, "1", LEFT);
}
