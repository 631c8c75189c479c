/* Semaphores: who is granted permits, and what a grant leaves in Redis. */
#include "scripts_sem.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* 16 bytes, some of which are no text. */
static const char REDISSON_1[] = "\x01\x80redisson's id 1";

static struct op_times asked_at(uint64_t us)
{
    return (struct op_times){ .asked_us = us, .deadline_us = us + 60000000 };
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_grant_is_in_redissons_layout, 2)
{
    const char *field = _i == 0 ? SEM_FIELD_1 : SEM_ID;
    struct op op = sem_acquire(sem_claim(field, 3, 10));
    redisContext *c = sem_listen();
    const struct op_result *r;
    uint64_t token;
    char want[160];

    op.seen_token = UINT64_C(9007199254740000) - 1;
    r = sem_run(op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->count, 1);
    ck_assert(!r->attached);
    ck_assert_int_eq(r->permits.free, 7);
    ck_assert_uint_eq(r->permits.limit, 10);
    sem_about(r->ttl_ms, LEASE);
    token = r->token;
    ck_assert_uint_eq(token, UINT64_C(9007199254740000));
    sem_expect("7", 3);
    for (int i = 1; i <= 3; i++) {
        sem_about(sem_ends_in(token, i), LEASE + SEM_MARGIN);
    }
    ck_assert_int_eq(memcmp(sem_member(token, 3),
                            "latchd\x00\x1f\xff\xff\xff\xff\xfc\x20\x00\x03", 16),
                     0);
    sem_expect_row(field, token, 3, INSTANCE_A);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:holds:{s}"), 2);
    (void)snprintf(want, sizeof want, "%" PRIu64 " f" INSTANCE_A "%s", token, field);
    redis_expect(peer_redis(), want, "GET latchd:fence:{s}");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL s"), -1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL {s}:timeout"), -1);
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:holds:{s}"),
              LEASE + OP_FENCE_TTL_MS);
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:fence:{s}"),
              LEASE + OP_FENCE_TTL_MS);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 4); /* and nothing else */
    sem_hear(c, NULL);
    redisFree(c);
}

START_TEST(a_name_with_a_brace_is_not_braced_again_for_semaphores)
{
    struct op op = sem_acquire(sem_claim(SEM_FIELD_1, 1, 2));

    op.name = SPAN("my:{t}:x");
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS %s %s %s %s", "my:{t}:x",
                                   "my:{t}:x:timeout", "latchd:holds:my:{t}:x",
                                   "latchd:fence:my:{t}:x"),
                     4);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 4);
}

START_TEST(a_thousand_permits_are_one_hold)
{
    uint64_t token = sem_take(sem_claim(SEM_FIELD_1, 1000, 1000));

    sem_expect("0", 1000);
    sem_about(sem_ends_in(token, 256), LEASE + SEM_MARGIN);
    sem_about(sem_ends_in(token, 1000), LEASE + SEM_MARGIN);
    ck_assert_int_eq(sem_leave(sem_claim(SEM_FIELD_1, 1000, 0))->status, OP_OK);
    sem_expect("1000", 0);
}

START_TEST(only_a_claim_with_a_limit_makes_a_semaphore)
{
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->status, OP_NOSEMAPHORE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
    (void)sem_take(sem_claim(SEM_FIELD_1, 1, 2));
    (void)sem_take(sem_claim(SEM_FIELD_2, 1, 0));
    sem_expect("0", 2);
}

START_TEST(the_limit_of_a_semaphore_that_is_there_rules)
{
    const struct op_result *r;

    (void)sem_take(sem_claim(SEM_FIELD_1, 1, 3));
    r = sem_try(sem_claim(SEM_FIELD_2, 1, 50));
    ck_assert_uint_eq(r->permits.limit, 3);
    r = sem_try(sem_claim(SEM_FIELD_3, 4, 50));
    ck_assert_int_eq(r->status, OP_BEYOND);
    sem_expect("1", 2);
}

