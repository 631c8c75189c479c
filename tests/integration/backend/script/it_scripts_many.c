/* Many names in one script: in order, until one is not granted. */
#include "scripts_peer.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

enum { THREE = 3, BLOCK_US = 100000 };

static const char *const NAMES[THREE] = { "a", "b", "c" };

/* The same claims for a, b and c each time. */
static struct op op_three(struct batch_item items[static THREE], enum owner_kind kind)
{
    static const char *const REQUESTS[] = { "q:1", "q:2", "q:3" };

    for (int i = 0; i < THREE; i++) {
        items[i].name = span_str(NAMES[i]);
        items[i].claim = kind == OWNER_ANONYMOUS ? claim_anonymous(REQUESTS[i])
                         : kind == OWNER_ID      ? claim_id("latchd:id:r1")
                                                 : claim_named("o", "id:r1");
    }
    return (struct op){ .kind = OP_ACQUIRE_BATCH,
                        .batch = { .items = items, .count = THREE } };
}

/* All were tried up to the last one, which has that status. */
static void expect_stop(const struct op_result *r, size_t count, enum op_status status)
{
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->batch.count, count);
    for (size_t i = 0; i + 1 < count; i++) {
        ck_assert_int_eq(r->batch.results[i].status, OP_OK);
        ck_assert_uint_gt(r->batch.results[i].token, 0);
    }
    ck_assert_msg(r->batch.results[count - 1].status == status, "status %d",
                  (int)r->batch.results[count - 1].status);
    for (size_t i = count; i < THREE; i++) {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS %s", NAMES[i]), 0);
    }
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(where_only_who_holds_may_enter_again_no_free_name_is_taken, 3)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, (enum owner_kind)_i);

    op.batch.reenter_only = true;
    expect_stop(run_as(INSTANCE_A, &op), 1, OP_BUSY);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}

START_TEST(free_names_are_all_taken_and_found_again, 3)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, (enum owner_kind)_i);
    const struct op_result *r = run_as(INSTANCE_A, &op);
    uint64_t tokens[THREE];

    expect_stop(r, THREE, OP_OK);
    for (int i = 0; i < THREE; i++) {
        tokens[i] = r->batch.results[i].token;
        ck_assert_int_eq(r->batch.results[i].count, 1);
        ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL %s", NAMES[i]),
                         LEASE - 5000);
    }
    r = run_as(INSTANCE_A, &op);
    expect_stop(r, THREE, OP_OK);
    for (int i = 0; i < THREE; i++) {
        ck_assert_uint_eq(r->batch.results[i].token, tokens[i]);
        ck_assert_int_eq(r->batch.results[i].count, 1);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN %s", NAMES[i]), 1);
    }
}

/* The command on `b` before, as nobody's script, and how that one is refused. */
static const struct {
    const char *command;
    enum op_status status;
    bool fair, rw;
} REFUSALS[] = {
    { "HSET b somebody 1", OP_BUSY, false, false },
    { "RPUSH redisson_lock_queue:{b} somebody", OP_BUSY, true, false },
    { "HSET b mode read somebody 1", OP_WRONGTYPE, false, true },
    { "SET b text", OP_WRONGTYPE, false, false },
    { "SET latchd:ended:{b}:latchd:id:r1 0", OP_OVER, false, false },
};

START_TEST(the_first_name_that_is_not_granted_ends_it, 5)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ID);
    const struct op_result *r;

    freeReplyObject(redis_ask(peer_redis(), REFUSALS[_i].command));
    for (int again = 0; again < 2; again++) {
        r = run_as(INSTANCE_A, &op);
        expect_stop(r, 2, REFUSALS[_i].status);
        ck_assert_int_eq(r->batch.results[1].fair, REFUSALS[_i].fair);
        ck_assert_int_eq(r->batch.results[1].lock_class == CLASS_RW, REFUSALS[_i].rw);
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL b redisson_lock_queue:{b} "
                                                 "latchd:ended:{b}:latchd:id:r1"),
                     1);
    expect_stop(run_as(INSTANCE_A, &op), THREE, OP_OK);
}

