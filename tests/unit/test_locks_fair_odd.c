/* The engine: places in Redis's fair queue: what seldom happens. */
#include "support/engine_fair.h"
#include "support/runner.h"

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

START_TEST(who_asks_while_it_joins_does_not_join_once_more)
{
    (void)engine_grant(&e, 9, "job", PLAIN, 100);
    engine_lock(&e, 1, "job", FAIR);
    engine_take_op(&e, OP_QUEUE, &op);
    fair_subscribed(&e);
    {
        struct seen_op ask;

        engine_take_op(&e, OP_ACQUIRE, &ask);
        ck_assert(!ask.op.enqueue);
        ck_assert_uint_eq(ask.op.known, 0);
        engine_answer(&e, &op, HELD);
        engine_answer(&e, &ask, BUSY(20000));
    }
    engine_no_op(&e);
}
END_TEST

START_TEST(only_the_head_goes_back_first_by_asking)
{
    struct lock_req req = { .kind = KIND_FAIR, .id = UUID };

    fair_wait(&e, 1);
    engine_lock(&e, 2, "job", req);
    engine_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    engine_lock(&e, 3, "job", req);
    (void)engine_hears(&e, 2, REPLY_NULL);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    ck_assert_uint_eq(op.op.known, 0);
}
END_TEST

START_TEST(a_grant_that_is_told_after_a_later_naming_leaves)
{
    struct lock_req req = { .kind = KIND_FAIR, .id = UUID };
    struct seen_op probe;

    fair_wait(&e, 1);
    engine_lock(&e, 2, "job", req);
    engine_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    engine_pass(&e, 9999);
    engine_gives(&e, OP_ACQUIRE, BUSY(20000));
    engine_lock(&e, 3, "job", req);
    (void)engine_hears(&e, 2, REPLY_NULL);
    engine_take_op(&e, OP_ACQUIRE, &probe);
    engine_pass(&e, 1);
    fair_refreshes(&e, "1 2", 2, HELD);
    engine_answer(&e, &probe,
                  (struct op_result){
                      .status = OP_OK, .token = 7, .count = 1, .attached = true });
    (void)engine_hears(&e, 3, REPLY_TOKEN);
    fair_leaves(&e, "2", LEFT);
}
END_TEST

START_TEST(a_short_lease_that_came_too_late_is_put_back_at_once)
{
    engine_lock(&e, 1, "job",
                (struct lock_req){
                    .kind = KIND_FAIR, .has = LOCK_HAS_LEASE, .lease_ms = 1000 });
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_pass(&e, 600);
    engine_answer(&e, &op, GRANT(7));
    fair_refreshes(&e, "1", 1, HELD);
    engine_gives(&e, OP_RELEASE, MOVED(8));
    (void)engine_hears(&e, 1, REPLY_TOKEN);
}
END_TEST

START_TEST(after_a_short_outage_all_are_shown_at_once)
{
    fair_wait(&e, 2);
    locks_store_down(e.locks);
    engine_pass(&e, 100);
    locks_store_up(e.locks, false);
    engine_collect(&e);
    fair_refreshes(&e, "1 2", 2, HELD);
}
END_TEST

START_TEST(a_name_that_turns_read_write_has_no_fair_queue)
{
    fair_wait(&e, 1);
    engine_close(&e, 1);
    engine_take_op(&e, OP_LEAVE, &op);
    for (uint64_t i = 2; i <= 3; i++) {
        struct seen_op ask;

        engine_lock(&e, i, "job", (struct lock_req){ .kind = KIND_WRITE });
        if (i == 2) {
            engine_take_op(&e, OP_ACQUIRE, &ask);
            ck_assert(!ask.op.fair);
            ck_assert(!ask.op.enqueue);
            engine_answer(&e, &ask,
                          (struct op_result){ .status = OP_BUSY, .ttl_ms = 20000 });
        }
    }
    engine_answer(&e, &op, NO_MORE);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_vanished_place_is_shown_again_but_not_all_the_time)
{
    const struct op_result gone = { .status = OP_BUSY, .ttl_ms = 20000 };

    fair_wait(&e, 1);
    engine_pass(&e, 1000);
    fair_message(&e);
    engine_gives(&e, OP_ACQUIRE, gone);
    fair_refreshes(&e, "1", 1, HELD);
    fair_message(&e);
    engine_gives(&e, OP_ACQUIRE, gone);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_poll_that_is_first_gets_its_place_by_asking)
{
    engine_lock(
        &e, 1, "job",
        (struct lock_req){ .kind = KIND_FAIR, .id = UUID, .has = LOCK_HAS_WAIT });
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.enqueue);
    engine_answer(&e, &op, BUSY(20000));
    (void)engine_hears(&e, 1, REPLY_NULL);
    engine_pass(&e, 2000);
    fair_leaves(&e, "1", NO_MORE);
}
END_TEST

