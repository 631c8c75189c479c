/* Loans that are renewed: while the name is ours, and nobody else wants it. */
#include "scripts_peer.h"

#include "support/redisson.h"
#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

enum { LOANS = 8, BLOCK_US = 1000 };

static char names[LOANS][8];
static struct renew_item items[LOANS];

/* Lends so many names to daemon A; the items renew these loans. */
static struct op lend(size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char last[64];
        struct op op;

        (void)snprintf(names[i], sizeof(names[i]), "n%zu", i);
        op = op_acquire(names[i], claim_anonymous("aaaaaaaaaaaaaaaa:1"));
        op.acquire.claim.block_us = BLOCK_US;
        (void)snprintf(last, sizeof(last), "%" PRIu64 " aq:9",
                       redis_time_us() - BLOCK_US);
        redis_expect(peer_redis(), "OK", "SET latchd:fence:{%s} %s PX 60000", names[i],
                     last);
        items[i] =
            (struct renew_item){ .name = span_str(names[i]), .lease_ms = 2 * LEASE };
        items[i].token = run_as(INSTANCE_A, &op)->loan_token;
        ck_assert_uint_ne(items[i].token, 0);
    }
    return (struct op){
        .kind = OP_RENEW,
        .renew = { .items = items, .count = count, .loans = true },
    };
}

static redisContext *listen_on(const char *name)
{
    redisContext *c = redisConnectUnix(redis_path(peer_redis()));
    redisReply *r = redisCommand(c, "SUBSCRIBE redisson_lock__channel:{%s}", name);

    ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
    freeReplyObject(r);
    return c;
}

static void expect_renewed(const struct op *op, size_t i, enum renew_result want)
{
    const struct op_result *r = run_as(INSTANCE_A, op);

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->renew.count, op->renew.count);
    ck_assert_int_eq(r->renew.items[i], want);
}

START_TEST(each_loan_that_nobody_else_wants_has_its_lease_again)
{
    struct op op = lend(LOANS);
    struct test_redis *r = peer_redis();
    redisContext *ears[] = { listen_on("n1"), listen_on("n2") };
    const struct op_result *result;
    char field[40];
    static const enum renew_result WANT[LOANS] = {
        RENEW_OK,   RENEW_WANTED, RENEW_OK,   RENEW_WANTED,
        RENEW_GONE, RENEW_GONE,   RENEW_GONE, RENEW_OK,
    };

    items[2].subscribed = true;
    ck_assert_int_eq(redis_ask_int(r, "RPUSH redisson_lock_queue:{n3} who"), 1);
    ck_assert_int_eq(redis_ask_int(r, "DEL n4"), 1);
    redis_expect(r, "OK", "SET n5 other");
    (void)snprintf(field, sizeof(field), "latchd:%" PRIu64, items[6].token);
    redis_expect(r, "OK", "SET latchd:keeper:{n6}:%s %s", field, INSTANCE_B);
    result = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(result->status, OP_OK);
    ck_assert_uint_eq(result->renew.count, LOANS);
    for (size_t i = 0; i < LOANS; i++) {
        ck_assert_int_eq(result->renew.items[i], WANT[i]);
    }
    for (size_t i = 0; i < LOANS; i++) {
        if (WANT[i] == RENEW_OK) {
            ck_assert_int_gt(redis_ask_int(r, "PTTL %s", names[i]), LEASE);
        } else {
            ck_assert_int_le(redis_ask_int(r, "PTTL %s", names[i]), LEASE);
        }
    }
    redisFree(ears[0]);
    redisFree(ears[1]);
}

START_TEST(one_listener_beside_this_daemon_is_enough)
{
    struct op op = lend(1);
    redisContext *own, *others;

    own = listen_on("n0");
    items[0].subscribed = true;
    expect_renewed(&op, 0, RENEW_OK);
    others = listen_on("n0");
    expect_renewed(&op, 0, RENEW_WANTED);
    redisFree(own);
    redisFree(others);
}

/* A renewal renews the loan, not the name: it has been lent anew since. */
START_TEST(a_loan_that_went_back_is_not_renewed)
{
    struct op op = lend(1);
    uint64_t old = items[0].token;

    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n0"), 1);
    (void)lend(1);
    expect_renewed(&op, 0, RENEW_OK);
    items[0].token = old;
    expect_renewed(&op, 0, RENEW_GONE);
}

START_TEST(a_renewal_that_comes_too_late_does_nothing)
{
    struct op op = lend(1);

    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
    ck_assert_int_le(redis_ask_int(peer_redis(), "PTTL n0"), LEASE);
}

/* Its hold was given back to another daemon, which could not know the loan's field.
 * Nobody is left who would end the loan, unless another daemon keeps what is there. */
START_TEST(a_loan_whose_hold_is_over_is_freed_as_the_hold_is_put_back, 4)
{
    enum { FREE, KEPT, OTHERS, RESTS };
    struct op op = lend(1);
    struct test_redis *r = peer_redis();
    struct restore_entry kept = { 0 };
    uint64_t loan = items[0].token, token = loan - 1;
    struct op release = op_release("n0", TARGET_TOKEN, NULL, NULL);
    redisContext *ear;
    char field[40];

    release.release.target.token = token;
    release.release.tombstone_if_missing = TOMBSTONE_OF_ANSWER;
    ck_assert_int_eq(run_as(INSTANCE_B, &release)->status, OP_NOTHELD);
    if (_i == KEPT) {
        redis_expect(r, "OK", "SET latchd:keeper:{n0}:latchd:%" PRIu64 " %s", loan,
                     INSTANCE_B "0000000000000001");
    } else if (_i == OTHERS) {
        ck_assert_int_eq(redis_ask_int(r, "HSET n0 other 1"), 1);
    } else if (_i == RESTS) {
        (void)redis_ask_int(r, "APPEND latchd:fence:{n0} %s", "\t9999999999999");
    }
    (void)snprintf(field, sizeof(field), "latchd:%" PRIu64, token);
    op = (struct op){ .kind = OP_RESTORE, .name = span_str("n0") };
    op.restore.claim = claim_anonymous("");
    op.restore.claim.field = span_str(field);
    op.restore.token = token;
    op.restore.loan_token = loan;
    op.restore.entries = &kept;
    op.restore.entry_count = 1;
    ear = listen_on("n0");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
    ck_assert_int_eq(redis_ask_int(r, "EXISTS n0"), _i != FREE);
    if (_i == FREE) {
        redisson_hear(ear, "0");
        (void)take("n0", claim_anonymous("q:1"));
    }
    redisFree(ear);
}
