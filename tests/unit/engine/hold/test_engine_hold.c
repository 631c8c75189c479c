/* The engine: what it vouches for, and how that ends. */
#include "unit/engine/engine_cases.h"

#include <stdio.h>

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(a_watchdogged_hold_is_renewed_every_third_of_its_lease)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    for (int i = 0; i < 20; i++) {
        fixture_pass(&e, 10000);
        fixture_renews(&e, RENEW_OK);
    }
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(renewals_of_many_holds_leave_in_batches)
{
    for (int i = 0; i < 250; i++) {
        char name[16];

        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)fixture_grant(&e, 1, name, FOREVER, 100);
    }
    e.notices[0] = '\0';
    fixture_pass(&e, 10000);
    ck_assert_uint_le(e.op_count, 6);
    ck_assert_uint_ge(e.op_count, 5);
    while (e.op_count > 0) {
        fixture_renews(&e, RENEW_OK);
    }
}

START_TEST(an_overdue_renewal_makes_it_uncertain_and_the_end_of_the_lease_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 12999);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    fixture_pass(&e, 16649);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job lost:job");
    fixture_unlock(&e, 1, "job", BARE);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
}

/* Some server of a quorum may have renewed it, and not be there when it is released. */
START_TEST(a_release_reckons_with_renewals_that_nobody_confirmed)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_UNKNOWN);
    fixture_pass(&e, 19600); /* it is believed in for 50 ms more */
    fixture_unlock(&e, 1, "job", BARE);
    do {
        ck_assert_uint_gt(e.op_count, 0);
        op = e.ops[0];
        if (op.op.kind == OP_RENEW) {
            fixture_renews(&e, RENEW_UNKNOWN);
        }
    } while (op.op.kind == OP_RENEW);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_uint_ge(op.op.release.ends_in_ms, 30000);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
}

START_TEST(a_hold_that_redis_does_not_know_any_more_is_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(a_hold_that_its_owner_released_elsewhere_ends_silently_H30)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_ENDED);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(another_server_makes_all_uncertain_until_confirmed)
{
    struct seen_op restore;

    (void)fixture_grant(
        &e, 1, "job", (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 60000 }, 100);
    engine_on_store_down(e.engine);
    engine_on_store_up(e.engine, false);
    fixture_collect(&e);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    fixture_take_op(&e, OP_RESTORE, &restore);
    ck_assert_uint_eq(restore.op.restore.token, 100);
    fixture_answer(&e, &restore, (struct op_result){ .status = OP_OK, .token = 100 });
    ck_assert_str_eq(e.notices, "granted:job uncertain:job certain:job");
}

START_TEST(standing_still_makes_holds_uncertain_or_lost_H9)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    (void)fixture_grant(&e, 2, "short",
                        (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 2000 }, 101);
    e.notices[0] = '\0';
    e.now += 5000; /* without a tick in between */
    engine_tick(e.engine, e.now);
    fixture_collect(&e);
    ck_assert_str_eq(e.notices, "expired:short uncertain:job");
    fixture_renews(&e, RENEW_OK);
}

START_TEST(renewed_over_the_same_connection_an_entry_has_its_new_lease)
{
    struct seen_op renewal;

    (void)fixture_grant(
        &e, 1, "job",
        (struct lock_terms){ .owner = SPAN("o"), .has = OPT_LEASE, .lease_ms = 1000 },
        100);
    (void)fixture_grant(&e, 2, "job", (struct lock_terms){ .owner = SPAN("o") }, 100);
    fixture_renew(&e, 1, "job",
                  (struct hold_req){ .owner = SPAN("o"), .lease_ms = 5000 });
    fixture_take_op(&e, OP_ATTACH, &renewal);
    fixture_answer(
        &e, &renewal,
        (struct op_result){ .status = OP_OK,
                            .token = 100,
                            .ttl_ms = 30000,
                            .attach.field = SPAN("o"),
                            .attach.entry = span_str(renewal.target_entry) });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 4000);
    fixture_no_op(&e);
    fixture_pass(&e, 1000);
    fixture_take_op(&e, OP_RELEASE, &op); /* that entry of the two */
}

START_TEST(a_fixed_lease_is_checked_and_given_what_it_still_has_H14)
{
    (void)fixture_grant(
        &e, 1, "job", (struct lock_terms){ .has = OPT_LEASE, .lease_ms = 60000 }, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert(!op.items[0].exact);
    ck_assert_uint_le(op.items[0].lease_ms, 51000);
    ck_assert_uint_ge(op.items[0].lease_ms, 48000);
}

START_TEST(an_unlock_after_a_loss_asks_redis_whether_the_request_goes_on_elsewhere)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_GONE);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .id = ID_A });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_ID);
}

START_TEST(the_same_id_again_is_the_same_grant)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);
    for (uint64_t conn = 2; conn < 12; conn++) {
        fixture_lock(&e, conn, "job", (struct lock_terms){ .id = ID_A });
        fixture_take_op(&e, OP_ATTACH, &op);
        fixture_answer(
            &e, &op,
            (struct op_result){ .status = OP_OK,
                                .token = 100,
                                .ttl_ms = 30000,
                                .attach.field = SPAN("latchd:id:aaaaaaaaaaaaaaaa") });
        ck_assert_int_eq(fixture_hears(&e, conn, REPLY_TOKEN).value, 100);
    }
    fixture_no_op(&e);
}

