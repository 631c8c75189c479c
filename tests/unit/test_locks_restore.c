/* After a failover: holds are put back first, and what may have been lost by others is
 * granted to nobody until it has ended. */
#include "support/engine.h"
#include "support/runner.h"

static struct engine e;
static struct seen_op op;

#define FOREVER ((struct lock_req){ 0 })
#define ONCE ((struct lock_req){ .has = LOCK_HAS_WAIT })
#define WAITS(ms) ((struct lock_req){ .has = LOCK_HAS_WAIT, .wait_ms = (ms) })
#define OWNER(o) ((struct lock_req){ .owner = SPAN(o) })
#define OK_RESULT ((struct op_result){ .status = OP_OK, .token = 100, .count = 1 })
#define FREE ((struct op_result){ .status = OP_BUSY, .ttl_ms = -2 })
#define HELD ((struct op_result){ .status = OP_BUSY, .ttl_ms = 20000 })

enum { QUARANTINE = 20000 };

static const struct locks_config CONFIG = { .watchdog_ms = 30000,
                                            .redis_timeout_ms = 3000,
                                            .recheck_ms = 50000,
                                            .handoff_limit = 64,
                                            .handoff_pause_ms = 2,
                                            .grace_ms = -1,
                                            .max_keep_ms = 30000,
                                            .max_lease_ms = 86400000,
                                            .max_waiters = 100,
                                            .max_holds = 100,
                                            .quarantine_ms = QUARANTINE };

static void set_up(void)
{
    engine_init(&e);
    locks_configure(e.locks, &CONFIG);
}

static void tear_down(void)
{
    engine_fini(&e);
}

static void fail_over(void)
{
    locks_store_down(e.locks);
    locks_failed_over(e.locks, NULL, NULL);
    locks_store_up(e.locks, false);
    e.notices[0] = '\0';
    engine_collect(&e);
}

static struct locks_stats stats(void)
{
    struct locks_stats st;

    locks_stats(e.locks, &st);
    return st;
}

START_TEST(a_hold_is_put_back_with_all_that_it_is)
{
    (void)engine_grant(&e, 1, "job", OWNER("o"), 100);
    engine_pass(&e, 1000);
    fail_over();
    engine_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.token, 100);
    ck_assert_str_eq(op.field, "o");
    ck_assert_uint_eq(op.op.kept_count, 1);
    ck_assert_uint_eq(op.op.claim.lease_ms, 30000);
    ck_assert_uint_eq(stats().restoring, 1);
    engine_answer(
        &e, &op, (struct op_result){ .status = OP_OK, .token = 100, .restored = true });
    ck_assert_str_eq(e.notices, "uncertain:job certain:job");
    ck_assert_uint_eq(stats().restoring, 0);
    ck_assert_uint_eq(stats().restored, 1);
}
END_TEST

/* One call of Redis is to take no longer than others can wait. */
START_TEST(a_hold_of_very_many_entries_is_put_back_in_parts)
{
    for (int i = 0; i <= OP_KEPT_MAX; i++) {
        (void)engine_grant(&e, 1, "job", OWNER("o"), 100);
    }
    fail_over();
    engine_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.kept_count, OP_KEPT_MAX);
    engine_answer(&e, &op, OK_RESULT);
    ck_assert_uint_eq(stats().restoring, 1);
    engine_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.kept_count, 1);
    engine_answer(&e, &op, OK_RESULT);
    ck_assert_uint_eq(stats().restoring, 0);
}
END_TEST

START_TEST(nothing_else_is_asked_of_a_name_before_its_hold_is_back)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    engine_take_op(&e, OP_RESTORE, &op);
    engine_lock(&e, 2, "job", OWNER("o"));
    engine_renew(&e, 1, "job", (struct hold_req){ .token = 100 });
    engine_unlock(&e, 3, "job", (struct hold_req){ .token = 100 });
    engine_no_op(&e);
    engine_answer(&e, &op, OK_RESULT);
    engine_take_op(&e, OP_ATTACH, &op);
    engine_take_op(&e, OP_RELEASE, &op);
}
END_TEST

START_TEST(what_is_somebody_elses_is_lost)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    engine_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_str_eq(e.notices, "uncertain:job lost:job");
    ck_assert_uint_eq(stats().lost_failover, 1);
}
END_TEST

