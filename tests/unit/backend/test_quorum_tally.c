/* The sum of the votes on a hold, and the work that is left afterwards. */
#include "support/runner.h"
#include "unit/backend/quorum_fake.h"

START_TEST(a_release_goes_on_where_it_was_not_answered)
{
    struct coordinator_stats stats;

    bt_begin(3);
    coordinator_node_down(bt.ballot, 2);
    bt_release(TARGET_FIELD);
    bt_obey(0);
    bt_obey(1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert(bt.result.release.freed);
    ck_assert(!bt_is_asked(2));
    coordinator_node_up(bt.ballot, 2, true, OLD);
    bt_ck_asked(2, OP_RELEASE);
    /* It may have it under the token of an earlier try. */
    ck_assert_uint_eq(bt.sent[bt_open_at(2)].op.release.target.token, 0);
    bt_answer(2, (struct op_result){ .status = OP_NOTHELD });
    coordinator_stats(bt.ballot, &stats);
    ck_assert_uint_eq(stats.deferred_ops, 0);
    bt_end();
}

START_TEST(a_vague_release_does_not)
{
    bt_begin(3);
    coordinator_node_down(bt.ballot, 2);
    bt_release(TARGET_OWNER);
    bt_obey(0);
    bt_obey(1);
    coordinator_node_up(bt.ballot, 2, true, OLD);
    ck_assert(!bt_is_asked(2));
    bt_end();
}

/* Three answers to a release, and what they come to. */
static const struct {
    enum op_status votes[3];
    enum op_status result;
    bool was_held;
} RELEASES[] = {
    { { OP_OK, OP_NOTHELD, OP_OK }, OP_OK, false },
    { { OP_NOTHELD, OP_OK, OP_NOTHELD }, OP_NOTHELD, false },
    { { OP_ENDED, OP_NOTHELD, OP_NOTHELD }, OP_ENDED, false },
    { { OP_OK, OP_NOTHELD, OP_UNKNOWN }, OP_OK, false },
    { { OP_ELSEWHERE, OP_NOTHELD, OP_UNKNOWN }, OP_ELSEWHERE, false },
    { { OP_OK, OP_UNKNOWN, OP_UNKNOWN }, OP_UNKNOWN, false },
    { { OP_OK, OP_LATE, OP_LATE }, OP_LATE, false },
    { { OP_OK, OP_ERROR, OP_ERROR }, OP_ERROR, false },
    { { OP_NOTHELD, OP_OK, OP_NOTHELD }, OP_OK, true },
    { { OP_NOTHELD, OP_NOTHELD, OP_NOTHELD }, OP_NOTHELD, true },
    { { OP_NOTHELD, OP_UNKNOWN, OP_NOTHELD }, OP_NOTHELD, true },
};

START_TEST(votes_on_a_release, TEST_ROWS(RELEASES))
{
    bt_begin(3);
    bt.holds = RELEASES[_i].was_held;
    bt_release(TARGET_FIELD);
    for (unsigned i = 0; i < 3; i++) {
        bt_answer(i, (struct op_result){ .status = RELEASES[_i].votes[i] });
    }
    bt_pass(200);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, RELEASES[_i].result);
    bt_end();
}

/* `votes`: -1: it does not answer. */
static const struct {
    int votes[3];
    enum renew_result result;
    bool heals;
} RENEWALS[] = {
    { { RENEW_OK, RENEW_OK, RENEW_OK }, RENEW_OK, false },
    { { RENEW_OK, RENEW_OK, RENEW_GONE }, RENEW_OK, true },
    { { RENEW_OK, RENEW_OK, RENEW_ENDED }, RENEW_OK, false },
    { { RENEW_OK, RENEW_GONE, RENEW_GONE }, RENEW_GONE, false },
    { { RENEW_OK, RENEW_ENDED, RENEW_GONE }, RENEW_ENDED, false },
    { { RENEW_ELSEWHERE, RENEW_ELSEWHERE, -1 }, RENEW_ELSEWHERE, false },
    { { RENEW_OK, RENEW_GONE, -1 }, RENEW_UNKNOWN, true },
    { { RENEW_OK, RENEW_ENDED, -1 }, RENEW_UNKNOWN, false },
};

