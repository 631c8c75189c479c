/* Read/write locks: which hold is meant, who gets the lock next, coming back, renewing,
 * and what other families and lookers are told. */
#include "scripts_rw.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char READER_1[] = INSTANCE_A ":1";
static const char READER_2[] = INSTANCE_A ":2";

/* The same six claims, as holder (0) and as who is next (1): anonymous, ID, named
 * reader; the same of writers. */
static struct claim claim_of(int row, int which)
{
    enum lock_kind lock_kind = row < 3 ? KIND_READ : KIND_WRITE;
    bool write = row >= 3;

    switch (row % 3) {
    case OWNER_ANONYMOUS:
        return rw_claim(lock_kind, OWNER_ANONYMOUS, which == 0 ? READER_1 : READER_2,
                        NULL);
    case OWNER_ID:
        if (which == 0) {
            return rw_claim(lock_kind, OWNER_ID, write ? RW_ID ":write" : RW_ID, NULL);
        }
        return rw_claim(lock_kind, OWNER_ID,
                        write ? "latchd:id:r2:write" : "latchd:id:r2", NULL);
    default:
        if (which == 0) {
            return rw_claim(lock_kind, OWNER_NAMED, write ? "o:write" : "o", "id:x1");
        }
        return rw_claim(lock_kind, OWNER_NAMED, write ? "p:write" : "p", "id:x2");
    }
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* Rows: who holds, who is next. */
START_TEST(a_free_lock_moves_to_who_is_next_and_a_second_copy_says_the_same, 36)
{
    int old = _i / 6, new = _i % 6;
    struct op op = rw_release_of(claim_of(old, 0));
    struct op again = rw_acquire(claim_of(new, 1));
    redisContext *c = rw_listen();
    const struct op_result *r;
    uint64_t first = rw_take(claim_of(old, 0));
    uint64_t token;

    op.release.next = claim_of(new, 1);
    op.release.has_next = true;
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved && !r->release.freed && !r->release.shared);
    ck_assert_uint_gt(r->token, first);
    token = r->token;
    redis_expect(peer_redis(), new < 3 ? "read" : "write", "HGET n mode");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
    rw_about(rw_ttl(), LEASE);
    if (old >= 3 && new < 3) {
        rw_hear(c, "1"); /* other readers may come in, too */
        rw_hear(c, "0");
    }
    rw_hear(c, NULL);
    redisFree(c);

    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved);
    ck_assert_uint_eq(r->token, token);
    ck_assert_uint_eq(run_as(INSTANCE_A, &again)->token, token);
    ck_assert_int_eq(run_as(INSTANCE_A, &again)->count, 1);
    ck_assert(rw_leave(claim_of(new, 1))->release.freed);
}

START_TEST(its_marks_live_as_long_as_was_said, 6)
{
    struct op op = rw_release_of(claim_of(_i, 0));

    (void)rw_take(claim_of(_i, 0));
    op.release.tombstone_ms = 107000;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    expect_marks(107000);
}

START_TEST(a_lock_that_others_still_read_does_not_move, 3)
{
    struct op op = rw_release_of(claim_of(_i, 0));
    const struct op_result *r;

    (void)rw_take(claim_of(_i, 0));
    (void)rw_take(rw_reader("other", "id:o"));
    op.release.next = claim_of(3 + _i, 1);
    op.release.has_next = true;
    r = run_as(INSTANCE_A, &op);
    ck_assert(!r->moved && !r->release.freed && !r->release.shared);
    ck_assert_int_eq(r->count, 0);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
}

