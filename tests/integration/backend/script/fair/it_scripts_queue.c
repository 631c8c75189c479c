/* The fair queue itself: what is put in and taken out, and what the scores are; with
 * Redisson's fair locks in the same queue. */
#include "fair_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { REDISSON_WAIT = REDISSON_FAIR_WAIT, HOUR = 3600000 };

/* --- scores ----------------------------------------------------------------------- */

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(scores_hold_a_distance)
{
    struct redisson other = fair_redisson(R2);

    (void)fair_held_by_redisson();
    fair_wait(A1);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_wait(B1);
    fair_expect_due(B1, LEASE + FAIR_WAIT); /* nothing added to latchd's own */
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_expect_due(R2, LEASE + FAIR_WAIT + REDISSON_WAIT);
    fair_wait(A2);
    fair_expect_due(A2, LEASE + 2 * FAIR_WAIT + REDISSON_WAIT);
    fair_wait(B2);
    fair_expect_due(B2, LEASE + 2 * FAIR_WAIT + REDISSON_WAIT);
}

/* The lock is held as a string, by a library that took it straight at this Redis. */
START_TEST(a_lock_that_is_a_string_is_queued_for_in_order)
{
    redis_expect(peer_redis(), "OK", "SET n v PX %d", LEASE);
    ck_assert(fair_ask(A1, true)->foreign);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_wait(B1);
    ck_assert_int_eq(fair_queue(INSTANCE_A, true, 1, A1, A2, NULL)->status, OP_OK);
    fair_expect(A1 " " B1 " " A2);
    redis_expect(peer_redis(), "v", "GET n");
    (void)redis_ask_int(peer_redis(), "DEL n");
    fair_wait(B1);
    fair_take(A1);
    fair_expect(B1 " " A2);
}

START_TEST(a_refresh_gives_what_the_list_before_one_needs)
{
    struct redisson first = fair_redisson(R2);
    struct redisson third = fair_redisson("eeeeeeee-0000-0000-0000-000000000005:1");
    int64_t front = REDISSON_WAIT + FAIR_WAIT;

    (void)fair_held_by_redisson();
    (void)redisson_fair_lock(&first, "n", LEASE, REDISSON_WAIT);
    fair_wait(A1);
    fair_expect_due(A1, LEASE + front);
    fair_pass(6000);
    fair_wait(B1);
    fair_expect_due(B1, LEASE + front); /* as A1's would be now */
    (void)redisson_fair_lock(&third, "n", LEASE, HOUR);
    fair_wait(A2);
    fair_expect_due(A2, LEASE + front + HOUR + FAIR_WAIT);
    for (int64_t left = LEASE - 6000 - 4000; left > 0; left -= 4000) {
        fair_pass(4000);
        ck_assert_int_eq(fair_queue(INSTANCE_A, true, 2, A1, A2, A3, NULL)->status,
                         OP_OK);
        ck_assert_int_eq(fair_queue(INSTANCE_B, true, 1, B1, NULL)->status, OP_OK);
        fair_expect_due(A1, left + front);
        fair_expect_due(B1, left + front);
        fair_expect_due(A2, left + front + HOUR + FAIR_WAIT);
        fair_expect_due(A3, left + front + HOUR + FAIR_WAIT);
    }
}

START_TEST(the_lease_of_an_earlier_holder_does_not_stay_in_the_scores)
{
    struct op op = op_acquire("n", claim_anonymous("q:1"));
    struct op end = op_release("n", TARGET_REQUEST, NULL, "q:1");

    op.acquire.claim.lease_ms = HOUR;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    fair_wait(B1);
    fair_wait(A1);
    fair_wait(A2);
    fair_expect_due(A2, HOUR + FAIR_WAIT);
    ck_assert(run_as(INSTANCE_A, &end)->release.freed);
    fair_take(B1);
    (void)fair_queue(INSTANCE_A, true, 2, A1, A2, NULL);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_expect_due(A2, LEASE + FAIR_WAIT);
}

