/* The engine: places in Redis's fair queue: leaving, faults, the window. */
#include "unit/engine/engine_cases.h"

#include "support/engine_fair.h"

#include <stdio.h>

static void redis_is_down(void)
{
    engine_on_store_down(e.engine);
    fixture_collect(&e);
}

static void redis_is_up(void)
{
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
}

/* All is over: the channel lingers, then nothing is left. */
static void nothing_is_left(void)
{
    fixture_pass(&e, 1000);
    ck_assert_str_eq(e.subs, "+job -job");
    fixture_is_empty(&e);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_closed_connection_leaves_at_once)
{
    fair_wait(&e, 3);
    fixture_close(&e, 2);
    fair_leaves(&e, "2", LEFT);
    fixture_no_op(&e);
}

START_TEST(a_head_that_goes_leaves_and_the_next_asks_H21)
{
    fair_wait(&e, 2);
    fixture_close(&e, 1);
    fixture_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1");
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_answer(&e, &op, NO_MORE);
    fixture_no_op(&e);
}

/* It stood there before a failover, so long ago that this daemon has forgotten it. */
START_TEST(a_head_of_ours_that_nobody_waits_for_leaves)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 7);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK,
                                      .fair = true,
                                      .release = { .freed = true, .own_head = true } });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    ck_assert_uint_eq(op.op.queue.count, 0);
    fixture_answer(&e, &op, LEFT);
    fixture_no_op(&e);
}

START_TEST(a_wait_that_ran_out_leaves)
{
    fair_wait(&e, 1);
    fixture_lock(
        &e, 2, "job",
        (struct lock_terms){ .lock_kind = KIND_FAIR, .has = OPT_WAIT, .wait_ms = 700 });
    fair_joins(&e, "2", HELD);
    fixture_pass(&e, 700);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fair_leaves(&e, "2", LEFT);
}

START_TEST(cancel_leaves_and_keep_does_not)
{
    struct lock_terms req = { .lock_kind = KIND_FAIR, .id = UUID, .has = OPT_KEEP };

    req.keep_ms = 30000;
    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", req);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fair_joins(&e, "2", HELD);
    fixture_close(&e, 2);
    fixture_no_op(&e);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("job"), SPAN_NONE, UUID), 1);
    fixture_collect(&e);
    fair_leaves(&e, "2", LEFT);
}

START_TEST(many_leave_in_one_op_one_at_a_time)
{
    fair_wait(&e, 6);
    fixture_close(&e, 6);
    fixture_take_op(&e, OP_LEAVE, &op);
    fixture_close(&e, 5);
    fixture_close(&e, 3);
    fixture_no_op(&e);
    fixture_answer(&e, &op, LEFT);
    fair_leaves(&e, "5 3", LEFT);
    fixture_no_op(&e);
}

START_TEST(what_was_left_without_our_knowing_is_left_again)
{
    fair_wait(&e, 4);
    fixture_close(&e, 2);
    fixture_take_op(&e, OP_LEAVE, &op);
    fixture_close(&e, 3);
    fixture_answer(&e, &op, UNKNOWN);
    fair_leaves(&e, "2 3", LATE);
    fixture_no_op(&e); /* not at once */
    fixture_pass(&e, 10);
    fair_leaves(&e, "2 3", FAILED);
    fixture_pass(&e, 199);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fair_leaves(&e, "2 3", LEFT);
    fixture_no_op(&e);
}

START_TEST(what_redis_keeps_refusing_to_leave_is_left_to_its_score)
{
    size_t count = 0;

    fair_wait(&e, 1);
    fixture_close(&e, 1);
    while (e.op_count > 0 && count++ < 1000) {
        fair_leaves(&e, "1", FAILED);
        fixture_pass(&e, 200);
    }
    ck_assert_uint_eq(count, 50);
    nothing_is_left();
}

