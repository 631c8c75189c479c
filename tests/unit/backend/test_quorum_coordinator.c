/* The grants of a quorum, and the undoing of others. */
#include "support/runner.h"
#include "unit/backend/quorum_fake.h"

START_TEST(a_majority_grants_and_nobody_is_waited_for)
{
    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    ck_assert_uint_eq(bt.results, 0);
    bt_obey(2);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert_uint_eq(bt.result.id, 7);
    ck_assert_uint_eq(bt.result.token, bt.sent[0].op.acquire.propose);
    bt_obey(1);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert(!bt_is_asked(0) && !bt_is_asked(1) && !bt_is_asked(2));
    bt_end();
}

START_TEST(anonymous_claims_are_ids_to_the_nodes)
{
    bt_begin(3);
    bt_acquire();
    ck_assert_int_eq(bt.sent[0].op.acquire.claim.owner_kind, OWNER_ID);
    ck_assert_str_eq(bt.sent[0].field, "latchd:0123456789abcdef:1");
    ck_assert_uint_ge(bt.sent[0].op.acquire.propose, 5000000);
    ck_assert_uint_eq(bt.sent[0].op.acquire.propose, bt.sent[2].op.acquire.propose);
    bt_end();
}

START_TEST(what_a_library_holds_as_a_string_is_told_as_such, 2)
{
    struct op_result string = { .status = OP_BUSY, .ttl_ms = 300, .foreign = _i == 0 };

    bt_begin(3);
    bt_acquire();
    bt_busy(0, 300);
    bt_answer(1, string);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_BUSY);
    ck_assert_int_eq(bt.result.foreign, string.foreign);
    bt_end();
}

START_TEST(a_minority_is_undone_and_who_was_late_as_well)
{
    bt_begin(5);
    bt_acquire();
    bt_busy(0, 300);
    bt_busy(1, 100);
    ck_assert_uint_eq(bt.results, 0);
    bt_busy(2, 200);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_BUSY);
    ck_assert_int_eq(bt.result.ttl_ms, 300); /* 3 and 4 have not said anything */
    bt_obey(3);
    bt_ck_asked(3, OP_RELEASE);
    ck_assert(bt.sent[bt_open_at(3)].op.release.if_keeper);
    bt_busy(4, 50);
    ck_assert(!bt_is_asked(4));
    bt_obey(3);
    ck_assert(!bt_is_asked(3));
    bt_end();
}

START_TEST(an_undo_waits_for_the_node_to_come_back)
{
    struct coordinator_stats stats;

    bt_begin(3);
    bt_acquire();
    coordinator_node_down(bt.ballot, 2);
    bt_busy(0, 5000);
    bt_busy(1, 5000);
    ck_assert_uint_eq(bt.results, 1);
    coordinator_stats(bt.ballot, &stats);
    ck_assert_uint_eq(stats.deferred_ops, 1);
    coordinator_node_up(bt.ballot, 2, true, OLD);
    bt_answer(2, (struct op_result){ .status = OP_UNKNOWN });
    bt_ck_asked(2, OP_RELEASE);
    bt_answer(2, (struct op_result){ .status = OP_LATE });
    bt_pass(50);
    bt_ck_asked(2, OP_RELEASE);
    bt_obey(2);
    coordinator_stats(bt.ballot, &stats);
    ck_assert_uint_eq(stats.deferred_ops, 0);
    bt_end();
}

START_TEST(an_undo_is_forgotten_with_the_lease)
{
    struct coordinator_stats stats;

    bt_begin(3);
    bt_acquire();
    coordinator_node_down(bt.ballot, 2);
    bt_busy(0, 5000);
    bt_busy(1, 5000);
    bt_pass(LEASE_MS + 2000);
    coordinator_stats(bt.ballot, &stats);
    ck_assert_uint_eq(stats.deferred_ops, 0);
    bt_end();
}

