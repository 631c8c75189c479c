/* The engine: places in Redis's fair queue: asking, joining, showing that we live. */
#include "unit/engine/engine_cases.h"

#include "support/engine_fair.h"

#include "latchd/protocol.h"

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_free_lock_is_taken_by_one_op_of_the_fair_kind)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
    ck_assert(op.op.acquire.enqueue);
    ck_assert_uint_eq(op.op.acquire.was_queued, 0);
    ck_assert_uint_eq(op.op.fair_wait_ms, 30000);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:1");
    fixture_answer(&e, &op, GRANT(7));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 7);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(the_head_joins_by_asking_and_the_others_behind_it)
{
    for (uint64_t i = 1; i <= 3; i++) {
        fixture_lock(&e, i, "job", FAIR);
    }
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_no_op(&e); /* they must not overtake it */
    fixture_answer(&e, &op, BUSY(20000));
    fair_joins(&e, "2 3", HELD);
    fixture_no_op(&e);
    ck_assert_str_eq(e.subs, "+job");
    fair_subscribed(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
    ck_assert(!op.op.acquire.enqueue); /* it stands there already */
    ck_assert_uint_eq(op.op.acquire.was_queued, 1);
    fixture_answer(&e, &op, BUSY(20000));
    fixture_lock(&e, 4, "job", FAIR);
    fair_joins(&e, "4", HELD);
    fixture_no_op(&e);
}

START_TEST(who_comes_while_others_join_joins_behind_them)
{
    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", FAIR);
    fixture_take_op(&e, OP_QUEUE, &op);
    fixture_lock(&e, 3, "job", FAIR);
    fixture_lock(&e, 4, "job", FAIR);
    fixture_no_op(&e);
    fixture_answer(&e, &op, HELD);
    fair_joins(&e, "3 4", HELD);
    fixture_no_op(&e);
}

START_TEST(behind_a_hold_of_our_own_all_join_at_once)
{
    (void)fixture_grant(&e, 9, "job", PLAIN, 100);
    fixture_lock(&e, 1, "job", FAIR);
    fair_joins(&e, "2", HELD);
    fixture_lock(&e, 2, "job", PLAIN); /* plain ones join what is there */
    fair_joins(&e, "3", HELD);
    fixture_no_op(&e);
    fixture_unlock(&e, 9, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:2");
    fixture_answer(&e, &op, MOVED(101));
    (void)fixture_hears(&e, 9, REPLY_INT);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, MOVED(102));
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_no_op(&e); /* who was granted was taken out by the scripts */
}

START_TEST(who_comes_soon_after_somebody_was_served_waits_for_others_to_join_with)
{
    (void)fixture_grant(&e, 9, "job", PLAIN, 100);
    fixture_lock(&e, 1, "job", FAIR);
    fair_joins(&e, "2", HELD);
    fixture_unlock(&e, 9, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, MOVED(101));
    (void)fixture_hears(&e, 9, REPLY_INT);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", FAIR);
    fixture_pass(&e, 9);
    fixture_lock(&e, 3, "job", FAIR);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fair_joins(&e, "3 4", HELD);
    fixture_lock(&e, 4, "job", FAIR);
    fair_joins(&e, "5", HELD); /* nobody was served since */
    fixture_no_op(&e);
}

START_TEST(one_that_has_no_place_yet_may_be_next)
{
    (void)fixture_grant(&e, 9, "job", PLAIN, 100);
    fixture_lock(&e, 1, "job", FAIR);
    fair_joins(&e, "2", HELD);
    fixture_unlock(&e, 9, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, MOVED(101));
    (void)fixture_hears(&e, 9, REPLY_INT);
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", FAIR);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:3");
    fixture_answer(&e, &op, MOVED(102));
    (void)fixture_hears(&e, 1, REPLY_INT);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_pass(&e, 20);
    fixture_no_op(&e);
}

START_TEST(plain_locks_that_find_a_queue_join_it_in_order)
{
    for (uint64_t i = 1; i <= 3; i++) {
        fixture_lock(&e, i, "job", PLAIN);
    }
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.fair);
    fixture_answer(&e, &op, BUSY(-2)); /* free, but others stand there */
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
    ck_assert(op.op.acquire.enqueue);
    fixture_answer(&e, &op, BUSY(20000));
    fair_joins(&e, "2 3", HELD);
    fixture_no_op(&e);
}

START_TEST(a_release_that_sees_a_queue_makes_plain_waiters_join)
{
    (void)fixture_grant(&e, 9, "job", PLAIN, 100);
    fixture_lock(&e, 1, "job", PLAIN);
    fixture_lock(&e, 2, "job", PLAIN);
    fixture_no_op(&e);
    fixture_unlock(&e, 9, "job", (struct hold_req){ 0 });
    fixture_gives(
        &e, OP_RELEASE,
        (struct op_result){ .status = OP_OK, .release.freed = true, .fair = true });
    (void)fixture_hears(&e, 9, REPLY_INT);
    fixture_pass(&e, 2);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.enqueue);
    fixture_answer(&e, &op, BUSY(20000));
    fair_joins(&e, "3", HELD);
}

START_TEST(without_waiters_and_without_a_queue_it_is_a_plain_lock_again)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", PLAIN);
    fixture_no_op(&e);
    fair_subscribed(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.fair);
}

START_TEST(while_others_stand_there_it_stays_fair)
{
    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(
        &e, OP_ACQUIRE,
        (struct op_result){ .status = OP_OK, .token = 7, .count = 1, .fair = true });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_lock(&e, 2, "job", PLAIN);
    fair_joins(&e, "2", HELD);
    fair_subscribed(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
}

START_TEST(a_reserved_lock_is_not_asked_for_again_and_again_F1)
{
    fair_wait(&e, 1);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY(1500)); /* free: until another's head is dead */
    fixture_no_op(&e);
    fixture_pass(&e, 1500);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(a_message_for_a_member_wakes_the_head)
{
    fair_wait(&e, 2);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_no_op(&e);
}

START_TEST(once_does_not_enqueue)
{
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .has = OPT_WAIT });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
    ck_assert(!op.op.acquire.enqueue);
    fixture_answer(&e, &op, BUSY(500));
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_is_empty(&e);
}

