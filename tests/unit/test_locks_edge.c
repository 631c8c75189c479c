/* The engine: what happens when answers are lost, late, or cross each other. */
#include "support/engine.h"
#include "support/runner.h"

#include "latchd/protocol.h"

#include <stdio.h>

static struct engine e;
static struct seen_op op;

#define ANYHOW ((struct lock_req){ 0 })
#define AS_O ((struct lock_req){ .owner = SPAN("o") })
#define BY_O ((struct hold_req){ .owner = SPAN("o") })
#define BARE ((struct hold_req){ 0 })
#define UUID SPAN("01234567-89ab-cdef-0123-456789abcdef")
#define UUID_FIELD SPAN("latchd:id:01234567-89ab-cdef-0123-456789abcdef")

static const struct op_result BUSY = { .status = OP_BUSY, .ttl_ms = 30000 };
static const struct op_result UNKNOWN = { .status = OP_UNKNOWN };
static const struct op_result FREED = { .status = OP_OK, .freed = true };
static const struct op_result ONE_LEFT = { .status = OP_OK, .count = 1 };

static void setup(void)
{
    engine_init(&e);
}

static void teardown(void)
{
    engine_fini(&e);
}

/* --- named owners ----------------------------------------------------------------- */

START_TEST(a_renewal_that_asked_for_a_released_entry_does_not_lose_the_others)
{
    (void)engine_grant(&e, 1, "job", AS_O, 100);
    (void)engine_grant(&e, 2, "job", AS_O, 100);
    engine_pass(&e, 10000);
    engine_take_op(&e, OP_RENEW, &op); /* looks at the entry of 2 */
    locks_op_done(e.locks, &(struct op_result){ .id = op.op.id, .status = OP_LATE });
    engine_collect(&e);
    engine_take_op(&e, OP_RENEW, &op); /* at the entry of 1 */
    for (uint64_t conn = 1; conn <= 2; conn++) {
        struct seen_op release;

        engine_unlock(&e, conn, "job", BARE);
        engine_take_op(&e, OP_RELEASE, &release);
        if (strcmp(release.target_entry, op.entry) == 0 || conn == 2) {
            engine_answer(&e, &release, conn == 1 ? ONE_LEFT : FREED);
        } else {
            engine_answer(&e, &release, ONE_LEFT);
        }
        (void)engine_hears(&e, conn, REPLY_INT);
        if (conn == 1) {
            enum renew_result gone = RENEW_GONE;

            engine_answer(
                &e, &op,
                (struct op_result){ .status = OP_OK, .items = &gone, .item_count = 1 });
            ck_assert_str_eq(e.notices, "granted:job");
            engine_renews(&e, RENEW_OK);
        }
    }
}
END_TEST

START_TEST(an_entry_without_connection_goes_though_another_came_later)
{
    (void)engine_grant(&e, 1, "job", AS_O, 100);
    engine_close(&e, 1);
    engine_pass(&e, 5000);
    (void)engine_grant(&e, 2, "job", AS_O, 100);
    for (int i = 0; i < 3 && e.op_count == 0; i++) {
        engine_pass(&e, 10000);
        if (e.op_count > 0 && e.ops[0].op.kind == OP_RENEW) {
            engine_renews(&e, RENEW_OK);
        }
    }
    engine_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.own_accord);
    engine_answer(&e, &op, ONE_LEFT);
    ck_assert_str_eq(e.notices, "granted:job");
}
END_TEST

/* --- waits ------------------------------------------------------------------------ */

START_TEST(a_wait_that_ends_during_a_release_that_frees_nothing_is_null)
{
    (void)engine_grant(&e, 1, "job", AS_O, 100);
    (void)engine_grant(&e, 1, "job", AS_O, 100);
    engine_unlock(&e, 1, "job", BY_O);
    engine_take_op(&e, OP_RELEASE, &op);
    engine_lock(&e, 2, "job",
                (struct lock_req){ .has = LOCK_HAS_WAIT, .wait_ms = 100 });
    engine_pass(&e, 100);
    engine_hears_nothing(&e);
    engine_answer(&e, &op, ONE_LEFT);
    (void)engine_hears(&e, 1, REPLY_INT);
    if (e.said_count == 0) {
        engine_gives(&e, OP_ACQUIRE, BUSY);
    }
    (void)engine_hears(&e, 2, REPLY_NULL);
}
END_TEST

