/* Acquire, renew, attach, inspect; and Redisson on the same names. */
#include "scripts_peer.h"

#include "support/runner.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ID_1[] = "latchd:id:11111111-1111-4111-8111-111111111111";

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(script_load_answers_the_embedded_sha1, LUA_COUNT)
{
    redis_expect(peer_redis(), LUA_SCRIPTS[PUBLISH_PLAIN][_i].sha1, "SCRIPT LOAD %b",
                 LUA_SCRIPTS[PUBLISH_PLAIN][_i].text,
                 LUA_SCRIPTS[PUBLISH_PLAIN][_i].len);
}

START_TEST(a_free_lock_is_taken_in_redissons_layout)
{
    uint64_t before = redis_time_us();
    uint64_t token = take("n", claim_anonymous("aaaaaaaaaaaaaaaa:1"));
    struct test_redis *r = peer_redis();
    char text[80];

    ck_assert_uint_ge(token, before);
    ck_assert_int_eq(redis_ask_int(r, "HLEN n"), 1);
    (void)snprintf(text, sizeof text, "latchd:%" PRIu64, token);
    redis_expect(r, "1", "HGET n %s", text);
    (void)snprintf(text, sizeof text, "%" PRIu64 " aaaaaaaaaaaaaaaa:1", token);
    (void)snprintf(text, sizeof text, "%" PRIu64 " a%s", token, "aaaaaaaaaaaaaaaa:1");
    redis_expect(r, text, "GET latchd:fence:{n}");
    ck_assert_int_gt(redis_ask_int(r, "PTTL n"), LEASE - 5000);
    ck_assert_int_gt(redis_ask_int(r, "PTTL latchd:fence:{n}"), OP_FENCE_TTL_MS);
    ck_assert_int_eq(redis_ask_int(r, "DBSIZE"), 2);
}

START_TEST(a_name_with_a_brace_is_not_braced_again)
{
    (void)take("my:{t}:x", claim_named("o", "id:1"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS %s %s",
                                   "latchd:fence:my:{t}:x", "latchd:entries:my:{t}:x"),
                     2);
}

START_TEST(tokens_grow_beyond_the_last_the_clock_and_what_was_seen)
{
    struct op op = op_acquire("n", claim_anonymous("q:1"));
    uint64_t far = redis_time_us() + UINT64_C(1000000000000);

    op.seen_token = far;
    ck_assert_uint_eq(run_as(INSTANCE_A, &op)->token, far + 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    ck_assert_uint_eq(take("n", claim_anonymous("q:2")), far + 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n latchd:fence:{n}"), 2);
    ck_assert_uint_lt(take("n", claim_anonymous("q:3")), far);
}

START_TEST(asking_again_finds_the_same_grant)
{
    uint64_t token = take("n", claim_anonymous("q:1"));

    ck_assert_uint_eq(take("n", claim_anonymous("q:1")), token);
    ck_assert_int_eq(try_take("n", claim_anonymous("q:2")), OP_BUSY);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 1);

    token = take("i", claim_id(ID_1));
    for (int i = 0; i < 10; i++) {
        ck_assert_uint_eq(take("i", claim_id(ID_1)), token);
    }
    redis_expect(peer_redis(), "1", "HGET i %s", ID_1);

    token = take("o", claim_named("o", "id:1"));
    ck_assert_uint_eq(take("o", claim_named("o", "id:1")), token);
    redis_expect(peer_redis(), "1", "HGET o o");
    ck_assert_uint_eq(take("o", claim_named("o", "id:2")), token);
    redis_expect(peer_redis(), "2", "HGET o o");
}

/* Another daemon granted it from its memory, and has settled it. */
START_TEST(who_comes_back_is_told_of_the_loan)
{
    struct op lend = op_acquire("n", claim_anonymous("q:1"));
    struct op attach = op_attach("n", TARGET_TOKEN, NULL, NULL);
    const struct op_result *r;
    uint64_t first, last;

    (void)take("n", claim_anonymous("q:0"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    lend.acquire.claim.block_us = 1000;
    r = run_as(INSTANCE_A, &lend);
    first = r->token;
    last = r->loan_token;
    ck_assert_uint_gt(last, first);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HDEL n latchd:%" PRIu64, last), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET n latchd:%" PRIu64 " 1", first),
                     1);
    attach.attach.target.token = first;
    attach.attach.lease_ms = LEASE;
    r = run_as(INSTANCE_B, &attach);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, first);
    ck_assert_uint_eq(r->loan_token, last);
}

