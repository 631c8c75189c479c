/* The engine: places in Redis's fair queue: what seldom happens. */
#include "unit/engine/engine_cases.h"

#include "support/engine_fair.h"

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(who_asks_while_it_joins_does_not_join_once_more)
{
    (void)fixture_grant(&e, 9, "job", PLAIN, 100);
    fixture_lock(&e, 1, "job", FAIR);
    fixture_take_op(&e, OP_QUEUE, &op);
    fair_subscribed(&e);
    {
        struct seen_op ask;

        fixture_take_op(&e, OP_ACQUIRE, &ask);
        ck_assert(!ask.op.acquire.enqueue);
        ck_assert_uint_eq(ask.op.acquire.was_queued, 0);
        fixture_answer(&e, &op, HELD);
        fixture_answer(&e, &ask, BUSY(20000));
    }
    fixture_no_op(&e);
}

START_TEST(only_the_head_goes_back_first_by_asking)
{
    struct lock_terms req = { .lock_kind = KIND_FAIR, .id = UUID };

    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", req);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    fixture_lock(&e, 3, "job", req);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    ck_assert_uint_eq(op.op.acquire.was_queued, 0);
}

START_TEST(a_grant_that_is_told_after_a_later_naming_leaves)
{
    struct lock_terms req = { .lock_kind = KIND_FAIR, .id = UUID };
    struct seen_op probe;

    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", req);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    fixture_pass(&e, 9999);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_lock(&e, 3, "job", req);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_take_op(&e, OP_ACQUIRE, &probe);
    fixture_pass(&e, 1);
    fair_refreshes(&e, "1 2", 2, HELD);
    fixture_answer(&e, &probe,
                   (struct op_result){
                       .status = OP_OK, .token = 7, .count = 1, .attached = true });
    (void)fixture_hears(&e, 3, REPLY_TOKEN);
    fair_leaves(&e, "2", LEFT);
}

START_TEST(a_short_lease_that_came_too_late_is_put_back_at_once)
{
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){
                     .lock_kind = KIND_FAIR, .has = OPT_LEASE, .lease_ms = 1000 });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 600);
    fixture_answer(&e, &op, GRANT(7));
    fair_refreshes(&e, "1", 1, HELD);
    fixture_gives(&e, OP_RELEASE, MOVED(8));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(after_a_short_outage_all_are_shown_at_once)
{
    fair_wait(&e, 2);
    engine_on_store_down(e.engine);
    fixture_pass(&e, 100);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    fair_refreshes(&e, "1 2", 2, HELD);
}

START_TEST(a_name_that_turns_read_write_has_no_fair_queue)
{
    fair_wait(&e, 1);
    fixture_close(&e, 1);
    fixture_take_op(&e, OP_LEAVE, &op);
    for (uint64_t i = 2; i <= 3; i++) {
        struct seen_op ask;

        fixture_lock(&e, i, "job", (struct lock_terms){ .lock_kind = KIND_WRITE });
        if (i == 2) {
            fixture_take_op(&e, OP_ACQUIRE, &ask);
            ck_assert(!ask.op.acquire.fair);
            ck_assert(!ask.op.acquire.enqueue);
            fixture_answer(&e, &ask,
                           (struct op_result){ .status = OP_BUSY, .ttl_ms = 20000 });
        }
    }
    fixture_answer(&e, &op, NO_MORE);
    fixture_no_op(&e);
}

START_TEST(a_vanished_place_is_shown_again_but_not_all_the_time)
{
    const struct op_result gone = { .status = OP_BUSY, .ttl_ms = 20000 };

    fair_wait(&e, 1);
    fixture_pass(&e, 1000);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE, gone);
    fair_refreshes(&e, "1", 1, HELD);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE, gone);
    fixture_no_op(&e);
}

START_TEST(a_poll_that_is_first_gets_its_place_by_asking)
{
    fixture_lock(
        &e, 1, "job",
        (struct lock_terms){ .lock_kind = KIND_FAIR, .id = UUID, .has = OPT_WAIT });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.enqueue);
    fixture_answer(&e, &op, BUSY(20000));
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_pass(&e, 2000);
    fair_leaves(&e, "1", NO_MORE);
}

START_TEST(a_poll_without_keep_has_no_place_though_it_comes_first)
{
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){
                     .lock_kind = KIND_FAIR, .id = UUID, .has = OPT_WAIT | OPT_KEEP });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.enqueue);
}

START_TEST(a_name_of_another_type_is_heard_of_by_the_head)
{
    static const char *const MEMBERS[] = { "", "1", "2", "3" };

    fair_wait(&e, 2);
    fixture_lock(&e, 3, "job", FAIR);
    fair_joins(&e, "3", (struct op_result){ .status = OP_WRONGTYPE });
    for (uint64_t i = 1; i <= 3; i++) {
        fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_WRONGTYPE });
        ck_assert_int_eq(fixture_hears(&e, i, REPLY_ERROR).error, LOCK_WRONGTYPE);
        fair_leaves(&e, MEMBERS[i], (struct op_result){ .status = OP_WRONGTYPE });
    }
}

START_TEST(nothing_is_granted_yet_but_places_are_given)
{
    struct engine_setup setup = { .instance = "00000000000000aa",
                                  .now_ms = e.now,
                                  .no_grants_until_ms = e.now + 5000,
                                  .config = { .watchdog_ms = 30000,
                                              .redis_timeout_ms = 3000,
                                              .fair_wait_ms = 30000,
                                              .fair_window = 8,
                                              .recheck_ms = 50000,
                                              .max_waiters = 10,
                                              .max_holds = 10 } };

    engine_free(e.engine);
    e.engine = engine_new(&setup);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_lock(&e, 1, "job", FAIR);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    ck_assert(!op.op.acquire.enqueue);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_BUSY, .ttl_ms = TTL_ABSENT });
    fair_joins(
        &e, "1",
        (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT, .fair = true });
    fixture_gives(&e, OP_ACQUIRE, BUSY(-2)); /* free, it is told; but not yet */
    fixture_pass(&e, 4999);
    fixture_no_op(&e);
    fixture_pass(&e, 2);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
    fixture_answer(&e, &op, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}