START_TEST(votes_on_a_renewal, TEST_ROWS(RENEWALS))
{
    struct renew_item item = {
        .name = SPAN("job"), .field = BT_CLAIM.field, .lease_ms = LEASE_MS, .token = 50
    };
    struct op op = {
        .kind = OP_RENEW, .id = 9, .renew.items = &item, .renew.count = 1
    };

    bt_begin(3);
    coordinator_submit(bt.ballot, &op);
    for (unsigned i = 0; i < 3; i++) {
        enum renew_result vote = (enum renew_result)RENEWALS[_i].votes[i];

        if (RENEWALS[_i].votes[i] >= 0) {
            bt_answer(i, (struct op_result){
                             .status = OP_OK, .renew.items = &vote, .renew.count = 1 });
        }
    }
    bt_pass(2 * TIMEOUT_MS);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert_int_eq(bt.item, RENEWALS[_i].result);
    ck_assert_int_eq(bt.sent[bt.count - 1].op.kind,
                     RENEWALS[_i].heals ? OP_RESTORE : OP_RENEW);
    bt_end();
}

static void attach(void)
{
    coordinator_submit(
        bt.ballot, &(struct op){ .kind = OP_ATTACH,
                                 .id = 11,
                                 .name = SPAN("job"),
                                 .attach.target = { .kind = TARGET_TOKEN, .token = 5 },
                                 .attach.lease_ms = LEASE_MS,
                                 .attach.exact = true });
}

static void has_it(unsigned node)
{
    bt_answer(node, (struct op_result){ .status = OP_OK,
                                        .attach.field = BT_CLAIM.field,
                                        .token = 5,
                                        .ttl_ms = 100 + node });
}

START_TEST(who_comes_back_is_looked_for_before_the_lease_is_raised)
{
    bt_begin(3);
    attach();
    ck_assert_uint_lt(bt.sent[bt_open_at(0)].op.attach.lease_ms, LEASE_MS);
    ck_assert(!bt.sent[bt_open_at(0)].op.attach.exact);
    has_it(0);
    has_it(2);
    ck_assert_uint_eq(bt.results, 0);
    bt_answer(1, (struct op_result){ .status = OP_NOTHELD });
    ck_assert_uint_eq(bt.sent[bt_open_at(0)].op.attach.lease_ms, LEASE_MS);
    ck_assert(bt.sent[bt_open_at(0)].op.attach.exact);
    has_it(2);
    has_it(0);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert_int_eq(bt.result.ttl_ms, 100);
    bt_end();
}

START_TEST(what_a_minority_has_is_not_kept_alive)
{
    bt_begin(3);
    coordinator_node_down(bt.ballot, 2);
    attach();
    has_it(0);
    bt_answer(1, (struct op_result){ .status = OP_NOTHELD });
    bt_ck_asked(1, OP_RESTORE); /* unless it knows better */
    ck_assert_uint_eq(bt.results, 0);
    bt_pass(200);
    ck_assert_int_eq(bt.result.status, OP_UNKNOWN);
    ck_assert(!bt_is_asked(0));
    bt_end();
}

START_TEST(what_was_released_is_not_healed)
{
    struct renew_item item = { .name = SPAN("job"),
                               .field = BT_CLAIM.field,
                               .token = 50 };
    struct op op = {
        .kind = OP_RENEW, .id = 9, .renew.items = &item, .renew.count = 1
    };
    enum renew_result votes[] = { RENEW_OK, RENEW_OK, RENEW_GONE };

    bt_begin(3);
    coordinator_submit(bt.ballot, &op);
    bt_release(TARGET_FIELD);
    for (unsigned i = 0; i < 3; i++) {
        bt_answer(i, (struct op_result){
                         .status = OP_OK, .renew.items = &votes[i], .renew.count = 1 });
    }
    ck_assert_int_eq(bt.sent[bt.count - 1].op.kind, OP_RELEASE);
    bt_end();
}

