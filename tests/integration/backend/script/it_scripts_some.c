/* Several simple ops in one script call: each as its own script would do it, whatever
 * becomes of the others. */
#include "scripts_some.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

static char texts[SCRIPT_BATCH_MAX][SOME_TEXT_MAX];

/* --- all is well ------------------------------------------------------------------ */

/* The value of a key, in words that do not tell its name or the time. */
static void describe(const char *name, uint64_t token, char *ret, size_t room)
{
    char fence[64], field[64], value[64], mark[96];
    redisReply *r;

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    r = redis_ask(peer_redis(), "GET latchd:fence:{%s}", name);
    (void)snprintf(fence, sizeof fence, "%s", r->str == NULL ? "none" : r->str);
    freeReplyObject(r);
    (void)snprintf(value, sizeof value, "%" PRIu64, token);
    ck_assert_msg(strncmp(fence, value, strlen(value)) == 0, "%s", fence);
    (void)snprintf(mark, sizeof mark, "latchd:ended:{%s}:%s", name, field);
    r = redis_ask(peer_redis(), "HGET %s %s", name, field);
    (void)snprintf(ret, room, "fence%s hold %s fields %lld mark %d", fence + 16,
                   r->str == NULL ? "none" : r->str,
                   (long long)redis_ask_int(peer_redis(), "HLEN %s", name),
                   some_is_there(mark));
    freeReplyObject(r);
    if (some_is_there(mark)) {
        some_near_pttl(mark, OP_ENDED_MS);
        (void)snprintf(value, sizeof value, "0 %" PRIu64, token);
        redis_expect(peer_redis(), value, "GET %s", mark);
    } else {
        some_near_pttl(name, LEASE);
    }
    (void)snprintf(mark, sizeof mark, "latchd:fence:{%s}", name);
    some_near_pttl(mark, LEASE + OP_FENCE_TTL_MS);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* `s` names one at a time, `g` names together. */
START_TEST(they_leave_what_as_many_single_calls_leave)
{
    static struct op ops[SCRIPT_BATCH_MAX];
    uint64_t single[SCRIPT_BATCH_MAX], together[SCRIPT_BATCH_MAX];
    char a[200], b[200], name[16], names[2][SCRIPT_BATCH_MAX][16],
        request[SCRIPT_BATCH_MAX][16];

    for (int again = 0; again < 2; again++) { /* then there are fence keys */
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            (void)snprintf(names[0][i], sizeof name, "s%d", i);
            (void)snprintf(names[1][i], sizeof name, "g%d", i);
            (void)snprintf(request[i], sizeof name, "q:%d", i + 100 * again);
            single[i] = take(names[0][i], claim_anonymous(request[i]));
            ops[i] = op_acquire(names[1][i], claim_anonymous(request[i]));
        }
        run_some(INSTANCE_A, ops, SCRIPT_BATCH_MAX, some_times());
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            some_expect((size_t)i, OP_OK);
            ck_assert_int_eq(some_result((size_t)i)->count, 1);
            together[i] = some_result((size_t)i)->token;
            ck_assert_uint_gt(together[i], single[i]);
            describe(names[0][i], single[i], a, sizeof a);
            describe(names[1][i], together[i], b, sizeof b);
            ck_assert_str_eq(a, b);
        }
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            ops[i] = some_end(names[0][i], single[i], texts[i]);
            ck_assert(run_as(INSTANCE_A, &ops[i])->release.freed);
            ops[i] = some_end(names[1][i], together[i], texts[i]);
        }
        run_some(INSTANCE_A, ops, SCRIPT_BATCH_MAX, some_times());
        for (int i = 0; i < SCRIPT_BATCH_MAX; i++) {
            some_expect((size_t)i, OP_OK);
            ck_assert(some_result((size_t)i)->release.freed);
            describe(names[0][i], single[i], a, sizeof a);
            describe(names[1][i], together[i], b, sizeof b);
            ck_assert_str_eq(a, b);
        }
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 2 * 3 * SCRIPT_BATCH_MAX);
}

START_TEST(each_has_its_own_lease)
{
    struct op ops[THREE];

    some_acquires(ops);
    ops[1].acquire.claim.lease_ms = 600000;
    ops[2].acquire.claim.lease_ms = 100000;
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_near_pttl("a", LEASE);
    some_near_pttl("b", 600000);
    some_near_pttl("my:{c}:x", 100000);
    some_near_pttl("latchd:fence:{b}", 600000 + OP_FENCE_TTL_MS);
    some_near_pttl("latchd:fence:my:{c}:x", 100000 + OP_FENCE_TTL_MS);
}

