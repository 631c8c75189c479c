/* Where Redisson's RFencedLock counts its tokens, each grant of ours is one of them. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdlib.h>

static const char ID_2[] = "latchd:id:22222222-2222-4222-8222-222222222222";
/* Ahead of the clock, so that nothing else leads to a token above it. */
static const uint64_t AHEAD = UINT64_C(5000000000000000);

static void count_from(uint64_t token)
{
    redis_expect(peer_redis(), "OK", "SET redisson_lock_token:{n} %" PRIu64, token);
}

static void expect_counted(uint64_t token)
{
    redisReply *reply = redis_ask(peer_redis(), "GET redisson_lock_token:{n}");

    ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
    ck_assert_uint_eq(strtoull(reply->str, NULL, 10), token);
    freeReplyObject(reply);
}

static struct claim claim_of(int i)
{
    return i == 0   ? claim_anonymous("q:1")
           : i == 1 ? claim_id(RW_ID)
                    : claim_named("o", "id:1");
}

static struct op take_of(int i)
{
    struct op op = i < 6 ? op_acquire("n", claim_of(i % 3))
                         : rw_acquire(i == 6 ? rw_writer("o:write", "id:1")
                                             : rw_reader("o", "id:1"));

    op.acquire.fair = i >= 3 && i < 6;
    op.acquire.enqueue = op.acquire.fair;
    op.fair_wait_ms = 30000;
    op.acquire.claim.member =
        op.acquire.fair ? SPAN("latchd:aaaaaaaaaaaaaaaa:1") : SPAN_NONE;
    return op;
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_token_is_above_the_counter_and_raises_it, 8)
{
    struct op op = take_of(_i);
    const struct op_result *r;

    count_from(AHEAD);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, AHEAD + 1);
    expect_counted(AHEAD + 1);
}

START_TEST(a_counter_that_is_behind_is_raised_and_keeps_its_TTL, 8)
{
    struct op op = take_of(_i);
    const struct op_result *r;
    int64_t ttl;

    count_from(3);
    ck_assert_int_eq(
        redis_ask_int(peer_redis(), "PEXPIRE redisson_lock_token:{n} 100000"), 1);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_gt(r->token, 1000000000000000);
    expect_counted(r->token);
    ttl = redis_ask_int(peer_redis(), "PTTL redisson_lock_token:{n}");
    ck_assert(ttl > 0 && ttl <= 100000);
}

START_TEST(where_nobody_counts_there_is_no_counter, 8)
{
    struct op op = take_of(_i);

    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS redisson_lock_token:{n}"), 0);
}

START_TEST(a_handover_counts, 3)
{
    struct op op = op_release("n", TARGET_REQUEST, NULL, "q:9");
    const struct op_result *r;

    (void)take("n", claim_anonymous("q:9"));
    count_from(AHEAD);
    op.release.has_next = true;
    op.release.next = claim_of(_i);
    r = run_as(INSTANCE_A, &op);
    ck_assert(r->moved);
    ck_assert_uint_eq(r->token, AHEAD + 1);
    expect_counted(AHEAD + 1);
}

START_TEST(a_handover_to_a_reader_or_writer_counts, 2)
{
    struct op op = rw_release_of(rw_writer("p:write", "id:9"));
    const struct op_result *r;

    (void)rw_take(rw_writer("p:write", "id:9"));
    count_from(AHEAD);
    op.release.has_next = true;
    op.release.next = _i == 0 ? rw_writer("o:write", "id:1") : rw_reader("o", "id:1");
    r = run_as(INSTANCE_A, &op);
    ck_assert(r->moved);
    ck_assert_uint_eq(r->token, AHEAD + 1);
    expect_counted(AHEAD + 1);
}

START_TEST(each_of_several_counts_for_itself)
{
    struct op ops[2] = { op_acquire("m", claim_anonymous("q:1")),
                         op_acquire("n", claim_anonymous("q:2")) };
    struct op_times times = { .deadline_us = UINT64_C(1) << 53,
                              .asked_us = redis_time_us() };

    count_from(AHEAD);
    run_some(INSTANCE_A, ops, 2, times);
    ck_assert_int_eq(some_result(0)->status, OP_OK);
    ck_assert_uint_lt(some_result(0)->token, AHEAD);
    ck_assert_int_eq(some_result(1)->status, OP_OK);
    ck_assert_uint_eq(some_result(1)->token, AHEAD + 1);
    expect_counted(AHEAD + 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS redisson_lock_token:{m}"), 0);
}

START_TEST(an_mlock_counts, 3)
{
    struct batch_item items[] = { { .name = SPAN("m"), .claim = claim_of(_i) },
                                  { .name = SPAN("n"), .claim = claim_of(_i) } };
    struct op op = { .kind = OP_ACQUIRE_BATCH,
                     .name = SPAN("m"),
                     .batch = { .items = items, .count = 2 } };
    const struct op_result *r;

    count_from(AHEAD);
    r = run_as(INSTANCE_A, &op);
    ck_assert_uint_eq(r->batch.count, 2);
    ck_assert_uint_eq(r->batch.results[1].token, AHEAD + 1);
    expect_counted(AHEAD + 1);
}

START_TEST(a_master_of_a_quorum_refuses_what_is_not_above_it)
{
    struct op op = op_acquire("n", claim_id(RW_ID));
    const struct op_result *r;

    count_from(2000);
    op.acquire.propose = 2000;
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_BEHIND);
    ck_assert_uint_eq(r->token, 2000);
    op.acquire.propose = 2001;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    expect_counted(2001);
}

