/* After a failover: holds are put back first, and what may have been lost by others is
 * granted to nobody until it has ended. */
#include "unit/engine/engine_cases.h"

#define ONCE ((struct lock_terms){ .has = OPT_WAIT })
#define WAITS(ms) ((struct lock_terms){ .has = OPT_WAIT, .wait_ms = (ms) })
#define OWNER(o) ((struct lock_terms){ .owner = SPAN(o) })
#define OK_RESULT ((struct op_result){ .status = OP_OK, .token = 100, .count = 1 })
#define FREE ((struct op_result){ .status = OP_BUSY, .ttl_ms = TTL_ABSENT })
#define HELD ((struct op_result){ .status = OP_BUSY, .ttl_ms = 20000 })

enum { QUARANTINE = 20000 };

static const struct engine_config CONFIG = { .watchdog_ms = 30000,
                                             .redis_timeout_ms = 3000,
                                             .recheck_ms = 50000,
                                             .handover_limit = 64,
                                             .handover_pause_ms = 2,
                                             .grace_ms = -1,
                                             .max_waiters = 100,
                                             .max_holds = 100,
                                             .quarantine_ms = QUARANTINE };

static void set_up(void)
{
    fixture_init(&e);
    engine_configure(e.engine, &CONFIG);
}

static void tear_down(void)
{
    fixture_fini(&e);
}

static void fail_over(void)
{
    engine_on_store_down(e.engine);
    engine_on_failover(e.engine, NULL, NULL);
    engine_on_store_up(e.engine, false);
    e.notices[0] = '\0';
    fixture_collect(&e);
}

static struct engine_stats stats(void)
{
    struct engine_stats st;

    engine_stats(e.engine, &st);
    return st;
}

TEST_GROUP(.setup = set_up, .teardown = tear_down);

START_TEST(a_hold_is_put_back_with_all_that_it_is)
{
    (void)fixture_grant(&e, 1, "job", OWNER("o"), 100);
    fixture_pass(&e, 1000);
    fail_over();
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.restore.token, 100);
    ck_assert_str_eq(op.field, "o");
    ck_assert_uint_eq(op.op.restore.entry_count, 1);
    ck_assert_uint_eq(op.op.restore.claim.lease_ms, 30000);
    ck_assert_uint_eq(stats().restoring, 1);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .token = 100, .restore.restored = true });
    ck_assert_str_eq(e.notices, "uncertain:job certain:job");
    ck_assert_uint_eq(stats().restoring, 0);
    ck_assert_uint_eq(stats().restored, 1);
}

/* One call of Redis is to take no longer than others can wait. */
START_TEST(a_hold_of_very_many_entries_is_put_back_in_parts)
{
    for (int i = 0; i <= OP_RESTORE_ENTRIES_MAX; i++) {
        (void)fixture_grant(&e, 1, "job", OWNER("o"), 100);
    }
    fail_over();
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.restore.entry_count, OP_RESTORE_ENTRIES_MAX);
    fixture_answer(&e, &op, OK_RESULT);
    ck_assert_uint_eq(stats().restoring, 1);
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_eq(op.op.restore.entry_count, 1);
    fixture_answer(&e, &op, OK_RESULT);
    ck_assert_uint_eq(stats().restoring, 0);
}

START_TEST(nothing_else_is_asked_of_a_name_before_its_hold_is_back)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    fixture_take_op(&e, OP_RESTORE, &op);
    fixture_lock(&e, 2, "job", OWNER("o"));
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_unlock(&e, 3, "job", (struct hold_req){ .token = 100 });
    fixture_no_op(&e);
    fixture_answer(&e, &op, OK_RESULT);
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_take_op(&e, OP_RELEASE, &op);
}

START_TEST(what_is_somebody_elses_is_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    fixture_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_str_eq(e.notices, "uncertain:job lost:job");
    ck_assert_uint_eq(stats().lost_failover, 1);
}

START_TEST(what_was_released_or_moved_elsewhere_is_forgotten_silently)
{
    const enum op_status ways[] = { OP_ENDED, OP_ELSEWHERE };

    for (size_t i = 0; i < 2; i++) {
        (void)fixture_grant(&e, 1 + i, "job", FOREVER, 100 + i);
        fail_over();
        fixture_gives(&e, OP_RESTORE, (struct op_result){ .status = ways[i] });
        ck_assert_str_eq(e.notices, "uncertain:job");
        ck_assert_uint_eq(stats().holds, 0);
        fixture_pass(&e, QUARANTINE);
    }
}