START_TEST(busy_tells_the_time_that_is_left)
{
    struct op op = op_acquire("n", claim_anonymous("q:2"));
    const struct op_result *r;

    (void)take("n", claim_anonymous("q:1"));
    r = run_as(INSTANCE_B, &op);
    ck_assert_int_eq(r->status, OP_BUSY);
    ck_assert(r->ttl_ms > LEASE - 5000 && r->ttl_ms <= LEASE);
}

START_TEST(busy_tells_whether_a_latchd_granted_the_hold)
{
    struct op op = op_acquire("n", claim_anonymous("q:9"));
    const struct claim claims[] = { claim_anonymous("q:1"), claim_id(ID_1),
                                    claim_named("o", "id:1") };

    for (size_t i = 0; i < 3; i++) {
        (void)take("n", claims[i]);
        ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_BUSY);
        ck_assert(run_as(INSTANCE_B, &op)->by_latchd);
        ck_assert(!run_as(INSTANCE_B, &op)->foreign);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
        ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
        ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_BUSY);
        ck_assert(!run_as(INSTANCE_B, &op)->by_latchd);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    }
}

START_TEST(reenter_only_leaves_a_free_lock)
{
    struct op op = op_acquire("n", claim_named("o", "id:1"));

    op.acquire.reenter_only = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BUSY);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->ttl_ms, -2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    (void)take("n", claim_named("o", "id:0"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 2);
}

START_TEST(reentry_raises_the_ttl_and_never_lowers_it)
{
    struct op longer = op_acquire("n", claim_named("o", "id:2"));
    struct op shorter = op_acquire("n", claim_named("o", "id:3"));

    (void)take("n", claim_named("o", "id:1"));
    longer.acquire.claim.lease_ms = 90000;
    (void)run_as(INSTANCE_A, &longer);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), 80000);
    shorter.acquire.claim.lease_ms = 100;
    (void)run_as(INSTANCE_A, &shorter);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), 80000);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL latchd:entries:{n}"),
                     OP_FENCE_TTL_MS + 80000);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PERSIST n"), 1);
    (void)run_as(INSTANCE_A, &shorter);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), 0);
}