START_TEST(whoever_wants_more_than_is_free_learns_when_some_is)
{
    struct claim first = sem_claim(SEM_FIELD_1, 1, 3);
    const struct op_result *r;

    first.lease_ms = 5000;
    (void)sem_take(first);
    (void)sem_take(sem_claim(SEM_FIELD_2, 1, 0));
    r = sem_try(sem_claim(SEM_FIELD_3, 2, 0));
    ck_assert_int_eq(r->status, OP_BUSY);
    sem_about(r->ttl_ms, 5000);
    sem_expect("1", 2);
    sem_expect_row(SEM_FIELD_3, 0, 0, NULL);
}

START_TEST(nobody_knows_when_a_permit_without_end_is_free)
{
    redis_expect(peer_redis(), "OK", "SET s 0");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZADD {s}:timeout " SEM_NEVER " %b",
                                   REDISSON_1, (size_t)16),
                     1);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->status, OP_BUSY);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->ttl_ms, -1);
}

START_TEST(a_counter_that_was_evicted_creates_no_permit_twice)
{
    (void)sem_take(sem_claim(SEM_FIELD_1, 2, 3));
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL s"), 1);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_2, 1, 0))->status, OP_NOSEMAPHORE);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_2, 2, 3))->status, OP_BUSY);
    sem_expect("1", 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL s"), 1);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_2, 1, 3))->permits.limit, 3);
    sem_expect("0", 3);
}

static const struct {
    const char *value;
    bool has_ttl;
    enum op_status status;
} FOUND[] = {
    { "2", false, OP_OK },
    { "2147483647", false, OP_OK },
    { "-1", false, OP_BEYOND },
    { "2", true, OP_WRONGTYPE }, /* may be a library's lock */
    { "2147483648", false, OP_WRONGTYPE },
    { "1.5", false, OP_WRONGTYPE },
    { " 2", false, OP_WRONGTYPE },
    { "", false, OP_WRONGTYPE },
    { "some text", false, OP_WRONGTYPE },
};

START_TEST(a_string_is_a_semaphore_only_if_it_looks_like_one, TEST_ROWS(FOUND))
{
    redis_expect(peer_redis(), "OK", "SET s %s", FOUND[_i].value);
    if (FOUND[_i].has_ttl) {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "PEXPIRE s 60000"), 1);
    }
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 2))->status, FOUND[_i].status);
    if (FOUND[_i].status != OP_OK) {
        redis_expect(peer_redis(), FOUND[_i].value, "GET s");
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
    }
}

/* Redisson's expire(): both keys, P17. */
START_TEST(a_counter_with_an_end_and_permits_beside_it_is_a_semaphore)
{
    redis_expect(peer_redis(), "OK", "SET s 2 PX 60000");
    sem_redisson_take(REDISSON_1, LEASE);
    (void)sem_take(sem_claim(SEM_FIELD_1, 1, 2));
    sem_expect("0", 2);
    sem_about(redis_ask_int(peer_redis(), "PTTL s"), 60000);
    sem_about(redis_ask_int(peer_redis(), "PTTL {s}:timeout"), 60000);
}

START_TEST(a_name_of_another_type_is_no_semaphore, 2)
{
    if (_i == 0) {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET s o 1"), 1);
    } else {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "RPUSH s o"), 1);
    }
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 2))->status, OP_WRONGTYPE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
}

START_TEST(asking_again_finds_the_same_permits, 2)
{
    struct claim c = sem_claim(_i == 0 ? SEM_FIELD_1 : SEM_ID, 2, 3);
    uint64_t token = sem_take(c);

    for (int i = 0; i < 3; i++) {
        const struct op_result *r = sem_try(c);

        ck_assert_int_eq(r->status, OP_OK);
        ck_assert_uint_eq(r->token, token);
        ck_assert_int_eq(r->permits.free, 1);
        ck_assert_uint_eq(r->permits.limit, 3);
    }
    c.lease_ms = 2 * LEASE;
    (void)sem_try(c);
    sem_about(sem_ends_in(token, 2), 2 * LEASE + SEM_MARGIN);
    c.lease_ms = 1000;
    (void)sem_try(c);
    sem_about(sem_ends_in(token, 2), 2 * LEASE + SEM_MARGIN);
    sem_expect("1", 2);
}