/* It may have run: then nobody is to find the hold again. */
START_TEST(a_hold_whose_release_is_open_is_not_put_back)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    fail_over();
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(an_unlock_that_was_not_sent_yet_finds_its_hold_put_back)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_store_down(e.engine);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fail_over();
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
}

START_TEST(a_grace_is_put_back_with_what_is_left_of_it)
{
    (void)fixture_grant(
        &e, 1, "job", (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 10000 }, 100);
    fixture_pass(&e, 4000);
    fail_over();
    fixture_take_op(&e, OP_RESTORE, &op);
    ck_assert_uint_le(op.op.restore.claim.lease_ms, 6000);
    ck_assert_uint_ge(op.op.restore.claim.lease_ms, 5800);
}

START_TEST(a_name_that_was_not_held_here_waits_for_the_quarantine)
{
    fail_over();
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op, FREE);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, FREE);
    fixture_pass(&e, QUARANTINE - 10);
    fixture_no_op(&e);
    fixture_pass(&e, 20);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
}

static bool concerns_all(void *ctx, unsigned group)
{
    (void)ctx;
    (void)group;
    return true;
}

START_TEST(after_a_failover_that_lost_nothing_no_name_waits)
{
    fail_over();
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, FREE);
    engine_on_subscribed(e.engine, SPAN("job"), false);
    fixture_collect(&e);
    fixture_gives(&e, OP_ACQUIRE, FREE);
    fixture_pass(&e, 100);
    fixture_no_op(&e);
    engine_on_lossless_failover(e.engine, concerns_all, NULL);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
    ck_assert_uint_eq(stats().quarantine_left_ms, 0);
}

START_TEST(what_the_failover_before_may_have_lost_is_withheld_still)
{
    fail_over();
    fixture_pass(&e, 5000);
    fail_over();
    ck_assert_uint_eq(stats().quarantine_left_ms, QUARANTINE);
    engine_on_lossless_failover(e.engine, concerns_all, NULL);
    ck_assert_uint_eq(stats().quarantine_left_ms, QUARANTINE - 5000);
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
}

START_TEST(null_does_not_hide_that_a_name_is_withheld)
{
    fail_over();
    fixture_lock(&e, 1, "job", ONCE);
    fixture_gives(&e, OP_ACQUIRE, FREE);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_lock(&e, 2, "job", WAITS(500));
    fixture_gives(&e, OP_ACQUIRE, FREE);
    fixture_pass(&e, 600);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
    fixture_lock(&e, 3, "job", ONCE);
    fixture_gives(&e, OP_ACQUIRE, HELD); /* by somebody who was found there */
    (void)fixture_hears(&e, 3, REPLY_NULL);
}

START_TEST(a_name_that_was_held_here_goes_on_at_once)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    fail_over();
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, HELD);
    }
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.has_next);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    fixture_pass(&e, 3); /* others had their chance */
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
}

START_TEST(a_restart_puts_back_but_withholds_nothing)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
    fixture_lock(&e, 2, "door", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
}

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
    struct engine_setup setup = { .instance = "00000000000000aa",
                                  .now_ms = e.now,
                                  .config = CONFIG,
                                  .group_of = by_first_letter,
                                  .group_count = 2 };

    engine_free(e.engine);
    e.engine = engine_new(&setup);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    (void)fixture_grant(&e, 2, "door", FOREVER, 101);
    e.notices[0] = '\0';
    engine_on_failover(e.engine, concerns_one, NULL);
    fixture_collect(&e);
    ck_assert_str_eq(e.notices, "uncertain:job");
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
    fixture_lock(&e, 3, "tap", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(!op.op.acquire.reenter_only);
    fixture_lock(&e, 4, "jar", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
}

/* The old one's answer came after it was known to be the old one. */
START_TEST(a_grant_of_the_old_one_is_not_given_out)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    engine_on_failover(e.engine, NULL, NULL);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK, .token = 5 });
    fixture_hears_nothing(&e);
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_NOTHELD });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    ck_assert_uint_ge(op.op.seen_token, 5);
}