START_TEST(a_writer_who_still_reads_leaves_a_read_lock)
{
    struct claim w = rw_writer("o:write", "id:1");
    struct claim r = rw_reader("o", "id:2");
    struct op op = rw_release_of(w);
    redisContext *c = rw_listen();
    const struct op_result *result;

    w.lease_ms = 10 * LEASE;
    (void)rw_take(w);
    (void)rw_take(r);
    op.release.next = rw_writer("p:write", "id:3");
    op.release.has_next = true;
    result = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(result->status, OP_OK);
    ck_assert(result->release.shared && !result->release.freed && !result->moved);
    rw_hear(c, "1");
    rw_hear(c, "0");
    redis_expect(peer_redis(), "read", "HGET n mode");
    rw_about(rw_ttl(), LEASE);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
    (void)rw_take(rw_reader("p", "id:4"));
    ck_assert(!rw_leave(r)->release.freed);
    ck_assert(rw_leave(rw_reader("p", "id:4"))->release.freed);
    redisFree(c);
}

START_TEST(a_writer_whose_own_reading_is_over_leaves_nothing)
{
    (void)rw_take(rw_writer("o:write", "id:1"));
    (void)rw_take(rw_reader("o", "id:2"));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL {n}:o:rwlock_timeout:1"), 1);
    ck_assert(rw_leave(rw_writer("o:write", "id:1"))->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

/* Every way of asking for that release again; rows: the six claims. */
START_TEST(a_release_that_ran_is_found_however_it_is_asked_for_again, 6)
{
    struct claim c = claim_of(_i, 0);
    uint64_t token = rw_take(c);
    char base[80];
    struct op asks[8];
    size_t count = 0;

    (void)snprintf(base, sizeof base, "%s", rw_field(c, token));
    if (c.lock_kind == KIND_WRITE) {
        base[strlen(base) - strlen(":write")] = '\0';
    }
    ck_assert(rw_leave(c)->release.freed);
    switch (c.owner_kind) {
    case OWNER_ANONYMOUS:
        asks[count++] = rw_release(TARGET_REQUEST, KIND_PLAIN, NULL, READER_1);
        asks[count++] = rw_release(TARGET_FIELD, c.lock_kind, base, NULL);
        asks[count] = rw_release(TARGET_TOKEN, KIND_PLAIN, NULL, NULL);
        asks[count++].release.target.token = token;
        asks[count] = op_release("n", TARGET_TOKEN, NULL, NULL); /* a plain op */
        asks[count++].release.target.token = token;
        break;
    case OWNER_ID:
        asks[count++] = rw_release(TARGET_ID, KIND_PLAIN, base, base + 7);
        asks[count++] = rw_release(TARGET_ID, c.lock_kind, base, base + 7);
        asks[count++] = rw_release(TARGET_FIELD, KIND_PLAIN, base, NULL);
        asks[count++] = op_release("n", TARGET_ID, base, base + 7);
        ck_assert_int_eq(rw_try(c), OP_OVER);
        break;
    default:
        asks[count++] = rw_release(TARGET_ID, KIND_PLAIN, "latchd:id:x1", "id:x1");
        asks[count++] = rw_release(TARGET_ENTRY, KIND_PLAIN, base, "id:x1");
        asks[count++] = op_release("n", TARGET_ID, "latchd:id:x1", "id:x1");
        ck_assert_int_eq(rw_try(c), OP_OVER);
        break;
    }
    for (int busy = 0; busy < 3; busy++) {
        for (size_t i = 0; i < count; i++) {
            const struct op_result *r = run_as(INSTANCE_B, &asks[i]);

            ck_assert_msg(r->status == OP_ENDED && r->count == 0,
                          "busy %d, ask %zu: status %d", busy, i, (int)r->status);
        }
        /* And once more with somebody else's lock there, of either family. */
        if (busy == 0) {
            (void)rw_take(rw_reader("else", "id:e"));
        } else if (busy == 1) {
            ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
            (void)take("n", claim_named("else", "id:e2"));
        }
    }
}

/* The same ways, while it holds; with a wrong token nothing goes. */
START_TEST(each_way_of_naming_a_hold_finds_it, 12)
{
    struct claim c = claim_of(_i % 6, 0);
    bool by_token = _i < 6;
    uint64_t token = rw_take(c);
    struct op op = rw_release(TARGET_TOKEN, KIND_PLAIN, NULL, NULL);
    struct op attach = rw_attach_of(c);
    const struct op_result *r;

    if (!by_token) {
        op = rw_release_of(c);
    }
    op.release.force = by_token && c.owner_kind == OWNER_NAMED;
    op.release.target.token = token + 1;
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_NOTHELD);
    attach.attach.target.token = token + 1;
    ck_assert_int_eq(run_as(INSTANCE_B, &attach)->status, OP_NOTHELD);
    op.release.target.token = attach.attach.target.token = token;
    r = run_as(INSTANCE_B, &attach);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert_int_eq(r->lock_kind, c.lock_kind);
    ck_assert(span_eq(r->attach.field, span_str(rw_field(c, token))));
    ck_assert(
        span_eq(r->attach.entry, c.owner_kind == OWNER_NAMED ? c.entry : SPAN("")));
    rw_about(r->ttl_ms, LEASE);
    ck_assert(run_as(INSTANCE_B, &op)->release.freed);
}

START_TEST(who_both_reads_and_writes_has_to_say_which, 2)
{
    struct op op = rw_release(TARGET_OWNER, KIND_PLAIN, "o", NULL);
    struct op attach = rw_attach(TARGET_OWNER, KIND_PLAIN, "o", NULL);
    uint64_t token;

    (void)rw_take(rw_writer("o:write", "id:1"));
    token = rw_take(rw_reader("o", "id:2"));
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_AMBIGUOUS);
    ck_assert_int_eq(run_as(INSTANCE_A, &attach)->status, OP_AMBIGUOUS);
    attach.attach.target.token = token;
    ck_assert_int_eq(run_as(INSTANCE_A, &attach)->lock_kind, KIND_READ);
    attach.attach.target.token = 0;
    attach.attach.target.lock_kind = KIND_WRITE;
    ck_assert_int_eq(run_as(INSTANCE_A, &attach)->lock_kind, KIND_WRITE);
    op.release.target.lock_kind = _i == 0 ? KIND_READ : KIND_WRITE;
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_OK);
    redis_expect(peer_redis(), _i == 0 ? "write" : "read", "HGET n mode");
    op.release.target.lock_kind = KIND_PLAIN;
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
}