/* The permits that are left go back, and the claim is granted anew. */
START_TEST(a_hold_that_lacks_a_permit_is_not_found_again)
{
    struct claim c = sem_claim(SEM_ID, 2, 3);
    uint64_t token = sem_take(c), again;

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 1);
    again = sem_take(c);
    ck_assert_uint_gt(again, token);
    sem_expect("1", 2);
    ck_assert_int_eq(sem_ends_in(token, 2), -1);
    sem_expect_row(SEM_ID, again, 2, INSTANCE_A);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:holds:{s}"), 2);
}

START_TEST(an_id_is_attached_through_another_instance)
{
    struct op op = sem_acquire(sem_claim(SEM_ID, 2, 3));
    uint64_t token = sem_run(op)->token;
    const struct op_result *r = run_as(INSTANCE_B, &op);

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->attached);
    ck_assert_uint_eq(r->token, token);
    sem_expect("1", 2);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_B);
}

START_TEST(a_late_copy_takes_nothing_from_where_the_client_is_by_now)
{
    struct op op = sem_acquire(sem_claim(SEM_ID, 2, 3));
    uint64_t asked = redis_time_us() - 1000000, token;

    token = run_times(INSTANCE_B, &op, asked_at(redis_time_us()))->token;
    ck_assert_int_eq(run_times(INSTANCE_A, &op, asked_at(asked))->status, OP_ELSEWHERE);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_B);
    sem_expect("1", 2);
}

START_TEST(a_late_copy_does_not_end_a_hold_that_lacks_a_permit)
{
    struct op op = sem_acquire(sem_claim(SEM_ID, 2, 3));
    uint64_t asked = redis_time_us() - 1000000, token;

    token = run_times(INSTANCE_B, &op, asked_at(redis_time_us()))->token;
    ck_assert_int_eq(sem_redisson_release(sem_member(token, 2)), 1);
    ck_assert_int_eq(run_times(INSTANCE_A, &op, asked_at(asked))->status, OP_ELSEWHERE);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_B);
    sem_expect("2", 1);
}

START_TEST(an_id_that_was_released_is_over)
{
    struct op undo = sem_release(TARGET_ID, SEM_ID, "id:1");

    (void)sem_take(sem_claim(SEM_ID, 1, 2));
    ck_assert_int_eq(sem_run(undo)->status, OP_OK);
    ck_assert_int_eq(sem_try(sem_claim(SEM_ID, 1, 2))->status, OP_OVER);
    sem_expect("2", 0);
}

START_TEST(only_what_was_granted_before_is_entered_again)
{
    struct op op = sem_acquire(sem_claim(SEM_ID, 1, 2));
    uint64_t token;

    (void)sem_take(sem_claim(SEM_FIELD_1, 1, 2));
    op.acquire.reenter_only = true;
    ck_assert_int_eq(sem_run(op)->status, OP_BUSY);
    ck_assert_int_eq(sem_run(op)->ttl_ms, -2);
    sem_expect("1", 1);
    token = sem_take(sem_claim(SEM_ID, 1, 2));
    ck_assert_uint_eq(sem_run(op)->token, token);
    sem_expect("0", 2);
}

START_TEST(permits_that_are_over_are_granted_at_once)
{
    uint64_t token = sem_take(sem_claim(SEM_FIELD_1, 2, 2));
    redisContext *c = sem_listen();

    for (int i = 1; i <= 2; i++) { /* its end is now, and its score later */
        (void)redis_ask_int(peer_redis(), "ZADD {s}:timeout %llu %b",
                            (unsigned long long)(redis_time_us() / 1000 + SEM_MARGIN),
                            sem_member(token, i), (size_t)16);
    }
    ck_assert_uint_gt(sem_take(sem_claim(SEM_FIELD_2, 1, 0)), token);
    sem_expect("1", 1);
    sem_expect_row(SEM_FIELD_1, 0, 0, NULL);
    sem_hear(c, "1");
    redisFree(c);
}

START_TEST(a_late_acquire_does_nothing)
{
    struct op op = sem_acquire(sem_claim(SEM_FIELD_1, 1, 2));

    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}
