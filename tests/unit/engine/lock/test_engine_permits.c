/* The engine: permits of a semaphore. */
#include "unit/engine/engine_cases.h"

#include "engine/engine_limits.h"
#include "engine_rw.h"
#include "latchd/protocol.h"

#include <inttypes.h>
#include <stdio.h>

#define PERMITS(n, of)                                                                 \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .lock_kind = KIND_PERMITS, .permits = (n), .limit = (of)                       \
    }
/* So many are free then, of 4. */
#define GRANTED_LEFT(n, left)                                                          \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .token = (n), .count = 1, .permits = { (left), 4 },           \
        .ttl_ms = 9000                                                                 \
    }
#define FREED_LEFT(left)                                                               \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .release.freed = true, .permits = {(left), 4 }                \
    }
#define MOVED_LEFT(n, left)                                                            \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .moved = true, .token = (n), .permits = { (left), 4 },        \
        .ttl_ms = 9000                                                                 \
    }

static void grant_permits(uint64_t conn, uint32_t permits, uint64_t token, int64_t left)
{
    fixture_lock(&e, conn, "pool", PERMITS(permits, 4));
    fixture_gives(&e, OP_ACQUIRE, GRANTED_LEFT(token, left));
    (void)fixture_hears(&e, conn, REPLY_TOKEN);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(holds_stand_beside_each_other_each_under_a_field_of_its_own)
{
    fixture_lock(&e, 1, "pool", PERMITS(2, 4));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_int_eq(op.op.lock_class, CLASS_SEMAPHORE);
    ck_assert_uint_eq(op.op.acquire.claim.permits, 2);
    ck_assert_uint_eq(op.op.acquire.claim.limit, 4);
    ck_assert_str_eq(op.field, "latchd:00000000000000aa:1");
    fixture_answer(&e, &op, GRANTED_LEFT(100, 2));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 100);
    fixture_lock(&e, 2, "pool", PERMITS(1, 0));
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(op.op.acquire.claim.limit, 4); /* should the counter be gone */
    fixture_answer(&e, &op, GRANTED_LEFT(101, 1));
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);

    fixture_unlock(&e, 1, "pool", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.lock_class, CLASS_SEMAPHORE);
    ck_assert_str_eq(op.target_field, "latchd:00000000000000aa:1");
    fixture_answer(&e, &op, FREED_LEFT(3));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_unlock(&e, 2, "pool", by_token(101));
    fixture_gives(&e, OP_RELEASE, FREED_LEFT(4));
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(whoever_came_first_is_first_and_blocks_those_behind)
{
    grant_permits(1, 2, 100, 2);
    fixture_lock(&e, 2, "pool", PERMITS(3, 0));
    fixture_lock(&e, 3, "pool", PERMITS(1, 0));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    fixture_lock(&e, 4, "pool",
                 (struct lock_terms){
                     .lock_kind = KIND_PERMITS, .permits = 1, .has = OPT_WAIT });
    (void)fixture_hears(&e, 4, REPLY_NULL); /* 2 are free, but others are before it */
    engine_on_subscribed(e.engine, SPAN("pool"), CLASS_SEMAPHORE);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    fixture_no_op(&e);

    fixture_unlock(&e, 1, "pool", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next && op.op.release.next.permits == 3);
    fixture_answer(&e, &op, MOVED_LEFT(101, 1));
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
    fixture_gives(&e, OP_ACQUIRE, GRANTED_LEFT(102, 0)); /* as one is left */
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_TOKEN).value, 102);
    fixture_no_op(&e);
}

