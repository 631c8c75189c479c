/* Semaphores that latchd and Redisson's RPermitExpirableSemaphore share: what one of
 * them wrote the other reads, P1 to P18 of what Redisson's scripts do; and the defects
 * of Redisson that latchd must not have. */
#include "scripts_sem.h"

#include "support/runner.h"

#include <inttypes.h>
#include <stdio.h>

static const char X[] = "\x01\x80redisson's id X";
static const char Y[] = "\x02\xffredisson's id Y";
static const char Z[] = "\x03\xferedisson's id Z";

static void end_at(const char *id, int64_t ms_from_now)
{
    (void)redis_ask_int(peer_redis(), "ZADD {s}:timeout XX %lld %b",
                        (long long)((int64_t)(redis_time_us() / 1000) + ms_from_now),
                        id, (size_t)16);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 30);

/* P1 to P4, P14: what Redisson made, and has, counts for latchd. */
START_TEST(redissons_permits_count)
{
    const struct op_result *r;

    redis_expect(peer_redis(), "OK", "SET s 2");
    sem_redisson_take(X, LEASE);
    r = sem_try(sem_claim(SEM_FIELD_1, 1, 0));
    ck_assert_int_eq(r->status, OP_OK);
    ck_assert_uint_eq(r->permits.limit, 2);
    sem_expect("0", 2);
    end_at(X, 10000);
    r = sem_try(sem_claim(SEM_FIELD_2, 1, 0));
    ck_assert_int_eq(r->status, OP_BUSY);
    sem_about(r->ttl_ms, 10000 + SEM_MARGIN);
}

/* P5, P7, P8: Redisson is given the hex text of one of our permits. */
START_TEST(redisson_gives_one_of_our_permits_back_once)
{
    uint64_t token = sem_take(sem_claim(SEM_FIELD_1, 2, 2));

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 1);
    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 0);
    sem_expect("1", 1);
    ck_assert_int_eq(sem_leave(sem_claim(SEM_FIELD_1, 2, 2))->permits.free, 2);
    sem_expect("2", 0);
}

/* P9, P15: of a permit that is over one party frees it, and only one. */
START_TEST(a_permit_that_is_over_is_freed_once, 2)
{
    redis_expect(peer_redis(), "OK", "SET s 1");
    sem_redisson_take(Y, LEASE);
    end_at(Y, -SEM_MARGIN);
    if (_i == 0) {
        ck_assert_int_eq(sem_redisson_release(Y), 1);
    }
    (void)sem_take(sem_claim(SEM_FIELD_1, 1, 0));
    ck_assert_int_eq(sem_redisson_release(Y), 0);
    ck_assert_int_eq(sem_redisson_reclaim(0), 0);
    sem_expect("0", 1);
}

/* P11 to P13, P18, D17: the limit is what Redisson makes it. */
START_TEST(a_limit_that_redisson_changes_rules)
{
    struct claim c = sem_claim(SEM_FIELD_1, 3, 3);

    (void)sem_take(c);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "INCRBY s 2"), 2); /* 5 */
    ck_assert_uint_eq(sem_try(c)->permits.limit, 5);
    ck_assert_int_eq(redis_ask_int(peer_redis(), "INCRBY s -3"), -1); /* 2 */
    ck_assert_uint_eq(sem_try(c)->permits.limit, 2);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_2, 1, 50))->status, OP_BUSY);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_2, 3, 50))->status, OP_BEYOND);
    ck_assert_int_eq(sem_leave(c)->permits.free, 2);
    sem_expect("2", 0);
}

/* Before 3.17.0 an id was 32 hex characters. */
START_TEST(ids_of_any_length_are_others_permits)
{
    static const char HEX[] = "0123456789abcdef0123456789abcdef";

    redis_expect(peer_redis(), "OK", "SET s 1");
    ck_assert_int_eq(redis_ask_int(peer_redis(), "ZADD {s}:timeout 1000 %s", HEX), 1);
    (void)sem_take(sem_claim(SEM_FIELD_1, 2, 0));
    sem_expect("0", 2);
}

/* --- Defects -------------------------------------------------------------- */

/* D9 is for the watchdog: a renewal raises; here is what it is for. */
START_TEST(a_dead_holders_permits_come_back_all_at_once_D9_D10)
{
    redis_expect(peer_redis(), "OK", "SET s 3");
    sem_redisson_take(X, LEASE);
    sem_redisson_take(Y, LEASE);
    sem_redisson_take(Z, LEASE);
    end_at(X, -SEM_MARGIN);
    end_at(Y, -SEM_MARGIN);
    end_at(Z, -SEM_MARGIN);
    ck_assert_int_eq(sem_try(sem_claim(SEM_FIELD_1, 1, 0))->permits.free, 2);
    sem_expect("2", 1);
}

