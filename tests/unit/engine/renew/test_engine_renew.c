/* The engine: RENEW and FORCEUNLOCK. */
#include "unit/engine/engine_cases.h"

#include <inttypes.h>
#include <stdio.h>

static const struct op_result LATE = { .status = OP_LATE };

/* Redis attached the anonymous hold 100. */
static struct op_result attached_100(int64_t ttl_ms)
{
    return (struct op_result){ .status = OP_OK,
                               .token = 100,
                               .ttl_ms = ttl_ms,
                               .attach.field = SPAN("latchd:100") };
}

/* --- the watchdog ----------------------------------------------------------------- */

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(renewals_that_are_late_get_more_of_redis)
{
    enum { MANY = 1000 };

    for (uint64_t i = 0; i < MANY; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "job%" PRIu64, i);
        (void)fixture_grant(&e, 1, name, FOREVER, 100 + i);
        e.notices[0] = '\0';
    }
    fixture_pass(&e, 10000);
    ck_assert_uint_eq(e.op_count, 8);
    fixture_renews(&e, RENEW_OK);
    fixture_collect(&e);
    ck_assert_uint_eq(e.op_count, 8);
    fixture_pass(&e, 600);
    fixture_renews(&e, RENEW_OK);
    fixture_collect(&e);
    ck_assert_uint_gt(e.op_count, 8 + 4);
    while (e.op_count > 0) {
        fixture_renews(&e, RENEW_OK);
    }
    ck_assert_str_eq(e.notices, "");
}

/* --- RENEW ------------------------------------------------------------------------ */

START_TEST(renew_of_a_hold_that_is_not_known_here_makes_it_ours)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_int_eq(op.op.attach.target.kind, TARGET_TOKEN);
    ck_assert(!op.op.attach.exact);
    ck_assert_uint_eq(op.op.attach.lease_ms, 30000);
    fixture_answer(&e, &op, attached_100(30000));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 30000);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_OK);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_pass(&e, 1000);
    fixture_is_empty(&e);
}

START_TEST(renew_answers_with_the_lease_that_is_left_when_it_is_written)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 4000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 1500);
    fixture_answer(&e, &op, attached_100(4000));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 2500);
}

START_TEST(renew_that_was_confirmed_too_late_is_asked_again)
{
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 1000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 1200);
    fixture_answer(&e, &op, attached_100(1000));
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_ATTACH, attached_100(1000));
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 1000);
    fixture_pass(&e, 1000);
    ck_assert_str_eq(e.notices, "expired:job");
}

START_TEST(renew_of_another_hold_does_not_touch_this_one)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 55, .lease_ms = 100 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 1000);
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(renew_of_a_hold_that_redis_does_not_know_means_that_it_is_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_renew(&e, 1, "job", BARE);
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(renew_with_a_short_lease_is_believed_to_have_cut_a_named_hold_too)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_renew(&e, 1, "job",
                  (struct hold_req){ .owner = SPAN("o"), .lease_ms = 2000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert(op.op.attach.exact);
    fixture_pass(&e, 1929);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(renew_with_a_lease_ends_a_named_hold_then)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_renew(&e, 1, "job",
                  (struct hold_req){ .owner = SPAN("o"), .lease_ms = 2000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .token = 100,
                                       .ttl_ms = 2000,
                                       .attach.field = SPAN("o"),
                                       .attach.entry = span_str(op.target_entry) });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 2000);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
    fixture_take_op(&e, OP_RENEW, &op); /* the look before its end */
    fixture_no_op(&e);
}

START_TEST(renew_by_owner_means_the_entry_of_this_connection)
{
    char mine[96];

    fixture_lock(&e, 1, "job", AS_O);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    strcpy(mine, op.entry);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    (void)fixture_grant(&e, 2, "job", AS_O, 100);
    fixture_renew(&e, 1, "job", BY_O);
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_int_eq(op.op.attach.target.kind, TARGET_ENTRY);
    ck_assert_str_eq(op.target_entry, mine);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_str_eq(op.target_entry, mine);
}

/* --- FORCEUNLOCK ------------------------------------------------------------------ */

START_TEST(force_unlock_frees_and_tells_the_holder)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_force(&e, 3, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.force && !op.op.release.has_next &&
              !op.op.release.if_keeper);
    fixture_answer(&e, &op, FREED);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_INT).value, 1);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 101, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 101);
}

START_TEST(force_unlock_of_what_is_not_so_held_is_0)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_force(&e, 3, "job", (struct hold_req){ .token = 99 });
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(force_unlock_that_was_repeated_tells_what_the_first_one_did)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_force(&e, 3, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_RELEASE, UNKNOWN);
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_INT).value, 1);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(what_may_free_a_second_one_is_not_repeated_H5)
{
    fixture_force(&e, 3, "job", (struct hold_req){ .any = true });
    fixture_gives(&e, OP_RELEASE, LATE); /* it did nothing: again */
    fixture_pass(&e, 10);
    fixture_gives(&e, OP_RELEASE, UNKNOWN);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_no_op(&e);
    fixture_is_empty(&e);
}

START_TEST(what_may_free_somebody_later_is_not_sent_late)
{
    engine_on_store_down(e.engine);
    fixture_force(&e, 3, "job", (struct hold_req){ .any = true });
    fixture_unlock(&e, 4, "job", BY_O);
    fixture_pass(&e, 3000);
    ck_assert_int_eq(fixture_hears(&e, 3, REPLY_ERROR).error, LOCK_BACKEND);
    ck_assert_int_eq(fixture_hears(&e, 4, REPLY_ERROR).error, LOCK_BACKEND);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_is_empty(&e);
}