START_TEST(a_hand_over_costs_one_script_while_nothing_is_left)
{
    grant_permits(1, 4, 100, 0);
    fixture_lock(&e, 2, "pool", PERMITS(4, 0));
    fixture_lock(&e, 3, "pool", PERMITS(4, 0));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    engine_on_subscribed(e.engine, SPAN("pool"), CLASS_SEMAPHORE);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    for (uint64_t conn = 1; conn < 3; conn++) {
        fixture_unlock(&e, conn, "pool", BARE);
        fixture_gives(&e, OP_RELEASE, MOVED_LEFT(100 + conn, 0));
        (void)fixture_hears(&e, conn, REPLY_INT);
        (void)fixture_hears(&e, conn + 1, REPLY_TOKEN);
        fixture_no_op(&e);
    }
}

START_TEST(a_release_of_too_few_for_the_head_makes_it_ask_again_at_once)
{
    grant_permits(1, 1, 100, 3);
    grant_permits(2, 3, 101, 0);
    fixture_lock(&e, 3, "pool", PERMITS(2, 0));
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    engine_on_subscribed(e.engine, SPAN("pool"), CLASS_SEMAPHORE);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    fixture_unlock(&e, 1, "pool", BARE);
    fixture_gives(&e, OP_RELEASE, FREED_LEFT(1));
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_gives(&e, OP_ACQUIRE, BUSY); /* others may have given some back, too */
    fixture_hears_nothing(&e);
    fixture_no_op(&e);
}

START_TEST(permits_that_end_by_themselves_wake_the_head_in_time)
{
    fixture_lock(&e, 1, "pool", PERMITS(1, 0));
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 400 });
    engine_on_subscribed(e.engine, SPAN("pool"), CLASS_SEMAPHORE);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 400 });
    fixture_pass(&e, 399);
    fixture_no_op(&e);
    fixture_pass(&e, 2);
    fixture_gives(&e, OP_ACQUIRE, GRANTED_LEFT(100, 0));
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
}

START_TEST(what_cannot_be_is_refused)
{
    fixture_lock(&e, 1, "pool", PERMITS(1, 0));
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_NOSEMAPHORE });
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_ERROR).text,
                     "no such semaphore; PERMITS n OF limit makes one");
    fixture_lock(&e, 1, "pool", PERMITS(5, 9));
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_BEYOND });
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_ERROR).text,
                     "the semaphore has fewer permits than that");
    grant_permits(1, 1, 100, 3);
    fixture_lock(&e, 2, "pool", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_WRONGTYPE);
    fixture_no_op(&e);
}

/* The name is a string, so it may be a semaphore. */
START_TEST(a_hold_that_is_not_known_here_is_asked_for_as_permits_as_well)
{
    fixture_unlock(&e, 1, "pool", by_token(100));
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_WRONGTYPE });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.lock_class, CLASS_SEMAPHORE);
    fixture_answer(&e, &op, FREED_LEFT(4));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);

    fixture_renew(&e, 1, "pool", by_token(101));
    fixture_gives(&e, OP_ATTACH, (struct op_result){ .status = OP_WRONGTYPE });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_int_eq(op.op.lock_class, CLASS_SEMAPHORE);
    fixture_answer(
        &e, &op,
        (struct op_result){
            .status = OP_OK,
            .lock_kind = KIND_PERMITS,
            .attach = { .field = SPAN("latchd:fedcba9876543210:7"), .permits = 3 },
            .token = 101,
            .ttl_ms = 30000 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 10000);
    ck_assert(e.op_count == 1 && e.ops[0].op.lock_class == CLASS_SEMAPHORE);
}

/* Or each release would cost a look at each hold. */
START_TEST(that_permits_came_back_says_nothing_of_those_that_are_held)
{
    grant_permits(1, 1, 100, 3);
    grant_permits(2, 1, 101, 2);
    engine_on_message(e.engine, SPAN("pool"), CLASS_SEMAPHORE, SPAN("0"));
    fixture_pass(&e, 2000);
    fixture_no_op(&e);
}