START_TEST(left_over_entries_of_an_expired_hold_do_not_count)
{
    (void)take("n", claim_named("o", "id:1"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    (void)take("n", claim_named("o", "id:2"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:entries:{n}"), 1);
}

/* Golden vectors of Redisson's RLock, with a latchd client as one of the parties. */
START_TEST(redisson_and_latchd_exclude_each_other)
{
    struct claim me = claim_anonymous("q:1");
    struct op unlock = op_release("n", TARGET_REQUEST, NULL, "q:1");
    int64_t ttl;

    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    ck_assert_int_eq(try_take("n", me), OP_BUSY);
    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    redis_expect(peer_redis(), "2", "HGET n %s", REDISSON_A);
    ck_assert_int_eq(redisson_release("n", REDISSON_B, "r0"), -1);
    ck_assert_int_eq(redisson_release("n", REDISSON_A, "r1"), 0);
    ck_assert_int_eq(redisson_release("n", REDISSON_A, "r1"), 0);
    ck_assert_int_eq(try_take("n", me), OP_BUSY);
    ck_assert_int_eq(redisson_release("n", REDISSON_A, "r2"), 1);

    (void)take("n", me);
    ttl = redisson_acquire("n", REDISSON_B, LEASE);
    ck_assert(ttl > LEASE - 5000 && ttl <= LEASE);
    ck_assert_int_eq(redisson_release("n", REDISSON_B, "r3"), -1);
    ck_assert_int_eq(redisson_renew("n", REDISSON_B, LEASE), 0);
    ck_assert(run_as(INSTANCE_A, &unlock)->release.freed);
    ck_assert_int_eq(redisson_acquire("n", REDISSON_B, LEASE), -1);
}

START_TEST(an_owner_shared_with_redisson_counts_together)
{
    struct op unlock = op_release("n", TARGET_ENTRY, REDISSON_A, "id:1");

    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1);
    (void)take("n", claim_named(REDISSON_A, "id:1"));
    redis_expect(peer_redis(), "2", "HGET n %s", REDISSON_A);
    ck_assert_int_eq(redisson_renew("n", REDISSON_A, LEASE), 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &unlock)->count, 1);
    ck_assert_int_eq(run_as(INSTANCE_A, &unlock)->status, OP_ENDED);
    redis_expect(peer_redis(), "1", "HGET n %s", REDISSON_A);
    ck_assert_int_eq(redisson_release("n", REDISSON_A, "r"), 1);
}

static const char *const FOREIGN[] = {
    "SET n x",
    "HSET n mode read r1 1",
    "RPUSH n x",
};

START_TEST(a_name_of_another_kind_is_refused_by_every_op, 3)
{
    struct renew_item item = { .name = SPAN("n"),
                               .field = span_str(ID_1),
                               .owner_kind = OWNER_ID };
    struct op ops[] = {
        op_acquire("n", claim_anonymous("q:1")),
        op_acquire("n", claim_id(ID_1)),
        op_acquire("n", claim_named("o", "id:1")),
        op_release("n", TARGET_FIELD, ID_1, NULL),
        op_release("n", TARGET_ANY, NULL, NULL),
        op_attach("n", TARGET_FIELD, ID_1, NULL),
        op_attach("n", TARGET_OWNER, "o", NULL),
        op_release("n", TARGET_ENTRY, "o", "id:1"),
        op_release("n", TARGET_REQUEST, NULL, "q:1"),
    };
    struct op renew = { .kind = OP_RENEW, .renew.items = &item, .renew.count = 1 };
    bool rw = strstr(FOREIGN[_i], "mode") != NULL;

    ops[4].release.force = true;
    freeReplyObject(redis_ask(peer_redis(), FOREIGN[_i]));
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        const struct op_result *r = run_as(INSTANCE_A, &ops[i]);

        ck_assert_msg(r->status == OP_WRONGTYPE, "op %zu", i);
        ck_assert_msg(r->is_lock == rw && (!rw || r->lock_class == CLASS_RW), "op %zu",
                      i);
    }
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_WRONGTYPE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL n"), -1);
}

START_TEST(one_renewal_serves_many_and_none_spoils_the_others)
{
    struct op renew = { .kind = OP_RENEW };
    struct renew_item items[OP_RENEW_MAX];
    char names[OP_RENEW_MAX][16], fields[OP_RENEW_MAX][40];
    const struct op_result *r;

    for (int i = 0; i < OP_RENEW_MAX; i++) {
        uint64_t token;

        (void)snprintf(names[i], sizeof names[i], "n%d", i);
        token = take(names[i], claim_anonymous("q:1"));
        (void)snprintf(fields[i], sizeof fields[i], "latchd:%" PRIu64, token);
        items[i] = (struct renew_item){ .name = span_str(names[i]),
                                        .field = span_str(fields[i]),
                                        .token = token,
                                        .lease_ms = 60000,
                                        .exact = i >= 90 };
    }
    freeReplyObject(redis_ask(peer_redis(), "SET n7 x"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n8"), 1);
    freeReplyObject(
        redis_ask(peer_redis(), "SET latchd:keeper:{n9}:%s %s", fields[9], INSTANCE_B));
    renew.renew.items = items;
    renew.renew.count = OP_RENEW_MAX;
    r = run_as(INSTANCE_A, &renew);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->renew.count, OP_RENEW_MAX);
    for (int i = 0; i < OP_RENEW_MAX; i++) {
        ck_assert_int_eq(r->renew.items[i], i == 7   ? RENEW_WRONGTYPE
                                            : i == 8 ? RENEW_GONE
                                            : i == 9 ? RENEW_ELSEWHERE
                                                     : RENEW_OK);
    }
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n99"), LEASE);
    ck_assert_int_le(redis_ask_int(peer_redis(), "PTTL n9"), LEASE);
}

START_TEST(a_renewal_raises_unless_it_is_exact)
{
    struct renew_item item = { .name = SPAN("n"), .field = span_str(ID_1) };
    struct op renew = { .kind = OP_RENEW, .renew.items = &item, .renew.count = 1 };
    struct test_redis *r = peer_redis();

    item.owner_kind = OWNER_ID;
    item.token = take("n", claim_id(ID_1));
    item.lease_ms = 1000;
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_OK);
    ck_assert_int_gt(redis_ask_int(r, "PTTL n"), LEASE - 5000);
    item.exact = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_OK);
    ck_assert_int_le(redis_ask_int(r, "PTTL n"), 1000);

    ck_assert_int_eq(redis_ask_int(r, "PERSIST n"), 1);
    item = (struct renew_item){ .name = SPAN("n"),
                                .owner_kind = OWNER_ID,
                                .field = span_str(ID_1),
                                .token = item.token,
                                .lease_ms = 86400000,
                                .fence = true,
                                .has_keeper_key = true };
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_OK);
    ck_assert_int_gt(redis_ask_int(r, "PTTL n"), 86000000);
    ck_assert_int_gt(redis_ask_int(r, "PTTL latchd:fence:{n}"), 86400000);
    ck_assert_int_gt(redis_ask_int(r, "PTTL latchd:keeper:{n}:%s", ID_1), 86400000);
}