START_TEST(what_was_released_or_moved_elsewhere_is_forgotten_silently)
{
    const enum op_status ways[] = { OP_ENDED, OP_ELSEWHERE };

    for (size_t i = 0; i < 2; i++) {
        (void)engine_grant(&e, 1 + i, "job", FOREVER, 100 + i);
        fail_over();
        engine_gives(&e, OP_RESTORE, (struct op_result){ .status = ways[i] });
        ck_assert_str_eq(e.notices, "uncertain:job");
        ck_assert_uint_eq(stats().holds, 0);
        engine_pass(&e, QUARANTINE);
    }
}
END_TEST

/* It may have run: then nobody is to find the hold again. */
START_TEST(a_hold_whose_release_is_open_is_not_put_back)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    engine_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    engine_take_op(&e, OP_RELEASE, &op);
    fail_over();
    engine_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    engine_take_op(&e, OP_RELEASE, &op);
    engine_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_INT).value, 0);
}
END_TEST

START_TEST(an_unlock_that_was_not_sent_yet_finds_its_hold_put_back)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    locks_store_down(e.locks);
    engine_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fail_over();
    engine_gives(&e, OP_RESTORE, OK_RESULT);
    engine_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_OK, .freed = true });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_INT).value, 0);
}
END_TEST

START_TEST(a_grace_is_put_back_with_what_is_left_of_it)
{
    (void)engine_grant(&e, 1, "job",
                       (struct lock_req){ .has = LOCK_HAS_LEASE, .lease_ms = 10000 },
                       100);
    engine_pass(&e, 4000);
    fail_over();
    engine_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_le(op.op.claim.lease_ms, 6000);
    ck_assert_uint_ge(op.op.claim.lease_ms, 5800);
}
END_TEST

START_TEST(a_name_that_was_not_held_here_waits_for_the_quarantine)
{
    fail_over();
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    engine_answer(&e, &op, FREE);
    locks_subscribed(e.locks, SPAN("job"), false);
    engine_collect(&e);
    engine_gives(&e, OP_ACQUIRE, FREE);
    engine_pass(&e, QUARANTINE - 10);
    engine_no_op(&e);
    engine_pass(&e, 20);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
}
END_TEST

static bool concerns_all(void *ctx, unsigned group)
{
    (void)ctx;
    (void)group;
    return true;
}

START_TEST(after_a_failover_that_lost_nothing_no_name_waits)
{
    fail_over();
    engine_lock(&e, 1, "job", FOREVER);
    engine_gives(&e, OP_ACQUIRE, FREE);
    locks_subscribed(e.locks, SPAN("job"), false);
    engine_collect(&e);
    engine_gives(&e, OP_ACQUIRE, FREE);
    engine_pass(&e, 100);
    engine_no_op(&e);
    locks_nothing_was_lost(e.locks, concerns_all, NULL);
    engine_collect(&e);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}
END_TEST

START_TEST(what_the_failover_before_may_have_lost_is_withheld_still)
{
    fail_over();
    engine_pass(&e, 5000);
    fail_over();
    ck_assert_uint_eq(stats().quarantine_left_ms, QUARANTINE);
    locks_nothing_was_lost(e.locks, concerns_all, NULL);
    ck_assert_uint_eq(stats().quarantine_left_ms, QUARANTINE - 5000);
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
}
END_TEST

START_TEST(null_does_not_hide_that_a_name_is_withheld)
{
    fail_over();
    engine_lock(&e, 1, "job", ONCE);
    engine_gives(&e, OP_ACQUIRE, FREE);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    engine_lock(&e, 2, "job", WAITS(500));
    engine_gives(&e, OP_ACQUIRE, FREE);
    engine_pass(&e, 600);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    engine_lock(&e, 3, "job", ONCE);
    engine_gives(&e, OP_ACQUIRE, HELD); /* by somebody who was found there */
    (void)engine_hears(&e, 3, REPLY_NULL);
}
END_TEST

START_TEST(a_name_that_was_held_here_goes_on_at_once)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    engine_lock(&e, 2, "job", FOREVER);
    fail_over();
    engine_gives(&e, OP_RESTORE, OK_RESULT);
    while (e.op_count > 0) {
        engine_gives(&e, OP_ACQUIRE, HELD);
    }
    engine_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.has_next);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .freed = true });
    engine_pass(&e, 3); /* others had their chance */
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
}
END_TEST

