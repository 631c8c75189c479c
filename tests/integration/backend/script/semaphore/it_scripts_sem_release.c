/* Semaphores: what a release gives back, to whom, and whom it tells. */
#include "scripts_sem.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

/* As daemon A: the claim's permits, from a semaphore of that many. */
static struct claim hold(const char *field, uint32_t permits, uint32_t limit)
{
    struct claim c = sem_claim(field, permits, limit);

    (void)sem_take(c);
    return c;
}

static struct op release_to(struct claim claim, struct claim next)
{
    struct op op = sem_release_of(claim);

    op.release.has_next = true;
    op.release.next = next;
    return op;
}

static struct op force(enum target_kind kind, uint64_t token)
{
    struct op op = sem_release(kind, NULL, NULL);

    op.release.target.token = token;
    op.release.force = true;
    return op;
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* Each way to name a hold. */
START_TEST(exactly_the_permits_of_the_hold_go_back, 4)
{
    bool is_id = _i == 1;
    struct claim c = sem_claim(is_id ? SEM_ID : SEM_FIELD_1, 3, 10);
    uint64_t token = sem_take(c);
    struct op ops[] = {
        sem_release_of(c),
        sem_release(TARGET_ID, SEM_ID, "id:1"),
        sem_release(TARGET_REQUEST, NULL, INSTANCE_A ":1"),
        sem_release(TARGET_TOKEN, NULL, NULL),
    };
    redisContext *listener;
    const struct op_result *r;

    ops[3].release.target.token = token;
    ops[_i].release.leave_tombstone = false;
    (void)hold(SEM_FIELD_2, 2, 0);
    listener = sem_listen();
    r = sem_run(ops[_i]);
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_int_eq(r->count, 0);
    ck_assert(r->release.freed);
    ck_assert(!r->moved);
    ck_assert_int_eq(r->permits.free, 8);
    ck_assert_uint_eq(r->permits.limit, 10);
    sem_expect("8", 2);
    sem_expect_row(c.field.ptr, 0, 0, NULL);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "HLEN latchd:holds:{s}"), 2);
    ck_assert_int_eq(sem_run(ops[_i])->status, OP_NOTHELD);
    sem_expect("8", 2);
    sem_hear(listener, "8");
    sem_hear(listener, NULL);
    redisFree(listener);
}

START_TEST(the_last_release_leaves_the_counter_and_the_fence)
{
    struct op op = sem_release_of(hold(SEM_FIELD_1, 3, 10));

    op.release.leave_tombstone = false;
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    redis_expect(peer_redis(), "10", "GET s");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS s latchd:fence:{s}"), 2);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "DBSIZE"), 2);
}

START_TEST(a_second_copy_finds_the_tombstone, 2)
{
    struct claim c = sem_claim(_i == 0 ? SEM_FIELD_1 : SEM_ID, 2, 5);
    uint64_t token = sem_take(c);
    struct op op = sem_release_of(c);
    char text[40];

    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    (void)snprintf(text, sizeof text, "0 %" PRIu64, token);
    redis_expect(peer_redis(), text, "GET latchd:ended:{s}:%s", c.field.ptr);
    redis_expect(peer_redis(), text, "GET latchd:ended:{s}:latchd:%" PRIu64, token);
    expect_marks(OP_ENDED_MS);
    ck_assert_int_eq(sem_run(op)->status, OP_ENDED);
    ck_assert_int_eq(sem_run(op)->count, 0);
    op = sem_release(TARGET_TOKEN, NULL, NULL);
    op.release.target.token = token;
    ck_assert_int_eq(sem_run(op)->status, OP_ENDED);
    op.release.target.token = token + 1;
    ck_assert_int_eq(sem_run(op)->status, OP_NOTHELD);
    sem_expect("5", 0);
}

START_TEST(another_token_is_not_this_hold)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);
    struct op op = sem_release_of(c);

    op.release.target.token = token - 1;
    ck_assert_int_eq(sem_run(op)->status, OP_NOTHELD);
    sem_expect("3", 2);
}

START_TEST(a_release_of_nothing_leaves_a_tombstone_if_told_so)
{
    struct op op = sem_release(TARGET_ID, SEM_ID, "id:1");

    op.release.tombstone_if_missing = TOMBSTONE_OF_ANSWER;
    ck_assert_int_eq(sem_run(op)->status, OP_NOTHELD);
    ck_assert_int_eq(sem_try(sem_claim(SEM_ID, 1, 2))->status, OP_OVER);
}

START_TEST(what_another_instance_keeps_is_left_alone_if_told_so)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    struct op acquire = sem_acquire(c), op = sem_release_of(c);

    ck_assert_int_eq(run_as(INSTANCE_B, &acquire)->status, OP_OK);
    op.release.if_keeper = true;
    ck_assert_int_eq(sem_run(op)->status, OP_ELSEWHERE);
    sem_expect("3", 2);
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_OK);
    sem_expect("5", 0);
}

