/* QUEUE: a LOCK that does not wait where as many wait already. */
#include "unit/engine/engine_cases.h"

#include "latchd/protocol.h"

#include <stdio.h>

static struct lock_terms with_queue(uint32_t max)
{
    return (struct lock_terms){ .queue_max = max, .has = OPT_QUEUE };
}

/* The name is held here, by connection 1, and so many wait. */
static void hold_with_waiters(uint64_t count)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    for (uint64_t i = 0; i < count; i++) {
        fixture_lock(&e, 10 + i, "job", FOREVER);
    }
}

static void is_refused(uint64_t conn)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_hears_nothing(&e);
}

/* Everybody leaves, and the holder is the last; nothing is left then. */
static void end_all(void)
{
    for (uint64_t conn = 30; conn > 0; conn--) {
        fixture_close(&e, conn);
    }
    fixture_pass(&e, LATCHD_KEEP_DEFAULT_MS);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(where_as_many_wait_the_next_is_refused_at_once)
{
    struct engine_stats stats;

    hold_with_waiters(2);
    fixture_lock(&e, 2, "job", with_queue(2));
    is_refused(2);
    fixture_no_op(&e);
    fixture_lock(&e, 3, "job", with_queue(3));
    fixture_hears_nothing(&e);
    engine_stats(e.engine, &stats);
    ck_assert_uint_eq(stats.waiters, 3);
    ck_assert_uint_eq(stats.queue_refusals, 1);
    end_all();
}

START_TEST(with_QUEUE_0_a_free_name_is_granted_and_a_held_one_is_refused)
{
    fixture_lock(&e, 1, "job", with_queue(0));
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 7 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 7);
    fixture_lock(&e, 2, "other", with_queue(0));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    is_refused(2);
}

START_TEST(with_WAIT_0_it_tries_as_ever)
{
    struct lock_terms once = with_queue(0);

    once.has |= OPT_WAIT;
    hold_with_waiters(0);
    fixture_lock(&e, 2, "job", once);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    once.id = UUID; /* and would keep a place for KEEP */
    fixture_lock(&e, 2, "job", once);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    is_refused(2);
}

START_TEST(whoever_waits_by_its_ID_keeps_its_place)
{
    struct lock_terms req = with_queue(1);

    req.id = UUID;
    hold_with_waiters(0);
    fixture_lock(&e, 2, "job", req);
    fixture_close(&e, 2);
    fixture_lock(&e, 3, "job", req);
    fixture_lock(&e, 4, "job", with_queue(1));
    is_refused(4);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.field, "latchd:id:01234567-89ab-cdef-0123-456789abcdef");
}

START_TEST(who_may_hold_already_is_asked_for_before_it_is_refused)
{
    struct lock_terms req = with_queue(1);

    fixture_lock(&e, 10, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, BUSY); /* the holder is not known here */
    fixture_lock(&e, 11, "job", FOREVER);
    fixture_collect(&e);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY);
    }
    req.id = UUID;
    fixture_lock(&e, 2, "job", req);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op,
                   (struct op_result){
                       .status = OP_OK, .token = 50, .attached = true, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 50);
    req.id = ID_A;
    fixture_lock(&e, 3, "job", req);
    is_refused(3); /* it is known that another one holds */
}

/* Nobody has to wait for the first LOCK of a free name. */
START_TEST(the_first_of_a_name_that_may_be_free_does_not_count)
{
    fixture_lock(&e, 1, "job", with_queue(1));
    fixture_lock(&e, 2, "job", with_queue(1));
    fixture_lock(&e, 3, "job", with_queue(1));
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 7 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    is_refused(3);
    fixture_lock(&e, 4, "job", with_queue(1));
    is_refused(4);
    fixture_close(&e, 2);
    fixture_lock(&e, 5, "job", with_queue(1));
    fixture_hears_nothing(&e);
}

START_TEST(who_tries_once_does_not_count)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_lock(&e, 3, "job", with_queue(1));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fixture_hears_nothing(&e);
}

START_TEST(a_place_that_is_kept_counts)
{
    hold_with_waiters(0);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    fixture_close(&e, 2);
    fixture_lock(&e, 3, "job", with_queue(1));
    is_refused(3);
    fixture_pass(&e, LATCHD_KEEP_DEFAULT_MS);
    fixture_lock(&e, 3, "job", with_queue(1));
    fixture_hears_nothing(&e);
}

START_TEST(while_Redis_is_away_it_is_refused_as_well)
{
    hold_with_waiters(1);
    engine_on_store_down(e.engine);
    fixture_lock(&e, 2, "job", with_queue(1));
    is_refused(2);
}

START_TEST(of_pipelined_LOCKs_each_has_its_own)
{
    struct lock_req reqs[] = {
        { .from = { 1, 1 }, .name = SPAN("a"), .terms = with_queue(0) },
        { .from = { 1, 2 }, .name = SPAN("b"), .terms = with_queue(0) }
    };

    ck_assert_uint_eq(engine_lock_batch(e.engine, reqs, 2), 2);
    fixture_collect(&e);
    fixture_gives_many(&e, 1, 100, BUSY);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    is_refused(1);
}
