/* The engine: clients that leave and come back: grace, KEEP, RENEW. */
#include "unit/engine/engine_cases.h"

#include <stdio.h>

#define ATTACHED                                                                       \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .token = 100, .ttl_ms = 30000,                                \
        .attach.field = SPAN("latchd:id:aaaaaaaaaaaaaaaa")                             \
    }

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(grace_0_frees_when_the_connection_closes)
{
    (void)fixture_grant(&e, 1, "job",
                        (struct lock_terms){ .has = OPT_GRACE, .grace_ms = 0 }, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .release.freed = true });
    ck_assert_str_eq(e.notices, "granted:job released:job");
}

START_TEST(without_grace_the_rest_of_the_lease_runs_out_unrenewed)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_conn_closed(e.engine, 1);
    for (int i = 0; i < 3; i++) {
        fixture_pass(&e, i < 2 ? 10000 : 9150);
        ck_assert_uint_eq(e.ops[0].items[0].lease_ms, 1); /* only looks */
        fixture_renews(&e, RENEW_OK);
    }
    fixture_pass(&e, 499);
    fixture_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
}

/* Redis has extended the lease, although the client that asked has gone again: the
 * hold is given back when its grace is over, and so who released it elsewhere is heard
 * of. */
START_TEST(what_was_renewed_for_a_client_that_has_gone_is_given_back_and_not_lost)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 9000);
    fixture_renew(&e, 2, "job", (struct hold_req){ .id = ID_A });
    fixture_take_op(&e, OP_ATTACH, &op);
    engine_on_conn_closed(e.engine, 2);
    fixture_answer(&e, &op, ATTACHED);
    while (e.op_count == 0 || e.ops[0].op.kind == OP_RENEW) {
        if (e.op_count > 0) {
            fixture_renews(&e, RENEW_OK); /* a look */
        }
        fixture_pass(&e, 1000);
    }
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ENDED });
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(what_nobody_has_and_was_released_elsewhere_is_not_lost)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_ENDED);
    fixture_pass(&e, 30000);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_is_empty(&e);
}

START_TEST(a_fixed_lease_that_was_released_elsewhere_before_its_end_is_not_lost)
{
    struct lock_terms lease = FOREVER;

    lease.has |= OPT_LEASE;
    lease.lease_ms = 1000;
    (void)fixture_grant(&e, 1, "job", lease, 100);
    fixture_pass(&e, 830);
    fixture_renews(&e, RENEW_ENDED);
    fixture_pass(&e, 30000);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_is_empty(&e);
}

/* Looking at it does not make it fresh: the rest of its lease is what it was. */
START_TEST(who_comes_back_after_a_look_is_given_the_lease_anew)
{
    struct lock_terms again = { .id = ID_A };

    (void)fixture_grant(&e, 1, "job", again, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 10000);
    fixture_renews(&e, RENEW_OK);
    fixture_pass(&e, 9000);
    fixture_lock(&e, 2, "job", again);
    fixture_take_op(&e, OP_ATTACH, &op);
}

START_TEST(a_lease_that_is_being_cut_is_not_vouched_for_beyond_the_cut)
{
    struct hold_req renew = {
        .name = SPAN("job"), .token = 100, .lease_ms = 1000, .from = { 2, 1 }
    };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_pass(&e, 939);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job lost:job");
}

/* The first answer gives a long lease, and the second op has cut it; perhaps a third
 * one was sent that gives a longer one again, and nobody knows whether that has run. */
START_TEST(a_lease_that_a_later_renew_cuts_is_not_vouched_for_beyond_the_cut, 2)
{
    struct hold_req renew = {
        .name = SPAN("job"), .token = 100, .lease_ms = 30000, .from = { 1, 1 }
    };
    struct seen_op attach;

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);
    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &attach);
    fixture_pass(&e, 20);
    renew.lease_ms = 1000;
    renew.from = (struct call_ref){ 2, 1 };
    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    if (_i == 1) {
        renew.lease_ms = 20000;
        renew.from = (struct call_ref){ 3, 1 };
        engine_renew(e.engine, &renew);
        fixture_collect(&e);
        fixture_take_op(&e, OP_ATTACH, &op);
    }
    fixture_pass(&e, 20);
    fixture_answer(&e, &attach, ATTACHED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 919);
    ck_assert_str_eq(e.notices, "granted:job");
    fixture_pass(&e, 1);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
}