START_TEST(those_behind_a_long_wait_of_redissons_survive_its_grant_H20)
{
    static const char *const OURS[] = { A1, A2, A3, A4 };
    struct redisson head = fair_redisson(R2), holder = fair_held_by_redisson();

    (void)redisson_fair_lock(&head, "n", LEASE, HOUR);
    for (size_t i = 0; i < 4; i++) {
        fair_wait(OURS[i]);
        fair_pass(3000);
    }
    ck_assert_int_eq(redisson_fair_unlock(&holder, "n", NULL), 1);
    /* Its grant takes an hour from every score, and its release purges. */
    ck_assert_int_eq(redisson_fair_lock(&head, "n", LEASE, HOUR), REDISSON_NIL);
    ck_assert_int_eq(redisson_fair_unlock(&head, "n", NULL), 1);
    fair_expect(A1 " " A2 " " A3 " " A4);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_gt(fair_due_in(OURS[i]), 0);
    }
}

/* Findings from its earlier wait say nothing, and only Redisson knows that it was
 * away: it went as the last of the queue. */
START_TEST(a_redisson_that_waits_longer_than_before_throws_nobody_out_H20)
{
    struct redisson again = fair_redisson(R2), other = fair_held_by_redisson();

    fair_wait(A1);
    (void)redisson_fair_lock(&again, "n", LEASE, REDISSON_WAIT / 5);
    fair_wait(A2);
    ck_assert_int_eq(redisson_fair_unlock(&other, "n", NULL), 1);
    fair_take(A1);
    ck_assert(fair_free(A1, NULL)->release.freed);
    ck_assert_int_eq(redisson_fair_lock(&again, "n", LEASE, REDISSON_WAIT / 5),
                     REDISSON_NIL);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    ck_assert_int_eq(redisson_fair_unlock(&again, "n", NULL), 1);
    fair_take(A2);
    ck_assert(fair_free(A2, NULL)->release.freed);
    ck_assert_int_eq(redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT),
                     REDISSON_NIL);

    (void)redisson_fair_lock(&again, "n", LEASE, REDISSON_WAIT);
    fair_wait(A3);
    fair_expect(R2 " " A3);
    ck_assert_int_eq(redisson_fair_unlock(&other, "n", NULL), 1);
    ck_assert_int_eq(redisson_fair_lock(&again, "n", LEASE, REDISSON_WAIT),
                     REDISSON_NIL);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_expect(A3 " " R1);
    ck_assert_int_gt(fair_due_in(A3), 0);
}

START_TEST(redisson_behind_many_of_latchds_parks_no_longer_H20)
{
    struct redisson other = fair_redisson(R2);
    char member[64];
    int64_t ttl;

    (void)fair_held_by_redisson();
    for (int i = 0; i < 64; i++) {
        (void)snprintf(member, sizeof member, "latchd:%s:%d",
                       i % 2 == 0 ? INSTANCE_A : INSTANCE_B, i);
        fair_wait(member);
    }
    ttl = redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    ck_assert_int_le(ttl, LEASE + FAIR_WAIT);
}