/* The instance that keeps it learns by the tombstone that it ended. */
START_TEST(a_release_at_another_instance_leaves_a_tombstone)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    struct op op = sem_release_of(c);
    uint64_t token = sem_take(c);

    op.release.leave_tombstone = false;
    ck_assert_int_eq(run_as(INSTANCE_B, &op)->status, OP_OK);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_ENDED);
}

START_TEST(permits_that_somebody_gave_back_before_are_not_given_twice)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 5);
    uint64_t token = sem_take(c);

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 2)), 1);
    ck_assert_int_eq(sem_leave(c)->permits.free, 5);
    sem_expect("5", 0);
}

START_TEST(a_release_without_a_counter_makes_none)
{
    struct claim c = hold(SEM_FIELD_1, 3, 5);

    ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL s"), 1);
    ck_assert_int_eq(sem_leave(c)->status, OP_OK);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS s {s}:timeout"), 0);
}

/* D17: Redisson may have lowered the limit below what is out. */
START_TEST(only_a_number_above_0_is_published)
{
    struct claim c = hold(SEM_FIELD_1, 1, 3), d = hold(SEM_FIELD_2, 2, 0);
    redisContext *listener = sem_listen();

    redis_expect(peer_redis(), "OK", "SET s -1");
    ck_assert_int_eq(sem_leave(c)->permits.free, 0);
    sem_hear(listener, NULL);
    ck_assert_int_eq(sem_leave(d)->permits.free, 2);
    sem_hear(listener, "2");
    redisFree(listener);
}

START_TEST(the_next_one_gets_permits_inside_the_release, 2)
{
    struct claim c = hold(SEM_FIELD_1, 3, 3);
    struct claim next = sem_claim(SEM_FIELD_2, _i == 0 ? 3 : 1, 0);
    struct op op = release_to(c, next);
    redisContext *listener = sem_listen();
    const struct op_result *r = sem_run(op);
    uint64_t token = r->token;

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->moved);
    ck_assert(!r->release.freed);
    ck_assert_int_eq(r->permits.free, _i == 0 ? 0 : 2);
    ck_assert_uint_eq(r->permits.limit, 3);
    sem_expect_row(SEM_FIELD_1, 0, 0, NULL);
    sem_expect_row(SEM_FIELD_2, token, (int)next.permits, INSTANCE_A);
    sem_about(sem_ends_in(token, 1), LEASE + SEM_MARGIN);
    sem_hear(listener, _i == 0 ? NULL : "2");
    r = sem_run(op); /* the same release again finds it */
    ck_assert(r->moved);
    ck_assert_uint_eq(r->token, token);
    sem_expect(_i == 0 ? "0" : "2", next.permits);
    redisFree(listener);
}

START_TEST(the_next_one_waits_on_if_too_few_are_free)
{
    struct claim c = hold(SEM_FIELD_1, 1, 3), d = hold(SEM_FIELD_2, 2, 0);
    redisContext *listener = sem_listen();
    const struct op_result *r = sem_run(release_to(c, sem_claim(SEM_FIELD_3, 2, 0)));

    ck_assert(!r->moved);
    ck_assert(r->release.freed);
    ck_assert_int_eq(r->permits.free, 1);
    sem_about(r->ttl_ms, LEASE);
    sem_expect("1", 2);
    sem_hear(listener, "1");
    r = sem_run(release_to(d, sem_claim(SEM_FIELD_3, 2, 0)));
    ck_assert(r->moved);
    sem_expect("1", 2);
    redisFree(listener);
}

/* Two daemons ask for one ID, and the other one's question came first; or the answer to
 * this one's own was lost. */
START_TEST(the_next_one_is_not_granted_what_it_holds, 2)
{
    struct claim next = sem_claim(_i == 0 ? SEM_ID : SEM_FIELD_2, 1, 0);
    struct claim c = hold(SEM_FIELD_1, 1, 2);
    uint64_t token = sem_take(next);
    const struct op_result *r = sem_run(release_to(c, next));

    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(!r->moved);
    ck_assert(r->release.freed);
    sem_expect("1", 1);
    sem_expect_row(next.field.ptr, token, 1, INSTANCE_A);
    ck_assert_uint_eq(sem_take(next), token);
}

