/* A release that names the waiter who is to be next. */
#include "unit/engine/engine_cases.h"

#include "latchd/protocol.h"

#define ID_B SPAN("bbbbbbbbbbbbbbbb")
#define B_FIELD "latchd:id:bbbbbbbbbbbbbbbb"
#define A_FIELD "latchd:id:" ID_TEXT

/* Connection 1 holds, 2 and 3 wait, with the IDs A and B. */
static void begin(void)
{
    start_engine();
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = ID_A });
    fixture_lock(&e, 3, "job", (struct lock_terms){ .id = ID_B });
    for (fixture_collect(&e); e.op_count > 0; fixture_collect(&e)) {
        fixture_take_op(&e, OP_ACQUIRE, &op);
        fixture_answer(&e, &op, BUSY);
    }
}

static void unlock_to(struct span id)
{
    fixture_unlock(&e, 1, "job", (struct hold_req){ .to = id });
}

static void is_next(const char *field, enum yield yield)
{
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    ck_assert_str_eq(op.field, field);
    ck_assert_int_eq(op.op.release.yield, yield);
}

TEST_GROUP(.setup = begin, .teardown = stop_engine);

START_TEST(a_repetition_names_the_same_waiter)
{
    unlock_to(ID_B);
    is_next(B_FIELD, YIELD_NEVER);
    fixture_answer(&e, &op, UNKNOWN);
    is_next(B_FIELD, YIELD_NEVER);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 101);
    fixture_hears_nothing(&e);
}

START_TEST(whoever_has_left_before_it_was_sent_is_not_next)
{
    struct seen_op look;

    fixture_pass(&e, 5000); /* the head looks again */
    fixture_take_op(&e, OP_ACQUIRE, &look);
    unlock_to(ID_B);
    fixture_close(&e, 3);
    fixture_pass(&e, LATCHD_KEEP_DEFAULT_MS);
    fixture_answer(&e, &look, BUSY);
    is_next(A_FIELD, YIELD_NEVER);
}

START_TEST(the_others_ask_if_it_was_not_moved)
{
    unlock_to(ID_B);
    is_next(B_FIELD, YIELD_NEVER);
    fixture_answer(&e, &op, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 5000);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_str_eq(op.field, A_FIELD);
}

/* By the answer to the head, as Redis was asked meanwhile. */
START_TEST(a_wait_that_ends_while_it_is_named_in_vain_is_answered, 2)
{
    bool freed = _i == 1;

    fixture_pass(&e, 100);
    fixture_lock(&e, 4, "job",
                 (struct lock_terms){ .has = OPT_WAIT, .wait_ms = 5, .id = UUID });
    unlock_to(UUID);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_pass(&e, 10);
    fixture_answer(&e, &op, freed ? FREED : (struct op_result){ .status = OP_NOTHELD });
    (void)fixture_hears(&e, 1, freed ? REPLY_INT : REPLY_ERROR);
    fixture_pass(&e, freed ? 100 : 0); /* others have their chance */
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)fixture_hears(&e, 4, REPLY_NULL);
}

START_TEST(nothing_is_sent_for_a_waiter_that_is_not_there)
{
    unlock_to(UUID);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    fixture_no_op(&e);
}

START_TEST(a_quorum_has_no_named_successor)
{
    fixture_fini(&e);
    fixture_init(&e);
    fixture_replace(&e, (struct engine_setup){ .quorum = true });
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = ID_A });
    unlock_to(ID_A);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    engine_leader(e.engine,
                  &(struct leader_req){ .from = { 3, 9 }, .name = SPAN("job") });
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_ERR);
}
