/* The engine: what too few replicas acknowledged. */
#include "unit/engine/engine_cases.h"

#define R1 "11111111-aaaa-bbbb"

static const struct lock_terms ONCE = { .has = OPT_WAIT };
static const struct lock_terms A_SECOND = { .has = OPT_WAIT, .wait_ms = 1000 };
static const struct op_result UNACKED = { .status = OP_NOREPLICAS,
                                          .token = 100,
                                          .count = 1 };

/* The client hears NOREPLICAS, as it is. */
static void refused(uint64_t conn)
{
    ck_assert_int_eq(fixture_hears(&e, conn, REPLY_ERROR).error, LOCK_NOREPLICAS);
}

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(wait_0_is_answered_at_once_and_the_grant_is_undone)
{
    fixture_lock(&e, 1, "job", ONCE);
    fixture_gives(&e, OP_ACQUIRE, UNACKED);
    refused(1);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_REQUEST);
    ck_assert(op.op.release.if_keeper && !op.op.release.has_next);
    fixture_answer(&e, &op, FREED);
    fixture_close(&e, 1);
    fixture_is_empty(&e);
    ck_assert_str_eq(e.notices, "");
}

START_TEST(who_waits_goes_on_trying_after_a_pause)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, UNACKED);
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_no_op(&e);
    fixture_pass(&e, 199);
    fixture_no_op(&e);
    fixture_pass(&e, 1);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 101 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 101);
}

START_TEST(at_its_end_a_wait_hears_of_the_replicas)
{
    fixture_lock(&e, 1, "job", A_SECOND);
    for (int i = 0; i < 5; i++) {
        fixture_gives(&e, OP_ACQUIRE, UNACKED);
        fixture_gives(&e, OP_RELEASE, FREED);
        fixture_hears_nothing(&e);
        fixture_pass(&e, 200);
    }
    refused(1);
    fixture_no_op(&e);
}

START_TEST(who_waits_behind_hears_of_them_too)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT, .wait_ms = 50 });
    fixture_gives(&e, OP_ACQUIRE, UNACKED);
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_lock(&e, 3, "job", ONCE);
    refused(3);
    fixture_pass(&e, 50);
    refused(2);
}

START_TEST(null_is_the_answer_when_somebody_holds_it_meanwhile)
{
    fixture_lock(&e, 1, "job", A_SECOND);
    fixture_gives(&e, OP_ACQUIRE, UNACKED);
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_pass(&e, 200);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 60000 });
    fixture_pass(&e, 800);
    (void)fixture_hears(&e, 1, REPLY_NULL);
}

START_TEST(an_id_is_asked_for_again_and_undone_at_the_end)
{
    struct lock_terms req = A_SECOND;

    req.id = SPAN(R1);
    fixture_lock(&e, 1, "job", req);
    for (int i = 0; i < 5; i++) {
        fixture_gives(&e, OP_ACQUIRE, UNACKED);
        fixture_no_op(&e);
        fixture_pass(&e, 200);
    }
    refused(1);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:id:" R1);
    ck_assert(op.op.release.if_keeper && !op.op.release.leave_tombstone);
    fixture_answer(&e, &op, FREED);
    fixture_close(&e, 1);
    fixture_is_empty(&e);
}

START_TEST(of_a_reentry_only_its_entry_is_undone)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .owner = SPAN("o") }, 100);
    fixture_lock(&e, 1, "job",
                 (struct lock_terms){ .owner = SPAN("o"), .has = OPT_WAIT });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_NOREPLICAS, .token = 100, .count = 2 });
    refused(1);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_ENTRY);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK, .count = 1 });
    fixture_unlock(&e, 1, "job", (struct hold_req){ .owner = SPAN("o") });
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(a_handover_releases_but_does_not_grant)
{
    uint64_t grant = fixture_grant(&e, 1, "job", FOREVER, 100);

    (void)grant;
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_NOREPLICAS, .moved = true, .token = 101 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper &&
              !op.op.release.has_next); /* nor to anybody else for now */
    fixture_answer(&e, &op, FREED);
    fixture_pass(&e, 200);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 102 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 102);
}

START_TEST(a_renewal_that_was_not_acknowledged_does_not_count_H11)
{
    static enum renew_result ok[] = { RENEW_OK };
    const struct op_result unacked = { .status = OP_NOREPLICAS,
                                       .renew.items = ok,
                                       .renew.count = 1 };
    uint64_t tried = 0;

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    for (uint64_t ms = 0; ms < 30000; ms += 50) {
        fixture_pass(&e, 50);
        if (e.op_count > 0) {
            fixture_gives(&e, OP_RENEW, unacked);
            tried++;
        }
    }
    ck_assert_str_eq(e.notices, "granted:job uncertain:job lost:job");
    ck_assert_uint_gt(tried, 50); /* again and again, with a pause */
    ck_assert_uint_lt(tried, 150);
}

START_TEST(one_renewal_that_is_acknowledged_makes_it_certain_again)
{
    static enum renew_result ok[] = { RENEW_OK };
    const struct op_result unacked = { .status = OP_NOREPLICAS,
                                       .renew.items = ok,
                                       .renew.count = 1 };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    while (strstr(e.notices, "uncertain") == NULL) {
        fixture_pass(&e, 50);
        if (e.op_count > 0) {
            fixture_gives(&e, OP_RENEW, unacked);
        }
    }
    fixture_pass(&e, 200);
    fixture_renews(&e, RENEW_OK);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job certain:job");
}

START_TEST(what_a_renewal_found_gone_is_lost_whoever_acknowledged)
{
    static enum renew_result gone[] = { RENEW_GONE };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    while (e.op_count == 0) {
        fixture_pass(&e, 50);
    }
    fixture_gives(&e, OP_RENEW,
                  (struct op_result){
                      .status = OP_NOREPLICAS, .renew.items = gone, .renew.count = 1 });
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(a_client_that_comes_back_unacknowledged_is_not_vouched_for)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_NOREPLICAS,
                                      .token = 100,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:100") });
    refused(1);
    fixture_close(&e, 1);
    fixture_is_empty(&e);
}

START_TEST(a_hold_that_is_here_stays_as_it_was)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_NOREPLICAS,
                                      .token = 100,
                                      .ttl_ms = 30000,
                                      .attach.field = SPAN("latchd:100") });
    refused(2);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(a_lease_that_was_cut_for_nobody_is_asked_for_again)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 1000 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_NOREPLICAS,
                                      .token = 100,
                                      .ttl_ms = 1000,
                                      .attach.field = SPAN("latchd:100") });
    refused(1);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].lease_ms, 30000);
}
