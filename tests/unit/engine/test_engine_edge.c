/* The engine: what happens when answers are lost, late, or cross each other. */
#include "unit/engine/engine_cases.h"

#include "latchd/protocol.h"

#include <stdio.h>

static const struct op_result ONE_LEFT = { .status = OP_OK, .count = 1 };

/* --- named owners ----------------------------------------------------------------- */

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_renewal_that_asked_for_a_released_entry_does_not_lose_the_others)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    (void)fixture_grant(&e, 2, "job", AS_O, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op); /* looks at the entry of 2 */
    engine_on_op_result(e.engine,
                        &(struct op_result){ .id = op.op.id, .status = OP_LATE });
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op); /* at the entry of 1 */
    for (uint64_t conn = 1; conn <= 2; conn++) {
        struct seen_op release;

        fixture_unlock(&e, conn, "job", BARE);
        fixture_take_op(&e, OP_RELEASE, &release);
        if (strcmp(release.target_entry, op.entry) == 0 || conn == 2) {
            fixture_answer(&e, &release, conn == 1 ? ONE_LEFT : FREED);
        } else {
            fixture_answer(&e, &release, ONE_LEFT);
        }
        (void)fixture_hears(&e, conn, REPLY_INT);
        if (conn == 1) {
            enum renew_result gone = RENEW_GONE;

            fixture_answer(&e, &op,
                           (struct op_result){ .status = OP_OK,
                                               .renew.items = &gone,
                                               .renew.count = 1 });
            ck_assert_str_eq(e.notices, "granted:job");
            fixture_renews(&e, RENEW_OK);
        }
    }
}

START_TEST(an_entry_without_connection_goes_though_another_came_later)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_close(&e, 1);
    fixture_pass(&e, 5000);
    (void)fixture_grant(&e, 2, "job", AS_O, 100);
    for (int i = 0; i < 3 && e.op_count == 0; i++) {
        fixture_pass(&e, 10000);
        if (e.op_count > 0 && e.ops[0].op.kind == OP_RENEW) {
            fixture_renews(&e, RENEW_OK);
        }
    }
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    fixture_answer(&e, &op, ONE_LEFT);
    ck_assert_str_eq(e.notices, "granted:job");
}

/* --- waits ------------------------------------------------------------------------ */

START_TEST(a_wait_that_ends_during_a_release_that_frees_nothing_is_null)
{
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    (void)fixture_grant(&e, 1, "job", AS_O, 100);
    fixture_unlock(&e, 1, "job", BY_O);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT, .wait_ms = 100 });
    fixture_pass(&e, 100);
    fixture_hears_nothing(&e);
    fixture_answer(&e, &op, ONE_LEFT);
    (void)fixture_hears(&e, 1, REPLY_INT);
    if (e.said_count == 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY);
    }
    (void)fixture_hears(&e, 2, REPLY_NULL);
}

START_TEST(an_owner_whose_question_redis_refused_asks_again)
{
    fixture_lock(&e, 1, "job", FOREVER);
    fixture_gives(&e, OP_ACQUIRE, BUSY);
    fixture_lock(&e, 2, "job", AS_O);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ERROR });
    fixture_no_op(&e); /* not at once */
    fixture_pass(&e, 200);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert(op.op.acquire.reenter_only);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 9, .count = 2 });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

/* --- trust ------------------------------------------------------------------------ */

START_TEST(what_was_asked_before_the_clock_jumped_confirms_nothing)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    fixture_lock(&e, 2, "other", FOREVER);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .renew.items = &(enum renew_result){ RENEW_OK },
                                       .renew.count = 1 });
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_OK, .token = 7, .count = 1 });
    fixture_hears_nothing(&e);
    fixture_renews(&e, RENEW_OK);
    fixture_gives(&e, OP_RELEASE,
                  (struct op_result){ .status = OP_OK, .moved = true, .token = 8 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 8);
}

START_TEST(an_overdue_renewal_is_told_in_time_though_redis_refuses_it)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 12900);
    fixture_gives(&e, OP_RENEW, (struct op_result){ .status = OP_ERROR });
    fixture_pass(&e, 99);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
}

