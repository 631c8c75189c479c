/* Semaphores: putting back what Redis lost. */
#include "scripts_sem.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

/* A token as a daemon gave it before Redis lost the hold. */
static uint64_t token_before(void)
{
    return redis_time_us();
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_hold_that_is_there_is_renewed)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);
    const struct op_result *r;

    c.lease_ms = 2 * LEASE;
    r = sem_restore(INSTANCE_A, c, token);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert(!r->restore.restored);
    sem_expect("3", 2);
    sem_about(sem_ends_in(token, 2), 2 * LEASE + SEM_MARGIN);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_A);
}

/* The counter was there before the hold: a failover lost the last writes. */
START_TEST(a_hold_that_is_missing_is_made_anew, 2)
{
    struct claim c = sem_claim(_i == 0 ? SEM_FIELD_1 : SEM_ID, 2, 0);
    uint64_t token = token_before();
    const struct op_result *r;
    char want[160];

    redis_expect(peer_redis(), "OK", "SET s 5");
    r = sem_restore(INSTANCE_A, c, token);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert(r->restore.restored);
    sem_expect("3", 2);
    sem_about(sem_ends_in(token, 1), LEASE + SEM_MARGIN);
    sem_about(sem_ends_in(token, 2), LEASE + SEM_MARGIN);
    sem_expect_row(c.field.ptr, token, 2, INSTANCE_A);
    (void)snprintf(want, sizeof want, "%" PRIu64 " f" INSTANCE_A "%s", token,
                   c.field.ptr);
    redis_expect(peer_redis(), want, "GET latchd:fence:{s}");
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:holds:{s}"),
              LEASE + OP_FENCE_TTL_MS);
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:fence:{s}"),
              LEASE + OP_FENCE_TTL_MS);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 4);
    ck_assert(!sem_restore(INSTANCE_A, c, token)->restore.restored);
    sem_expect("3", 2);
    ck_assert_int_eq(sem_leave(c)->status, OP_OK);
    redis_expect(peer_redis(), "5", "GET s");
}

START_TEST(a_counter_that_is_missing_is_made_from_the_limit)
{
    uint64_t token = token_before();

    ck_assert(
        sem_restore(INSTANCE_A, sem_claim(SEM_ID, 2, 5), token)->restore.restored);
    sem_expect("3", 2);
    ck_assert(sem_restore(INSTANCE_B, sem_claim(SEM_ID_2, 3, 5), token + 1)
                  ->restore.restored);
    sem_expect("0", 5);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "PTTL s"), -1);
}

START_TEST(without_a_counter_and_a_limit_it_waits)
{
    ck_assert_int_eq(
        sem_restore(INSTANCE_A, sem_claim(SEM_ID, 2, 0), token_before())->status,
        OP_BUSY);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 0);
}

START_TEST(restoring_makes_no_number_negative)
{
    struct claim other = sem_claim(SEM_FIELD_2, 2, 3);
    uint64_t token = token_before();

    (void)sem_take(other);
    ck_assert_int_eq(sem_restore(INSTANCE_A, sem_claim(SEM_ID, 2, 3), token)->status,
                     OP_BUSY);
    sem_expect("1", 2);
    sem_expect_row(SEM_ID, 0, 0, NULL);
    ck_assert_int_eq(sem_leave(other)->status, OP_OK);
    ck_assert_int_eq(sem_restore(INSTANCE_A, sem_claim(SEM_ID, 2, 3), token)->status,
                     OP_OK);
    sem_expect("1", 2);
}

/* A Redis that had lost the hold's grant gave its token again; both would be the same
 * members. */
START_TEST(a_token_that_another_hold_has_by_now_is_not_put_back)
{
    uint64_t token = sem_take(sem_claim(SEM_FIELD_2, 1, 4));

    ck_assert_int_eq(sem_restore(INSTANCE_B, sem_claim(SEM_ID, 1, 4), token)->status,
                     OP_NOTHELD);
    sem_expect("3", 1);
    sem_expect_row(SEM_FIELD_2, token, 1, INSTANCE_A);
    sem_expect_row(SEM_ID, 0, 0, NULL);
}

