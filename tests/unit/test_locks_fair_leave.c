/* The engine: places in Redis's fair queue: leaving, faults, the window. */
#include "support/engine_fair.h"
#include "support/runner.h"

#include <stdio.h>

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

static void redis_is_down(void)
{
    locks_store_down(e.locks);
    engine_collect(&e);
}

static void redis_is_up(void)
{
    locks_store_up(e.locks, true);
    engine_collect(&e);
}

/* All is over: the channel lingers, then nothing is left. */
static void nothing_is_left(void)
{
    engine_pass(&e, 1000);
    ck_assert_str_eq(e.subs, "+job -job");
    engine_is_empty(&e);
}

START_TEST(a_closed_connection_leaves_at_once)
{
    fair_wait(&e, 3);
    engine_close(&e, 2);
    fair_leaves(&e, "2", LEFT);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_head_that_goes_leaves_and_the_next_asks_H21)
{
    fair_wait(&e, 2);
    engine_close(&e, 1);
    engine_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1");
    engine_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)engine_hears(&e, 2, REPLY_TOKEN);
    engine_answer(&e, &op, NO_MORE);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_wait_that_ran_out_leaves)
{
    fair_wait(&e, 1);
    engine_lock(
        &e, 2, "job",
        (struct lock_req){ .kind = KIND_FAIR, .has = LOCK_HAS_WAIT, .wait_ms = 700 });
    fair_joins(&e, "2", HELD);
    engine_pass(&e, 700);
    (void)engine_hears(&e, 2, REPLY_NULL);
    fair_leaves(&e, "2", LEFT);
}
END_TEST

START_TEST(cancel_leaves_and_keep_does_not)
{
    struct lock_req req = { .kind = KIND_FAIR, .id = UUID, .has = LOCK_HAS_KEEP };

    req.keep_ms = 30000;
    fair_wait(&e, 1);
    engine_lock(&e, 2, "job", req);
    engine_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    engine_close(&e, 2);
    engine_no_op(&e);
    ck_assert_uint_eq(engine_cancel(&e, SPAN("job"), SPAN_NONE, UUID), 1);
    engine_collect(&e);
    fair_leaves(&e, "2", LEFT);
}
END_TEST

START_TEST(many_leave_in_one_op_one_at_a_time)
{
    fair_wait(&e, 6);
    engine_close(&e, 6);
    engine_take_op(&e, OP_LEAVE, &op);
    engine_close(&e, 5);
    engine_close(&e, 3);
    engine_no_op(&e);
    engine_answer(&e, &op, LEFT);
    fair_leaves(&e, "5 3", LEFT);
    engine_no_op(&e);
}
END_TEST

START_TEST(what_was_left_without_our_knowing_is_left_again)
{
    fair_wait(&e, 4);
    engine_close(&e, 2);
    engine_take_op(&e, OP_LEAVE, &op);
    engine_close(&e, 3);
    engine_answer(&e, &op, UNKNOWN);
    fair_leaves(&e, "2 3", LATE);
    engine_no_op(&e); /* not at once */
    engine_pass(&e, 10);
    fair_leaves(&e, "2 3", FAILED);
    engine_pass(&e, 199);
    engine_no_op(&e);
    engine_pass(&e, 1);
    fair_leaves(&e, "2 3", LEFT);
    engine_no_op(&e);
}
END_TEST

START_TEST(what_redis_keeps_refusing_to_leave_is_left_to_its_score)
{
    size_t count = 0;

    fair_wait(&e, 1);
    engine_close(&e, 1);
    while (e.op_count > 0 && count++ < 1000) {
        fair_leaves(&e, "1", FAILED);
        engine_pass(&e, 200);
    }
    ck_assert_uint_eq(count, 50);
    nothing_is_left();
}
END_TEST

START_TEST(without_redis_leaving_waits)
{
    fair_wait(&e, 2);
    redis_is_down();
    engine_close(&e, 1);
    engine_close(&e, 2);
    engine_pass(&e, 60000);
    engine_no_op(&e);
    redis_is_up();
    fair_leaves(&e, "1 2", NO_MORE);
    engine_pass(&e, 1000);
    engine_is_empty(&e);
}
END_TEST

START_TEST(who_goes_while_its_asking_is_in_flight_leaves_after_it)
{
    engine_lock(&e, 1, "job", FAIR);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.enqueue);
    engine_close(&e, 1);
    engine_no_op(&e);
    engine_answer(&e, &op, BUSY(20000));
    fair_leaves(&e, "1", NO_MORE);
    engine_is_empty(&e);
}
END_TEST