START_TEST(an_owners_newest_entry_of_the_kind_goes_first, 2)
{
    const char *field = _i == 0 ? "o" : "o:write";
    struct op op = rw_release(TARGET_OWNER, KIND_PLAIN, "o", INSTANCE_A ":77");

    for (int i = 0; i < 3; i++) {
        char entry[8];

        (void)snprintf(entry, sizeof entry, "id:%d", (i * 2) % 3);
        (void)rw_take(
            rw_claim(_i == 0 ? KIND_READ : KIND_WRITE, OWNER_NAMED, field, entry));
    }
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HEXISTS latchd:entries:{n} id:1"), 0);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->status, OP_ENDED);
    ck_assert_int_eq(run_as(INSTANCE_A, &op)->count, 2);
    redis_expect(peer_redis(), "2", "HGET n %s", field);
}

START_TEST(force_ends_one_whole_hold_and_any_all_of_them)
{
    struct op op = rw_release(TARGET_OWNER, KIND_PLAIN, "o", NULL);

    op.release.force = true;
    (void)rw_take(rw_reader("o", "id:1"));
    (void)rw_take(rw_reader("o", "id:2"));
    (void)rw_take(rw_reader("p", "id:3"));
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN n"), 2);
    ck_assert_int_eq(
        redis_ask_int(peer_redis(),
                      "EXISTS {n}:o:rwlock_timeout:1 {n}:o:rwlock_timeout:2"),
        0);
    (void)rw_take(rw_reader("o", "id:4"));
    op.release.target.kind = TARGET_ANY;
    op.release.target.field = SPAN_NONE;
    ck_assert(run_as(INSTANCE_B, &op)->release.freed);
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_NOTHELD);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1); /* the fence key */
    (void)rw_take(rw_writer("o:write", "id:5"));
    (void)rw_take(rw_reader("o", "id:6"));
    ck_assert(run_as(INSTANCE_B, &op)->release.freed);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS n"), 0);
}

