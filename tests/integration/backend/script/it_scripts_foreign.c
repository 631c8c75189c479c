/* Where a key beside a lock is of another type it is somebody else's: such a call
 * answers WRONGTYPE, and nothing has changed. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <stdio.h>
#include <string.h>

static const char ID_2[] = "latchd:id:22222222-2222-4222-8222-222222222222";
static const char READ_HOLD[] = "{n}:o:rwlock_timeout:1";

/* All there is, without its TTLs. */
static void dump(char *text, size_t room)
{
    redisReply *reply = redis_ask(
        peer_redis(), "EVAL %s 0",
        "local all, out = redis.call('KEYS', '*'), '' table.sort(all) "
        "for _, key in ipairs(all) do local what = redis.call('TYPE', key).ok "
        "local value = what == 'hash' and redis.call('HGETALL', key) "
        "or what == 'list' and redis.call('LRANGE', key, 0, -1) "
        "or what == 'zset' and redis.call('ZRANGE', key, 0, -1) "
        "or { redis.call('GET', key) } "
        "out = out .. key .. '=' .. table.concat(value, ',') .. ';' end return out");

    ck_assert_int_eq(reply->type, REDIS_REPLY_STRING);
    (void)snprintf(text, room, "%s", reply->str);
    freeReplyObject(reply);
}

static void make_foreign(const char *key)
{
    (void)redis_ask_int(peer_redis(), "DEL %s", key);
    if (strstr(key, "entries") != NULL || strstr(key, "fair") != NULL) {
        redis_expect(peer_redis(), "OK", "SET %s x", key);
    } else {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET %s other 1", key), 1);
    }
}

/* The op is refused, and all is as it was. */
static void expect_refused(const struct op *op)
{
    char before[4096], after[4096];

    dump(before, sizeof before);
    ck_assert_int_eq(run_as(INSTANCE_A, op)->status, OP_WRONGTYPE);
    dump(after, sizeof after);
    ck_assert_str_eq(after, before);
}

static const struct {
    enum owner_kind kind;
    bool fair;
    uint64_t propose;
    const char *key;
} TAKES[] = {
    { OWNER_ANONYMOUS, false, 0, "latchd:fence:{n}" },
    { OWNER_ID, false, 0, "latchd:fence:{n}" },
    { OWNER_NAMED, false, 0, "latchd:fence:{n}" },
    { OWNER_ID, false, 0, "latchd:keeper:{n}:" RW_ID },
    { OWNER_NAMED, false, 0, "latchd:entries:{n}" },
    { OWNER_ID, true, 0, "latchd:keeper:{n}:" RW_ID },
    { OWNER_NAMED, true, 0, "latchd:entries:{n}" },
    { OWNER_ID, true, 0, "redisson_lock_queue:{n}" },
    { OWNER_ID, true, 0, "redisson_lock_timeout:{n}" },
    { OWNER_ID, true, 0, "latchd:fair:{n}" },
    { OWNER_ID, false, 1000, "latchd:fence:{n}" },
    { OWNER_ID, false, 1000, "latchd:keeper:{n}:" RW_ID },
    { OWNER_NAMED, false, 1000, "latchd:entries:{n}" },
};

static struct claim claim_of(enum owner_kind kind)
{
    return kind == OWNER_ANONYMOUS ? claim_anonymous("q:1")
           : kind == OWNER_ID      ? claim_id(RW_ID)
                                   : claim_named("o", "id:1");
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_lock_is_not_taken, TEST_ROWS(TAKES))
{
    struct op op = op_acquire("n", claim_of(TAKES[_i].kind));

    op.acquire.fair = TAKES[_i].fair;
    op.acquire.enqueue = op.acquire.fair;
    op.fair_wait_ms = 30000;
    op.acquire.claim.member =
        op.acquire.fair ? SPAN("latchd:aaaaaaaaaaaaaaaa:1") : SPAN_NONE;
    op.acquire.propose = TAKES[_i].propose;
    make_foreign(TAKES[_i].key);
    expect_refused(&op);
}

static const char *const RW_KEYS[] = {
    "latchd:fence:{n}",
    "latchd:writer:{n}",
    "latchd:entries:{n}",
    READ_HOLD,
};