START_TEST(who_goes_while_it_joins_leaves_after_that)
{
    fair_wait(&e, 1);
    engine_lock(&e, 2, "job", FAIR);
    engine_take_op(&e, OP_QUEUE, &op);
    engine_close(&e, 2);
    engine_gives(&e, OP_LEAVE, LEFT); /* behind it on the same link */
    engine_answer(&e, &op, UNKNOWN);
    fair_refreshes(&e, "1", 1, HELD);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_join_of_unknown_outcome_is_named_again_as_new)
{
    fair_wait(&e, 2);
    engine_lock(&e, 3, "job", FAIR);
    fair_joins(&e, "3", UNKNOWN);
    fair_refreshes(&e, "1 2 3", 2, LATE);
    engine_no_op(&e);
    engine_pass(&e, 10);
    fair_refreshes(&e, "1 2 3", 2, HELD);
    locks_clock_jumped(e.locks);
    engine_collect(&e);
    fair_refreshes(&e, "1 2 3", 3, HELD);
}
END_TEST

START_TEST(an_asking_of_unknown_outcome_asks_for_its_place_again)
{
    engine_lock(&e, 1, "job", FAIR);
    engine_gives(&e, OP_ACQUIRE, UNKNOWN);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.enqueue);
    engine_close(&e, 1);
    engine_answer(&e, &op, UNKNOWN);
    engine_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1");
    engine_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    engine_answer(&e, &op, NO_MORE);
    engine_is_empty(&e);
}
END_TEST

START_TEST(who_is_granted_while_it_is_named_leaves)
{
    fair_wait(&e, 2);
    locks_clock_jumped(e.locks);
    engine_collect(&e);
    engine_take_op(&e, OP_QUEUE, &op);
    fair_message(&e);
    engine_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    engine_take_op(&e, OP_LEAVE, &(struct seen_op){ 0 });
    engine_answer(&e, &op, HELD);
}
END_TEST

START_TEST(who_holds_already_through_another_daemon_leaves)
{
    (void)engine_grant(&e, 9, "job", FAIR, 100);
    engine_lock(&e, 1, "job", (struct lock_req){ .kind = KIND_FAIR, .id = UUID });
    fair_joins(&e, "2", HELD);
    engine_unlock(&e, 9, "job", (struct hold_req){ 0 });
    engine_gives(&e, OP_RELEASE,
                 (struct op_result){ .status = OP_OK,
                                     .moved = true,
                                     .attached = true,
                                     .token = 8,
                                     .fair = true });
    (void)engine_hears(&e, 9, REPLY_INT);
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    fair_leaves(&e, "2", NO_MORE);
}
END_TEST

START_TEST(who_was_granted_too_late_is_put_back)
{
    fair_wait(&e, 2);
    fair_message(&e);
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_pass(&e, 16000);
    engine_answer(&e, &op, GRANT(7));
    fair_refreshes(&e, "1 2", 2, HELD);
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:1");
    engine_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 8, .fair = true });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_TOKEN).value, 8);
}
END_TEST

START_TEST(after_an_outage_all_are_shown_at_once)
{
    fair_wait(&e, 2);
    redis_is_down();
    engine_lock(&e, 3, "job", FAIR);
    engine_pass(&e, 60000);
    engine_no_op(&e);
    redis_is_up();
    fair_refreshes(&e, "1 2 3", 2, HELD);
    engine_gives(&e, OP_ACQUIRE, BUSY(20000));
}
END_TEST

static struct locks_config with_window(uint64_t window)
{
    struct locks_config cfg = { .watchdog_ms = 30000,
                                .redis_timeout_ms = 3000,
                                .fair_wait_ms = 30000,
                                .fair_window = window,
                                .recheck_ms = 50000,
                                .handoff_limit = 64,
                                .handoff_pause_ms = 2,
                                .grace_ms = -1,
                                .max_keep_ms = 30000,
                                .max_lease_ms = 86400000,
                                .max_waiters = 100000,
                                .max_holds = 1000 };

    locks_configure(e.locks, &cfg);
    return cfg;
}

/* The next of ours is granted by a hand-over from the one before. */
static void hand_over(uint64_t from, uint64_t to)
{
    engine_unlock(&e, from, "job", (struct hold_req){ 0 });
    engine_gives(&e, OP_RELEASE,
                 (struct op_result){
                     .status = OP_OK, .moved = true, .token = to, .fair = true });
    (void)engine_hears(&e, from, REPLY_INT);
    (void)engine_hears(&e, to, REPLY_TOKEN);
}

START_TEST(the_window_is_filled_up_again_many_at_once)
{
    (void)with_window(8);
    for (uint64_t i = 1; i <= 20; i++) {
        engine_lock(&e, i, "job", FAIR);
    }
    engine_gives(&e, OP_ACQUIRE, GRANT(1));
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    fair_joins(&e, "2 3 4 5 6 7 8 9", HELD);
    hand_over(1, 2);
    engine_no_op(&e);
    hand_over(2, 3); /* 3/4 are left */
    engine_pass(&e, 10);
    fair_joins(&e, "10 11", HELD);
    hand_over(3, 4);
    engine_no_op(&e);
    locks_clock_jumped(e.locks); /* what is sent anyway fills it up */
    engine_collect(&e);
    fair_refreshes(&e, "5 6 7 8 9 10 11 12", 7, HELD);
}
END_TEST