START_TEST(a_live_waiter_keeps_its_place_however_long_it_takes_F2)
{
    struct redisson holder = fair_held_by_redisson(), other = fair_redisson(R2);

    fair_wait(A1);
    fair_wait(A2);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    for (int i = 0; i < 200; i++) { /* more than half an hour */
        fair_pass(10000);
        ck_assert_int_eq(redisson_renew_lock(&holder, "n", LEASE), 1);
        ck_assert_int_eq(fair_queue(INSTANCE_A, true, 2, A1, A2, NULL)->status, OP_OK);
        (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    }
    fair_expect(A1 " " A2 " " R2);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_expect_due(A2, LEASE + FAIR_WAIT);
}

/* One of latchd's and one of Redisson's in turn get the lock and queue up again, for
 * ten minutes of 1000 grants; Redisson's wait for longer or shorter times (row 1). */
START_TEST(scores_do_not_drift_when_latchd_and_redisson_alternate, 2)
{
    static const char *const OURS[] = { A1, B1 };
    struct redisson r[2] = { fair_redisson(R1), fair_redisson(R2) };
    int64_t most = 2 * (REDISSON_WAIT + FAIR_WAIT) + LEASE;
    int64_t wait[2] = { REDISSON_WAIT, REDISSON_WAIT }; /* of their present places */

    fair_take(A2);
    for (size_t i = 0; i < 2; i++) {
        fair_wait(OURS[i]);
        (void)redisson_fair_lock(&r[i], "n", LEASE, REDISSON_WAIT);
    }
    ck_assert(fair_free(A2, NULL)->release.freed);
    for (int i = 0; i < 500; i++) {
        int who = i % 2;

        fair_take(OURS[who]);
        ck_assert(fair_free(OURS[who], NULL)->release.freed);
        ck_assert_int_eq(fair_ask(OURS[who], true)->status, OP_BUSY);
        ck_assert_int_eq(redisson_fair_lock(&r[who], "n", LEASE, wait[who]),
                         REDISSON_NIL);
        ck_assert_int_eq(redisson_fair_unlock(&r[who], "n", NULL), 1);
        wait[who] = _i == 1 && i % 3 == 0 ? REDISSON_WAIT / 5 : REDISSON_WAIT;
        (void)redisson_fair_lock(&r[who], "n", LEASE, wait[who]);
        fair_pass(1200);
        if (i % 8 == 0) {
            (void)fair_queue(INSTANCE_A, true, 1, A1, NULL);
            (void)fair_queue(INSTANCE_B, true, 1, B1, NULL);
        }
        for (size_t k = 0; k < 2; k++) {
            ck_assert_int_gt(fair_due_in(OURS[k]), FAIR_WAIT / 2);
            ck_assert_int_le(fair_due_in(OURS[k]), most);
            ck_assert_int_gt(fair_due_in(r[k].owner), 0);
            ck_assert_int_le(fair_due_in(r[k].owner), most);
        }
    }
    fair_expect(A1 " " R1 " " B1 " " R2);
}

START_TEST(a_dead_daemons_waiters_are_gone_within_lease_and_wait)
{
    struct redisson other = fair_redisson(R2);

    fair_take(A1);
    for (int i = 0; i < 100; i++) {
        char member[64];

        (void)snprintf(member, sizeof member, "latchd:%s:%d", INSTANCE_B, i);
        fair_wait(member);
    }
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), 102);
    fair_pass(LEASE + FAIR_WAIT);
    /* By Redisson's own purge; a live member of ours behind it is not touched. */
    ck_assert_int_eq(redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT),
                     REDISSON_NIL);
    fair_expect(A2);
}

/* Whatever its score: it was to survive Redisson's that were before it. */
START_TEST(a_daemon_that_is_not_heard_of_is_dead_for_the_others)
{
    struct redisson first = fair_redisson(R2), holder = fair_held_by_redisson();

    (void)redisson_fair_lock(&first, "n", LEASE, HOUR);
    fair_wait(B1);
    redisson_fair_leave(&first, "n", 1000); /* and takes too little off */
    ck_assert_int_eq(redisson_fair_unlock(&holder, "n", NULL), 1);
    fair_wait(A1);
    ck_assert_int_gt(fair_due_in(B1), HOUR - 10000);
    ck_assert_int_le(fair_ask(A1, true)->ttl_ms, FAIR_WAIT);
    fair_pass(FAIR_WAIT);
    fair_take(A1);
    fair_expect_gone();
}

/* --- put in ----------------------------------------------------------------------- */