START_TEST(an_older_hold_of_the_same_field_goes)
{
    uint64_t older = sem_take(sem_claim(SEM_ID, 3, 4));

    ck_assert(
        sem_restore(INSTANCE_A, sem_claim(SEM_ID, 2, 4), older + 1)->restore.restored);
    sem_expect("2", 2);
    ck_assert_int_eq(sem_ends_in(older, 1), -1);
    sem_expect_row(SEM_ID, older + 1, 2, INSTANCE_A);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:holds:{s}"), 2);
}

START_TEST(a_newer_hold_of_the_same_field_stays)
{
    uint64_t newer = sem_take(sem_claim(SEM_ID, 3, 4));

    ck_assert_int_eq(
        sem_restore(INSTANCE_A, sem_claim(SEM_ID, 1, 4), newer - 1)->status,
        OP_NOTHELD);
    sem_expect("1", 3);
    sem_expect_row(SEM_ID, newer, 3, INSTANCE_A);
}

START_TEST(a_later_token_of_another_hold_stays_the_last_one)
{
    struct claim other = sem_claim(SEM_FIELD_2, 1, 4);
    uint64_t last = sem_take(other);
    char want[160];

    ck_assert_int_eq(sem_restore(INSTANCE_A, sem_claim(SEM_ID, 1, 4), last - 1)->status,
                     OP_OK);
    (void)snprintf(want, sizeof want, "%" PRIu64 " f" INSTANCE_A SEM_FIELD_2, last);
    redis_expect(peer_redis(), want, "GET latchd:fence:{s}");
}

START_TEST(a_hold_with_a_tombstone_is_not_put_back)
{
    struct claim c = sem_claim(SEM_ID, 2, 4);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_leave(c)->status, OP_OK);
    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_ENDED);
    sem_expect("4", 0);
    /* It is the tombstone of that hold only. */
    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token + 1)->status, OP_OK);
    sem_expect("2", 2);
}

START_TEST(what_another_instance_took_over_later_stays_its)
{
    struct claim c = sem_claim(SEM_ID, 2, 4);
    uint64_t token = sem_take(c);
    char row[80];

    (void)snprintf(row, sizeof row, "%" PRIu64 " 2 " INSTANCE_B "%016" PRIu64, token,
                   redis_time_us() + 60000000);
    ck_assert_int_eq(
        redis_ask_int(peer_redis(), "HSET latchd:holds:{s} " SEM_ID " %s", row), 0);
    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_ELSEWHERE);
    redis_expect(peer_redis(), row, "HGET latchd:holds:{s} " SEM_ID);
    sem_expect("2", 2);
}

START_TEST(what_another_instance_took_over_before_is_taken_back)
{
    struct claim c = sem_claim(SEM_ID, 2, 4);
    struct op op = sem_acquire(c);
    uint64_t token =
        run_times(INSTANCE_B, &op,
                  (struct op_times){ .asked_us = redis_time_us() - 1000000,
                                     .deadline_us = redis_time_us() + 60000000 })
            ->token;

    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_OK);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_A);
}

START_TEST(permits_that_lack_are_taken_again_or_the_hold_is_over, 2)
{
    struct claim c = sem_claim(SEM_ID, 2, 2);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 1);
    if (_i == 0) {
        ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_OK);
        sem_expect("0", 2);
        return;
    }
    sem_redisson_take("\x01\x80redisson's id 1", LEASE);
    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_NOTHELD);
    sem_expect("1", 1);
}

START_TEST(other_data_is_not_overwritten)
{
    redis_expect(peer_redis(), "OK", "SET s text");
    ck_assert_int_eq(
        sem_restore(INSTANCE_A, sem_claim(SEM_ID, 1, 4), token_before())->status,
        OP_WRONGTYPE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 1);
}