/* The first is held, and the second not as simple as it looks: both are asked for the
 * long way. */
START_TEST(each_is_lent_or_not_as_it_asked)
{
    struct op ops[THREE];
    char fence[64];

    some_acquires(ops);
    for (int i = 0; i < THREE; i++) {
        ops[i].acquire.claim.block_us = i == 1 ? 0 : 20000;
    }
    (void)snprintf(fence, sizeof fence, "%" PRIu64 " aq:9", redis_time_us() - 1000);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET a other 1"), 1);
    redis_expect(peer_redis(), "OK", "SET latchd:fence:{b} %s", fence);
    redis_expect(peer_redis(), "OK", "SET redisson_lock_token:{b} none");
    redis_expect(peer_redis(), "OK", "SET latchd:fence:my:{c}:x %s", fence);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(0, OP_BUSY);
    some_expect(1, OP_OK);
    ck_assert_uint_eq(some_result(1)->loan_token, 0);
    some_expect(2, OP_OK);
    ck_assert_uint_ne(some_result(2)->loan_token, 0);
}

START_TEST(marks_live_as_long_as_the_longest)
{
    struct op ops[THREE];

    some_holds(ops);
    ops[1].release.tombstone_ms = 107000;
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_OK);
    }
    expect_marks(107000);
}

START_TEST(a_mark_is_left_where_it_is_wanted)
{
    struct op ops[THREE];

    some_holds(ops);
    ops[1].release.leave_tombstone = false;
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_OK);
        ck_assert(some_result(i)->release.freed);
        ck_assert(!some_is_there(SOME_NAMES[i]));
    }
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, i == 1 ? OP_NOTHELD : OP_ENDED);
    }
}