/* The claims of a lock library: each has its own field. */
static struct op op_values(struct batch_item items[static THREE])
{
    static const char *const FIELDS[] = { "latchd:value:q:1:me:v",
                                          "latchd:value:q:2:me:v",
                                          "latchd:value:q:3:me:v" };
    struct op op = op_three(items, OWNER_ID);

    for (int i = 0; i < THREE; i++) {
        items[i].claim = claim_id(FIELDS[i]);
    }
    op.batch.all_or_none = true;
    return op;
}

START_TEST(all_are_looked_at_before_any_is_taken, 4)
{
    struct batch_item items[THREE];
    struct op op = op_values(items);
    const struct op_result *r;

    freeReplyObject(redis_ask(peer_redis(), REFUSALS[_i].command));
    for (int again = 0; again < 2; again++) {
        r = run_as(INSTANCE_A, &op);
        ck_assert_int_eq(r->status, OP_OK);
        ck_assert_uint_eq(r->batch.count, 2);
        ck_assert_int_eq(r->batch.results[0].status, OP_SKIPPED);
        ck_assert_int_eq(r->batch.results[1].status, REFUSALS[_i].status);
        ck_assert_int_eq(r->batch.results[1].fair, REFUSALS[_i].fair);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
    }
    freeReplyObject(redis_ask(peer_redis(), "DEL b redisson_lock_queue:{b}"));
    for (int again = 0; again < 2; again++) {
        expect_stop(run_as(INSTANCE_A, &op), THREE, OP_OK);
    }
    for (int i = 0; i < THREE; i++) {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN %s", NAMES[i]), 1);
    }
}

/* In a cluster, with leases of their own, or again after it did not get an answer. */
START_TEST(the_first_name_that_an_anonymous_request_is_not_granted_ends_it, 10)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ANONYMOUS);
    const struct op_result *r;

    op.grouped = _i % 2 == 1;
    items[2].claim.lease_ms = 2 * LEASE;
    if (_i / 2 < 4) {
        freeReplyObject(redis_ask(peer_redis(), REFUSALS[_i / 2].command));
    }
    for (int again = 0; again < 2 && _i / 2 < 4; again++) {
        r = run_as(INSTANCE_A, &op);
        expect_stop(r, 2, REFUSALS[_i / 2].status);
        ck_assert_int_eq(r->batch.results[1].fair, REFUSALS[_i / 2].fair);
        ck_assert_int_eq(r->batch.results[1].lock_class == CLASS_RW,
                         REFUSALS[_i / 2].rw);
    }
    freeReplyObject(redis_ask(peer_redis(), "DEL b redisson_lock_queue:{b}"));
    expect_stop(run_as(INSTANCE_A, &op), THREE, OP_OK);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL c"), LEASE);
    ck_assert_int_le(redis_ask_int(peer_redis(), "PTTL b"), LEASE);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL latchd:fence:{c}"),
                     OP_FENCE_TTL_MS + LEASE);
}

START_TEST(an_owner_that_holds_one_of_them_enters_again)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_NAMED);
    uint64_t token = take("b", claim_named("o", "id:0"));
    const struct op_result *r = run_as(INSTANCE_A, &op);

    expect_stop(r, THREE, OP_OK);
    ck_assert_uint_eq(r->batch.results[1].token, token);
    ck_assert_int_eq(r->batch.results[1].count, 2);
}

START_TEST(many_that_were_long_on_their_way_take_nothing_over_H4)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ID);
    struct op_times old = { .asked_us = redis_time_us() - 1000,
                            .deadline_us = redis_time_us() + 3000000 };

    expect_stop(run_as(INSTANCE_B, &op), THREE, OP_OK);
    ck_assert_int_eq(run_times(INSTANCE_A, &op, old)->batch.results[0].status,
                     OP_ELSEWHERE);
}