START_TEST(the_same_claim_again_is_not_undone)
{
    bt_begin(3);
    bt_acquire();
    coordinator_node_down(bt.ballot, 2);
    bt_busy(0, 10);
    bt_busy(1, 10);
    bt_acquire();
    bt_obey(0);
    bt_obey(1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    coordinator_node_up(bt.ballot, 2, true, OLD);
    bt_answer(2, (struct op_result){ .status = OP_UNKNOWN });
    ck_assert(!bt_is_asked(2));
    bt_end();
}

START_TEST(a_higher_token_elsewhere_is_passed)
{
    uint64_t high = 9000000;

    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    bt_answer(1, (struct op_result){ .status = OP_BEHIND, .token = high });
    bt_answer(2, (struct op_result){ .status = OP_BEHIND, .token = high + 5 });
    ck_assert_uint_eq(bt.results, 0);
    ck_assert_uint_gt(bt.sent[bt_open_at(0)].op.acquire.propose, high + 5);
    ck_assert(bt.sent[bt_open_at(0)].op.acquire.raise_token);
    bt_obey(1);
    bt_obey(0);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert_uint_gt(bt.result.token, high + 5);
    bt_end();
}

START_TEST(tokens_that_differ_are_levelled)
{
    bt_begin(3);
    bt_acquire();
    bt_answer(0, (struct op_result){ .status = OP_OK, .token = 100, .attached = true });
    bt_obey(1);
    ck_assert_uint_eq(bt.results, 0);
    ck_assert(bt.sent[bt.count - 1].op.acquire.raise_token);
    bt_answer(2, (struct op_result){ .status = OP_LATE }); /* of the first asking */
    bt_obey(0);
    bt_obey(1);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_uint_gt(bt.result.token, 100);
    bt_end();
}

static void acquire_id(void)
{
    coordinator_submit(bt.ballot,
                       &(struct op){ .kind = OP_ACQUIRE,
                                     .id = 7,
                                     .name = SPAN("job"),
                                     .acquire.claim = { .owner_kind = OWNER_ID,
                                                        .field = SPAN("latchd:id:r"),
                                                        .entry = SPAN("id:r"),
                                                        .lease_ms = LEASE_MS } });
}

/* It was granted through another daemon, before this one asked or in the same moment;
 * one of the nodes that did it has died. */
START_TEST(an_id_that_is_asked_again_keeps_its_token, 2)
{
    uint64_t token = _i == 0 ? 100 : 9000000;

    bt_begin(3);
    acquire_id();
    ck_assert((bt.sent[bt_open_at(0)].op.acquire.propose > token) == (_i == 0));
    bt_answer(0,
              (struct op_result){ .status = OP_OK, .token = token, .elsewhere = true });
    bt_obey(1);
    coordinator_node_down(bt.ballot, 2);
    ck_assert_uint_eq(bt.results, 0);
    for (unsigned node = 0; node < 2; node++) {
        const struct op_acquire *asked = &bt.sent[bt_open_at(node)].op.acquire;

        ck_assert(asked->raise_token);
        ck_assert_uint_eq(asked->propose, token);
        ck_assert(asked->leave_keeper == (node != 0));
    }
    bt_obey(0);
    bt_obey(1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    ck_assert_uint_eq(bt.result.token, token);
    bt_end();
}

/* An ID is asked for at three nodes, and the first one gives this token. */
static void acquire_id_with(uint64_t token)
{
    bt_begin(3);
    acquire_id();
    bt_answer(0, (struct op_result){ .status = OP_OK, .token = token });
}

START_TEST(a_token_that_a_node_is_ahead_of_is_not_kept)
{
    acquire_id_with(100);
    bt_obey(1);
    coordinator_node_down(bt.ballot, 2);
    bt_obey(0);
    bt_answer(1, (struct op_result){ .status = OP_BEHIND, .token = 150 });
    ck_assert_uint_eq(bt.results, 0);
    ck_assert_uint_gt(bt.sent[bt_open_at(0)].op.acquire.propose, 150);
    bt_obey(0);
    bt_obey(1);
    ck_assert_uint_gt(bt.result.token, 150);
    bt_end();
}

/* A node still has what an earlier call for the same ID could not undo there. */
START_TEST(of_several_tokens_the_highest_is_kept)
{
    acquire_id_with(100);
    bt_answer(1, (struct op_result){ .status = OP_OK, .token = 200 });
    coordinator_node_down(bt.ballot, 2);
    ck_assert_uint_eq(bt.sent[bt_open_at(0)].op.acquire.propose, 200);
    bt_obey(0);
    bt_obey(1);
    ck_assert_uint_eq(bt.result.token, 200);
    bt_end();
}

START_TEST(split_votes_are_undone_and_tried_again_after_a_pause)
{
    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    bt_busy(1, 9000);
    bt_busy(2, 9000);
    ck_assert_uint_eq(bt.results, 0);
    bt_ck_asked(0, OP_RELEASE);
    bt_obey(0);
    bt_pass(100);
    bt_ck_asked(1, OP_ACQUIRE);
    bt_obey(0);
    bt_obey(1);
    ck_assert_int_eq(bt.result.status, OP_OK);
    bt_end();
}

START_TEST(split_votes_end_as_busy)
{
    bt_begin(3);
    bt_acquire();
    for (int i = 0; i < QUORUM_ROUNDS_MAX; i++) {
        ck_assert_uint_eq(bt.results, 0);
        bt_obey(0);
        bt_busy(1, 9000);
        bt_busy(2, 4000);
        bt_obey(0);
        bt_pass(100);
    }
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_BUSY);
    ck_assert_int_eq(bt.result.ttl_ms, 4000); /* with node 0 that makes two */
    bt_end();
}

/* The grant to another daemon for the same request. */
static const struct op_result THEIRS = {
    .status = OP_OK, .token = 40, .count = 1, .elsewhere = true
};
static const struct op_result TAKEN = {
    .status = OP_OK, .token = 40, .count = 1, .attached = true
};

START_TEST(what_another_daemon_was_granted_is_only_looked_at)
{
    bt_begin(3);
    bt_acquire();
    ck_assert(bt.sent[bt_open_at(0)].op.acquire.leave_keeper);
    bt_answer(0, THEIRS);
    bt_busy(1, 100);
    bt_busy(2, 100);
    ck_assert(!bt_is_asked(0));
    bt_pass(10); /* it is asked for again, as it may be about to have a majority */
    ck_assert(bt.sent[bt_open_at(0)].op.acquire.leave_keeper);
    bt_end();
}

START_TEST(what_a_majority_has_for_another_daemon_is_taken_over)
{
    bt_begin(3);
    bt_acquire();
    bt_answer(0, THEIRS);
    bt_answer(2, THEIRS);
    ck_assert_uint_eq(bt.results, 0);
    bt_obey(1);
    bt_answer(0, TAKEN);
    bt_answer(2, TAKEN);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_uint_eq(bt.result.token, 40);
    ck_assert(bt.result.attached);
    bt_end();
}

START_TEST(what_was_taken_over_is_not_undone)
{
    bt_begin(3);
    bt_acquire();
    bt_answer(0, THEIRS);
    bt_answer(2, THEIRS);
    bt_busy(1, 100);
    ck_assert(!bt.sent[bt_open_at(0)].op.acquire.leave_keeper);
    bt_answer(0, TAKEN);
    bt_busy(1, 100);
    bt_busy(2, 100); /* it ended there meanwhile */
    ck_assert(!bt_is_asked(0) && !bt_is_asked(1) && !bt_is_asked(2));
    bt_end();
}

START_TEST(what_ended_after_a_look_and_is_granted_then_is_undone)
{
    bt_begin(3);
    bt_acquire();
    bt_answer(0, THEIRS);
    bt_answer(2, THEIRS);
    bt_busy(1, 100);
    bt_obey(0);
    bt_busy(1, 100);
    bt_busy(2, 100);
    bt_ck_asked(0, OP_RELEASE);
    bt_end();
}

START_TEST(a_silent_minority_is_given_up_soon)
{
    bt_begin(3);
    bt_acquire(); /* so that round trips are known */
    bt_obey(0);
    bt_obey(1);
    bt_obey(2);
    bt_acquire();
    bt_obey(0);
    bt_busy(1, 700);
    ck_assert_uint_eq(bt.results, 1);
    bt_pass(60);
    bt_ck_asked(0, OP_RELEASE);
    bt_end();
}

START_TEST(a_silent_majority_is_given_up_at_the_timeout)
{
    bt_begin(3);
    bt_acquire();
    bt_obey(0);
    bt_pass(TIMEOUT_MS - 10);
    ck_assert_uint_eq(bt.results, 0);
    bt_pass(200);
    ck_assert_uint_eq(bt.results, 1);
    ck_assert_int_eq(bt.result.status, OP_LATE);
    bt_ck_asked(0, OP_RELEASE);
    bt_end();
}

START_TEST(who_is_down_is_not_asked)
{
    bt_begin(3);
    coordinator_node_down(bt.ballot, 1);
    ck_assert(coordinator_is_up(bt.ballot));
    bt_acquire();
    ck_assert(!bt_is_asked(1));
    bt_obey(0);
    bt_obey(2);
    ck_assert_int_eq(bt.result.status, OP_OK);
    coordinator_node_down(bt.ballot, 2);
    ck_assert(!coordinator_is_up(bt.ballot));
    bt_end();
}

START_TEST(who_came_back_empty_grants_nothing_new)
{
    bt_begin(3);
    coordinator_node_down(bt.ballot, 1);
    coordinator_node_up(bt.ballot, 1, false, 2000);
    ck_assert_uint_eq(coordinator_abstains(bt.ballot, 1), QUARANTINE_MS - 2000);
    bt_acquire();
    ck_assert(bt.sent[bt_open_at(1)].op.acquire.reenter_only);
    ck_assert(!bt.sent[bt_open_at(0)].op.acquire.reenter_only);
    bt_busy(1, TTL_ABSENT);
    bt_busy(0, 50000);
    ck_assert_int_eq(bt.result.status, OP_BUSY);
    ck_assert_int_eq(bt.result.ttl_ms, 50000);
    bt_busy(2, 100);
    bt_pass(QUARANTINE_MS);
    bt_acquire();
    ck_assert(!bt.sent[bt_open_at(1)].op.acquire.reenter_only);
    bt_end();
}