START_TEST(a_request_that_is_over_takes_nothing_and_its_unlock_can_be_repeated_H6)
{
    struct hold_req by_id = { .id = ID_A };

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);
    fixture_unlock(&e, 1, "job", by_id);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.leave_tombstone);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 0);
    fixture_unlock(&e, 2, "job", by_id);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 0);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = ID_A });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_no_op(&e);
    fixture_pass(&e, 20001);
    fixture_unlock(&e, 2, "job", by_id);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
}

START_TEST(a_bare_unlock_after_a_loss_is_ambiguous_H15)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_GONE);
    (void)fixture_grant(&e, 1, "job", FOREVER, 200);
    fixture_unlock(&e, 1, "job", BARE);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_ERR);
    fixture_unlock(&e, 1, "job", (struct hold_req){ .token = 200 });
    fixture_take_op(&e, OP_RELEASE, &op);
}

START_TEST(a_grant_of_a_held_name_means_that_the_old_hold_is_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    e.notices[0] = '\0';
    fixture_lock(&e, 2, "job", (struct lock_terms){ .has = OPT_WAIT });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 300, .count = 1 });
    fixture_renews(&e, RENEW_GONE);
    ck_assert_str_eq(e.notices, "lost:job granted:job");
}

START_TEST(the_hold_lives_while_any_connection_keeps_an_entry_H8)
{
    struct lock_terms as_owner = { .owner = SPAN("o") };

    (void)fixture_grant(&e, 1, "job", as_owner, 100);
    fixture_lock(&e, 2, "job", as_owner);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_OK);
    ck_assert_str_eq(e.notices, "granted:job");
}

/* A release counts that only a minority of the masters did. */
START_TEST(what_a_quorum_has_of_an_owner_is_renewed_after_each_release)
{
    struct lock_terms as_owner = { .owner = SPAN("o") };

    fixture_fini(&e);
    fixture_init(&e);
    fixture_replace(&e, (struct engine_setup){ .quorum = true });
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    (void)fixture_grant(&e, 1, "job", as_owner, 100);
    fixture_lock(&e, 2, "job", as_owner);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 100);
    fixture_unlock(&e, 1, "job", BARE);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.was_held);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_OK, .count = 1 });
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_INT).value, 1);
    fixture_renews(&e, RENEW_GONE);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

START_TEST(a_stop_ends_waits_and_reports_holds_uncertain)
{
    (void)fixture_grant(&e, 1, "job",
                        (struct lock_terms){ .has = OPT_GRACE, .grace_ms = 0 }, 100);
    fixture_lock(&e, 2, "job", FOREVER);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_GOAWAY);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job");
    ck_assert(!engine_stopped(e.engine));
    fixture_renews(&e, RENEW_OK);
    ck_assert_str_eq(e.notices, "granted:job uncertain:job"); /* and so it stays */
    ck_assert(engine_stopped(e.engine));
    engine_on_conn_closed(e.engine, 1); /* H31: grace does not apply */
    fixture_collect(&e);
    fixture_no_op(&e);
}

/* The shortest one of what a connection holds counts. */
START_TEST(a_hold_may_ask_its_connections_for_heartbeats)
{
    struct lock_terms slow = { .heartbeat_ms = 900 }, quick = { .heartbeat_ms = 200 };

    (void)fixture_grant(&e, 1, "calm", FOREVER, 100);
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 1), 0);
    ck_assert_uint_eq(e.heartbeat.conn, 0);
    (void)fixture_grant(&e, 1, "slow", slow, 101);
    ck_assert_uint_eq(e.heartbeat.conn, 1);
    ck_assert_uint_eq(e.heartbeat.every_ms, 900);
    (void)fixture_grant(&e, 1, "quick", quick, 102);
    ck_assert_uint_eq(e.heartbeat.every_ms, 200);
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 1), 200);
    fixture_unlock(&e, 1, "quick", (struct hold_req){ .token = 102 });
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 1), 900);
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 2), 0);
}

/* Such a hold does not depend on its connections any more. */
START_TEST(a_renewal_with_a_lease_ends_the_heartbeat)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .heartbeat_ms = 500 }, 100);
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 1), 500);
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 9000 });
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .lock_kind = KIND_PLAIN,
                                      .token = 100,
                                      .ttl_ms = 9000,
                                      .attach.field = SPAN("latchd:100") });
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_uint_eq(engine_conn_heartbeat(e.engine, 1), 0);
}

/* The other connection keeps it as well, and may have been silent until then. */
START_TEST(a_renewal_without_a_lease_begins_the_heartbeat_of_all_connections_again)
{
    const struct op_result back = { .status = OP_OK,
                                    .lock_kind = KIND_PLAIN,
                                    .token = 100,
                                    .ttl_ms = 9000,
                                    .attach.field = SPAN("latchd:100") };

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .heartbeat_ms = 500 }, 100);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 100, .lease_ms = 9000 });
    fixture_gives(&e, OP_ATTACH, back);
    (void)fixture_hears(&e, 2, REPLY_INT);
    e.heartbeats[0] = '\0';
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100 });
    fixture_gives(&e, OP_ATTACH, back);
    (void)fixture_hears(&e, 1, REPLY_INT);
    ck_assert_str_eq(e.heartbeats, "1>500 2>500 ");
}