START_TEST(who_comes_when_nobody_is_left_over_joins_at_once)
{
    (void)with_window(8);
    fair_wait(&e, 7);
    engine_lock(&e, 8, "job", FAIR);
    fair_joins(&e, "8", HELD);
    engine_lock(&e, 9, "job", FAIR);
    engine_lock(&e, 10, "job", FAIR);
    engine_close(&e, 4);
    fair_leaves(&e, "4", LEFT);
    engine_no_op(&e); /* two are left over; they come together */
    engine_close(&e, 5);
    engine_take_op(&e, OP_LEAVE, &op);
    fair_joins(&e, "9 10", HELD);
}
END_TEST

START_TEST(as_soon_as_there_is_room_for_all_who_wait_they_join)
{
    (void)with_window(8);
    fair_wait(&e, 9);
    engine_close(&e, 4);
    engine_take_op(&e, OP_LEAVE, &op);
    fair_joins(&e, "9", HELD);
}
END_TEST

START_TEST(the_window_may_change_at_run_time)
{
    (void)with_window(4);
    fair_wait(&e, 6);
    (void)with_window(8);
    engine_lock(&e, 7, "job", FAIR);
    fair_joins(&e, "5 6 7", HELD);
    (void)with_window(2);
    engine_lock(&e, 8, "job", FAIR);
    engine_no_op(&e);
    locks_clock_jumped(e.locks); /* who has a place keeps it */
    engine_collect(&e);
    fair_refreshes(&e, "1 2 3 4 5 6 7", 7, HELD);
}
END_TEST

START_TEST(a_shorter_fair_wait_is_followed_at_run_time)
{
    struct locks_config cfg = with_window(8);

    fair_wait(&e, 1);
    cfg.fair_wait_ms = 3000;
    locks_configure(e.locks, &cfg);
    engine_lock(&e, 2, "job", FAIR);
    fair_joins(&e, "2", HELD);
    engine_pass(&e, 1001);
    engine_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.whole);
    ck_assert_uint_eq(op.op.fair_wait_ms, 3000);
}
END_TEST

START_TEST(who_stops_leaves_before_it_is_gone)
{
    fair_wait(&e, 3);
    locks_stop(e.locks);
    engine_collect(&e);
    for (uint64_t i = 1; i <= 3; i++) {
        (void)engine_hears(&e, i, REPLY_ERROR);
    }
    ck_assert(!locks_stopped(e.locks));
    engine_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1 2 3");
    engine_answer(&e, &op, LATE);
    ck_assert(!locks_stopped(e.locks));
    engine_pass(&e, 10);
    fair_leaves(&e, "1 2 3", NO_MORE);
    ck_assert(locks_stopped(e.locks));
}
END_TEST

START_TEST(a_probe_that_finds_the_hold_leaves_nothing)
{
    fair_wait(&e, 1);
    engine_lock(&e, 2, "job",
                (struct lock_req){ .kind = KIND_FAIR, .owner = SPAN("o") });
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    ck_assert(op.op.fair);
    ck_assert(!op.op.enqueue);
    engine_answer(&e, &op, GRANT(7));
    (void)engine_hears(&e, 2, REPLY_TOKEN);
    engine_no_op(&e);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_fair_leave");
    TCase *tc = tcase_create("leave");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_closed_connection_leaves_at_once);
    tcase_add_test(tc, a_head_that_goes_leaves_and_the_next_asks_H21);
    tcase_add_test(tc, a_wait_that_ran_out_leaves);
    tcase_add_test(tc, cancel_leaves_and_keep_does_not);
    tcase_add_test(tc, many_leave_in_one_op_one_at_a_time);
    tcase_add_test(tc, what_was_left_without_our_knowing_is_left_again);
    tcase_add_test(tc, what_redis_keeps_refusing_to_leave_is_left_to_its_score);
    tcase_add_test(tc, without_redis_leaving_waits);
    tcase_add_test(tc, who_goes_while_its_asking_is_in_flight_leaves_after_it);
    tcase_add_test(tc, who_goes_while_it_joins_leaves_after_that);
    tcase_add_test(tc, a_join_of_unknown_outcome_is_named_again_as_new);
    tcase_add_test(tc, an_asking_of_unknown_outcome_asks_for_its_place_again);
    tcase_add_test(tc, who_is_granted_while_it_is_named_leaves);
    tcase_add_test(tc, who_holds_already_through_another_daemon_leaves);
    tcase_add_test(tc, who_was_granted_too_late_is_put_back);
    tcase_add_test(tc, after_an_outage_all_are_shown_at_once);
    tcase_add_test(tc, the_window_is_filled_up_again_many_at_once);
    tcase_add_test(tc, who_comes_when_nobody_is_left_over_joins_at_once);
    tcase_add_test(tc, as_soon_as_there_is_room_for_all_who_wait_they_join);
    tcase_add_test(tc, the_window_may_change_at_run_time);
    tcase_add_test(tc, a_shorter_fair_wait_is_followed_at_run_time);
    tcase_add_test(tc, who_stops_leaves_before_it_is_gone);
    tcase_add_test(tc, a_probe_that_finds_the_hold_leaves_nothing);
    suite_add_tcase(s, tc);
    return s;
}