START_TEST(an_owner_whose_question_redis_refused_asks_again)
{
    engine_lock(&e, 1, "job", ANYHOW);
    engine_gives(&e, OP_ACQUIRE, BUSY);
    engine_lock(&e, 2, "job", AS_O);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    engine_answer(&e, &op, (struct op_result){ .status = OP_ERROR });
    engine_no_op(&e); /* not at once */
    engine_pass(&e, 200);
    engine_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.reenter_only);
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 9, .count = 2 });
    (void)engine_hears(&e, 2, REPLY_TOKEN);
}
END_TEST

/* --- trust ------------------------------------------------------------------------ */

START_TEST(what_was_asked_before_the_clock_jumped_confirms_nothing)
{
    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_pass(&e, 10000);
    engine_take_op(&e, OP_RENEW, &op);
    engine_lock(&e, 2, "other", ANYHOW);
    locks_clock_jumped(e.locks);
    engine_collect(&e);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK,
                                      .items = &(enum renew_result){ RENEW_OK },
                                      .item_count = 1 });
    engine_gives(&e, OP_ACQUIRE,
                 (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    engine_hears_nothing(&e);
    engine_renews(&e, RENEW_OK);
    engine_gives(&e, OP_RELEASE,
                 (struct op_result){ .status = OP_OK, .moved = true, .token = 8 });
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_TOKEN).value, 8);
}
END_TEST

START_TEST(an_overdue_renewal_is_told_in_time_though_redis_refuses_it)
{
    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_pass(&e, 12900);
    engine_gives(&e, OP_RENEW, (struct op_result){ .status = OP_ERROR });
    engine_pass(&e, 99);
    ck_assert_str_eq(e.notices, "granted:job");
    engine_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
}
END_TEST

START_TEST(a_renewal_that_waits_for_a_cut_does_not_spin)
{
    uint64_t now;

    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_pass(&e, 9000);
    engine_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 20000 });
    engine_take_op(&e, OP_ATTACH, &op);
    engine_pass(&e, 1500);
    now = e.now;
    ck_assert_uint_gt(locks_next_deadline(e.locks), now + 100);
    engine_no_op(&e);
}
END_TEST

START_TEST(a_longer_watchdog_timeout_does_not_end_the_holds_that_are_there)
{
    struct locks_config config = { .watchdog_ms = 300000,
                                   .redis_timeout_ms = 3000,
                                   .recheck_ms = 5000,
                                   .handoff_limit = 64,
                                   .grace_ms = -1,
                                   .max_waiters = 10,
                                   .max_holds = 10 };

    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_pass(&e, 1000);
    locks_configure(e.locks, &config);
    engine_pass(&e, 20000);
    engine_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].lease_ms, 300000);
}
END_TEST

/* Room for no wait: with an ID, WAIT 0 may stay for KEEP. */
START_TEST(beyond_max_waiters_WAIT_0_is_tried_but_keeps_no_place)
{
    const struct lock_req once = { .id = UUID, .has = LOCK_HAS_WAIT };
    const struct locks_config full = { .watchdog_ms = 30000,
                                       .redis_timeout_ms = 3000,
                                       .recheck_ms = 5000,
                                       .grace_ms = -1,
                                       .max_holds = 10 };

    locks_configure(e.locks, &full);
    engine_lock(&e, 1, "job", ANYHOW);
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    engine_lock(&e, 1, "job", once);
    engine_lock(&e, 2, "job", (struct lock_req){ .id = UUID });
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_LIMIT);
    engine_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_BUSY, .ttl_ms = 50 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    engine_lock(&e, 1, "job", once);
    engine_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 7 });
    ck_assert_int_eq(engine_hears(&e, 1, REPLY_TOKEN).value, 7);
}
END_TEST

START_TEST(a_second_token_that_is_not_delivered_takes_nothing_back)
{
    uint64_t grant;

    (void)engine_grant(&e, 1, "job", (struct lock_req){ .id = UUID }, 100);
    engine_close(&e, 1);
    engine_lock(&e, 2, "job", (struct lock_req){ .id = UUID });
    engine_gives(
        &e, OP_ATTACH,
        (struct op_result){
            .status = OP_OK, .token = 100, .ttl_ms = 30000, .owner = UUID_FIELD });
    grant = engine_hears(&e, 2, REPLY_TOKEN).grant;
    locks_undelivered(e.locks, 2, grant);
    engine_close(&e, 2);
    engine_pass(&e, 9000); /* the rest of the lease, not KEEP */
    engine_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:job");
}
END_TEST