START_TEST(a_read_lock_is_not_taken, 4)
{
    struct op op = rw_acquire(rw_reader("o", "id:1"));

    make_foreign(RW_KEYS[_i]);
    expect_refused(&op);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

START_TEST(a_write_lock_is_not_taken, 3)
{
    struct op op = rw_acquire(rw_writer("o:write", "id:1"));

    make_foreign(RW_KEYS[_i]);
    expect_refused(&op);
}

/* A name of an older version, or of Redisson: another lock. */
START_TEST(a_reader_does_not_enter_again_over_another_lock)
{
    struct op op = rw_acquire(rw_reader("o", "id:2"));

    (void)rw_take(rw_reader("o", "id:1"));
    make_foreign("{n}:o:rwlock_timeout:2");
    expect_refused(&op);
    /* Nor is that one taken for a hold when it leaves. */
    redis_expect(peer_redis(), "2", "EVAL %s 1 n o",
                 "return redis.call('HINCRBY', KEYS[1], ARGV[1], 1) .. ''");
    op = rw_release(TARGET_FIELD, KIND_READ, "o", NULL);
    op.release.force = true;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN {n}:o:rwlock_timeout:2"), 1);
}

START_TEST(force_on_whoever_reads_leaves_another_lock)
{
    struct op op = rw_release(TARGET_ANY, KIND_PLAIN, NULL, NULL);

    op.release.force = true;
    (void)rw_take(rw_reader("o", "id:1"));
    make_foreign(READ_HOLD);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN %s", READ_HOLD), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

static const char *const BESIDE[] = {
    ("latchd:keeper:{n}:" RW_ID),
    "latchd:entries:{n}",
    "redisson_lock_queue:{n}",
    "latchd:fence:{n}",
};

START_TEST(a_lock_is_neither_released_nor_handed_over, 4)
{
    struct op op = op_release("n", TARGET_FIELD, RW_ID, NULL);

    (void)take("n", claim_id(RW_ID));
    make_foreign(BESIDE[_i]);
    expect_refused(&op);
    op.release.has_next = true;
    op.release.next = claim_id(ID_2);
    expect_refused(&op);
}

START_TEST(a_lock_is_not_handed_over_to_whom_it_cannot_belong, 2)
{
    struct op op = op_release("n", TARGET_REQUEST, NULL, "q:1");

    (void)take("n", claim_anonymous("q:1"));
    op.release.has_next = true;
    op.release.next = claim_of(_i == 0 ? OWNER_ID : OWNER_NAMED);
    make_foreign(_i == 0 ? "latchd:keeper:{n}:" RW_ID : "latchd:entries:{n}");
    expect_refused(&op);
}

START_TEST(a_read_lock_is_not_handed_over_either)
{
    struct op op = rw_release(TARGET_ENTRY, KIND_WRITE, "p:write", "id:2");

    (void)rw_take(rw_writer("p:write", "id:2"));
    op.release.has_next = true;
    op.release.next = rw_reader("o", "id:1");
    make_foreign(READ_HOLD);
    expect_refused(&op);
}

START_TEST(a_hold_is_not_put_back, 3)
{
    static const struct restore_entry KEPT[] = { { .entry = SPAN("id:1"),
                                                   .for_ms = 1000 } };
    struct op op = { .kind = OP_RESTORE,
                     .name = SPAN("n"),
                     .restore.claim = claim_of(_i == 0 ? OWNER_ID : OWNER_NAMED),
                     .restore.token = 1000,
                     .restore.entries = KEPT,
                     .restore.entry_count = 1 };

    if (_i == 2) {
        op.lock_class = CLASS_RW;
        op.restore.claim = rw_reader("o", "id:1");
    }
    make_foreign(_i == 0   ? "latchd:keeper:{n}:" RW_ID
                 : _i == 1 ? "latchd:entries:{n}"
                           : READ_HOLD);
    expect_refused(&op);
}

/* It may be gone before it is asked for again, but it is not held any more. */
START_TEST(a_release_whose_mark_cannot_be_left_is_one)
{
    struct op op = op_release("n", TARGET_FIELD, RW_ID, NULL);

    (void)take("n", claim_id(RW_ID));
    make_foreign("latchd:ended:{n}:" RW_ID);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:ended:{n}:%s", RW_ID), 1);
}

/* --- a string in place of the lock ------------------------------------------------ */

static struct op acquire_of(enum owner_kind kind)
{
    return (struct op){ .kind = OP_ACQUIRE,
                        .name = SPAN("n"),
                        .acquire = { .claim = claim_of(kind) } };
}

START_TEST(a_string_with_an_end_is_a_lock_that_is_waited_for, 3)
{
    struct op op = acquire_of((enum owner_kind)_i);
    char before[4096], after[4096];
    const struct op_result *r;

    redis_expect(peer_redis(), "OK", "SET n v PX 60000");
    dump(before, sizeof before);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_BUSY);
    ck_assert(r->foreign);
    ck_assert_int_gt(r->ttl_ms, 0);
    ck_assert_int_le(r->ttl_ms, 60000);
    dump(after, sizeof after);
    ck_assert_str_eq(after, before);
    (void)redis_ask_int(peer_redis(), "DEL n");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
}

static const struct {
    enum lock_kind kind;
    uint64_t propose;
} WAITS[] = {
    { KIND_FAIR, 0 }, { KIND_READ, 0 }, { KIND_WRITE, 0 }, { KIND_PLAIN, 9000 }
};

static struct op waiting_op(enum lock_kind kind, uint64_t propose)
{
    struct op op = kind == KIND_READ    ? rw_acquire(rw_reader("o", "id:1"))
                   : kind == KIND_WRITE ? rw_acquire(rw_writer("o:write", "id:1"))
                                        : acquire_of(OWNER_ID);

    op.acquire.fair = op.acquire.enqueue = kind == KIND_FAIR;
    if (op.acquire.fair) {
        op.acquire.claim.member = SPAN("latchd:aaaaaaaaaaaaaaaa:1");
        op.fair_wait_ms = 30000;
    }
    op.acquire.propose = propose;
    return op;
}

/* The string stays what it is; a fair claim waits in the queue. */
START_TEST(other_kinds_wait_for_a_string_with_an_end_too, TEST_ROWS(WAITS))
{
    struct op op = waiting_op(WAITS[_i].kind, WAITS[_i].propose);
    const struct op_result *r;

    redis_expect(peer_redis(), "OK", "SET n v PX 60000");
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_BUSY);
    ck_assert(r->foreign);
    redis_expect(peer_redis(), "v", "GET n");
    redis_expect(peer_redis(), "OK", "SET n v"); /* no end: no lock */
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_WRONGTYPE);
    (void)redis_ask_int(peer_redis(), "DEL n");
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
}