START_TEST(a_renewal_that_waits_for_a_cut_does_not_spin)
{
    uint64_t now;

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 9000);
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 20000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 1500);
    now = e.now;
    ck_assert_uint_gt(engine_next_deadline(e.engine), now + 100);
    fixture_no_op(&e);
}

START_TEST(a_longer_watchdog_timeout_does_not_end_the_holds_that_are_there)
{
    struct engine_config config = { .watchdog_ms = 300000,
                                    .redis_timeout_ms = 3000,
                                    .recheck_ms = 5000,
                                    .handover_limit = 64,
                                    .grace_ms = -1,
                                    .max_waiters = 10,
                                    .max_holds = 10 };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 1000);
    engine_configure(e.engine, &config);
    fixture_pass(&e, 20000);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].lease_ms, 300000);
}

/* Room for no wait: with an ID, WAIT 0 may stay for KEEP. */
START_TEST(beyond_max_waiters_WAIT_0_is_tried_but_keeps_no_place)
{
    const struct lock_terms once = { .id = UUID, .has = OPT_WAIT };
    const struct engine_config full = { .watchdog_ms = 30000,
                                        .redis_timeout_ms = 3000,
                                        .recheck_ms = 5000,
                                        .grace_ms = -1,
                                        .max_holds = 10 };

    engine_configure(e.engine, &full);
    fixture_lock(&e, 1, "job", FOREVER);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_lock(&e, 1, "job", once);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_gives(&e, OP_ACQUIRE,
                  (struct op_result){ .status = OP_BUSY, .ttl_ms = 50 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_LIMIT);
    fixture_lock(&e, 1, "job", once);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_OK, .token = 7 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_TOKEN).value, 7);
}

START_TEST(a_second_token_that_is_not_delivered_takes_nothing_back)
{
    uint64_t grant;

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = UUID }, 100);
    fixture_close(&e, 1);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 100,
                                      .ttl_ms = 30000,
                                      .attach.field = UUID_FIELD });
    grant = fixture_hears(&e, 2, REPLY_TOKEN).grant;
    engine_on_undelivered(e.engine, 2, grant);
    fixture_close(&e, 2);
    fixture_pass(&e, 9000); /* the rest of the lease, not KEEP */
    fixture_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(an_id_that_is_released_while_its_grant_is_on_the_way_is_not_held)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_unlock(&e, 2, "job", (struct hold_req){ .id = UUID });
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 1, REPLY_TOKEN);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    ck_assert_str_eq(e.notices, "granted:job released:job");
    fixture_pass(&e, LATCHD_OVER_MS);
    fixture_is_empty(&e);
}

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
        (void)fixture_grant(&e, 1, name, FOREVER, 100);
        e.notices[0] = '\0';
    }
    do {
        cursor = engine_scan(e.engine, cursor, 10, count_name, &seen);
        if (++steps == 3) {
            for (int i = 200; i < 800; i++) {
                (void)snprintf(name, sizeof(name), "n%d", i);
                (void)fixture_grant(&e, 1, name, FOREVER, 100);
                e.notices[0] = '\0';
            }
        }
        ck_assert_int_lt(steps, 1000);
    } while (cursor != 0);
    ck_assert_uint_ge(seen, 200);
}

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

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    fixture_pass(&e, 100);
    fixture_lock(&e, 3, "job", (struct lock_terms){ .has = OPT_WAIT, .wait_ms = 700 });
    fixture_lock(&e, 4, "job", FOREVER);
    fixture_pass(&e, 200);
    engine_waiters(e.engine, SPAN("job"), 2, note_waiter, all);
    ck_assert_uint_eq(all[0].conn, 2);
    ck_assert_uint_eq(all[0].waited_ms, 300);
    ck_assert_uint_eq(all[0].left_ms, UINT64_MAX);
    ck_assert_uint_eq(all[1].conn, 3);
    ck_assert_uint_eq(all[1].left_ms, 500);
    ck_assert_uint_eq(all[2].conn, 0);
}

