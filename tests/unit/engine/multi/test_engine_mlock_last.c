/* The engine: MLOCK that waits long has to keep what it took. */
#include "unit/engine/engine_cases.h"

#include "support/engine_mlock.h"

#include "latchd/protocol.h"

static struct lock_terms leased(uint64_t ms)
{
    return (struct lock_terms){ .has = OPT_LEASE, .lease_ms = ms };
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_lost_member_is_taken_anew_after_those_behind_it_M1_M8)
{
    fixture_mlock(&e, 1, "a b c", FOREVER);
    fixture_gives_many(&e, 2, 10, BUSY);
    fixture_force(&e, 9, "a", (struct hold_req){ .token = 10 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_gives_back(&e, "b"); /* first: who holds b must not wait for a */
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(20));
    fixture_gives_many(&e, 2, 21, ALL);
    (void)fixture_hears_tokens(&e, 1, TOKENS(20, 21, 22));
}

START_TEST(with_an_id_a_lost_member_ends_it_M1)
{
    fixture_mlock(&e, 1, "a b c", WITH_ID);
    fixture_gives_many(&e, 2, 10, BUSY);
    fixture_force(&e, 9, "a", (struct hold_req){ .token = 10 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 9, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_gives_back(&e, "b");
    fixture_pass(&e, LATCHD_OVER_MS + 1000);
    fixture_is_empty(&e);
}

START_TEST(leases_are_kept_up_while_others_are_waited_for_M8)
{
    fixture_mlock(&e, 1, "a b", leased(3000));
    fixture_gives_many(&e, 1, 10, BUSY);
    for (int i = 0; i < 20; i++) {
        fixture_pass(&e, 1000);
        mlock_confirms(&e, "a", 10, "latchd:10");
        if (i % 5 == 4) {
            fixture_asks_for(&e, "b", &op);
            fixture_answer(&e, &op, BUSY);
        }
    }
    ck_assert_str_eq(e.notices, "granted:a");
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(11));
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
}

START_TEST(what_has_less_than_half_of_its_lease_is_confirmed_first_H10)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    engine_on_clock_jump(e.engine); /* nothing that was confirmed so far counts */
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(11));
    fixture_hears_nothing(&e);
    mlock_confirms(&e, "a", 10, "latchd:10");
    (void)fixture_hears_tokens(&e, 1, TOKENS(10, 11));
}

START_TEST(what_cannot_be_confirmed_is_taken_anew)
{
    fixture_mlock(&e, 1, "a b", FOREVER);
    fixture_gives_many(&e, 1, 10, BUSY);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(11));
    fixture_gives(&e, OP_ATTACH, (struct op_result){ .status = OP_NOTHELD });
    fixture_renews(&e, RENEW_GONE);
    fixture_gives_back(&e, "b");
    fixture_asks_for(&e, "a", &op);
    fixture_answer(&e, &op, GRANTED(20));
    fixture_asks_for(&e, "b", &op);
    fixture_answer(&e, &op, GRANTED(21));
    (void)fixture_hears_tokens(&e, 1, TOKENS(20, 21));
}

START_TEST(when_redis_confirms_nothing_in_time_it_is_backend)
{
    fixture_mlock(&e, 1, "a b", WAIT(2000));
    fixture_gives_many(&e, 1, 10, BUSY);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    engine_on_message(e.engine, SPAN("b"), false, SPAN("0"));
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANTED(11));
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 2999);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 1);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_gives_back(&e, "a");
    fixture_gives_back(&e, "b");
}