START_TEST(who_was_thrown_out_is_put_back_at_the_head_in_order_F3)
{
    struct redisson ahead = fair_redisson(R2), third = fair_redisson(R1);
    const struct op_result *r;

    ahead.skew_ms = 600000;
    fair_take(A4);
    fair_wait(A1);
    fair_wait(A2);
    (void)redisson_fair_lock(&ahead, "n", LEASE, REDISSON_WAIT); /* throws us out */
    (void)redisson_fair_lock(&third, "n", LEASE, REDISSON_WAIT);
    fair_expect(R2 " " R1);
    r = fair_queue(INSTANCE_A, false, 2, A1, A2, A3, NULL);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_gt(r->ttl_ms, 0);
    ck_assert(r->fair);
    fair_expect(A1 " " A2 " " R2 " " R1 " " A3);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    fair_expect_due(A2, LEASE + FAIR_WAIT);
    (void)fair_queue(INSTANCE_A, false, 3, A1, A2, A3, NULL);
    fair_expect(A1 " " A2 " " R2 " " R1 " " A3);
}

START_TEST(many_are_put_in_at_once)
{
    static char texts[OP_QUEUE_MAX][40];
    static struct span members[OP_QUEUE_MAX];
    struct op op = { .kind = OP_QUEUE,
                     .name = SPAN("n"),
                     .fair_wait_ms = FAIR_WAIT,
                     .queue.members = members,
                     .queue.count = OP_QUEUE_MAX };

    fair_take(A1);
    fair_wait(B1);
    for (size_t i = 0; i < OP_QUEUE_MAX; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "latchd:%s:%zu", INSTANCE_A, i);
        members[i] = span_str(texts[i]);
    }
    op.queue.known = OP_QUEUE_MAX / 2;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), OP_QUEUE_MAX + 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD " FAIR_SCORES),
                     OP_QUEUE_MAX + 1);
    redis_expect(peer_redis(), texts[0], "LINDEX " FAIR_QUEUE " 0");
    redis_expect(peer_redis(), B1, "LINDEX " FAIR_QUEUE " %d", OP_QUEUE_MAX / 2);
    redis_expect(peer_redis(), texts[OP_QUEUE_MAX - 1], "LINDEX " FAIR_QUEUE " -1");
    op.queue.whole = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), OP_QUEUE_MAX + 1);
    op.kind = OP_LEAVE;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    fair_expect(B1);
}

START_TEST(ghosts_of_this_instance_leave_H24)
{
    struct redisson other = fair_redisson(R2);
    redisContext *ear = fair_listen(B1);

    fair_take(A4);
    fair_wait(A1);
    fair_wait(B1);
    fair_wait(A2);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A3);
    (void)fair_queue(INSTANCE_A, true, 1, A3, NULL);
    fair_expect(B1 " " R2 " " A3);
    redisson_hear_nothing(ear); /* the lock is held */
    fair_expect_due(R2, LEASE + FAIR_WAIT + REDISSON_WAIT);
    (void)fair_queue(INSTANCE_A, true, 0, NULL);
    fair_expect(B1 " " R2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HEXISTS " FAIR_MARKS " " INSTANCE_A),
                     0);
    redisFree(ear);
}

START_TEST(an_empty_queue_leaves_no_key)
{
    const struct op_result *r = fair_queue(INSTANCE_A, true, 0, NULL);

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->ttl_ms, -2);
    ck_assert(!r->fair);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    (void)fair_queue(INSTANCE_A, false, 0, A1, NULL);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL " FAIR_MARKS), 0);
    (void)fair_queue(INSTANCE_A, true, 0, NULL);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}

START_TEST(who_is_known_is_put_back_before_it_is_decided_F2)
{
    struct op op = fair_acquire(A1, true);
    struct redisson holder = fair_held_by_redisson(), other = fair_redisson(R2);

    op.acquire.was_queued = true;
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BUSY);
    fair_expect(A1 " " R2);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    (void)redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BUSY);
    fair_expect(A1 " " R2); /* it was in the list */
    (void)redis_ask_int(peer_redis(), "LREM " FAIR_QUEUE " 0 " A1);
    (void)redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1);
    ck_assert_int_eq(redisson_fair_unlock(&holder, "n", NULL), 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    fair_expect(R2);
}
