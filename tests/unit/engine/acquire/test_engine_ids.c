/* The engine: requests with an ID, sent again, kept, cancelled and over. */
#include "unit/engine/engine_cases.h"

#include "latchd/protocol.h"

#define LONGEST SPAN("0123456789012345678901234567890123456789012345678901234567890123")

TEST_GROUP(.setup = start_engine, .teardown = stop_engine);

START_TEST(an_id_that_is_not_known_here_is_looked_for_at_redis)
{
    fixture_unlock(&e, 1, "job", (struct hold_req){ .id = LONGEST });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_int_eq(op.op.release.target.kind, TARGET_ID);
    ck_assert_uint_eq(op.op.release.target.field.len, 10 + 64);
    ck_assert_uint_eq(op.op.release.target.entry.len, 3 + 64);
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);

    fixture_renew(&e, 1, "job", (struct hold_req){ .id = UUID });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_str_eq(op.target_field, "latchd:id:01234567-89ab-cdef-0123-456789abcdef");
    ck_assert_str_eq(op.target_entry, "id:01234567-89ab-cdef-0123-456789abcdef");
    fixture_answer(&e, &op, NOTHELD);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_is_empty(&e);
}

/* GOAWAY says that holds stay, and the client may go on where it has it. */
START_TEST(what_a_daemon_that_stops_finds_of_another_ones_stays, 4)
{
    bool attached = _i % 2 == 1;
    enum op_status status = _i < 2 ? OP_OK : OP_NOREPLICAS;

    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    engine_stop(e.engine);
    fixture_collect(&e);
    ck_assert_int_eq(fixture_hears(&e, 1, REPLY_ERROR).error, LOCK_GOAWAY);
    fixture_answer(
        &e, &op,
        (struct op_result){
            .status = status, .token = 7, .count = 1, .attached = attached });
    if (!attached) {
        fixture_take_op(&e, OP_RELEASE, &op);
        fixture_answer(&e, &op, FREED);
    }
    fixture_no_op(&e);
    ck_assert(engine_stopped(e.engine));
}

/* Its client has gone on where it holds the lock. An op of before, whose result is not
 * known, may have been granted instead: then the hold is nobody's. */
START_TEST(what_is_found_of_another_ones_stays_when_its_asker_is_gone, 8)
{
    bool attached = (_i & 1) != 0, again = (_i & 2) != 0;
    enum op_status status = (_i & 4) != 0 ? OP_OK : OP_NOREPLICAS;

    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID, .has = OPT_KEEP });
    if (again) {
        fixture_gives(&e, OP_ACQUIRE, UNKNOWN);
    }
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(
        &e, &op,
        (struct op_result){
            .status = status, .token = 7, .count = 1, .attached = attached });
    fixture_pass(&e, 10);
    if (!attached || again) {
        fixture_gives(&e, OP_RELEASE, FREED);
    }
    fixture_is_empty(&e);
}

/* The first answer to the release is lost, and its waiter leaves: what the second one
 * finds, the first one handed over. */
START_TEST(what_a_repeated_release_handed_over_is_undone_when_its_waiter_is_gone)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID, .has = OPT_KEEP });
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_gives(&e, OP_RELEASE, UNKNOWN);
    fixture_pass(&e, 10);
    fixture_take_op(&e, OP_RELEASE, &op);
    fixture_close(&e, 2);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK,
                                       .moved = true,
                                       .token = 101,
                                       .count = 0,
                                       .attached = true });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 10);
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_no_op(&e);
}

/* A lock library's value is found again like an ID; and some servers of a quorum may
 * have granted the ID before, without a majority. */
START_TEST(what_only_this_daemon_asks_for_is_undone_when_its_asker_is_gone, 2)
{
    struct lock_terms asks[] = { { 0 }, { .id = UUID, .has = OPT_KEEP } };

    if (_i == 1) {
        fixture_replace(&e, (struct engine_setup){ .quorum = true });
        engine_on_store_up(e.engine, true);
        fixture_collect(&e);
    }
    fixture_lock(&e, 1, "job", asks[_i]);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op,
                   (struct op_result){
                       .status = OP_OK, .token = 7, .count = 1, .attached = true });
    fixture_gives(&e, OP_RELEASE, FREED);
    fixture_is_empty(&e);
}