START_TEST(late_copies_of_many_do_nothing_H2)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ID);

    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}

START_TEST(a_hundred_names_fit)
{
    struct batch_item items[OP_BATCH_MAX];
    struct op op = { .kind = OP_ACQUIRE_BATCH,
                     .batch = { .items = items, .count = OP_BATCH_MAX } };
    char names[OP_BATCH_MAX][16];

    for (int i = 0; i < OP_BATCH_MAX; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        items[i].name = span_str(names[i]);
        items[i].claim = claim_anonymous("q:1");
    }
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->batch.count, OP_BATCH_MAX);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 2 * OP_BATCH_MAX);
}

START_TEST(a_user_who_may_not_set_a_ttl_is_told_so_and_no_lock_is_left)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ANONYMOUS);

    redis_expect(peer_redis(), "OK",
                 "ACL SETUSER u on >p ~* &* +@all "
                 "-pexpire -pexpireat");
    redis_expect(peer_redis(), "OK", "AUTH u p");
    expect_stop(run_as(INSTANCE_A, &op), 1, OP_ERROR);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS a b c"), 0);
}

/* `last`: the name's last token; 0: Redis knows of none. */
static void set_last(const char *name, uint64_t last)
{
    if (last != 0) {
        char value[64];

        (void)snprintf(value, sizeof value, "%" PRIu64 " aq:9", last);
        redis_expect(peer_redis(), "OK", "SET latchd:fence:{%s} %s PX 60000", name,
                     value);
    }
}

START_TEST(one_call_lends_those_names_that_are_to_be_lent)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ANONYMOUS);
    const struct op_result *r;

    for (int i = 0; i < THREE; i++) {
        items[i].claim.block_us = i == 1 ? 0 : BLOCK_US;
        set_last(NAMES[i], redis_time_us() - 1000);
    }
    r = run_as(INSTANCE_A, &op);
    ck_assert_uint_eq(r->batch.count, THREE);
    for (int i = 0; i < THREE; i++) {
        ck_assert_int_eq(r->batch.results[i].status, OP_OK);
        ck_assert_int_eq(r->batch.results[i].loan_token != 0, i != 1);
    }
    /* The request of the one that is not lent is told as it is. */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "STRLEN latchd:fence:{b}"),
                     redis_ask_int(peer_redis(), "STRLEN latchd:fence:{a}"));
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->batch.results[1].status, OP_OK); /* found again */
}

START_TEST(each_name_that_is_lent_has_a_block_behind_its_last_token_H35)
{
    struct batch_item items[THREE];
    struct op op = op_three(items, OWNER_ANONYMOUS);
    uint64_t last = redis_time_us() - 1000;
    const struct op_result *r;

    for (int i = 0; i < THREE; i++) {
        items[i].claim.block_us = BLOCK_US;
    }
    set_last("a", last);
    set_last("b", last - 2 * (uint64_t)BLOCK_US);
    r = run_as(INSTANCE_A, &op);
    ck_assert_uint_eq(r->batch.count, THREE);
    ck_assert_uint_eq(r->batch.results[0].token, last + 1);
    ck_assert_uint_gt(r->batch.results[0].loan_token, last + 1);
    ck_assert_uint_eq(r->batch.results[1].token,
                      r->batch.results[1].loan_token - BLOCK_US + 1);
    ck_assert_uint_eq(r->batch.results[2].loan_token, 0);
    for (int i = 0; i < THREE; i++) {
        uint64_t end = r->batch.results[i].loan_token;

        ck_assert_int_eq(redis_ask_int(peer_redis(), "HEXISTS %s latchd:%" PRIu64,
                                       NAMES[i],
                                       end != 0 ? end : r->batch.results[i].token),
                         1);
    }
}