START_TEST(a_look_tells_what_a_majority_says)
{
    struct op_field stale = { .owner = SPAN("stale") }, held = { .owner = SPAN("o") };
    struct op op = { .kind = OP_INSPECT, .id = 10, .name = SPAN("job") };

    bt_begin(3);
    coordinator_submit(bt.ballot, &op);
    bt_answer(0, (struct op_result){ .status = OP_OK,
                                     .inspect.fields = &stale,
                                     .inspect.field_count = 1,
                                     .ttl_ms = 5 });
    bt_answer(1, (struct op_result){ .status = OP_OK,
                                     .inspect.fields = &held,
                                     .inspect.field_count = 1,
                                     .ttl_ms = 900 });
    ck_assert_uint_eq(bt.results, 0);
    bt_answer(2, (struct op_result){ .status = OP_OK,
                                     .inspect.fields = &held,
                                     .inspect.field_count = 1,
                                     .ttl_ms = 800 });
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_uint_eq(bt.result.inspect.field_count, 1);
    ck_assert_int_eq(bt.result.ttl_ms, 800);
    bt_end();
}

/* Nodes 1 and 2 have just been started: they have no vote, and find it free. */
START_TEST(what_too_few_may_grant_is_withheld_unless_somebody_holds_it, 2)
{
    struct op look = { .kind = OP_INSPECT, .id = 10, .name = SPAN("job") };

    bt_begin(3);
    for (unsigned i = 1; i < 3; i++) {
        coordinator_node_down(bt.ballot, i);
        coordinator_node_up(bt.ballot, i, false, 0);
    }
    bt_acquire();
    bt_busy(1, TTL_ABSENT);
    bt_busy(2, TTL_ABSENT);
    ck_assert_uint_eq(bt.results, 0);
    bt_busy(0, _i == 0 ? -2 : 900);
    bt_pass(200);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_BUSY);
    ck_assert_int_eq(bt.result.withheld, _i == 0);
    if (_i == 0) {
        ck_assert_int_gt(bt.result.ttl_ms, QUARANTINE_MS - 500);
    }
    coordinator_submit(bt.ballot, &look);
    for (unsigned i = 0; i < 3; i++) {
        bt_answer(i, (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT });
    }
    ck_assert_uint_eq(bt.results, 2);
    ck_assert(bt.result.withheld);
    bt_pass(QUARANTINE_MS);
    coordinator_submit(bt.ballot, &look);
    for (unsigned i = 1; i < 3; i++) {
        bt_answer(i, (struct op_result){ .status = OP_OK, .ttl_ms = TTL_ABSENT });
    }
    ck_assert(!bt.result.withheld);
    bt_end();
}

/* The other entries of that owner are there, perhaps under an older token. */
START_TEST(an_entry_is_put_back_beside_others)
{
    struct renew_item item = { .name = SPAN("job"),
                               .owner_kind = OWNER_NAMED,
                               .field = SPAN("o"),
                               .entry = SPAN("id:1"),
                               .lease_ms = LEASE_MS,
                               .token = 50 };
    struct op op = {
        .kind = OP_RENEW, .id = 9, .renew.items = &item, .renew.count = 1
    };
    enum renew_result votes[] = { RENEW_OK, RENEW_OK, RENEW_GONE };

    bt_begin(3);
    coordinator_submit(bt.ballot, &op);
    for (unsigned i = 0; i < 3; i++) {
        bt_answer(i, (struct op_result){
                         .status = OP_OK, .renew.items = &votes[i], .renew.count = 1 });
    }
    bt_ck_asked(2, OP_RESTORE);
    ck_assert(bt.sent[bt_open_at(2)].op.restore.raise_token);
    bt_end();
}

START_TEST(other_ops_are_refused)
{
    bt_begin(3);
    coordinator_submit(bt.ballot,
                       &(struct op){ .kind = OP_QUEUE, .name = SPAN("job") });
    bt_pass(10);
    ck_assert_int_eq(bt.result.status, OP_ERROR);
    bt_end();
}