START_TEST(what_is_found_of_another_ones_too_late_stays_as_well)
{
    struct op_result found = {
        .status = OP_OK, .token = 7, .count = 1, .attached = true
    };

    fixture_lock(&e, 1, "job",
                 (struct lock_terms){
                     .id = UUID, .lease_ms = 1000, .has = OPT_LEASE | OPT_KEEP });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_pass(&e, 1000);
    fixture_answer(&e, &op, found);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, found);
    fixture_pass(&e, 10);
    fixture_is_empty(&e);
}

/* Nothing here tells whose token it is before Redis has answered. */
START_TEST(what_may_be_undone_waits_for_who_comes_back_with_its_token)
{
    struct seen_op attach;

    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID, .has = OPT_KEEP });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_renew(&e, 2, "job", (struct hold_req){ .token = 7 });
    fixture_take_op(&e, OP_ATTACH, &attach);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_no_op(&e);
    fixture_answer(&e, &attach,
                   (struct op_result){ .status = OP_OK,
                                       .token = 7,
                                       .ttl_ms = 30000,
                                       .attach = { .field = UUID_FIELD } });
    (void)fixture_hears(&e, 2, REPLY_INT);
    fixture_no_op(&e);
}

START_TEST(a_late_answer_without_an_earlier_one_leaves_nothing_to_undo)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID, .has = OPT_KEEP });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_LATE });
    fixture_pass(&e, 10);
    fixture_is_empty(&e);
}

START_TEST(a_wait_that_ends_in_doubt_gives_back_what_it_may_have_got)
{
    struct lock_terms req = { .id = UUID, .has = OPT_KEEP };

    fixture_lock(&e, 1, "job", req);
    fixture_gives(&e, OP_ACQUIRE, UNKNOWN);
    fixture_gives(&e, OP_ACQUIRE, (struct op_result){ .status = OP_LATE });
    fixture_pass(&e, 10);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_ERROR });
    fixture_close(&e, 1);
    fixture_pass(&e, 200);
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    ck_assert_str_eq(op.target_field, "latchd:id:01234567-89ab-cdef-0123-456789abcdef");
    fixture_answer(&e, &op, NOTHELD);
    fixture_is_empty(&e);
}

START_TEST(a_late_answer_does_not_take_the_doubt_about_an_earlier_one_away)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ 0 });
    fixture_gives(&e, OP_ACQUIRE, UNKNOWN);
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_close(&e, 1);
    fixture_answer(&e, &op, (struct op_result){ .status = OP_LATE });
    fixture_pass(&e, 10);
    fixture_gives(&e, OP_RELEASE, NOTHELD);
    fixture_is_empty(&e);
}

START_TEST(a_cancelled_wait_hears_null_and_its_grant_is_undone)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("job"), SPAN_NONE, UUID), 1);
    fixture_collect(&e);
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 5, .count = 1 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(op.op.release.if_keeper);
    fixture_answer(&e, &op, FREED);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_NOTHELD);
    fixture_pass(&e, LATCHD_OVER_MS);
    fixture_is_empty(&e);
}

START_TEST(cancel_gives_back_a_kept_grant)
{
    uint64_t grant =
        fixture_grant(&e, 1, "job", (struct lock_terms){ .id = UUID }, 100);

    engine_on_undelivered(e.engine, 1, grant);
    fixture_close(&e, 1);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("job"), SPAN_NONE, UUID), 1);
    fixture_collect(&e);
    fixture_gives(&e, OP_RELEASE, FREED);
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("job"), SPAN_NONE, UUID), 0);
    fixture_pass(&e, LATCHD_OVER_MS);
    fixture_is_empty(&e);
}

START_TEST(cancel_ends_all_waits_of_an_owner)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .owner = SPAN("o") });
    fixture_lock(&e, 3, "job", (struct lock_terms){ 0 });
    fixture_lock(&e, 4, "job", (struct lock_terms){ .owner = SPAN("o") });
    ck_assert_uint_eq(fixture_cancel(&e, SPAN("job"), SPAN("o"), SPAN_NONE), 2);
    fixture_collect(&e);
    (void)fixture_hears(&e, 2, REPLY_NULL);
    (void)fixture_hears(&e, 4, REPLY_NULL);
    fixture_hears_nothing(&e);
}

