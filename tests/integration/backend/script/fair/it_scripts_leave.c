/* Leaving the fair queue, and what must touch nothing. */
#include "fair_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { REDISSON_WAIT = REDISSON_FAIR_WAIT };

/* Holds, and two of Redisson's in front, between and behind two of ours:
 * R1 A1 A2 R2. */
static void mixed_queue(void)
{
    struct redisson r1 = fair_redisson(R1), r2 = fair_redisson(R2);

    fair_take(A4);
    (void)redisson_fair_lock(&r1, "n", LEASE, REDISSON_WAIT);
    fair_wait(A1);
    fair_wait(A2);
    (void)redisson_fair_lock(&r2, "n", LEASE, REDISSON_WAIT);
    fair_expect(R1 " " A1 " " A2 " " R2);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(the_distance_goes_with_the_last_of_a_run)
{
    int64_t behind = LEASE + 2 * REDISSON_WAIT + FAIR_WAIT;

    mixed_queue();
    fair_expect_due(R2, behind);
    ck_assert(fair_leave(INSTANCE_A, A1, NULL)->fair);
    fair_expect(R1 " " A2 " " R2);
    fair_expect_due(R2, behind);
    (void)fair_leave(INSTANCE_A, A2, NULL);
    fair_expect(R1 " " R2);
    fair_expect_due(R2, behind - FAIR_WAIT);
    fair_expect_due(R1, LEASE + REDISSON_WAIT);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN " FAIR_MARKS), 1); /* of R1 */
    (void)fair_leave(INSTANCE_A, A2, A3, NULL); /* not there any more */
    fair_expect_due(R2, behind - FAIR_WAIT);
}

/* Places that a purge of Redisson's took out come back one by one, each to the head,
 * and leave as they are granted: that is no less for who stands behind. */
START_TEST(a_run_that_comes_back_one_by_one_throws_nobody_out)
{
    static const char *const OURS[] = { A1, A2, A3 };
    struct redisson r1 = fair_redisson(R1), r2 = fair_redisson(R2);
    int64_t before;

    fair_take(A4);
    for (size_t i = 0; i < 3; i++) {
        fair_wait(OURS[i]);
    }
    (void)redisson_fair_lock(&r2, "n", LEASE, REDISSON_WAIT);
    before = fair_due_in(R2);
    for (size_t i = 0; i < 3; i++) {
        fair_set_due(OURS[i], -1);
    }
    ck_assert_int_eq(redisson_fair_try(&r1, "n", LEASE, REDISSON_WAIT), 1);
    fair_expect(R2);
    ck_assert(fair_free(A4, NULL)->release.freed);
    for (size_t i = 0; i < 3; i++) {
        struct op op = fair_acquire(OURS[i], true);

        op.acquire.was_queued = true;
        ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
        fair_expect_due(R2, before);
        ck_assert(fair_free(OURS[i], NULL)->release.freed);
    }
}

/* As above, and all at once: they are one run again. */
START_TEST(a_run_that_is_put_back_counts_once)
{
    struct redisson r2 = fair_redisson(R2);
    int64_t before;

    fair_take(A4);
    (void)redisson_fair_lock(&r2, "n", LEASE, REDISSON_WAIT);
    before = fair_due_in(R2);
    (void)fair_queue(INSTANCE_A, false, 3, A1, A2, A3, NULL);
    fair_expect(A1 " " A2 " " A3 " " R2);
    fair_expect_due(R2, before + FAIR_WAIT);
    (void)fair_leave(INSTANCE_A, A1, A2, A3, NULL);
    fair_expect_due(R2, before);
}

START_TEST(many_leave_in_one_pass)
{
    static const char *const MORE[] = { B1, B2, "latchd:" INSTANCE_A ":5" };
    struct redisson third = fair_redisson("eeeeeeee-0000-0000-0000-000000000005:1");
    int64_t behind;

    mixed_queue();
    for (size_t i = 0; i < 3; i++) {
        fair_wait(MORE[i]);
    }
    (void)redisson_fair_lock(&third, "n", LEASE, REDISSON_WAIT);
    behind = fair_due_in(third.owner);
    (void)fair_leave(INSTANCE_A, A1, A2, A3, A4, MORE[2], NULL);
    fair_expect(R1 " " R2 " " B1 " " B2 " "
                   "eeeeeeee-0000-0000-0000-000000000005:1");
    fair_expect_due(third.owner, behind - FAIR_WAIT); /* B1 and B2 keep theirs */
    fair_expect_due(R2, LEASE + 2 * REDISSON_WAIT);
    (void)fair_leave(INSTANCE_B, A1, A2, B1, B2, NULL);
    fair_expect_due(third.owner, behind - 2 * FAIR_WAIT);
}

START_TEST(the_last_one_takes_the_keys_along)
{
    fair_take(A4);
    fair_wait(A1);
    ck_assert(!fair_leave(INSTANCE_A, A1, NULL)->fair);
    fair_expect_gone();
    fair_wait(A1);
    fair_wait(A2);
    fair_wait(A3);
    fair_wait(B1);
    (void)fair_leave(INSTANCE_A, A1, A2, A3, B1, NULL);
    fair_expect_gone();
    ck_assert_int_eq(fair_leave(INSTANCE_A, A1, NULL)->status, OP_OK);
    ck_assert_int_eq(fair_leave(INSTANCE_A, A1, A2, A3, A4, NULL)->status, OP_OK);
    fair_expect_gone();
}

/* Row 0: the head alone; 1: with many others. */
START_TEST(who_is_first_then_is_told_if_the_lock_is_free_H21, 2)
{
    redisContext *ear = fair_listen(R2);

    mixed_queue();
    (void)fair_leave(INSTANCE_A, A1, NULL); /* not the head */
    ck_assert(fair_free(A4, NULL)->release.freed);
    (void)redis_ask_int(peer_redis(), "LREM " FAIR_QUEUE " 0 " R1);
    (void)redis_ask_int(peer_redis(), "ZREM " FAIR_SCORES " " R1);
    redisson_hear_nothing(ear);
    if (_i == 0) {
        (void)fair_leave(INSTANCE_A, A2, NULL);
    } else {
        (void)fair_leave(INSTANCE_A, A1, A2, A3, A4, NULL);
    }
    redisson_hear(ear, "0");
    fair_expect(R2);
    redisFree(ear);
}

START_TEST(nobody_is_told_while_it_is_held)
{
    redisContext *ear = fair_listen(R2);

    mixed_queue();
    fair_set_due(R1, 0);
    (void)fair_leave(INSTANCE_A, A1, A2, NULL); /* and the dead one goes as well */
    fair_expect(R2);
    redisson_hear_nothing(ear);
    redisFree(ear);
}

START_TEST(members_leave_whatever_the_lock_has_become)
{
    fair_take(A4);
    fair_wait(A1);
    fair_wait(A2);
    (void)redis_ask_int(peer_redis(), "DEL n");
    (void)redis_ask_int(peer_redis(), "HSET n mode read r 1");
    ck_assert_int_eq(fair_leave(INSTANCE_A, A1, A2, NULL)->status, OP_OK);
    fair_expect_gone();
}

static void dump(char *ret, size_t room)
{
    static const char SCRIPT[] =
        "local all = redis.call('KEYS', '*') table.sort(all) local text = '' "
        "for _, k in ipairs(all) do text = text .. k .. redis.sha1hex("
        "redis.call('DUMP', k)) end return text";
    redisReply *reply = redis_ask(peer_redis(), "EVAL %s 0", SCRIPT);

    (void)snprintf(ret, room, "%s", reply->str);
    freeReplyObject(reply);
}

enum { OPS = 6 };

static void all_ops(struct op *ops, struct span *members)
{
    members[0] = SPAN(B1);
    members[1] = SPAN(A1);
    ops[0] = fair_acquire(A3, true);
    ops[1] = fair_acquire(A4, true); /* who holds */
    ops[2] = fair_release(A4, NULL);
    ops[3] = fair_release(A4, A1);
    ops[4] = (struct op){ .kind = OP_QUEUE, .queue.whole = true };
    ops[5] = (struct op){ .kind = OP_LEAVE };
    for (size_t i = 4; i < OPS; i++) {
        ops[i].name = SPAN("n");
        ops[i].fair_wait_ms = FAIR_WAIT;
        ops[i].queue.members = members;
        ops[i].queue.count = 2;
    }
}

START_TEST(a_late_copy_does_nothing_to_the_queue_H2)
{
    char before[2000], after[2000];
    struct span members[2];
    struct op ops[OPS];

    mixed_queue();
    fair_set_due(R1, -1);
    all_ops(ops, members);
    dump(before, sizeof before);
    for (size_t i = 0; i < OPS; i++) {
        ck_assert_int_eq(run_until(INSTANCE_A, &ops[i], redis_time_us() - 1)->status,
                         OP_LATE);
    }
    dump(after, sizeof after);
    ck_assert_str_eq(before, after);
}

static const struct {
    const char *spoil;
    const char *set;
} FOREIGN[] = {
    { FAIR_QUEUE, "SET " FAIR_QUEUE " x" },
    { FAIR_SCORES, "SET " FAIR_SCORES " x" },
    { "n", "SET n x" },
    { FAIR_MARKS, "SET " FAIR_MARKS " x" },
};

START_TEST(what_is_of_another_type_is_left_alone, 4)
{
    char before[2000], after[2000];
    struct span members[2];
    struct op ops[OPS];

    mixed_queue();
    (void)redis_ask_int(peer_redis(), "DEL %s", FOREIGN[_i].spoil);
    freeReplyObject(redis_ask(peer_redis(), FOREIGN[_i].set));
    all_ops(ops, members);
    dump(before, sizeof before);
    for (size_t i = 0; i < OPS; i++) {
        const struct op_result *r = run_as(INSTANCE_A, &ops[i]);

        if (i != 5 || _i != 2) { /* OP_LEAVE does not ask what the lock is */
            ck_assert_msg(r->status == OP_WRONGTYPE, "op %zu: %d", i, (int)r->status);
            ck_assert(!r->is_lock);
            dump(after, sizeof after);
            ck_assert_str_eq(before, after);
        }
    }
}

START_TEST(a_read_write_lock_is_of_the_other_family)
{
    char before[2000], after[2000];
    struct span members[2];
    struct op ops[OPS];

    (void)redis_ask_int(peer_redis(), "HSET n mode read r 1");
    all_ops(ops, members);
    dump(before, sizeof before);
    for (size_t i = 0; i < OPS; i++) {
        const struct op_result *r = run_as(INSTANCE_A, &ops[i]);

        if (i != 5) {
            ck_assert_msg(r->status == OP_WRONGTYPE, "op %zu: %d", i, (int)r->status);
            ck_assert(r->is_lock && r->lock_class == CLASS_RW);
        }
    }
    dump(after, sizeof after);
    ck_assert_str_eq(before, after);
}

START_TEST(a_name_with_a_brace_is_not_braced_again)
{
    struct span member = SPAN(A1);
    struct op op = { .kind = OP_QUEUE,
                     .name = SPAN("my:{t}:x"),
                     .fair_wait_ms = FAIR_WAIT,
                     .queue.members = &member,
                     .queue.count = 1 };

    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(
        redis_ask_int(peer_redis(), "EXISTS %s %s %s", "redisson_lock_queue:my:{t}:x",
                      "redisson_lock_timeout:my:{t}:x", "latchd:fair:my:{t}:x"),
        3);
    op = fair_acquire(A1, false);
    op.name = SPAN("my:{t}:x");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 2); /* lock and fence */
}