START_TEST(a_restart_puts_back_but_withholds_nothing)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    locks_store_down(e.locks);
    locks_store_up(e.locks, false);
    engine_collect(&e);
    engine_gives(&e, OP_RESTORE, OK_RESULT);
    engine_lock(&e, 2, "door", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
}
END_TEST

static uint32_t by_first_letter(struct span name)
{
    return (unsigned char)name.ptr[0] == 'j' ? 1 : 0;
}

static bool concerns_one(void *ctx, unsigned group)
{
    (void)ctx;
    return group == 1;
}

START_TEST(only_the_groups_that_failed_over_are_touched)
{
    struct locks_setup setup = { .instance = "00000000000000aa",
                                 .now_ms = e.now,
                                 .config = CONFIG,
                                 .group_of = by_first_letter,
                                 .group_count = 2 };

    locks_free(e.locks);
    e.locks = locks_new(&setup);
    locks_store_up(e.locks, true);
    engine_collect(&e);
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    (void)engine_grant(&e, 2, "door", FOREVER, 101);
    e.notices[0] = '\0';
    locks_failed_over(e.locks, concerns_one, NULL);
    engine_collect(&e);
    ck_assert_str_eq(e.notices, "uncertain:job");
    engine_gives(&e, OP_RESTORE, OK_RESULT);
    engine_lock(&e, 3, "tap", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.reenter_only);
    engine_lock(&e, 4, "jar", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
}
END_TEST

/* The old one's answer came after it was known to be the old one. */
START_TEST(a_grant_of_the_old_one_is_not_given_out)
{
    engine_lock(&e, 1, "job", FOREVER);
    engine_take_op(&e, OP_ACQUIRE, &op);
    locks_failed_over(e.locks, NULL, NULL);
    engine_answer(&e, &op, (struct op_result){ .status = OP_OK, .token = 5 });
    engine_hears_nothing(&e);
    engine_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    ck_assert_uint_ge(op.op.seen_token, 5);
}
END_TEST

START_TEST(what_told_nothing_is_asked_again)
{
    (void)engine_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    engine_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_LATE });
    engine_no_op(&e);
    engine_pass(&e, 10);
    engine_gives(&e, OP_RESTORE,
                 (struct op_result){ .status = OP_ERROR, .text = SPAN("OOM") });
    engine_no_op(&e);
    engine_pass(&e, 200);
    engine_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_UNKNOWN });
    engine_gives(&e, OP_RESTORE, OK_RESULT);
    ck_assert_str_eq(e.notices, "uncertain:job certain:job");
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_restore");
    TCase *t = tcase_create("restore");

    tcase_add_checked_fixture(t, set_up, tear_down);
    tcase_add_test(t, a_hold_is_put_back_with_all_that_it_is);
    tcase_add_test(t, a_hold_of_very_many_entries_is_put_back_in_parts);
    tcase_add_test(t, nothing_else_is_asked_of_a_name_before_its_hold_is_back);
    tcase_add_test(t, what_is_somebody_elses_is_lost);
    tcase_add_test(t, what_was_released_or_moved_elsewhere_is_forgotten_silently);
    tcase_add_test(t, a_hold_whose_release_is_open_is_not_put_back);
    tcase_add_test(t, an_unlock_that_was_not_sent_yet_finds_its_hold_put_back);
    tcase_add_test(t, a_grace_is_put_back_with_what_is_left_of_it);
    tcase_add_test(t, a_name_that_was_not_held_here_waits_for_the_quarantine);
    tcase_add_test(t, after_a_failover_that_lost_nothing_no_name_waits);
    tcase_add_test(t, what_the_failover_before_may_have_lost_is_withheld_still);
    tcase_add_test(t, null_does_not_hide_that_a_name_is_withheld);
    tcase_add_test(t, a_name_that_was_held_here_goes_on_at_once);
    tcase_add_test(t, a_restart_puts_back_but_withholds_nothing);
    tcase_add_test(t, only_the_groups_that_failed_over_are_touched);
    tcase_add_test(t, a_grant_of_the_old_one_is_not_given_out);
    tcase_add_test(t, what_told_nothing_is_asked_again);
    suite_add_tcase(s, t);
    return s;
}
