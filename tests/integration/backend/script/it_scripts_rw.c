/* Read/write locks: what is granted to whom, and what is left where somebody leaves. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

static const char READER_1[] = INSTANCE_A ":1";
static const char READER_2[] = INSTANCE_B ":2";

/* A reader (0) and a writer (1) of each kind of owner, and a second one of each. */
static struct claim claim_of(enum lock_kind lock_kind, int kind, int which)
{
    bool write = lock_kind == KIND_WRITE;

    switch (kind) {
    case OWNER_ANONYMOUS:
        return rw_claim(lock_kind, OWNER_ANONYMOUS, which == 0 ? READER_1 : READER_2,
                        NULL);
    case OWNER_ID:
        return rw_claim(lock_kind, OWNER_ID,
                        write
                            ? (which == 0 ? "latchd:id:r1:write" : "latchd:id:r2:write")
                            : (which == 0 ? "latchd:id:r1" : "latchd:id:r2"),
                        NULL);
    default:
        return rw_claim(lock_kind, OWNER_NAMED,
                        write ? (which == 0 ? "o:write" : "p:write")
                              : (which == 0 ? "o" : "p"),
                        which == 0 ? "id:1" : "id:2");
    }
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_reader_is_in_redissons_layout, 3)
{
    struct claim c = claim_of(KIND_READ, _i, 0);
    uint64_t token = rw_take(c);
    const char *field = rw_field(c, token);
    struct test_redis *r = peer_redis();
    char want[40];

    redis_expect(r, "read", "HGET n mode");
    redis_expect(r, "1", "HGET n %s", field);
    ck_assert_int_eq(redis_ask_int(r, "HLEN n"), 2);
    rw_about(rw_ttl(), LEASE);
    rw_about(rw_hold_ttl(field, 1), LEASE);
    (void)snprintf(want, sizeof want, "%" PRIu64, token);
    redis_expect(r, want, "GET {n}:%s:rwlock_timeout:1", field);
    redis_expect(r, field, "GET latchd:reader:{n}:%s", want);
    ck_assert_int_eq(redis_ask_int(r, "EXISTS latchd:keeper:{n}:%s", field),
                     c.owner_kind == OWNER_ID);
    ck_assert_int_eq(redis_ask_int(r, "HLEN latchd:entries:{n}"),
                     c.owner_kind == OWNER_NAMED);
    ck_assert_int_gt(redis_ask_int(r, "PTTL latchd:fence:{n}"), OP_FENCE_TTL_MS);
    /* And nothing else. */
    ck_assert_int_eq(redis_ask_int(r, "DBSIZE"),
                     c.owner_kind == OWNER_ANONYMOUS ? 4 : 5);
    ck_assert(rw_leave(c)->release.freed);
    ck_assert_int_eq(redis_ask_int(r,
                                   "EXISTS n latchd:entries:{n} "
                                   "latchd:reader:{n}:%s latchd:keeper:{n}:%s "
                                   "{n}:%s:rwlock_timeout:1",
                                   want, field, field),
                     0);
}

START_TEST(a_writer_is_in_redissons_layout, 3)
{
    struct claim c = claim_of(KIND_WRITE, _i, 0);
    uint64_t token = rw_take(c);
    struct test_redis *r = peer_redis();
    char want[120];

    redis_expect(r, "write", "HGET n mode");
    redis_expect(r, "1", "HGET n %s", rw_field(c, token));
    ck_assert_int_eq(redis_ask_int(r, "HLEN n"), 2);
    rw_about(rw_ttl(), LEASE);
    (void)snprintf(want, sizeof want, "%" PRIu64 " %s%s", token,
                   c.owner_kind == OWNER_ANONYMOUS ? "a" : "f" INSTANCE_A,
                   c.owner_kind == OWNER_ANONYMOUS ? READER_1 : rw_field(c, token));
    redis_expect(r, want, "GET latchd:writer:{n}");
    redis_expect(r, want, "GET latchd:fence:{n}");
    ck_assert_int_gt(redis_ask_int(r, "PTTL latchd:writer:{n}"), OP_FENCE_TTL_MS);
    ck_assert_int_eq(redis_ask_int(r, "DBSIZE"), c.owner_kind == OWNER_NAMED ? 4 : 3);
    ck_assert(rw_leave(c)->release.freed);
    ck_assert_int_eq(redis_ask_int(r, "EXISTS n latchd:entries:{n}"), 0);
}

START_TEST(a_name_with_a_brace_is_not_braced_again_for_readers)
{
    struct op op = rw_acquire(rw_reader("o", "id:1"));

    op.name = SPAN("my:{t}:x");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS %s %s",
                                   "my:{t}:x:o:rwlock_timeout:1",
                                   "latchd:entries:my:{t}:x"),
                     2);
}