START_TEST(the_lock_is_freed_for_others_when_told_to, YIELD_CASES)
{
    struct op op = rw_release_of(claim_of(3, 0));

    (void)rw_take(claim_of(3, 0));
    op.release.next = claim_of(4, 1);
    op.release.has_next = true;
    expect_yield(_i, &op, rw_listen);
}

START_TEST(the_lock_does_not_move_to_a_request_that_is_over, 2)
{
    struct op op = rw_release_of(claim_of(3, 0));

    (void)rw_take(claim_of(_i + 1, 1));
    (void)rw_leave(claim_of(_i + 1, 1));
    (void)rw_take(claim_of(3, 0));
    op.release.next = claim_of(_i + 1, 1);
    op.release.has_next = true;
    ck_assert(run_as(INSTANCE_A, &op)->release.freed);
}

static const char *const FOREIGN[] = { "SET n x", "HSET n r1 1", "RPUSH n x" };

START_TEST(a_name_of_another_kind_is_refused_by_every_op, 3)
{
    bool plain = strstr(FOREIGN[_i], "HSET") != NULL;
    struct op ops[4 * 6];
    size_t count = 0;

    freeReplyObject(redis_ask(peer_redis(), FOREIGN[_i]));
    for (int i = 0; i < 6; i++) {
        ops[count++] = rw_acquire(claim_of(i, 0));
        ops[count++] = rw_release_of(claim_of(i, 0));
        ops[count++] = rw_attach_of(claim_of(i, 0));
        ops[count++] = rw_release(TARGET_OWNER, KIND_PLAIN, "o", NULL);
        ck_assert_int_eq(rw_renew(INSTANCE_A, claim_of(i, 0), 7, false),
                         RENEW_WRONGTYPE);
    }
    ops[0 + 3] = rw_release(TARGET_ANY, KIND_PLAIN, NULL, NULL);
    ops[0 + 3].release.force = true;
    for (size_t i = 0; i < count; i++) {
        const struct op_result *r = run_as(INSTANCE_A, &ops[i]);

        ck_assert_msg(r->status == OP_WRONGTYPE, "op %zu: %d", i, (int)r->status);
        ck_assert_msg(r->is_lock == plain && (!plain || r->lock_class == CLASS_PLAIN),
                      "op %zu", i);
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL n"), -1);
}

START_TEST(inspect_tells_readers_and_writers_with_their_tokens)
{
    struct op op = { .kind = OP_INSPECT, .name = SPAN("n") };
    const struct op_result *r;
    uint64_t write = rw_take(rw_writer("o:write", "id:1"));
    uint64_t read = rw_take(rw_reader("o", "id:2"));

    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->lock_kind, KIND_WRITE);
    ck_assert_uint_eq(r->inspect.field_count, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_writer = r->inspect.fields[i].lock_kind == KIND_WRITE;

        ck_assert(
            span_eq(r->inspect.fields[i].owner, span_str(is_writer ? "o:write" : "o")));
        ck_assert_uint_eq(r->inspect.fields[i].token, is_writer ? write : read);
        ck_assert_int_eq(r->inspect.fields[i].count, 1);
    }
    ck_assert_uint_eq(r->token, read); /* the last one */
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL n"), 1);
    redis_expect(peer_redis(), "2", "EVAL %s 1 n",
                 "return redis.call('HSET', KEYS[1], "
                 "'mode', 'read', 'foreign', 2) .. ''");
    redis_expect(peer_redis(), "OK", "SET {n}:foreign:rwlock_timeout:1 1");
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->lock_kind, KIND_READ);
    ck_assert_uint_eq(r->inspect.field_count, 1);
    ck_assert_uint_eq(r->inspect.fields[0].token, 0);
    ck_assert_int_eq(r->inspect.fields[0].count, 2);
}