START_TEST(who_comes_back_while_the_cut_to_grace_is_in_flight_asks_again)
{
    struct lock_terms req = { .id = ID_A, .has = OPT_GRACE, .grace_ms = 2000 };
    struct hold_req renew = { .name = SPAN("job"), .id = ID_A, .from = { 2, 1 } };
    struct seen_op attach;
    static const enum renew_result FINE[] = { RENEW_OK };

    (void)fixture_grant(&e, 1, "job", req, 100);
    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &attach);
    engine_on_conn_closed(e.engine, 1);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert(op.items[0].exact);
    fixture_answer(&e, &attach, ATTACHED);
    fixture_hears_nothing(&e); /* the cut that was sent behind it has taken it back */
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK, .renew.items = FINE, .renew.count = 1 });
    fixture_take_op(&e, OP_ATTACH, &attach);
    fixture_answer(&e, &attach, ATTACHED);
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_pass(&e, 9000);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(coming_back_in_grace_with_and_then_without_a_lease_ends_the_grace)
{
    struct lock_terms req = { .id = ID_A, .has = OPT_GRACE, .grace_ms = 2000 };
    struct hold_req renew = { .name = SPAN("job"), .id = ID_A, .from = { 2, 1 } };

    (void)fixture_grant(&e, 1, "job", req, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_collect(&e);
    fixture_renews(&e, RENEW_OK);
    renew.lease_ms = 60000;
    for (int i = 0; i < 2; i++) {
        engine_renew(e.engine, &renew);
        fixture_collect(&e);
        fixture_take_op(&e, OP_ATTACH, &op);
        fixture_answer(&e, &op, ATTACHED);
        (void)fixture_hears(&e, 2, REPLY_INT);
        renew.lease_ms = 0;
    }
    fixture_pass(&e, 5000);
    fixture_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(a_renewal_of_which_little_is_left_is_asked_for_again)
{
    struct hold_req renew = {
        .name = SPAN("job"), .token = 100, .lease_ms = 1000, .from = { 2, 1 }
    };
    struct op_result fine = { .status = OP_OK,
                              .token = 100,
                              .ttl_ms = 1000,
                              .attach.field = SPAN("latchd:100") };

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 600);
    fixture_answer(&e, &op, fine);
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_answer(&e, &op, fine);
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 1000);
}

START_TEST(a_grant_is_fresh_while_half_of_its_lease_is_left)
{
    struct lock_terms fixed = { .has = OPT_LEASE, .lease_ms = 1000 };
    uint64_t grant = fixture_grant(&e, 1, "job", fixed, 100);

    ck_assert_int_eq(engine_grant_state(e.engine, 1, grant), GRANT_FRESH);
    ck_assert_int_eq(engine_grant_state(e.engine, 1, grant + 1), GRANT_OVER);
    ck_assert_int_eq(engine_grant_state(e.engine, 2, grant), GRANT_OVER);
    fixture_pass(&e, 500);
    ck_assert_int_eq(engine_grant_state(e.engine, 1, grant), GRANT_FRESH);
    fixture_pass(&e, 1);
    ck_assert_int_eq(engine_grant_state(e.engine, 1, grant), GRANT_STALE);
    fixture_pass(&e, 499);
    ck_assert_int_eq(engine_grant_state(e.engine, 1, grant), GRANT_OVER);
}

START_TEST(an_undelivered_grant_is_taken_back)
{
    uint64_t grant = fixture_grant(&e, 1, "job", FOREVER, 100);

    engine_on_undelivered(e.engine, 1, grant);
    engine_on_conn_closed(e.engine, 1);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:100");
}

START_TEST(an_undelivered_grant_with_an_id_is_kept_and_found_again)
{
    uint64_t grant =
        fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);

    engine_on_undelivered(e.engine, 1, grant);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 1999);
    fixture_no_op(&e);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = ID_A });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_answer(
        &e, &op,
        (struct op_result){ .status = OP_OK,
                            .token = 100,
                            .ttl_ms = 30000,
                            .attach.field = SPAN("latchd:id:aaaaaaaaaaaaaaaa") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_TOKEN).value, 100);
    fixture_pass(&e, 9000);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(an_attach_that_another_daemon_overtook_is_asked_anew_for_who_is_there_H4)
{
    struct hold_req renew = { .name = SPAN("job"), .token = 100, .from = { 2, 1 } };

    engine_renew(e.engine, &renew);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ELSEWHERE });
    fixture_no_op(&e); /* not at once: a clock that was set back needs its time */
    fixture_pass(&e, 10);
    fixture_hears_nothing(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    engine_on_conn_closed(e.engine, 2);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ELSEWHERE });
    fixture_no_op(&e);
}