/* The same script for a Redis that takes no GT: here, one whose word for it is another.
 */
START_TEST(a_renewal_raises_where_redis_knows_no_gt)
{
    const struct lua_script *script = &LUA_SCRIPTS[PUBLISH_PLAIN][LUA_RENEW];
    char *text = xstrdup(script->text), *gt = strstr(text, "'GT'");
    uint64_t token = take("n", claim_anonymous("q:1"));

    ck_assert_ptr_nonnull(gt);
    memcpy(gt, "'G?'", 4);
    ck_assert_ptr_null(strstr(gt, "'GT'"));
    for (int lease = LEASE + 60000; lease > 0; lease -= LEASE + 60000 - 1000) {
        redisReply *r = redis_ask(peer_redis(), "EVAL %s 1 n %s %s 1000 1 %d %" PRIu64,
                                  text, "9e15", INSTANCE_A, lease, token);

        ck_assert_int_eq(r->type, REDIS_REPLY_ARRAY);
        ck_assert_int_eq(r->element[1]->integer, RENEW_OK);
        freeReplyObject(r);
        ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), LEASE);
    }
    free(text);
}

START_TEST(an_exact_renewal_does_not_cut_a_lease_that_others_count_on)
{
    struct renew_item item = { .name = SPAN("n"),
                               .owner_kind = OWNER_NAMED,
                               .field = SPAN("o"),
                               .entry = SPAN("id:1"),
                               .lease_ms = 1000,
                               .exact = true };
    struct op renew = { .kind = OP_RENEW, .renew.items = &item, .renew.count = 1 };
    struct op other = op_acquire("n", claim_named("o", "id:2"));

    (void)take("n", claim_named("o", "id:1"));
    (void)run_as(INSTANCE_B, &other);
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_OK);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL n"), LEASE - 5000);
    other = op_release("n", TARGET_ENTRY, "o", "id:2");
    (void)run_as(INSTANCE_B, &other);
    ck_assert_int_eq(run_as(INSTANCE_A, &renew)->renew.items[0], RENEW_OK);
    ck_assert_int_le(redis_ask_int(peer_redis(), "PTTL n"), 1000);
}

START_TEST(inspect_tells_owners_ttl_and_fence)
{
    struct op op = { .kind = OP_INSPECT, .name = SPAN("n") };
    const struct op_result *r = run_as(INSTANCE_A, &op);
    uint64_t token;

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->inspect.field_count, 0);
    ck_assert_int_eq(r->ttl_ms, -2);
    token = take("n", claim_named("o", "id:1"));
    r = run_as(INSTANCE_A, &op);
    ck_assert_uint_eq(r->inspect.field_count, 1);
    ck_assert(span_eq(r->inspect.fields[0].owner, SPAN("o")));
    ck_assert_int_eq(r->inspect.fields[0].count, 1);
    ck_assert_uint_eq(r->token, token);
    ck_assert(span_eq(r->attach.field, SPAN("f" INSTANCE_A "o")));
    ck_assert_int_gt(r->ttl_ms, 0);
}

START_TEST(inspect_is_bounded)
{
    struct op op = { .kind = OP_INSPECT, .name = SPAN("n") };

    redis_expect(peer_redis(), NULL, "EVAL %s 1 n",
                 "for i = 1, 5000 do redis.call('HSET', KEYS[1], i, i) end");
    ck_assert_uint_gt(run_as(INSTANCE_A, &op)->inspect.field_count, 900);
    ck_assert_uint_le(run_as(INSTANCE_A, &op)->inspect.field_count, SCRIPT_FIELDS_MAX);
}

START_TEST(a_user_who_may_not_set_a_ttl_leaves_no_lock_behind)
{
    struct op op = op_acquire("n", claim_anonymous("q:1"));

    redis_expect(peer_redis(), "OK", "ACL SETUSER u on >p ~* &* +@all -pexpire");
    redis_expect(peer_redis(), "OK", "AUTH u p");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ERROR);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}
