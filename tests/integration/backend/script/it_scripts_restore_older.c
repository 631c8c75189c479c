/* Putting back a hold whose place somebody has who held it before: restore.lua and
 * rw_restore.lua. The token tells which is the later one; who has none stays. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

static const char ID_1[] = "latchd:id:11111111-1111-4111-8111-111111111111";

static const struct op_result *restore(const char *instance, const char *name,
                                       struct claim claim, uint64_t token)
{
    static struct restore_entry kept;
    struct op op = {
        .kind = OP_RESTORE,
        .name = span_str(name),
        .restore.claim = claim,
        .restore.token = token,
        .restore.entries = &kept,
        .restore.entry_count = 1,
        .lock_class = claim.lock_kind == KIND_READ || claim.lock_kind == KIND_WRITE
                          ? CLASS_RW
                          : CLASS_PLAIN,
    };
    uint64_t now = redis_time_us();
    struct op_times times = { .asked_us = now, .deadline_us = now + 10000000 };

    kept.entry = claim.owner_kind == OWNER_NAMED ? claim.entry : SPAN_NONE;
    return run_times(instance, &op, times);
}

/* The hold that a grant of that token made. */
static struct claim claim_of(uint64_t token, const char *request)
{
    static char field[64];
    struct claim c = claim_anonymous(request);

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    c.field = span_str(field);
    return c;
}

static void lose_all(void)
{
    freeReplyObject(redis_ask(peer_redis(), "FLUSHALL"));
}

/* A failover that loses a release and the grants after it brings back who held before:
 * the token tells, for any giver and any keeper. */
static void older_is_displaced(struct claim older)
{
    uint64_t first = take("n", older);
    struct claim next = claim_of(first - 1, "q:0");

    ck_assert_int_eq(restore(INSTANCE_B, "n", next, first - 1)->status, OP_NOTHELD);
    next = claim_of(first + 1000, INSTANCE_B ":2");
    ck_assert_int_eq(restore(INSTANCE_B, "n", next, first + 1000)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 1);
    redis_expect(peer_redis(), "1", "HGET n latchd:%" PRIu64, first + 1000);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:entries:{n}"), 0);
    lose_all();
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 20);

START_TEST(who_held_before_a_lost_release_is_displaced)
{
    uint64_t first = take("n", claim_id(ID_1));
    struct claim next = claim_of(first + 1000, INSTANCE_B ":2");
    struct op attach = op_attach("n", TARGET_FIELD, ID_1, "");

    ck_assert_int_eq(run_as(INSTANCE_B, &attach)->status, OP_OK);
    ck_assert_int_eq(restore(INSTANCE_A, "n", next, first + 1000)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:keeper:{n}:%s", ID_1),
                     0);
    lose_all();
    older_is_displaced(claim_anonymous(INSTANCE_A ":1"));
    older_is_displaced(claim_id(ID_1));
    older_is_displaced(claim_named("o", "id:1"));
}

/* Without its token nobody is known to have held before. */
START_TEST(who_has_no_token_is_never_displaced)
{
    uint64_t first = take("n", claim_named(REDISSON_A, "id:1"));
    struct claim next = claim_of(first + 1000, INSTANCE_B ":2");

    ck_assert_int_eq(redisson_acquire("n", REDISSON_A, LEASE), -1); /* enters again */
    ck_assert_int_eq(restore(INSTANCE_B, "n", next, first + 1000)->status, OP_NOTHELD);
    redis_expect(peer_redis(), "2", "HGET n %s", REDISSON_A);
    lose_all();
    first = take("n", claim_id(ID_1));
    freeReplyObject(redis_ask(peer_redis(), "DEL latchd:fence:{n}"));
    ck_assert_int_eq(restore(INSTANCE_B, "n", next, first + 1000)->status, OP_NOTHELD);
    redis_expect(peer_redis(), "1", "HGET n %s", ID_1);
}

static struct claim writer_of(uint64_t token)
{
    static char field[64];
    struct claim c = rw_claim(KIND_WRITE, OWNER_ANONYMOUS, "q:9", "");

    (void)snprintf(field, sizeof field, "latchd:%" PRIu64 ":write", token);
    c.field = span_str(field);
    return c;
}

static struct claim some_reader(void)
{
    return rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_B ":9", "");
}

START_TEST(readers_and_writers_of_before_a_lost_release_are_displaced)
{
    struct claim older[] = {
        rw_claim(KIND_READ, OWNER_ANONYMOUS, INSTANCE_A ":7", ""),
        rw_claim(KIND_READ, OWNER_ID, ID_1, ""),
        rw_reader("o", "id:1"),
        rw_writer("o:write", "id:1"),
        rw_claim(KIND_WRITE, OWNER_ID, "latchd:id:22222222:write", ""),
        rw_claim(KIND_WRITE, OWNER_ANONYMOUS, INSTANCE_A ":8", ""),
    };

    for (size_t i = 0; i < sizeof older / sizeof *older; i++) {
        uint64_t token = rw_take(older[i]) + 1000;

        ck_assert_int_eq(restore(INSTANCE_B, "n", writer_of(token), token)->status,
                         OP_OK);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
        redis_expect(peer_redis(), "write", "HGET n mode");
        ck_assert_int_eq(
            redis_ask_int(peer_redis(),
                          "EXISTS latchd:entries:{n} {n}:o:rwlock_timeout:1"),
            0);
        lose_all();
        token = rw_take(older[i]) + 1000;
        ck_assert_int_eq(restore(INSTANCE_B, "n", some_reader(), token)->status, OP_OK);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), i < 3 ? 3 : 2);
        redis_expect(peer_redis(), "read", "HGET n mode");
        lose_all();
    }
}

START_TEST(what_a_displaced_writer_reads_goes_on_beside_a_reader)
{
    uint64_t token = rw_take(rw_writer("o:write", "id:1"));
    struct op reads = rw_acquire(rw_reader("o", "id:2"));

    ck_assert_int_eq(run_as(INSTANCE_A, &reads)->status, OP_OK);
    ck_assert_int_eq(restore(INSTANCE_B, "n", some_reader(), token + 1)->status, OP_OK);
    redis_expect(peer_redis(), "read", "HGET n mode");
    redis_expect(peer_redis(), "1", "HGET n o");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 3);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:entries:{n}"), 1);
}

static void redisson_holds(const char *mode, const char *field)
{
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET n mode %s %s 1", mode, field),
                     2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PEXPIRE n 30000"), 1);
}

START_TEST(redissons_readers_and_writers_are_never_displaced)
{
    uint64_t token = redis_time_us() + 1000000;

    redisson_holds("read", REDISSON_A);
    redis_expect(peer_redis(), "OK", "SET {n}:%s:rwlock_timeout:1 1 PX 30000",
                 REDISSON_A);
    ck_assert_int_eq(restore(INSTANCE_B, "n", writer_of(token), token)->status,
                     OP_NOTHELD);
    redis_expect(peer_redis(), "1", "HGET n %s", REDISSON_A);
    lose_all();
    redisson_holds("write", REDISSON_A ":write");
    ck_assert_int_eq(restore(INSTANCE_B, "n", writer_of(token), token)->status,
                     OP_NOTHELD);
    ck_assert_int_eq(restore(INSTANCE_B, "n", some_reader(), token)->status,
                     OP_NOTHELD);
    redis_expect(peer_redis(), "1", "HGET n %s:write", REDISSON_A);
}