/* So a look tells the truth, too, and changes nothing. */
START_TEST(permits_that_are_over_are_shown_as_free_D10)
{
    struct op look = { .kind = OP_INSPECT, .name = SPAN("s") };
    struct claim ours = sem_claim(SEM_FIELD_1, 2, 4);
    uint64_t token = sem_take(ours);
    const struct op_result *r;

    sem_redisson_take(X, LEASE);
    r = sem_run(look);
    ck_assert_int_eq(r->permits.free, 1);
    ck_assert_uint_eq(r->permits.limit, 4);
    ck_assert_uint_eq(r->inspect.field_count, 2);
    end_at(sem_member(token, 1), SEM_MARGIN);
    end_at(sem_member(token, 2), SEM_MARGIN);
    r = sem_run(look);
    ck_assert_int_eq(r->permits.free, 3);
    ck_assert_uint_eq(r->inspect.field_count, 1);
    end_at(X, -SEM_MARGIN);
    r = sem_run(look);
    ck_assert_int_eq(r->permits.free, 4);
    ck_assert_uint_eq(r->permits.limit, 4);
    ck_assert_uint_eq(r->inspect.field_count, 0);
    sem_expect("1", 3);
}

START_TEST(a_repeated_call_counts_once_D12)
{
    struct claim c = sem_claim(SEM_ID, 1, 2);
    struct op op = sem_release_of(c);

    (void)sem_take(c);
    (void)sem_take(c);
    sem_expect("1", 1);
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    ck_assert_int_eq(sem_run(op)->status, OP_ENDED);
    sem_expect("2", 0);
}

START_TEST(what_is_over_is_told_from_what_was_released_D14)
{
    struct claim c = sem_claim(SEM_FIELD_1, 1, 1);
    uint64_t token = sem_take(c);

    end_at(sem_member(token, 1), SEM_MARGIN);
    ck_assert_int_eq(sem_leave(c)->status, OP_NOTHELD);
    sem_expect("1", 0);
    (void)sem_take(c);
    ck_assert_int_eq(sem_leave(c)->status, OP_OK);
    ck_assert_int_eq(sem_leave(c)->status, OP_ENDED);
}

START_TEST(a_zset_that_was_lost_is_put_back_D16)
{
    struct claim c = sem_claim(SEM_FIELD_1, 2, 3);
    uint64_t token = sem_take(c);

    redis_expect(peer_redis(), "OK", "FLUSHALL");
    ck_assert_int_eq(sem_restore(INSTANCE_A, c, token)->status, OP_OK);
    sem_expect("1", 2);
}

/* --- Listeners ------------------------------------------------------------ */

/* Whatever the call is answered, permits that it found to be over are published. */
START_TEST(permits_that_came_back_are_told_of_by_every_answer, 6)
{
    struct claim c = sem_claim(SEM_ID, 1, 3);
    struct op ops[] = {
        sem_acquire(c),                               /* found again */
        sem_acquire(sem_claim(SEM_ID_2, 1, 0)),       /* over */
        sem_acquire(sem_claim(SEM_FIELD_1, 9, 0)),    /* beyond */
        sem_release_of(sem_claim(SEM_ID_2, 1, 0)),    /* ended */
        sem_release_of(c),                            /* elsewhere */
        sem_release_of(sem_claim(SEM_FIELD_2, 1, 0)), /* its next has it */
    };
    static const enum op_status WANT[] = { OP_OK,    OP_OVER,      OP_BEYOND,
                                           OP_ENDED, OP_ELSEWHERE, OP_OK };
    redisContext *listener;

    ops[4].release.if_keeper = true;
    ops[5].release.has_next = true;
    ops[5].release.next = c;
    (void)sem_take(c);
    (void)sem_take(sem_claim(SEM_ID_2, 1, 0));
    (void)sem_leave(sem_claim(SEM_ID_2, 1, 0));
    sem_redisson_take(X, LEASE);
    end_at(X, -SEM_MARGIN);
    listener = sem_listen();
    ck_assert_int_eq(run_as(_i == 4 ? INSTANCE_B : INSTANCE_A, &ops[_i])->status,
                     WANT[_i]);
    sem_hear(listener, "2");
    sem_hear(listener, NULL);
    redisFree(listener);
}

START_TEST(what_is_left_of_a_hold_that_lacks_permits_is_told)
{
    struct claim c = sem_claim(SEM_ID, 2, 2);
    uint64_t token = sem_take(c);
    redisContext *listener;

    ck_assert_int_eq(sem_redisson_release(sem_member(token, 1)), 1);
    sem_redisson_take(X, LEASE);
    listener = sem_listen();
    ck_assert_int_eq(sem_try(c)->status, OP_BUSY);
    sem_expect("1", 1);
    sem_hear(listener, "1");
    redisFree(listener);
}

START_TEST(force_tells_nobody_of_no_permits)
{
    struct op op = sem_release(TARGET_ANY, NULL, NULL);
    redisContext *listener;

    op.release.force = true;
    (void)sem_take(sem_claim(SEM_FIELD_1, 2, 2));
    redis_expect(peer_redis(), "OK", "SET s -3");
    listener = sem_listen();
    ck_assert_int_eq(sem_run(op)->status, OP_OK);
    sem_expect("-1", 0);
    sem_hear(listener, NULL);
    redisFree(listener);
}