START_TEST(without_redis_leaving_waits)
{
    fair_wait(&e, 2);
    redis_is_down();
    fixture_close(&e, 1);
    fixture_close(&e, 2);
    fixture_pass(&e, 60000);
    fixture_no_op(&e);
    redis_is_up();
    fair_leaves(&e, "1 2", NO_MORE);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(who_goes_while_its_asking_is_in_flight_leaves_after_it)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.enqueue);
    fixture_close(&e, 1);
    fixture_no_op(&e);
    fixture_answer(&e, &op, BUSY(20000));
    fair_leaves(&e, "1", NO_MORE);
    fixture_is_empty(&e);
}

START_TEST(who_goes_while_it_joins_leaves_after_that)
{
    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", FAIR);
    fixture_take_op(&e, OP_QUEUE, &op);
    fixture_close(&e, 2);
    fixture_gives(&e, OP_LEAVE, LEFT); /* behind it on the same link */
    fixture_answer(&e, &op, UNKNOWN);
    fair_refreshes(&e, "1", 1, HELD);
    fixture_no_op(&e);
}

START_TEST(a_join_of_unknown_outcome_is_named_again_as_new)
{
    fair_wait(&e, 2);
    fixture_lock(&e, 3, "job", FAIR);
    fair_joins(&e, "3", UNKNOWN);
    fair_refreshes(&e, "1 2 3", 2, LATE);
    fixture_no_op(&e);
    fixture_pass(&e, 10);
    fair_refreshes(&e, "1 2 3", 2, HELD);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    fair_refreshes(&e, "1 2 3", 3, HELD);
}

START_TEST(an_asking_of_unknown_outcome_asks_for_its_place_again)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, UNKNOWN);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.enqueue);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1");
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    fixture_answer(&e, &op, NO_MORE);
    fixture_is_empty(&e);
}

START_TEST(who_is_granted_while_it_is_named_leaves)
{
    fair_wait(&e, 2);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    fixture_take_op(&e, OP_QUEUE, &op);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_take_op(&e, OP_LEAVE, &(struct seen_op){ 0 });
    fixture_answer(&e, &op, HELD);
}

START_TEST(who_holds_already_through_another_daemon_leaves)
{
    (void)fixture_grant(&e, 9, "job", FAIR, 100);
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .id = UUID });
    fair_joins(&e, "2", HELD);
    fixture_unlock(&e, 9, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK,
                                      .moved = true,
                                      .attached = true,
                                      .token = 8,
                                      .fair = true });
    (void)fixture_hears(&e, 9, REPLY_INT);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fair_leaves(&e, "2", NO_MORE);
}

START_TEST(who_was_granted_too_late_is_put_back)
{
    fair_wait(&e, 2);
    fair_message(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 16000);
    fixture_answer(&e, &op, GRANT(7));
    fair_refreshes(&e, "1 2", 2, HELD);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:1");
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .moved = true, .token = 8, .fair = true });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 8);
}

START_TEST(after_an_outage_all_are_shown_at_once)
{
    fair_wait(&e, 2);
    redis_is_down();
    fixture_lock(&e, 3, "job", FAIR);
    fixture_pass(&e, 60000);
    fixture_no_op(&e);
    redis_is_up();
    fair_refreshes(&e, "1 2 3", 2, HELD);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
}

static struct engine_config with_window(uint64_t window)
{
    struct engine_config cfg = { .watchdog_ms = 30000,
                                 .redis_timeout_ms = 3000,
                                 .fair_wait_ms = 30000,
                                 .fair_window = window,
                                 .recheck_ms = 50000,
                                 .handover_limit = 64,
                                 .handover_pause_ms = 2,
                                 .grace_ms = -1,
                                 .max_waiters = 100000,
                                 .max_holds = 1000 };

    engine_configure(e.engine, &cfg);
    return cfg;
}

/* The next of ours is granted by a hand-over from the one before. */
static void handover(uint64_t from, uint64_t to)
{
    fixture_unlock(&e, from, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){
                      .status = OP_OK, .moved = true, .token = to, .fair = true });
    (void)fixture_hears(&e, from, REPLY_INT);
    (void)fixture_hears(&e, to, REPLY_TOKEN);
}

