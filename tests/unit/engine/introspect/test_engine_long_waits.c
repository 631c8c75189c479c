/* The engine: which waits it tells as long ones. */
#include "unit/engine/engine_cases.h"

/* Waits for `job`, which connection 1 has, until Redis has said so twice. */
static void wait_for_job(uint64_t conn, struct lock_terms req)
{
    fixture_lock(&e, conn, "job", req);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE,
                      (struct op_result){ .status = OP_BUSY, .ttl_ms = 30000 });
    }
}

static void setup(void)
{
    fixture_init(&e);
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
}

static void handover(void)
{
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
}

TEST_GROUP(.setup = setup, .teardown = stop_engine);

START_TEST(a_long_wait_that_is_granted)
{
    wait_for_job(2, (struct lock_terms){ .owner = SPAN("ann") });
    fixture_pass(&e, 300);
    handover();
    ck_assert_str_eq(e.waited, "granted:job>2:ann:300 ");
}

START_TEST(short_waits_are_not_told)
{
    wait_for_job(2, (struct lock_terms){ 0 });
    fixture_pass(&e, 299);
    handover();
    ck_assert_str_eq(e.waited, "");
}

START_TEST(one_that_ends_with_null)
{
    wait_for_job(2, (struct lock_terms){ .has = OPT_WAIT, .wait_ms = 350 });
    fixture_pass(&e, 350);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    ck_assert_str_eq(e.waited, "null:job>2::350 ");
}

START_TEST(one_whose_client_leaves)
{
    wait_for_job(2, (struct lock_terms){ 0 });
    fixture_pass(&e, 400);
    fixture_close(&e, 2);
    ck_assert_str_eq(e.waited, "gone:job>2::400 ");
}

START_TEST(a_place_that_is_kept_waits_on)
{
    struct lock_terms poll = {
        .id = ID_A, .has = OPT_WAIT | OPT_KEEP, .wait_ms = 350, .keep_ms = 100
    };

    wait_for_job(2, poll);
    fixture_pass(&e, 350);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    ck_assert_str_eq(e.waited, "");
    fixture_pass(&e, 100);
    ck_assert_str_eq(e.waited, "gone:job>0:latchd:id:aaaaaaaaaaaaaaaa:450 ");
}

START_TEST(one_that_the_end_of_the_daemon_ends)
{
    wait_for_job(2, (struct lock_terms){ 0 });
    fixture_pass(&e, 400);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.waited, "refused:job>2::400 ");
}