START_TEST(a_poll_keeps_its_place)
{
    struct lock_terms poll = { .id = UUID, .has = OPT_WAIT };

    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    for (int i = 0; i < 5; i++) {
        fixture_lock(&e, 2, "job", poll);
        fixture_gives(&e, OP_ACQUIRE, BUSY);
        (void)fixture_hears(&e, 2, REPLY_NULL);
        fixture_close(&e, 2);
        fixture_pass(&e, 500);
    }
    fixture_lock(&e, 3, "job", (struct lock_terms){ 0 });
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert_str_eq(op.field, "latchd:id:01234567-89ab-cdef-0123-456789abcdef");
    ck_assert_uint_lt(op.op.release.next.lease_ms, 4000); /* for KEEP only */
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .moved = true, .token = 101 });
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_lock(&e, 4, "job", poll);
    fixture_gives(&e, OP_ATTACH,
                  (struct op_result){ .status = OP_OK,
                                      .token = 101,
                                      .ttl_ms = 30000,
                                      .attach.field = UUID_FIELD });
    ck_assert_int_eq(fixture_hears(&e, 4, REPLY_TOKEN).value, 101);
}

START_TEST(a_place_that_nobody_asks_for_again_is_given_up)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ 0 }, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    fixture_close(&e, 2);
    fixture_pass(&e, LATCHD_KEEP_DEFAULT_MS);
    fixture_unlock(&e, 1, "job", (struct hold_req){ 0 });
    fixture_take_op(&e, OP_RELEASE, &op);
    ck_assert(!op.op.release.has_next);
    fixture_answer(&e, &op, FREED);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_pass(&e, 5000);
    fixture_is_empty(&e);
}

START_TEST(the_newest_call_of_a_waiting_id_takes_the_wait_over)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    (void)fixture_hears(&e, 1, REPLY_NULL);
    fixture_answer(&e, &op,
                   (struct op_result){ .status = OP_OK, .token = 100, .count = 1 });
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
    fixture_hears_nothing(&e);
}

START_TEST(an_id_with_another_owner_is_an_error)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID, .owner = SPAN("o") });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
}

START_TEST(an_id_with_another_kind_is_an_error)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .id = UUID });
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .id = UUID, .lock_kind = KIND_FAIR });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
}

START_TEST(an_id_that_was_found_may_be_plain_or_fair)
{
    struct op_result attached = {
        .status = OP_OK, .token = 100, .ttl_ms = 30000, .attach.field = UUID_FIELD
    };

    fixture_renew(&e, 1, "job", (struct hold_req){ .id = UUID });
    fixture_gives(&e, OP_ATTACH, attached);
    (void)fixture_hears(&e, 1, REPLY_INT);
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .id = UUID, .lock_kind = KIND_READ });
    ck_assert_int_eq(fixture_hears(&e, 2, REPLY_ERROR).error, LOCK_ERR);
    fixture_lock(&e, 2, "job",
                 (struct lock_terms){ .id = UUID, .lock_kind = KIND_FAIR });
    fixture_gives(&e, OP_ATTACH, attached);
    (void)fixture_hears(&e, 2, REPLY_TOKEN);
}

START_TEST(a_claim_names_its_kind_and_its_place)
{
    fixture_lock(&e, 1, "job", (struct lock_terms){ .lock_kind = KIND_FAIR });
    fixture_take_op(&e, OP_ACQUIRE, &op);
    ck_assert_int_eq(op.op.acquire.claim.lock_kind, KIND_FAIR);
    ck_assert_str_eq(op.member, "latchd:00000000000000aa:1");
    ck_assert_str_eq(op.entry, "00000000000000aa:1");
}

/* So that the later of two LOCKs at two daemons prevails, not the later op. */
START_TEST(a_lock_that_is_sent_again_says_when_even_after_an_outage)
{
    (void)fixture_grant(&e, 1, "job", (struct lock_terms){ .id = UUID }, 100);
    fixture_lock(&e, 2, "job", (struct lock_terms){ .id = UUID });
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_uint_eq(op.op.attach.asked_ago_ms, 0);
    engine_on_store_down(e.engine);
    fixture_answer(&e, &op, UNKNOWN);
    fixture_no_op(&e);
    fixture_pass(&e, 2500);
    engine_on_store_up(e.engine, true);
    fixture_collect(&e);
    fixture_take_op(&e, OP_ATTACH, &op);
    ck_assert_uint_eq(op.op.attach.asked_ago_ms, 1500);
}
