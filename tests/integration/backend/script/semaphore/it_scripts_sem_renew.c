/* Semaphores: what a renewal and an attach give a hold, and what they take back. */
#include "scripts_sem.h"

#include "support/runner.h"

#include <stdio.h>

static const char REDISSON_1[] = "\x01\x80redisson's id 1";
static const char REDISSON_2[] = "\x02\xffredisson's id 2";

static struct op_times asked_at(uint64_t us)
{
    return (struct op_times){ .asked_us = us, .deadline_us = us + 60000000 };
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

START_TEST(a_renewal_raises_all_permits_and_lowers_none)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 5);
    uint64_t token = sem_take(c);

    c.lease_ms = 2 * LEASE;
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_OK);
    for (int i = 1; i <= 3; i++) {
        sem_about(sem_ends_in(token, i), 2 * LEASE + SEM_MARGIN);
    }
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:holds:{s}"),
              2 * LEASE + OP_FENCE_TTL_MS);
    c.lease_ms = 1000;
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, 0, false), RENEW_OK);
    sem_about(sem_ends_in(token, 3), 2 * LEASE + SEM_MARGIN);
    sem_about(redis_ask_int(peer_redis(), "PTTL latchd:holds:{s}"),
              2 * LEASE + OP_FENCE_TTL_MS);
    sem_expect("2", 3);
}

START_TEST(an_exact_renewal_lowers_too)
{
    struct claim c = sem_claim(SEM_FIELD_1, 2, 5);
    uint64_t token = sem_take(c);

    c.lease_ms = 1000;
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, true), RENEW_OK);
    sem_about(sem_ends_in(token, 1), 1000 + SEM_MARGIN);
    sem_about(sem_ends_in(token, 2), 1000 + SEM_MARGIN);
}

START_TEST(a_hold_that_is_not_there_is_gone, 3)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);

    if (_i == 0) { /* later than this hold, there is another one of the same field */
        token--;
    } else if (_i == 1) {
        redis_expect(peer_redis(), "OK", "FLUSHALL");
    } else {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL latchd:holds:{s}"), 1);
    }
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_GONE);
}

START_TEST(a_hold_with_a_tombstone_has_ended)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_leave(c)->status, OP_OK);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_ENDED);
    sem_expect("5", 0);
}

START_TEST(what_another_instance_keeps_is_not_renewed)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);

    c.lease_ms = 2 * LEASE;
    ck_assert_int_eq(sem_renew(INSTANCE_B, c, token, false), RENEW_ELSEWHERE);
    sem_about(sem_ends_in(token, 1), LEASE + SEM_MARGIN);
}

START_TEST(a_name_that_became_something_else_is_told_alone)
{
    struct claim c = sem_claim(SEM_FIELD_1, 1, 2);
    struct renew_item items[2];
    struct op op = { .kind = OP_RENEW,
                     .lock_class = CLASS_SEMAPHORE,
                     .renew.items = items,
                     .renew.count = 2 };
    uint64_t token = sem_take(c);
    const struct op_result *r;

    for (int i = 0; i < 2; i++) {
        items[i] = (struct renew_item){ .name = i == 0 ? SPAN("h") : SPAN("s"),
                                        .lock_kind = KIND_PERMITS,
                                        .owner_kind = c.owner_kind,
                                        .field = c.field,
                                        .lease_ms = LEASE,
                                        .token = token };
    }
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET h o 1"), 1);
    r = run_as(INSTANCE_A, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->renew.items[0], RENEW_WRONGTYPE);
    ck_assert_int_eq(r->renew.items[1], RENEW_OK);
    redis_expect(peer_redis(), "OK", "SET s text");
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_WRONGTYPE);
    redis_expect(peer_redis(), "text", "GET s");
}

/* D11: by a clock that is ahead all permits are over. */
START_TEST(permits_that_were_taken_for_dead_are_taken_back)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 5);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_redisson_reclaim(10 * LEASE), 3);
    sem_expect("5", 0);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_OK);
    sem_expect("2", 3);
    sem_about(sem_ends_in(token, 2), LEASE + SEM_MARGIN);
}

START_TEST(a_permit_that_redisson_gave_back_is_taken_back_if_it_is_free)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 3);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 2)), 1);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_OK);
    sem_expect("0", 3);
}

START_TEST(a_permit_that_somebody_else_has_by_now_ends_the_hold)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 3);
    uint64_t token = sem_take(c);
    redisContext *listener;

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 2)), 1);
    sem_redisson_take(REDISSON_1, LEASE);
    listener = sem_listen();
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_GONE);
    sem_expect("2", 1);
    sem_expect_row(SEM_FIELD_1, 0, 0, NULL);
    sem_hear(listener, "2");
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_GONE);
    sem_expect("2", 1);
    redisFree(listener);
}

/* A lease of 1 ms is that of a hold that is looked at, not renewed. */
START_TEST(a_mere_look_takes_nothing_back)
{
    struct claim c = sem_claim(SEM_FIELD_1, 2, 3);
    uint64_t token = sem_take(c);

    c.lease_ms = 1;
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_OK);
    sem_about(sem_ends_in(token, 1), LEASE + SEM_MARGIN);
    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 1);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_GONE);
    sem_expect("3", 0);
}

START_TEST(a_counter_that_was_evicted_does_not_end_a_whole_hold)
{
    struct claim c = sem_claim(SEM_FIELD_1, 2, 3);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL s"), 1);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_OK);
    sem_expect(NULL, 2);
}

/* --- Ends and clocks ------------------------------------------------------ */

static void end_redissons_at(const char *id, int64_t ms_from_now)
{
    (void)redis_ask_int(peer_redis(), "ZADD {s}:timeout XX %lld %b",
                        (long long)((int64_t)(redis_time_us() / 1000) + ms_from_now),
                        id, (size_t)16);
}