START_TEST(every_release_is_published)
{
    struct op ops[THREE];
    redisContext *ear = redisConnectUnix(redis_path(peer_redis()));
    redisReply *r;

    r = redisCommand(ear, "PSUBSCRIBE *");
    freeReplyObject(r);
    some_holds(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (int i = 0; i < THREE; i++) {
        char channel[80];

        (void)snprintf(channel, sizeof channel,
                       i == 2 ? "redisson_lock__channel:%s"
                              : "redisson_lock__channel:{%s}",
                       SOME_NAMES[i]);
        ck_assert_int_eq(redisGetReply(ear, (void **)&r), REDIS_OK);
        ck_assert_str_eq(r->element[2]->str, channel);
        ck_assert_str_eq(r->element[3]->str, "0");
        freeReplyObject(r);
    }
    redisFree(ear);
}

/* --- one of them is not simple -----------------------------------------------------
 */

static const struct {
    const char *before;
    enum op_status status;
    bool fair, rw;
    const char *left; /* what must still be there */
} REFUSED[] = {
    { "HSET b somebody 1", OP_BUSY, false, false, "b" },
    { "RPUSH redisson_lock_queue:{b} x", OP_BUSY, true, false, NULL },
    { "HSET b mode read x 1", OP_WRONGTYPE, false, true, "b" },
    { "SET b text", OP_WRONGTYPE, false, false, "b" },
    { "RPUSH latchd:fence:{b} x", OP_WRONGTYPE, false, false, "latchd:fence:{b}" },
    { "HSET latchd:fence:{b} x y", OP_WRONGTYPE, false, false, "latchd:fence:{b}" },
};

START_TEST(one_that_is_refused_is_no_hindrance_to_the_others, TEST_ROWS(REFUSED))
{
    struct op ops[THREE];

    freeReplyObject(redis_ask(peer_redis(), REFUSED[_i].before));
    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(0, OP_OK);
    some_expect(1, REFUSED[_i].status);
    ck_assert_int_eq(some_result(1)->fair, REFUSED[_i].fair);
    ck_assert_int_eq(some_result(1)->lock_class == CLASS_RW, REFUSED[_i].rw);
    some_expect(2, OP_OK);
    ck_assert_int_eq(some_is_there("b"),
                     REFUSED[_i].left != NULL && strcmp(REFUSED[_i].left, "b") == 0);
    ck_assert(REFUSED[_i].left == NULL || some_is_there(REFUSED[_i].left));
}

static const struct {
    const char *fence; /* %s: Redis time, us */
    int64_t above;     /* the token, less that time; 0: any later one */
} FENCES[] = {
    { "5 aq:9", 0 },
    { "nonsense", 0 },
    { "%s aq:9", 100000000 },
};

START_TEST(tokens_only_ever_grow, TEST_ROWS(FENCES))
{
    struct op ops[THREE];
    uint64_t now = redis_time_us();
    char ahead[32], fence[64];

    (void)snprintf(ahead, sizeof ahead, "%" PRIu64, now + 100000000);
    if (FENCES[_i].above == 0) {
        (void)snprintf(fence, sizeof fence, "%s", FENCES[_i].fence);
    } else {
        (void)snprintf(fence, sizeof fence, "%s aq:9", ahead);
    }
    redis_expect(peer_redis(), "OK", "SET latchd:fence:{b} %s", fence);
    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(1, OP_OK);
    if (FENCES[_i].above == 0) {
        ck_assert_uint_ge(some_result(1)->token, now);
    } else {
        ck_assert_uint_eq(some_result(1)->token, now + 100000000 + 1);
    }
    ck_assert_uint_lt(some_result(0)->token, now + 90000000);
    for (int i = 0; i < THREE; i++) {
        some_acquires(ops);
        ops[i].seen_token = now + 200000000;
        run_some(INSTANCE_A, ops, THREE, some_times());
    }
    some_expect(0, OP_OK); /* found again, under its token */
    ck_assert_uint_lt(some_result(0)->token, now + 90000000);
    redis_expect(peer_redis(), NULL, "HGET a mode");
    (void)redis_ask_int(peer_redis(), "DEL a b");
    run_some(INSTANCE_A, ops, 2, some_times());
    ck_assert_uint_ge(some_result(0)->token, now);
    ops[0].seen_token = ops[1].seen_token = now + 200000000;
    (void)redis_ask_int(peer_redis(), "DEL a b");
    run_some(INSTANCE_A, ops, 2, some_times());
    ck_assert_uint_eq(some_result(0)->token, now + 200000001);
    ck_assert_uint_eq(some_result(1)->token, now + 200000001);
}

START_TEST(what_was_granted_before_is_found_again)
{
    struct op ops[THREE];
    uint64_t token = take("b", claim_anonymous("q:2"));

    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(1, OP_OK);
    ck_assert_uint_eq(some_result(1)->token, token);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN b"), 1);
}

START_TEST(a_name_that_is_there_twice_has_one_owner)
{
    struct op ops[THREE];

    some_acquires(ops);
    ops[2].name = ops[1].name;
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(0, OP_OK);
    some_expect(1, OP_OK);
    some_expect(2, OP_BUSY);
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(1, OP_OK);
    some_expect(2, OP_BUSY);
}

static const struct {
    const char *before;
    enum op_status status;
    bool freed, fair, rw;
} NOT_FREED[] = {
    { "DEL b", OP_NOTHELD, false, false, false },
    { "RPUSH redisson_lock_queue:{b} x", OP_OK, true, true, false },
    { "SET redisson_lock_queue:{b} x", OP_WRONGTYPE, false, false, false },
    { "SET b text", OP_WRONGTYPE, false, false, false },
    { "SET latchd:ended:{b}:x 1", OP_OK, true, false, false },
};

START_TEST(a_release_that_is_not_simple_is_no_hindrance_to_the_others,
           TEST_ROWS(NOT_FREED))
{
    struct op ops[THREE];
    bool queued = NOT_FREED[_i].fair;

    some_holds(ops);
    freeReplyObject(redis_ask(peer_redis(), NOT_FREED[_i].before));
    run_some(INSTANCE_A, ops, THREE, some_times());
    some_expect(0, OP_OK);
    ck_assert(some_result(0)->release.freed);
    some_expect(1, NOT_FREED[_i].status);
    ck_assert_int_eq(some_result(1)->release.freed, NOT_FREED[_i].freed);
    ck_assert(!queued || some_result(1)->fair);
    some_expect(2, OP_OK);
    ck_assert(some_result(2)->release.freed);
    ck_assert(!some_is_there("my:{c}:x"));
}

START_TEST(a_release_sent_again_is_answered_from_its_mark)
{
    struct op ops[THREE];

    some_holds(ops);
    (void)run_as(INSTANCE_B, &ops[1]);
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, i == 1 ? OP_ENDED : OP_OK);
    }
    run_some(INSTANCE_A, ops, THREE, some_times());
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_ENDED);
        ck_assert_int_eq(some_result(i)->count, 0);
    }
}

START_TEST(late_copies_of_some_do_nothing_H2)
{
    struct op ops[THREE];
    struct op_times over = { .deadline_us = redis_time_us() - 1 };

    some_acquires(ops);
    run_some(INSTANCE_A, ops, THREE, over);
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_LATE);
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    some_holds(ops);
    run_some(INSTANCE_A, ops, THREE, over);
    for (size_t i = 0; i < THREE; i++) {
        some_expect(i, OP_LATE);
        ck_assert(some_is_there(SOME_NAMES[i]));
    }
}