/* Of a quorum: other masters have the claim under an older one, which was told. */
START_TEST(a_token_that_nobody_was_told_is_lowered_again, 2)
{
    struct op op = op_acquire("n", claim_id(RW_ID));

    if (_i == 1) {
        count_from(10);
    }
    op.acquire.propose = 1000;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    op.acquire.claim = claim_id(ID_2);
    op.acquire.propose = op.acquire.retract_from = 3000;
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, 3000);
    op.acquire.raise_token = true;
    op.acquire.propose = 900; /* the last one before was above it */
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BEHIND);
    for (int i = 0; i < 2; i++) { /* it is lowered, and found */
        op.acquire.propose = 2000;
        ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, 2000);
        redis_expect(peer_redis(),
                     "2000 faaaaaaaaaaaaaaaalatchd:id:22222222-2222-4222-8222-"
                     "222222222222 1000 faaaaaaaaaaaaaaaalatchd:id:11111111-1111-4111-"
                     "8111-111111111111",
                     "GET latchd:fence:{n}");
    }
    op.acquire.propose = op.acquire.retract_from = 4000;
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, 4000);
    op.acquire.raise_token = false;
    ck_assert_uint_eq(run_as(INSTANCE_B, &op)->token, 4000); /* B keeps it now */
    op.acquire.raise_token = true;
    op.acquire.propose = 1500; /* it may have been told by now */
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BEHIND);
    if (_i == 1) {
        expect_counted(4000); /* Redisson may have gone on from there */
    }
}

START_TEST(what_is_put_back_raises_the_counter_again)
{
    static const struct restore_entry KEPT[] = { { .entry = SPAN(""),
                                                   .for_ms = 1000 } };
    struct op op = { .kind = OP_RESTORE,
                     .name = SPAN("n"),
                     .restore.claim = claim_id(ID_2),
                     .restore.token = AHEAD,
                     .restore.entries = KEPT,
                     .restore.entry_count = 1 };

    count_from(3);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    expect_counted(AHEAD);
}

START_TEST(what_is_no_counter_is_left_alone, 8)
{
    struct op op = take_of(_i);

    ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH redisson_lock_token:{n} x"), 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "LLEN redisson_lock_token:{n}"), 1);
}

/* Numbers of no Redisson, and a number without room for tokens above it. */
static const char *const NO_COUNTER[] = { "9007000000000000",
                                          "9007199254740993",
                                          "9223372036854775807",
                                          "99999999999999999999",
                                          "-5",
                                          "007",
                                          "1e3",
                                          "nan",
                                          "text",
                                          "" };

START_TEST(a_text_that_is_no_counter_is_left_alone, 10)
{
    for (int i = 0; i < 8; i++) {
        struct op op = take_of(i);
        const struct op_result *r;

        freeReplyObject(redis_ask(peer_redis(), "FLUSHALL"));
        redis_expect(peer_redis(), "OK", "SET redisson_lock_token:{n} %s",
                     NO_COUNTER[_i]);
        r = run_as(INSTANCE_A, &op);
        ck_assert_int_eq(r->status, OP_OK);
        ck_assert_uint_lt(r->token, AHEAD);
        redis_expect(peer_redis(), NO_COUNTER[_i], "GET redisson_lock_token:{n}");
    }
}

START_TEST(the_last_counter_that_counts_leads_to_a_token, 8)
{
    struct op op = take_of(_i);
    const struct op_result *r;

    count_from(UINT64_C(9006999999999999));
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, UINT64_C(9007000000000000));
    expect_counted(r->token);
}

START_TEST(several_at_once_leave_alone_what_is_no_counter, 10)
{
    struct op ops[2] = { op_acquire("m", claim_anonymous("q:1")),
                         op_acquire("n", claim_anonymous("q:2")) };
    struct op_times times = { .deadline_us = UINT64_C(1) << 53,
                              .asked_us = redis_time_us() };

    redis_expect(peer_redis(), "OK", "SET redisson_lock_token:{n} %s", NO_COUNTER[_i]);
    run_some(INSTANCE_A, ops, 2, times);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(some_result(i)->status, OP_OK);
        ck_assert_uint_lt(some_result(i)->token, AHEAD);
    }
    redis_expect(peer_redis(), NO_COUNTER[_i], "GET redisson_lock_token:{n}");
}

START_TEST(what_is_put_back_leaves_alone_what_is_no_counter, 10)
{
    static const struct restore_entry KEPT[] = { { .entry = SPAN(""),
                                                   .for_ms = 1000 } };
    struct op op = { .kind = OP_RESTORE,
                     .name = SPAN("n"),
                     .restore.claim = claim_id(ID_2),
                     .restore.token = AHEAD,
                     .restore.entries = KEPT,
                     .restore.entry_count = 1 };

    redis_expect(peer_redis(), "OK", "SET redisson_lock_token:{n} %s", NO_COUNTER[_i]);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    redis_expect(peer_redis(), NO_COUNTER[_i], "GET redisson_lock_token:{n}");
}