START_TEST(lockinfo_of_a_free_name_leaves_nothing_behind)
{
    engine_lock_info(e.engine, (struct call_ref){ 1, 1 }, SPAN("job"));
    fixture_collect(&e);
    fixture_gives(&e, OP_INSPECT, UNKNOWN);
    fixture_gives(&e, OP_INSPECT,
                  (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT });
    (void)fixture_hears(&e, 1, REPLY_INFO);
    fixture_is_empty(&e);
}
START_TEST(a_connection_is_busy_while_anything_is_attached_to_it)
{
    ck_assert(!engine_conn_busy(e.engine, 1));
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    ck_assert(engine_conn_busy(e.engine, 1)); /* a hold */
    fixture_lock(&e, 2, "job", FOREVER);
    ck_assert(engine_conn_busy(e.engine, 2)); /* a wait */
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY);
    }
    fixture_renew(&e, 3, "job", (struct hold_req){ .token = 100 });
    ck_assert(engine_conn_busy(e.engine, 3)); /* a question */
    fixture_mlock(&e, 4, "job other", FOREVER);
    ck_assert(engine_conn_busy(e.engine, 4)); /* a wait for many */
    for (uint64_t conn = 2; conn <= 4; conn++) {
        fixture_close(&e, conn);
        ck_assert(!engine_conn_busy(e.engine, conn));
    }
    ck_assert(engine_conn_busy(e.engine, 1));
}

/* It is remembered for each name, but not without end. */
START_TEST(who_lost_very_many_names_is_asked_which_hold_it_means)
{
    for (int i = 0; i <= 64; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)fixture_grant(&e, 1, name, FOREVER, 100 + (uint64_t)i);
        fixture_force(&e, 2, name, (struct hold_req){ .token = 100 + (uint64_t)i });
        fixture_gives(&e, OP_RELEASE, FREED);
        (void)fixture_hears(&e, 2, REPLY_INT);
        fixture_unlock(&e, 1, i < 64 ? "never" : name, BARE);
        (void)fixture_hears(&e, 1, REPLY_ERROR);
    }
    (void)fixture_grant(&e, 1, "fresh", FOREVER, 500);
    fixture_unlock(&e, 1, "fresh", BARE);
    ck_assert_str_eq(fixture_hears(&e, 1, REPLY_ERROR).text,
                     "TOKEN, OWNER or ID needed");
    (void)fixture_grant(&e, 3, "job", FOREVER, 600);
    fixture_unlock(&e, 3, "job", BARE); /* nobody else's business */
    fixture_gives(&e, OP_RELEASE, FREED);
    (void)fixture_hears(&e, 3, REPLY_INT);
}

START_TEST(what_nobody_knows_is_found_by_no_name_and_no_connection)
{
    static char long_text[4096];

    memset(long_text, 'x', sizeof(long_text));
    ck_assert_uint_eq(
        fixture_cancel(&e, SPAN("job"), SPAN_NONE, span_of(long_text, 65)), 0);
    ck_assert_uint_eq(fixture_cancel(&e, span_of(long_text, 4096), SPAN_NONE, UUID), 0);
    engine_on_undelivered(e.engine, 99, 1);
    ck_assert(!engine_unblock(e.engine, 99, true));
    fixture_is_empty(&e);
}

START_TEST(a_wait_that_is_unblocked_with_an_error_says_so)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    while (e.op_count > 0) {
        fixture_gives(&e, OP_ACQUIRE, BUSY);
    }
    ck_assert(engine_unblock(e.engine, 2, true));
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_UNBLOCKED);
}

START_TEST(work_on_a_name_takes_memory_as_well)
{
    uint64_t grant = fixture_grant(&e, 1, "job", FOREVER, 100);
    size_t held = engine_memory(e.engine, SPAN("job"), SIZE_MAX);

    engine_on_undelivered(e.engine, 1, grant);
    fixture_collect(&e);
    ck_assert_uint_gt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), 0);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_uint_lt(engine_memory(e.engine, SPAN("job"), SIZE_MAX), held);
}