START_TEST(others_permits_are_free_two_seconds_after_their_end)
{
    redisContext *listener;

    redis_expect(peer_redis(), "OK", "SET s 2");
    sem_redisson_take(REDISSON_1, LEASE);
    sem_redisson_take(REDISSON_2, LEASE);
    end_redissons_at(REDISSON_1, -SEM_MARGIN + 1000);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->status, OP_BUSY);
    sem_expect("0", 2);
    ck_assert_int_le(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->ttl_ms, 1000);
    end_redissons_at(REDISSON_1, -SEM_MARGIN);
    listener = sem_listen();
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 2, 0))->status, OP_BUSY);
    sem_expect("1", 1);
    sem_hear(listener, "1");
    redisFree(listener);
}

START_TEST(a_clock_that_is_less_than_the_margin_ahead_takes_nothing)
{
    (void)sem_take(sem_claim(SEM_FIELD_1, 2, 2));
    ck_assert_int_eq(sem_redisson_reclaim(LEASE + SEM_MARGIN - 1000), 0);
    sem_expect("0", 2);
}

/* D10, D13, D19: one call frees all of them, not as many as it asks for. */
START_TEST(thousands_of_dead_permits_are_freed_in_pieces_of_a_thousand)
{
    redis_expect(peer_redis(), "OK", "SET s 0");
    for (int i = 0; i < 9000; i++) {
        char id[17];

        (void)snprintf(id, sizeof id, "%016d", i);
        (void)redis_ask_int(peer_redis(), "ZADD {s}:timeout 1000 %b", id, (size_t)16);
    }
    for (int left = 8; left >= 0; left--) {
        ck_assert_int_eq(sem_renew(INSTANCE_A, sem_claim(SEM_ID, 1, 0), 0, false),
                         RENEW_GONE);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD {s}:timeout"), left * 1000);
    }
    sem_expect("9000", 0);
}

START_TEST(a_late_renewal_does_nothing)
{
    struct claim c = sem_claim(SEM_FIELD_1, 1, 2);
    struct renew_item item = { .name = SPAN("s"),
                               .lock_kind = KIND_PERMITS,
                               .field = c.field,
                               .lease_ms = 2 * LEASE };
    struct op op = { .kind = OP_RENEW,
                     .lock_class = CLASS_SEMAPHORE,
                     .renew.items = &item,
                     .renew.count = 1 };
    uint64_t token = sem_take(c);

    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
    sem_about(sem_ends_in(token, 1), LEASE + SEM_MARGIN);
}

/* --- Attach --------------------------------------------------------------- */

START_TEST(whoever_comes_back_is_kept_by_this_instance, 3)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);
    struct op op = sem_attach(_i == 0   ? TARGET_FIELD
                              : _i == 1 ? TARGET_ID
                                        : TARGET_TOKEN,
                              _i == 2 ? NULL : SEM_ID, _i == 1 ? "id:1" : NULL);
    const struct op_result *r;

    op.attach.target.token = token;
    op.attach.lease_ms = 2 * LEASE;
    r = run_as(INSTANCE_B, &op);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->token, token);
    ck_assert_int_eq(r->lock_kind, KIND_PERMITS);
    ck_assert_uint_eq(r->attach.permits, 2);
    ck_assert(span_eq(r->attach.field, SPAN(SEM_ID)));
    sem_about(r->ttl_ms, 2 * LEASE);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_B);
    sem_about(sem_ends_in(token, 2), 2 * LEASE + SEM_MARGIN);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_ELSEWHERE);
}

START_TEST(an_exact_attach_gives_exactly_that_lease)
{
    uint64_t token = sem_take(sem_claim(SEM_ID, 2, 5));
    struct op op = sem_attach(TARGET_FIELD, SEM_ID, NULL);

    op.attach.lease_ms = 5000;
    op.attach.exact = true;
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    sem_about(sem_ends_in(token, 1), 5000 + SEM_MARGIN);
}

START_TEST(nothing_is_attached_that_is_not_there)
{
    struct op op = sem_attach(TARGET_TOKEN, NULL, NULL);

    op.attach.target.token = sem_take(sem_claim(SEM_ID, 2, 5)) + 1;
    ck_assert_int_eq(sem_run(op)->status, OP_NOTHELD);
    op = sem_attach(TARGET_FIELD, SEM_ID_2, NULL);
    ck_assert_int_eq(sem_run(op)->status, OP_NOTHELD);
    redis_expect(peer_redis(), "OK", "SET s text");
    ck_assert_int_eq(sem_run(op)->status, OP_WRONGTYPE);
}

START_TEST(a_late_attach_takes_nothing_from_where_the_client_is_by_now)
{
    struct op acquire = sem_acquire(sem_claim(SEM_ID, 2, 5));
    struct op op = sem_attach(TARGET_FIELD, SEM_ID, NULL);
    uint64_t asked = redis_time_us() - 1000000, token;

    token = run_times(INSTANCE_B, &acquire, asked_at(redis_time_us()))->token;
    ck_assert_int_eq(run_times(INSTANCE_A, &op, asked_at(asked))->status, OP_ELSEWHERE);
    sem_expect_row(SEM_ID, token, 2, INSTANCE_B);
    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
}

START_TEST(a_hold_that_lacks_permits_for_good_is_not_attached)
{
    uint64_t token = sem_take(sem_claim(SEM_ID, 2, 2));

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 2)), 1);
    sem_redisson_take(REDISSON_1, LEASE);
    ck_assert_int_eq(sem_run(sem_attach(TARGET_FIELD, SEM_ID, NULL))->status,
                     OP_NOTHELD);
    sem_expect("1", 1);
}