START_TEST(readers_share_and_writers_do_not, 3)
{
    uint64_t first, second;

    first = rw_take(claim_of(KIND_READ, _i, 0));
    second = rw_take(claim_of(KIND_READ, (_i + 1) % 3, 1));
    ck_assert_uint_gt(second, first);
    ck_assert_int_eq(rw_try(claim_of(KIND_WRITE, _i, 1)),
                     _i != OWNER_ANONYMOUS && _i == (_i + 1) % 3 ? OP_UPGRADE
                                                                 : OP_BUSY);
    ck_assert_int_eq(rw_leave(claim_of(KIND_READ, _i, 0))->status, OP_OK);
    redis_expect(peer_redis(), "read", "HGET n mode");
    ck_assert(rw_leave(claim_of(KIND_READ, (_i + 1) % 3, 1))->release.freed);
    redis_expect(peer_redis(), "OK", "FLUSHALL");

    (void)rw_take(claim_of(KIND_WRITE, _i, 0));
    for (int kind = 0; kind < 3; kind++) {
        ck_assert_int_eq(rw_try(claim_of(KIND_READ, kind, 1)), OP_BUSY);
        ck_assert_int_eq(rw_try(claim_of(KIND_WRITE, kind, 1)), OP_BUSY);
    }
    ck_assert(rw_leave(claim_of(KIND_WRITE, _i, 0))->release.freed);
}

START_TEST(asking_again_finds_the_same_hold, 6)
{
    struct claim c = claim_of(_i < 3 ? KIND_READ : KIND_WRITE, _i % 3, 0);
    struct op op = rw_acquire(c);
    uint64_t token = rw_take(c);

    if (_i < 3) {
        (void)rw_take(claim_of(KIND_READ, (_i + 1) % 3, 1));
    }
    for (int i = 0; i < 3; i++) {
        const struct op_result *r = run_as(INSTANCE_A, &op);

        ck_assert_int_eq(r->status, OP_OK);
        ck_assert_uint_eq(r->token, token);
        ck_assert_int_eq(r->count, 1);
    }
    redis_expect(peer_redis(), "1", "HGET n %s", rw_field(c, token));
    ck_assert_int_eq(rw_leave(c)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HEXISTS n %s", rw_field(c, token)),
                     0);
}

START_TEST(a_named_owner_enters_again_and_leaves_in_any_order, 4)
{
    enum lock_kind kind = _i < 2 ? KIND_READ : KIND_WRITE;
    const char *field = kind == KIND_READ ? "o" : "o:write";
    struct claim first = rw_claim(kind, OWNER_NAMED, field, "id:1");
    struct claim second = rw_claim(kind, OWNER_NAMED, field, "id:2");
    uint64_t token = rw_take(first);

    second.lease_ms = 2 * LEASE;
    ck_assert_uint_eq(rw_take(second), token);
    redis_expect(peer_redis(), "2", "HGET n %s", field);
    /* Raised to the lease, not added to it as Redisson does. */
    rw_about(rw_ttl(), 2 * LEASE);
    if (kind == KIND_READ) {
        rw_about(rw_hold_ttl("o", 1), 2 * LEASE);
        rw_about(rw_hold_ttl("o", 2), 2 * LEASE);
    }
    ck_assert_int_eq(rw_leave(_i % 2 == 0 ? first : second)->count, 1);
    rw_about(rw_ttl(), 2 * LEASE);
    if (kind == KIND_READ) {
        rw_about(rw_hold_ttl("o", 1), 2 * LEASE);
        ck_assert_int_eq(rw_hold_ttl("o", 2), -2);
    }
    ck_assert(rw_leave(_i % 2 == 0 ? second : first)->release.freed);
}

START_TEST(an_owner_may_read_under_its_own_write_only)
{
    struct claim w = rw_writer("o:write", "id:1");
    struct claim r = rw_reader("o", "id:2");
    uint64_t token = rw_take(w);

    w.lease_ms = r.lease_ms = LEASE;
    ck_assert_int_eq(rw_try(rw_reader("p", "id:3")), OP_BUSY);
    ck_assert_uint_gt(rw_take(r), token);
    redis_expect(peer_redis(), "write", "HGET n mode");
    ck_assert_int_eq(rw_try(rw_reader("p", "id:3")), OP_BUSY);
    ck_assert_uint_eq(rw_take(rw_writer("o:write", "id:4")), token);
    ck_assert_int_eq(rw_leave(rw_writer("o:write", "id:4"))->count, 1);
    ck_assert(!rw_leave(r)->release.freed);
    redis_expect(peer_redis(), "write", "HGET n mode");
    ck_assert(rw_leave(w)->release.freed);
}