/* The grace of the owner's other entry has cut the lease behind the grant. */
START_TEST(an_entry_whose_lease_was_cut_before_it_was_told_is_not_given_out_H10)
{
    struct lock_terms first = { .owner = SPAN("o"), .has = OPT_GRACE, .grace_ms = 100 };
    struct lock_terms second = { .owner = SPAN("o"),
                                 .has = OPT_LEASE,
                                 .lease_ms = 20000 };
    struct seen_op cut;

    (void)fixture_grant(&e, 1, "job", first, 100);
    fixture_lock(&e, 2, "job", second);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_take_op(&e, OP_RENEW, &cut);
    ck_assert(cut.items[0].exact);
    fixture_pass(&e, cut.items[0].lease_ms);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 2 });
    fixture_hears_nothing(&e);
}

/* With min-replicas an answer may be overtaken by that of a later op. */
START_TEST(what_was_kept_elsewhere_before_it_was_taken_over_is_not_forgotten_H4)
{
    struct seen_op renewal;

    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    fixture_pass(&e, 10000);
    fixture_take_op(&e, OP_RENEW, &renewal);
    fixture_renew(&e, 1, "job", (struct hold_req){ .token = 100, .lease_ms = 1000 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 10);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .token = 100,
                                       .ttl_ms = 1000,
                                       .attach.field = SPAN("latchd:100") });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_answer(
        &e, &renewal,
        (struct op_result){ .status = OP_OK,
                            .renew.items = &(enum renew_result){ RENEW_ELSEWHERE },
                            .renew.count = 1 });
    fixture_renews(&e, RENEW_OK); /* it is asked once more */
    fixture_pass(&e, 1000);
    ck_assert_str_eq(e.notices, "granted:job expired:job");
}

START_TEST(a_kept_place_whose_request_went_on_elsewhere_undoes_nothing_H4)
{
    struct lock_terms req = { .id = ID_A };

    fixture_lock(&e, 1, "job", req);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    engine_on_conn_closed(e.engine, 1);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ELSEWHERE });
    fixture_pass(&e, 10000);
    fixture_no_op(&e);
}

START_TEST(a_kept_grant_that_nobody_fetches_goes_back)
{
    uint64_t grant =
        fixture_grant(&e, 1, "job", (struct lock_terms){ .id = ID_A }, 100);

    engine_on_undelivered(e.engine, 1, grant);
    engine_on_conn_closed(e.engine, 1);
    fixture_pass(&e, 2000);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.target_field, "latchd:id:aaaaaaaaaaaaaaaa");
}

START_TEST(a_hold_in_its_grace_is_looked_at_too_but_not_prolonged)
{
    (void)fixture_grant(&e, 1, "job", FOREVER, 100);
    engine_on_conn_closed(e.engine, 1);
    engine_on_clock_jump(e.engine);
    fixture_collect(&e);
    fixture_take_op(&e, OP_RENEW, &op);
    ck_assert_uint_eq(op.items[0].lease_ms, 1);
    ck_assert(!op.items[0].exact);
}

/* --- a RENEW that crosses the end of grace ---------------------------------------- */

static void leave_and_come_back(void)
{
    (void)fixture_grant(&e, 1, "job",
                        (struct lock_terms){ .has = OPT_GRACE, .grace_ms = 2000 }, 100);
    engine_on_conn_closed(e.engine, 1);
    fixture_collect(&e);
    fixture_renews(&e, RENEW_OK); /* cut to grace */
    fixture_pass(&e, 1990);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 100 });
    fixture_take_op(&e, OP_ATTACH, &op);
    fixture_pass(&e, 20);
    fixture_no_op(&e); /* who came in time is not to find it released */
}

START_TEST(a_renew_in_time_keeps_the_hold_though_its_answer_comes_after_grace)
{
    leave_and_come_back();
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .token = 100,
                                       .ttl_ms = 30000,
                                       .attach.field = SPAN("latchd:100") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_INT).value, 29980);
    fixture_pass(&e, 3000);
    fixture_no_op(&e);
    ck_assert_str_eq(e.notices, "granted:job");
}

START_TEST(grace_begins_anew_when_that_renew_is_given_up)
{
    leave_and_come_back();
    engine_on_conn_closed(e.engine, 2);
    fixture_collect(&e);
    fixture_pass(&e, 900);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_UNKNOWN });
    while (e.op_count > 0 && e.ops[0].op.kind == OP_RENEW) {
        fixture_renews(&e, RENEW_OK);
    }
    fixture_pass(&e, 1100);
    fixture_gives_back(&e, "job");
    ck_assert_str_eq(e.notices, "granted:job released:job");
}
