/* A fair queue of which Redis has lost the list, scores, or some of them. */
#include "fair_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REDISSON_WAIT = REDISSON_FAIR_WAIT };

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(lost_scores_are_given_anew_F4)
{
    struct redisson other = fair_redisson(R2), holder = fair_held_by_redisson();

    fair_wait(A1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_SCORES), 1);
    (void)fair_queue(INSTANCE_A, false, 2, A1, A2, NULL);
    fair_expect(A1 " " R2 " " A2);
    fair_expect_due(R2, LEASE + FAIR_WAIT);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT); /* not twice */
    fair_expect(A1 " " R2 " " A2);

    /* Without us a Redisson would queue up again; that goes. */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_SCORES), 1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), 4);
    (void)fair_queue(INSTANCE_A, true, 2, A1, A2, NULL);
    fair_expect(A1 " " R2 " " A2);
    ck_assert_int_eq(redisson_fair_unlock(&holder, "n", NULL), 1);
    fair_take(A1);
    fair_expect(R2 " " A2);
}

START_TEST(a_head_without_a_score_does_not_stay_for_ever_F4)
{
    fair_take(A1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH " FAIR_QUEUE " " R1), 1);
    fair_wait(A2);
    fair_expect(R1 " " A2);
    fair_expect_due(R1, LEASE + FAIR_WAIT);
    ck_assert(fair_free(A1, NULL)->release.freed);
    ck_assert_int_eq(fair_ask(A2, true)->status, OP_BUSY);
    fair_set_due(R1, 0);
    fair_take(A2);
    fair_expect_gone();
}

START_TEST(a_lost_list_is_made_anew_F4)
{
    struct redisson other = fair_redisson(R2);

    (void)fair_held_by_redisson();
    fair_wait(A1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL " FAIR_QUEUE), 1);
    (void)fair_queue(INSTANCE_A, false, 2, A1, A2, NULL);
    fair_expect(A1 " " A2);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT); /* and joins again */
    fair_expect(A1 " " A2 " " R2);
}

START_TEST(a_listed_member_without_a_score_does_not_join_twice_F4)
{
    fair_take(A4);
    fair_wait(B1);
    fair_wait(A1);
    fair_wait(A2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1), 1);
    fair_wait(A1);
    fair_expect(B1 " " A1 " " A2);
    fair_expect_due(A1, LEASE + FAIR_WAIT);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " A1), 1);
    (void)fair_leave(INSTANCE_A, A1, NULL);
    fair_expect(B1 " " A2);
}

/* A naming of all after a loss: for how long each has waited, too. */
static void put_back(const char *instance, size_t known, const char *first,
                     uint64_t first_ms, const char *second, uint64_t second_ms)
{
    struct span members[] = { span_str(first), span_str(second) };
    uint64_t waited[] = { first_ms, second_ms };
    struct op op = { .kind = OP_QUEUE,
                     .name = SPAN("n"),
                     .queue.whole = true,
                     .fair_wait_ms = FAIR_WAIT,
                     .queue.members = members,
                     .queue.waited_ms = waited,
                     .queue.count = second[0] == '\0' ? 1 : 2,
                     .queue.known = known };
    uint64_t now = redis_time_us();
    struct op_times times = { .asked_us = now, .deadline_us = now + 10000000 };

    ck_assert_int_eq(run_times(instance, &op, times)->status, OP_OK);
}

START_TEST(what_two_daemons_put_back_is_in_the_order_in_which_it_came)
{
    fair_take(A4);
    put_back(INSTANCE_A, 2, A1, 9000, A3, 5000);
    put_back(INSTANCE_B, 2, B1, 7000, B2, 3000);
    fair_expect(A1 " " B1 " " A3 " " B2);
    fair_expect_due(B2, LEASE + FAIR_WAIT);
    put_back(INSTANCE_B, 2, B1, 7000, B2, 3000); /* and stays so */
    (void)fair_queue(INSTANCE_A, true, 2, A1, A3, NULL);
    fair_expect(A1 " " B1 " " A3 " " B2);
}

START_TEST(who_was_put_back_too_far_ahead_goes_behind_who_is_named_later)
{
    fair_take(A4);
    fair_wait(A1);
    put_back(INSTANCE_B, 2, B1, 7000, B2,
             3000); /* A1 is not known to wait for longer */
    fair_expect(B1 " " B2 " " A1);
    put_back(INSTANCE_A, 2, A1, 9000, A3, 5000);
    fair_expect(A1 " " B1 " " A3 " " B2);
    (void)fair_free(A4, NULL);
    fair_take(A1);
    fair_expect(B1 " " A3 " " B2);
}

START_TEST(who_was_never_lost_keeps_his_place)
{
    fair_take(A4);
    fair_wait(B1);
    fair_wait(A1);
    fair_wait(B2);
    put_back(INSTANCE_A, 1, A1, 9000, "", 0);
    put_back(INSTANCE_B, 2, B1, 7000, B2, 9500);
    fair_expect(B1 " " A1 " " B2);
}

START_TEST(a_redisson_in_the_queue_keeps_its_distance)
{
    struct redisson other = fair_redisson(R2);
    int64_t due;

    fair_take(A4);
    fair_wait(A1);
    (void)redisson_fair_lock(&other, "n", LEASE, REDISSON_WAIT);
    due = fair_due_in(R2);
    put_back(INSTANCE_A, 2, A1, 9000, A2, 8000);
    fair_expect(A1 " " A2 " " R2);
    fair_expect_due(R2, due);
    put_back(INSTANCE_B, 1, B1, 10000, "", 0);
    put_back(INSTANCE_A, 2, A1, 9000, A2, 8000);
    fair_expect(B1 " " A1 " " A2 " " R2);
    fair_expect_due(R2, due);
}

/* All of `instance`, every second one of those that came: the first is A's. */
static void put_many_back(const char *instance, uint64_t now)
{
    static char texts[OP_QUEUE_MAX][40];
    static struct span members[OP_QUEUE_MAX];
    static uint64_t waited[OP_QUEUE_MAX];
    size_t count = OP_QUEUE_MAX / 2, b = instance[0] == 'b' ? 1 : 0;
    struct op op = { .kind = OP_QUEUE,
                     .name = SPAN("n"),
                     .queue.whole = true,
                     .fair_wait_ms = FAIR_WAIT,
                     .queue.members = members,
                     .queue.waited_ms = waited,
                     .queue.count = count,
                     .queue.known = count };
    struct op_times times = { .asked_us = now, .deadline_us = now + 10000000 };

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "latchd:%s:%zu", instance, 2 * i + b);
        members[i] = span_str(texts[i]);
        waited[i] = 10 * (OP_QUEUE_MAX - 2 * i - b) + 1000000;
    }
    ck_assert_int_eq(run_times(instance, &op, times)->status, OP_OK);
}

START_TEST(many_of_two_daemons_are_put_back_in_order)
{
    uint64_t now = redis_time_us();

    fair_take(A4);
    put_many_back(INSTANCE_A, now);
    put_many_back(INSTANCE_B, now);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN " FAIR_QUEUE), OP_QUEUE_MAX);
    for (int i = 0; i < OP_QUEUE_MAX; i += 61) {
        redisReply *r = redis_ask(peer_redis(), "LINDEX " FAIR_QUEUE " %d", i);

        ck_assert_int_eq(atoi(strrchr(r->str, ':') + 1), i);
        freeReplyObject(r);
    }
}