START_TEST(a_poll_without_keep_has_no_place_though_it_comes_first)
{
    engine_lock(&e, 1, "job",
                (struct lock_req){ .kind = KIND_FAIR,
                                   .id = UUID,
                                   .has = LOCK_HAS_WAIT | LOCK_HAS_KEEP });
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.enqueue);
}
END_TEST

START_TEST(a_name_of_another_type_is_heard_of_by_the_head)
{
    static const char *const MEMBERS[] = { "", "1", "2", "3" };

    fair_wait(&e, 2);
    engine_lock(&e, 3, "job", FAIR);
    fair_joins(&e, "3", (struct op_result){ .status = OP_WRONGTYPE });
    for (uint64_t i = 1; i <= 3; i++) {
        engine_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_WRONGTYPE });
        ck_assert_int_eq(engine_hears(&e, i, REPLY_ERROR).error, LOCK_WRONGTYPE);
        fair_leaves(&e, MEMBERS[i], (struct op_result){ .status = OP_WRONGTYPE });
    }
}
END_TEST

START_TEST(nothing_is_granted_yet_but_places_are_given)
{
    struct locks_setup setup = { .instance = "00000000000000aa",
                                 .now_ms = e.now,
                                 .no_grants_until_ms = e.now + 5000,
                                 .config = { .watchdog_ms = 30000,
                                             .redis_timeout_ms = 3000,
                                             .fair_wait_ms = 30000,
                                             .fair_window = 8,
                                             .recheck_ms = 50000,
                                             .max_waiters = 10,
                                             .max_holds = 10 } };

    locks_free(e.locks);
    e.locks = locks_new(&setup);
    locks_store_up(e.locks, true);
    engine_collect(&e);
    engine_lock(&e, 1, "job", FAIR);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    ck_assert(!op.op.enqueue);
    engine_answer(&e, &op, (struct op_result){ .status = OP_BUSY, .ttl_ms = -2 });
    fair_joins(&e, "1",
               (struct op_result){ .status = OP_OK, .ttl_ms = -2, .fair = true });
    engine_gives(&e, OP_ACQUIRE, BUSY(-2)); /* free, it is told; but not yet */
    engine_pass(&e, 4999);
    engine_no_op(&e);
    engine_pass(&e, 2);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
    engine_answer(&e, &op, GRANT(7));
    (void)engine_hears(&e, 1, REPLY_TOKEN);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_fair_odd");
    TCase *tc = tcase_create("odd");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, who_asks_while_it_joins_does_not_join_once_more);
    tcase_add_test(tc, only_the_head_goes_back_first_by_asking);
    tcase_add_test(tc, a_grant_that_is_told_after_a_later_naming_leaves);
    tcase_add_test(tc, a_short_lease_that_came_too_late_is_put_back_at_once);
    tcase_add_test(tc, after_a_short_outage_all_are_shown_at_once);
    tcase_add_test(tc, a_name_that_turns_read_write_has_no_fair_queue);
    tcase_add_test(tc, a_vanished_place_is_shown_again_but_not_all_the_time);
    tcase_add_test(tc, a_poll_that_is_first_gets_its_place_by_asking);
    tcase_add_test(tc, a_poll_without_keep_has_no_place_though_it_comes_first);
    tcase_add_test(tc, a_name_of_another_type_is_heard_of_by_the_head);
    tcase_add_test(tc, nothing_is_granted_yet_but_places_are_given);
    suite_add_tcase(s, tc);
    return s;
}