/* More are believed to be held here than are out: somebody has taken them away. */
START_TEST(a_grant_that_leaves_too_few_out_makes_us_look_at_the_others_first)
{
    grant_permits(1, 3, 100, 1);
    fixture_lock(&e, 2, "pool", PERMITS(2, 0));
    fixture_gives(&e, OP_ACQUIRE, GRANTED_LEFT(101, 2)); /* 2 are out, not 5 */
    fixture_hears_nothing(&e);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_str_eq(e.notices, "granted:pool lost:pool granted:pool");
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(the_others_are_in_doubt_if_that_cannot_be_told)
{
    grant_permits(1, 3, 100, 1);
    fixture_lock(&e, 2, "pool", PERMITS(2, 0));
    fixture_gives(&e, OP_ACQUIRE, GRANTED_LEFT(101, 2));
    fixture_gives(&e, OP_RENEW, (struct op_result){ .status = OP_ERROR });
    ck_assert_str_eq(e.notices, "granted:pool uncertain:pool granted:pool");
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

/* Releases that Redis has lost run again before that: they may make the room. */
START_TEST(what_finds_no_room_is_put_back_later)
{
    grant_permits(1, 2, 100, 2);
    grant_permits(2, 2, 101, 0);
    fixture_unlock(&e, 2, "pool", BARE);
    fixture_gives(&e, OP_RELEASE, FREED_LEFT(2));
    (void)fixture_hears(&e, 2, REPLY_INT);
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RELEASE, &op); /* once more */
    fixture_answer(&e, &op, FREED_LEFT(1));
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.restore.claim.permits, 2);
    ck_assert_uint_eq(op.op.restore.claim.limit, 4);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_BUSY });
    fixture_no_op(&e);
    fixture_pass(&e, 1000);
    fixture_gives(
        &e, OP_RESTORE,
        (struct op_result){ .status = OP_OK, .token = 100, .restore.restored = true });
    fixture_pass(&e, 1);
    ck_assert_ptr_null(strstr(e.notices, "lost"));
}

/* The cost of renewals in flight; none has more holds than so many. */
static uint64_t cost_in_flight(uint32_t permits, size_t most)
{
    uint64_t cost = 0;

    for (size_t i = 0; i < e.op_count; i++) {
        size_t count = e.ops[i].op.renew.count;

        ck_assert_int_eq(e.ops[i].op.kind, OP_RENEW);
        ck_assert_uint_ge(count, 1);
        ck_assert_uint_le(count, most);
        cost += count * op_cost(permits, 0, 0);
    }
    return cost;
}

/* So many holds of so many permits each are renewed: as many of them in one script as
 * cost OP_COST_MAX, and as many scripts at once as if they were of locks. */
static void renew_in_parts(uint32_t permits, size_t most)
{
    enum { MANY = 60, IN_FLIGHT = 8 };
    uint64_t limit = (uint64_t)IN_FLIGHT * OP_COST_MAX + op_cost(permits, 0, 0);
    size_t renewed = 0;

    start_engine();
    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "pool%" PRIu64, i);
        fixture_lock(&e, 1, name, PERMITS(permits, permits));
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_OK,
                                          .token = 100 + i,
                                          .count = 1,
                                          .permits = { 0, permits },
                                          .ttl_ms = 9000 });
        (void)fixture_hears(&e, 1, REPLY_TOKEN);
        e.notices[0] = '\0';
    }
    fixture_pass(&e, 10000);
    while (e.op_count > 0) {
        ck_assert_uint_le(cost_in_flight(permits, most), limit);
        renewed += e.ops[0].op.renew.count;
        fixture_renews(&e, RENEW_OK);
        fixture_collect(&e);
    }
    ck_assert_uint_eq(renewed, MANY);
    stop_engine();
}

START_TEST(permits_are_renewed_in_parts_that_cost_little)
{
    stop_engine();
    renew_in_parts(1, OP_COST_MAX / (OP_COST_HOLD + OP_COST_PERMIT));
    renew_in_parts(100, OP_COST_MAX / (OP_COST_HOLD + 100 * OP_COST_PERMIT));
    renew_in_parts(LATCHD_PERMITS_MAX, 1);
    start_engine();
}