START_TEST(the_window_is_filled_up_again_many_at_once)
{
    (void)with_window(8);
    for (uint64_t i = 1; i <= 20; i++) {
        fixture_lock(&e, i, "job", FAIR);
    }
    fixture_gives(&e, OP_ACQUIRE, GRANT(1));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fair_joins(&e, "2 3 4 5 6 7 8 9", HELD);
    handover(1, 2);
    fixture_no_op(&e);
    handover(2, 3); /* 3/4 are left */
    fixture_pass(&e, 10);
    fair_joins(&e, "10 11", HELD);
    handover(3, 4);
    fixture_no_op(&e);
    engine_on_clock_jump(e.engine); /* what is sent anyway fills it up */
    fixture_collect(&e);
    fair_refreshes(&e, "5 6 7 8 9 10 11 12", 7, HELD);
}

START_TEST(who_comes_when_nobody_is_left_over_joins_at_once)
{
    (void)with_window(8);
    fair_wait(&e, 7);
    fixture_lock(&e, 8, "job", FAIR);
    fair_joins(&e, "8", HELD);
    fixture_lock(&e, 9, "job", FAIR);
    fixture_lock(&e, 10, "job", FAIR);
    fixture_close(&e, 4);
    fair_leaves(&e, "4", LEFT);
    fixture_no_op(&e); /* two are left over; they come together */
    fixture_close(&e, 5);
    fixture_take_op(&e, OP_LEAVE, &op);
    fair_joins(&e, "9 10", HELD);
}

START_TEST(as_soon_as_there_is_room_for_all_who_wait_they_join)
{
    (void)with_window(8);
    fair_wait(&e, 9);
    fixture_close(&e, 4);
    fixture_take_op(&e, OP_LEAVE, &op);
    fair_joins(&e, "9", HELD);
}

START_TEST(the_window_may_change_at_run_time)
{
    (void)with_window(4);
    fair_wait(&e, 6);
    (void)with_window(8);
    fixture_lock(&e, 7, "job", FAIR);
    fair_joins(&e, "5 6 7", HELD);
    (void)with_window(2);
    fixture_lock(&e, 8, "job", FAIR);
    fixture_no_op(&e);
    engine_on_clock_jump(e.engine); /* who has a place keeps it */
    fixture_collect(&e);
    fair_refreshes(&e, "1 2 3 4 5 6 7", 7, HELD);
}

START_TEST(a_shorter_fair_wait_is_followed_at_run_time)
{
    struct engine_config cfg = with_window(8);

    fair_wait(&e, 1);
    cfg.fair_wait_ms = 3000;
    engine_configure(e.engine, &cfg);
    fixture_lock(&e, 2, "job", FAIR);
    fair_joins(&e, "2", HELD);
    fixture_pass(&e, 1001);
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    ck_assert_uint_eq(op.op.fair_wait_ms, 3000);
}

START_TEST(who_stops_leaves_before_it_is_gone)
{
    fair_wait(&e, 3);
    engine_stop(e.engine);
    fixture_collect(&e);
    for (uint64_t i = 1; i <= 3; i++) {
        (void)fixture_hears(&e, i, REPLY_ERROR);
    }
    ck_assert(!engine_stopped(e.engine));
    fixture_take_op(&e, OP_LEAVE, &op);
    ck_assert_str_eq(op.members, "1 2 3");
    fixture_answer(&e, &op, LATE);
    ck_assert(!engine_stopped(e.engine));
    fixture_pass(&e, 10);
    fair_leaves(&e, "1 2 3", NO_MORE);
    ck_assert(engine_stopped(e.engine));
}

START_TEST(a_probe_that_finds_the_hold_leaves_nothing)
{
    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .owner = SPAN("o") });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    ck_assert(op.op.acquire.fair);
    ck_assert(!op.op.acquire.enqueue);
    fixture_answer(&e, &op, GRANT(7));
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_no_op(&e);
}