START_TEST(an_id_that_is_released_while_its_grant_is_on_the_way_is_not_held)
{
    engine_lock(&e, 1, "job", (struct lock_req){ .id = UUID });
    engine_take_op(&e, OP_ACQUIRE, &op);
    engine_unlock(&e, 2, "job", (struct hold_req){ .id = UUID });
    engine_answer(&e, &op,
                  (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)engine_hears(&e, 1, REPLY_TOKEN);
    engine_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "granted:job released:job");
    engine_pass(&e, LATCHD_OVER_MS);
    engine_is_empty(&e);
}
END_TEST

/* --- looking ---------------------------------------------------------------------- */

static void count_name(void *ctx, struct span name)
{
    ++*(size_t *)ctx;
    ck_assert_uint_gt(name.len, 0);
}

START_TEST(a_scan_sees_every_name_though_the_table_grows)
{
    char name[16];
    size_t seen = 0;
    uint64_t cursor = 0;
    int steps = 0;

    for (int i = 0; i < 200; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)engine_grant(&e, 1, name, ANYHOW, 100);
        e.notices[0] = '\0';
    }
    do {
        cursor = locks_scan(e.locks, cursor, 10, count_name, &seen);
        if (++steps == 3) {
            for (int i = 200; i < 800; i++) {
                (void)snprintf(name, sizeof(name), "n%d", i);
                (void)engine_grant(&e, 1, name, ANYHOW, 100);
                e.notices[0] = '\0';
            }
        }
        ck_assert_int_lt(steps, 1000);
    } while (cursor != 0);
    ck_assert_uint_ge(seen, 200);
}
END_TEST

static void note_waiter(void *ctx, const struct waiter_info *info)
{
    struct waiter_info *all = ctx;

    while (all->conn != 0) {
        all++;
    }
    *all = *info;
}

START_TEST(waiters_are_told_in_order)
{
    struct waiter_info all[4] = { 0 };

    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_lock(&e, 2, "job", ANYHOW);
    engine_pass(&e, 100);
    engine_lock(&e, 3, "job",
                (struct lock_req){ .has = LOCK_HAS_WAIT, .wait_ms = 700 });
    engine_lock(&e, 4, "job", ANYHOW);
    engine_pass(&e, 200);
    locks_waiters(e.locks, SPAN("job"), 2, note_waiter, all);
    ck_assert_uint_eq(all[0].conn, 2);
    ck_assert_uint_eq(all[0].waited_ms, 300);
    ck_assert_uint_eq(all[0].left_ms, UINT64_MAX);
    ck_assert_uint_eq(all[1].conn, 3);
    ck_assert_uint_eq(all[1].left_ms, 500);
    ck_assert_uint_eq(all[2].conn, 0);
}
END_TEST

START_TEST(lockinfo_of_a_free_name_leaves_nothing_behind)
{
    locks_info(e.locks, (struct call_ref){ 1, 1 }, SPAN("job"));
    engine_collect(&e);
    engine_gives(&e, OP_INSPECT, UNKNOWN);
    engine_gives(&e, OP_INSPECT, (struct op_result){ .status = OP_OK, .ttl_ms = -2 });
    (void)engine_hears(&e, 1, REPLY_INFO);
    engine_is_empty(&e);
}
END_TEST
START_TEST(a_connection_is_busy_while_anything_is_attached_to_it)
{
    ck_assert(!locks_conn_busy(e.locks, 1));
    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    ck_assert(locks_conn_busy(e.locks, 1)); /* a hold */
    engine_lock(&e, 2, "job", ANYHOW);
    ck_assert(locks_conn_busy(e.locks, 2)); /* a wait */
    while (e.op_count > 0) {
        engine_gives(&e, OP_ACQUIRE, BUSY);
    }
    engine_renew(&e, 3, "job", (struct hold_req){ .token = 100 });
    ck_assert(locks_conn_busy(e.locks, 3)); /* a question */
    engine_mlock(&e, 4, "job other", ANYHOW);
    ck_assert(locks_conn_busy(e.locks, 4)); /* a wait for many */
    for (uint64_t conn = 2; conn <= 4; conn++) {
        engine_close(&e, conn);
        ck_assert(!locks_conn_busy(e.locks, conn));
    }
    ck_assert(locks_conn_busy(e.locks, 1));
}
END_TEST