START_TEST(what_told_nothing_is_asked_again)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fail_over();
    fixture_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_LATE });
    fixture_no_op(&e);
    fixture_pass(&e, 10);
    fixture_gives(&e, OP_RESTORE,
                  (struct op_result){ .status = OP_ERROR, .text = SPAN("OOM") });
    fixture_no_op(&e);
    fixture_pass(&e, 200);
    fixture_gives(&e, OP_RESTORE, (struct op_result){ .status = OP_UNKNOWN });
    fixture_gives(&e, OP_RESTORE, OK_RESULT);
    ck_assert_str_eq(e.notices, "uncertain:job certain:job");
}

/* Of another daemon that lives, and may be about to put back what the failover lost. */
START_TEST(a_renewal_is_not_told_that_its_hold_is_gone_while_others_put_theirs_back)
{
    engine_announced(e.engine, SPAN("hello 00000000000000bb 1 0"));
    fail_over();
    fixture_renew(&e, 1, "job", (struct hold_req){ .owner = SPAN("o") });
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    fixture_hears_nothing(&e);
    fixture_pass(&e, 10);
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .attach = { .field = SPAN("o"),
                                                  .entry = SPAN("00000000000000bb:1") },
                                      .token = 100,
                                      .ttl_ms = 30000 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 100);
    fixture_renew(&e, 2, "door", (struct hold_req){ .owner = SPAN("o") });
    fixture_pass(&e, 2900);
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_BACKEND);
}

/* Each UNLOCK leaves the tombstone at once: its client may be gone before the answer.
 */
START_TEST(an_unlock_of_what_others_may_put_back_leaves_a_tombstone)
{
    engine_announced(e.engine, SPAN("hello 00000000000000bb 1 0"));
    fail_over();
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.tombstone_if_missing, TOMBSTONE_OF_DOUBT);
    ck_assert_uint_gt(op.op.release.tombstone_ms, QUARANTINE);
    fixture_answer(&e, &op, NOTHELD);
    fixture_hears_nothing(&e);
    fixture_no_op(&e);
    fixture_pass(&e, 100);
    fixture_gives(&e, OP_RELEASE, (struct op_result){ .status = OP_ENDED });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_pass(&e, QUARANTINE);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.tombstone_if_missing, TOMBSTONE_NONE);
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_renew(&e, 2, "door", (struct hold_req){ .owner = SPAN("o") });
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
}

/* A daemon that takes the failover for a restart announces a shorter time. */
START_TEST(what_others_announce_does_not_shorten_the_time_after_a_failover)
{
    engine_announced(e.engine, SPAN("hello 00000000000000bb 1 0"));
    fail_over();
    engine_announced(e.engine, SPAN("here 00000000000000bb 2 3000"));
    fixture_pass(&e, 3100);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.tombstone_if_missing, TOMBSTONE_OF_DOUBT);
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

/* The tombstone makes the answer final, so that it need not be given up. */
START_TEST(an_unlock_that_waits_for_others_is_answered_before_its_time_is_over)
{
    engine_announced(e.engine, SPAN("hello 00000000000000bb 1 0"));
    fail_over();
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 100 });
    for (unsigned ms = 0; ms < CONFIG.redis_timeout_ms; ms += 100) {
        fixture_gives(&e, OP_RELEASE, NOTHELD);
        fixture_pass(&e, 100);
    }
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

START_TEST(without_a_quarantine_a_failover_that_lost_nothing_leaves_no_doubt)
{
    struct engine_config config = CONFIG;

    config.quarantine_ms = 0;
    engine_configure(e.engine, &config);
    engine_announced(e.engine, SPAN("hello 00000000000000bb 1 0"));
    fail_over();
    engine_on_lossless_failover(e.engine, NULL, NULL);
    fixture_renew(&e, 1, "door", (struct hold_req){ .owner = SPAN("o") });
    fixture_gives(&e, OP_ATTACH, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

/* No other daemon is known. */
START_TEST(an_unlock_of_what_nobody_else_can_have_held_is_answered_at_once)
{
    fail_over();
    fixture_unlock(&e, 2, "job", (struct hold_req){ .token = 99 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.tombstone_if_missing, TOMBSTONE_NONE);
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
}