/* Each of a few holds, whose leases differ, leaves; next gets another one. */
START_TEST(a_release_tells_when_the_next_permits_are_free, 12)
{
    static const int64_t LEASES[] = { 5000, 10000, 20000 };
    static const int64_t NEXT[] = { 0, 3000, 8000, 40000 };
    static const char *const FIELDS[] = { SEM_FIELD_1, SEM_FIELD_2, SEM_FIELD_3 };
    int leaves = _i % 3, next = _i / 3;
    struct claim claims[3], after = sem_claim(SEM_ID, 1, 0);
    int64_t soonest = next == 0 ? 40000 : NEXT[next];
    const struct op_result *r;

    for (int i = 0; i < 3; i++) {
        claims[i] = sem_claim(FIELDS[i], i == 1 ? 2 : 1, 4);
        claims[i].lease_ms = LEASES[i];
        (void)sem_take(claims[i]);
        if (i != leaves && LEASES[i] < soonest) {
            soonest = LEASES[i];
        }
    }
    after.lease_ms = NEXT[next];
    r = sem_run(next == 0 ? sem_release_of(claims[leaves])
                          : release_to(claims[leaves], after));
    ck_assert(r->moved == (next != 0));
    sem_about(r->ttl_ms, soonest);
}

START_TEST(permits_move_or_are_freed_as_yield_says, YIELD_CASES)
{
    struct claim c = hold(SEM_FIELD_1, 2, 2);
    struct op op = release_to(c, sem_claim(SEM_FIELD_2, 2, 0));

    expect_yield(_i, &op, sem_listen);
}

START_TEST(an_id_that_ended_elsewhere_is_not_granted_as_next)
{
    struct op undo = sem_release(TARGET_ID, SEM_ID, "id:1");
    struct claim c = hold(SEM_FIELD_1, 1, 1);

    undo.release.tombstone_if_missing = TOMBSTONE_OF_ANSWER;
    ck_assert_int_eq(sem_run(undo)->status, OP_NOTHELD);
    ck_assert(sem_run(release_to(c, sem_claim(SEM_ID, 1, 0)))->release.freed);
    sem_expect("1", 0);
}

START_TEST(force_ends_one_hold_by_its_token)
{
    struct claim c = sem_claim(SEM_ID, 2, 5);
    uint64_t token = sem_take(c);

    (void)hold(SEM_FIELD_1, 1, 0);
    ck_assert_int_eq(sem_run(force(TARGET_TOKEN, token))->status, OP_OK);
    sem_expect("4", 1);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:ended:{s}:" SEM_ID), 0);
    ck_assert_int_eq(sem_run(force(TARGET_TOKEN, token))->status, OP_NOTHELD);
    ck_assert_int_eq(sem_renew(INSTANCE_A, c, token, false), RENEW_GONE);
}

START_TEST(force_ends_all_holds_redissons_too)
{
    struct claim c = hold(SEM_FIELD_1, 2, 5);
    redisContext *listener;
    const struct op_result *r;

    sem_redisson_take("\x01\x80redisson's id 1", LEASE);
    listener = sem_listen();
    r = sem_run(force(TARGET_ANY, 0));
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert(r->release.freed);
    ck_assert_int_eq(r->permits.free, 5);
    sem_expect("5", 0);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "EXISTS latchd:holds:{s}"), 0);
    sem_hear(listener, "5");
    ck_assert_int_eq(sem_run(force(TARGET_ANY, 0))->status, OP_NOTHELD);
    ck_assert_int_eq(sem_leave(c)->status, OP_NOTHELD);
    sem_expect("5", 0);
    redisFree(listener);
}

START_TEST(a_late_release_does_nothing)
{
    struct op op = sem_release_of(hold(SEM_FIELD_1, 2, 5));

    ck_assert_int_eq(run_until(INSTANCE_A, &op, redis_time_us() - 1)->status, OP_LATE);
    sem_expect("3", 2);
}

START_TEST(a_name_that_became_something_else_is_not_released, 2)
{
    struct op op = sem_release_of(hold(SEM_FIELD_1, 2, 5));

    redis_expect(peer_redis(), "OK", "SET s text");
    if (_i == 1) {
        ck_assert_int_eq(redis_ask_int(peer_redis(), "DEL s"), 1);
        ck_assert_int_eq(redis_ask_int(peer_redis(), "HSET s o 1"), 1);
    }
    ck_assert_int_eq(sem_run(op)->status, OP_WRONGTYPE);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZCARD {s}:timeout"), 2);
}

/* --- No memory left ------------------------------------------------------- */

static void fill_redis(void)
{
    redis_expect(peer_redis(), "OK", "CONFIG SET maxmemory 1");
}

START_TEST(permits_go_back_when_redis_is_full)
{
    struct op op = sem_release_of(hold(SEM_FIELD_1, 2, 5));
    struct op acquire = sem_acquire(sem_claim(SEM_FIELD_2, 1, 0));

    fill_redis();
    ck_assert_int_eq(run_as(INSTANCE_A, &acquire)->status, OP_ERROR);
    sem_expect("3", 2);
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    sem_expect("5", 0);
    ck_assert_int_eq(sem_run(op)->status, OP_ENDED);
}

START_TEST(permits_are_handed_over_when_redis_is_full)
{
    struct claim c = hold(SEM_FIELD_1, 2, 2);

    fill_redis();
    ck_assert(sem_run(release_to(c, sem_claim(SEM_FIELD_2, 2, 0)))->moved);
    sem_expect("0", 2);
}