START_TEST(other_strings_and_data_are_no_lock, 3)
{
    struct op op = acquire_of(OWNER_ID);

    if (_i == 0) {
        redis_expect(peer_redis(), "OK", "SET n v");
    } else if (_i == 1) {
        redis_expect(peer_redis(), "OK", "SET n 3 PX 60000"); /* Redisson's permits */
        (void)redis_ask_int(peer_redis(), "ZADD {n}:timeout 1 x");
    } else {
        (void)redis_ask_int(peer_redis(), "LPUSH n x");
        (void)redis_ask_int(peer_redis(), "PEXPIRE n 60000");
    }
    expect_refused(&op);
}

START_TEST(a_look_tells_the_string_and_its_end)
{
    const struct op look = { .kind = OP_INSPECT, .name = SPAN("n") };
    const struct op_result *r;

    redis_expect(peer_redis(), "OK", "SET n v PX 60000");
    r = run_as(INSTANCE_A, &look);
    ck_assert_int_eq(r->status, OP_WRONGTYPE);
    ck_assert(r->inspect.is_string && span_eq(r->text, SPAN("v")));
    ck_assert_int_gt(r->ttl_ms, 0);
    redis_expect(peer_redis(), "OK", "SET n v");
    ck_assert_int_eq(run_as(INSTANCE_A, &look)->ttl_ms, -1);
    redis_expect(peer_redis(), "OK", "EVAL %s 0",
                 "return redis.call('SET', 'n', string.rep('v', 513))");
    ck_assert(!run_as(INSTANCE_A, &look)->inspect.is_string);
}