START_TEST(a_reader_cannot_become_the_writer)
{
    (void)rw_take(rw_reader("o", "id:1"));
    ck_assert_int_eq(rw_try(rw_writer("o:write", "id:2")), OP_UPGRADE);
    ck_assert_int_eq(rw_try(rw_writer("p:write", "id:3")), OP_BUSY);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
    /* One whose lease is over does not read any more. */
    (void)rw_take(rw_reader("q", "id:4"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL {n}:o:rwlock_timeout:1"), 1);
    ck_assert_int_eq(rw_try(rw_writer("o:write", "id:2")), OP_BUSY);
}

START_TEST(reenter_only_lets_nobody_else_in)
{
    struct op op = rw_acquire(rw_reader("o", "id:1"));

    op.acquire.reenter_only = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->ttl_ms, -2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    (void)rw_take(rw_reader("p", "id:9"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_BUSY);
    (void)rw_take(rw_reader("o", "id:2"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 2);
}

START_TEST(the_last_reader_frees_and_publishes_0, 3)
{
    redisContext *c;
    struct claim first = claim_of(KIND_READ, _i, 0);
    struct claim second = claim_of(KIND_READ, (_i + 1) % 3, 1);

    c = rw_listen();
    (void)rw_take(first);
    (void)rw_take(second);
    ck_assert(!rw_leave(first)->release.freed);
    rw_hear(c, NULL);
    ck_assert(rw_leave(second)->release.freed);
    rw_hear(c, "0");
    redisFree(c);
    ck_assert_int_eq(rw_leave(second)->status, OP_ENDED);
}

START_TEST(a_writer_who_leaves_publishes_1_and_0, 3)
{
    redisContext *c = rw_listen();
    struct claim w = claim_of(KIND_WRITE, _i, 0);

    (void)rw_take(w);
    ck_assert(rw_leave(w)->release.freed);
    rw_hear(c, "1");
    rw_hear(c, "0"); /* see rw_release.lua */
    redisFree(c);
}

START_TEST(the_lock_lives_as_long_as_the_longest_reader)
{
    struct claim shorter = rw_reader("o", "id:1");
    struct claim longer = rw_reader("p", "id:2");

    longer.lease_ms = 10 * LEASE;
    (void)rw_take(shorter);
    (void)rw_take(longer);
    rw_about(rw_ttl(), 10 * LEASE);
    (void)rw_leave(longer);
    rw_about(rw_ttl(), LEASE);
    (void)rw_take(longer = rw_reader("p", "id:3"));
    shorter.lease_ms = 1000;
    (void)rw_take(shorter);
    rw_about(rw_ttl(), LEASE);
}

START_TEST(dead_readers_do_not_keep_the_lock)
{
    redisContext *c = rw_listen();

    (void)rw_take(rw_reader("dead", "id:1"));
    (void)rw_take(rw_reader("o", "id:2"));
    (void)rw_take(rw_reader("p", "id:3"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL {n}:dead:rwlock_timeout:1"), 1);
    (void)rw_leave(rw_reader("o", "id:2"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HEXISTS n dead"), 0);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:entries:{n}"), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET n dead 3"), 1);
    ck_assert(rw_leave(rw_reader("p", "id:3"))->release.freed);
    rw_hear(c, "0");
    redisFree(c);
}

START_TEST(a_dead_reader_who_comes_again_starts_afresh, 3)
{
    struct claim c = claim_of(KIND_READ, _i, 0);
    uint64_t token = rw_take(c);
    const char *field = rw_field(c, token);
    struct op old = rw_release(TARGET_TOKEN, KIND_PLAIN, NULL, NULL);

    (void)rw_take(claim_of(KIND_READ, (_i + 1) % 3, 1)); /* the hash stays */
    redis_expect(peer_redis(), NULL, "EVAL %s 1 n %s",
                 "redis.call('HSET', KEYS[1], ARGV[1], 3)", field);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL {n}:%s:rwlock_timeout:1", field),
                     1);
    ck_assert_int_eq(rw_leave(c)->status, OP_NOTHELD);
    ck_assert_int_eq(rw_renew(INSTANCE_A, c, token, false), RENEW_GONE);
    ck_assert_uint_gt(rw_take(c), token);
    redis_expect(peer_redis(), "1", "HGET n %s", field);
    old.release.target.token = token;
    ck_assert_int_eq(run_as(INSTANCE_A, &old)->status, OP_NOTHELD);
    ck_assert_int_eq(rw_leave(c)->status, OP_OK);
}

START_TEST(a_left_over_entry_is_no_entry_of_a_later_hold)
{
    (void)rw_take(rw_reader("p", "id:9"));
    (void)rw_take(rw_reader("o", "id:1"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HDEL n o"), 1);
    (void)rw_take(rw_reader("o", "id:2"));
    ck_assert_int_eq(rw_leave(rw_reader("o", "id:1"))->status, OP_NOTHELD);
    redis_expect(peer_redis(), "1", "HGET n o");
    (void)rw_take(rw_reader("o", "id:1"));
    redis_expect(peer_redis(), "2", "HGET n o");
}

/* Of several readers each has a lease; the fence key outlives the longest. */
START_TEST(a_reader_with_a_short_lease_leaves_the_fence_key_its_time)
{
    struct claim brief = claim_of(KIND_READ, OWNER_ID, 1);

    (void)rw_take(claim_of(KIND_READ, OWNER_ID, 0));
    ck_assert_int_eq(
        redis_ask_int(peer_redis(), "PEXPIRE latchd:fence:{n} %d", 2 * OP_FENCE_TTL_MS),
        1);
    (void)rw_take(brief);
    ck_assert_int_gt(redis_ask_int(peer_redis(), "PTTL latchd:fence:{n}"),
                     2 * OP_FENCE_TTL_MS - LEASE);
}