/* It is remembered for each name, but not without end. */
START_TEST(who_lost_very_many_names_is_asked_which_hold_it_means)
{
    for (int i = 0; i <= 64; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)engine_grant(&e, 1, name, ANYHOW, 100 + (uint64_t)i);
        engine_force(&e, 2, name, (struct hold_req){ .token = 100 + (uint64_t)i });
        engine_gives(&e, OP_RELEASE, FREED);
        (void)engine_hears(&e, 2, REPLY_INT);
        engine_unlock(&e, 1, i < 64 ? "never" : name, BARE);
        (void)engine_hears(&e, 1, REPLY_ERROR);
    }
    (void)engine_grant(&e, 1, "fresh", ANYHOW, 500);
    engine_unlock(&e, 1, "fresh", BARE);
    ck_assert_str_eq(engine_hears(&e, 1, REPLY_ERROR).text,
                     "TOKEN, OWNER or ID needed");
    (void)engine_grant(&e, 3, "job", ANYHOW, 600);
    engine_unlock(&e, 3, "job", BARE); /* nobody else's business */
    engine_gives(&e, OP_RELEASE, FREED);
    (void)engine_hears(&e, 3, REPLY_INT);
}
END_TEST

START_TEST(what_nobody_knows_is_found_by_no_name_and_no_connection)
{
    static char long_text[4096];

    memset(long_text, 'x', sizeof(long_text));
    ck_assert_uint_eq(engine_cancel(&e, SPAN("job"), SPAN_NONE, span_of(long_text, 65)),
                      0);
    ck_assert_uint_eq(engine_cancel(&e, span_of(long_text, 4096), SPAN_NONE, UUID), 0);
    locks_undelivered(e.locks, 99, 1);
    ck_assert(!locks_unblock(e.locks, 99, true));
    engine_is_empty(&e);
}
END_TEST

START_TEST(a_wait_that_is_unblocked_with_an_error_says_so)
{
    (void)engine_grant(&e, 1, "job", ANYHOW, 100);
    engine_lock(&e, 2, "job", ANYHOW);
    while (e.op_count > 0) {
        engine_gives(&e, OP_ACQUIRE, BUSY);
    }
    ck_assert(locks_unblock(e.locks, 2, true));
    engine_collect(&e);
    ck_assert_int_eq(engine_hears(&e, 2, REPLY_ERROR).error, LOCK_UNBLOCKED);
}
END_TEST

START_TEST(work_on_a_name_takes_memory_as_well)
{
    uint64_t grant = engine_grant(&e, 1, "job", ANYHOW, 100);
    size_t held = locks_memory(e.locks, SPAN("job"), SIZE_MAX);

    locks_undelivered(e.locks, 1, grant);
    engine_collect(&e);
    ck_assert_uint_gt(locks_memory(e.locks, SPAN("job"), SIZE_MAX), 0);
    engine_gives(&e, OP_RELEASE, FREED);
    ck_assert_uint_lt(locks_memory(e.locks, SPAN("job"), SIZE_MAX), held);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("locks_edge");
    TCase *tc = tcase_create("edge");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc,
                   a_renewal_that_asked_for_a_released_entry_does_not_lose_the_others);
    tcase_add_test(tc, an_entry_without_connection_goes_though_another_came_later);
    tcase_add_test(tc, a_wait_that_ends_during_a_release_that_frees_nothing_is_null);
    tcase_add_test(tc, an_owner_whose_question_redis_refused_asks_again);
    tcase_add_test(tc, what_was_asked_before_the_clock_jumped_confirms_nothing);
    tcase_add_test(tc, an_overdue_renewal_is_told_in_time_though_redis_refuses_it);
    tcase_add_test(tc, a_renewal_that_waits_for_a_cut_does_not_spin);
    tcase_add_test(tc, a_longer_watchdog_timeout_does_not_end_the_holds_that_are_there);
    tcase_add_test(tc, beyond_max_waiters_WAIT_0_is_tried_but_keeps_no_place);
    tcase_add_test(tc, a_second_token_that_is_not_delivered_takes_nothing_back);
    tcase_add_test(tc,
                   an_id_that_is_released_while_its_grant_is_on_the_way_is_not_held);
    tcase_add_test(tc, a_scan_sees_every_name_though_the_table_grows);
    tcase_add_test(tc, waiters_are_told_in_order);
    tcase_add_test(tc, lockinfo_of_a_free_name_leaves_nothing_behind);
    tcase_add_test(tc, a_connection_is_busy_while_anything_is_attached_to_it);
    tcase_add_test(tc, who_lost_very_many_names_is_asked_which_hold_it_means);
    tcase_add_test(tc, what_nobody_knows_is_found_by_no_name_and_no_connection);
    tcase_add_test(tc, a_wait_that_is_unblocked_with_an_error_says_so);
    tcase_add_test(tc, work_on_a_name_takes_memory_as_well);
    suite_add_tcase(s, tc);
    return s;
}