START_TEST(once_finds_a_queue_asks_by_its_rules_and_gives_up)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_gives(&e, OP_ACQUIRE, BUSY(-2));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.fair);
    ck_assert(!op.op.acquire.enqueue);
    fixture_answer(&e, &op, BUSY(500));
    (void)fixture_hears(&e, 1, REPLY_NULL);
}

START_TEST(once_behind_others_is_null_and_never_joins)
{
    fair_wait(&e, 2);
    fixture_lock(&e, 3, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .has = OPT_WAIT });
    (void)fixture_hears(&e, 3, REPLY_NULL);
    fixture_no_op(&e);
}

START_TEST(a_poll_with_keep_has_a_place_and_keeps_it)
{
    struct lock_terms poll = { .lock_kind = KIND_FAIR, .id = UUID, .has = OPT_WAIT };

    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", poll);
    fixture_take_op(&e, OP_ACQUIRE, &op); /* an ID asks for itself first */
    ck_assert(op.op.acquire.reenter_only);
    ck_assert(!op.op.acquire.enqueue);
    fixture_lock(&e, 3, "job", FAIR);
    fixture_no_op(&e); /* who came later joins later */
    fixture_answer(&e, &op, BUSY(20000));
    (void)fixture_hears(&e, 2, REPLY_NULL);
    fair_joins(&e, "2 3", HELD);
    fixture_close(&e, 2);
    fixture_no_op(&e);
    fixture_pass(&e, 500);
    fixture_lock(&e, 4, "job", poll);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    (void)fixture_hears(&e, 4, REPLY_NULL);
    fixture_no_op(&e);
    fixture_pass(&e, LATCHD_KEEP_DEFAULT_MS);
    fair_leaves(&e, "2", LEFT);
    fixture_no_op(&e);
}

START_TEST(the_refresh_names_all_in_order)
{
    fair_wait(&e, 3);
    fixture_pass(&e, 9999);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY(20000)); /* rechecks */
    }
    fixture_pass(&e, 2);
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    ck_assert_str_eq(op.members, "1 2 3");
    ck_assert_uint_eq(op.op.queue.known, 3);
    fixture_answer(&e, &op, HELD);
    fixture_no_op(&e);
}

START_TEST(a_refresh_that_finds_it_free_makes_the_head_ask)
{
    fair_wait(&e, 2);
    engine_on_clock_jump(e.engine); /* the scores are worth nothing: at once */
    fixture_collect(&e);
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT, .fair = true });
    fixture_gives(&e, OP_ACQUIRE, GRANT(7));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(a_place_that_vanished_is_shown_again_soon)
{
    fair_wait(&e, 2);
    fixture_pass(&e, 1000);
    fair_message(&e);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 20000 });
    fixture_take_op(&e, OP_QUEUE, &op);
    ck_assert(op.op.queue.whole);
    ck_assert_str_eq(op.members, "1 2");
    ck_assert_uint_eq(op.op.queue.known, 2);
    fixture_answer(&e, &op, HELD);
    fixture_no_op(&e);
}

START_TEST(lockinfo_tells_who_stands_in_the_queue)
{
    const struct span queue[] = { SPAN("redisson:1"),
                                  SPAN("latchd:00000000000000aa:2"),
                                  SPAN("latchd:00000000000000aa:1"),
                                  SPAN("latchd:00000000000000bb:1"),
                                  SPAN("latchd:00000000000000aa:77"),
                                  SPAN("latchd:00000000000000aa:3") };
    struct said said;

    fixture_lock(&e, 1, "job", FAIR);
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .owner = SPAN("o") });
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_gives(&e, OP_QUEUE, HELD);
    fixture_lock(&e, 3, "job",
                 (struct lock_terms){ .lock_kind = KIND_FAIR, .id = UUID });
    fixture_gives(&e, OP_ACQUIRE, BUSY(20000));
    fixture_gives(&e, OP_QUEUE, HELD);
    engine_lock_info(e.engine, (struct call_ref){ 4, 1 }, SPAN("job"));
    fixture_collect(&e);
    fixture_gives(&e, OP_INSPECT,
                  (struct op_result){ .status = OP_OK,
                                      .inspect.queue = queue,
                                      .inspect.queue_count = 6,
                                      .fair = true });
    said = fixture_hears(&e, 4, REPLY_INFO);
    ck_assert_uint_eq(said.info.queue_count, 6);
    ck_assert_str_eq(said.text,
                     "redisson:1 o latchd:00000000000000aa:1 latchd:00000000000000bb:1 "
                     "latchd:00000000000000aa:77 "
                     "latchd:id:01234567-89ab-cdef-0123-456789abcdef");
}

static void note_kind(void *ctx, const struct waiter_info *info)
{
    enum lock_kind **at = ctx;

    *(*at)++ = info->terms.lock_kind;
}

START_TEST(waiters_tell_their_kind)
{
    enum lock_kind kinds[3], *at = kinds;

    fair_wait(&e, 1);
    fixture_lock(&e, 2, "job", PLAIN);
    engine_waiters(e.engine, SPAN("job"), 3, note_kind, &at);
    ck_assert_ptr_eq(at, kinds + 2);
    ck_assert_int_eq(kinds[0], KIND_FAIR);
    ck_assert_int_eq(kinds[1], KIND_PLAIN);
}
