/* The client that other tests play by hand (support/redisson.h) does to Redis what a
 * real one does: replies, keys, TTLs and messages of Redisson's own scripts, step by
 * step, as they were seen on Redis 7.0. Every test that has such a client beside latchd
 * leans on this. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <stdlib.h>
#include <sys/time.h>

#define A "aaaaaaaa-0000-0000-0000-000000000001:1"
#define B "bbbbbbbb-0000-0000-0000-000000000002:1"
#define C "cccccccc-0000-0000-0000-000000000003:7"
#define D "dddddddd-0000-0000-0000-000000000004:1"
#define REQUEST "00112233445566778899aabbccddeeff"
#define LATCH "redisson_unlock_latch:{n}:" REQUEST
#define QUEUE "redisson_lock_queue:{n}"
#define DUE "redisson_lock_timeout:{n}"

enum { LEASE = REDISSON_LEASE, WAIT = REDISSON_FAIR_WAIT, NEAR = 1500 };

static struct redisson a, b, c, d;

static void setup(void)
{
    stand.redis = redis_start();
    a = (struct redisson){ .redis = stand.redis, .owner = A };
    b = (struct redisson){ .redis = stand.redis, .owner = B };
    c = (struct redisson){ .redis = stand.redis, .owner = C };
    d = (struct redisson){ .redis = stand.redis, .owner = D };
}

static void teardown(void)
{
    redis_stop(stand.redis);
}

static void near(int64_t value, int64_t want)
{
    ck_assert_int_le(value, want);
    ck_assert_int_ge(value, want - NEAR);
}

static void pttl_near(const char *key, int64_t want)
{
    near(redis_ask_int(stand.redis, "PTTL %s", key), want);
}

static void field(const char *name, const char *want)
{
    redis_expect(stand.redis, want, "HGET n %s", name);
}

static void gone(const char *key)
{
    ck_assert_int_eq(redis_ask_int(stand.redis, "EXISTS %s", key), 0);
}

static int64_t now_ms(void)
{
    struct timeval tv;

    (void)gettimeofday(&tv, NULL);
    return (int64_t)tv.tv_sec * 1000 + tv.tv_usec / 1000;
}

/* How far the score is ahead of now. */
static int64_t due_in(const char *member)
{
    redisReply *r = redis_ask(stand.redis, "ZSCORE " DUE " %s", member);
    int64_t ahead;

    ck_assert_int_eq(r->type, REDIS_REPLY_STRING);
    ahead = strtoll(r->str, NULL, 10) - now_ms();
    freeReplyObject(r);
    return ahead;
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = INTEGRATION_S);

START_TEST(rlock_steps)
{
    redisContext *ear = redisson_listen(&a, "redisson_lock__channel:{n}");

    ck_assert_int_eq(redisson_lock(&a, "n", LEASE), REDISSON_NIL);
    field(A, "1");
    pttl_near("n", LEASE);
    ck_assert_int_eq(redisson_lock(&a, "n", LEASE), REDISSON_NIL);
    field(A, "2");
    near(redisson_lock(&b, "n", LEASE), LEASE);
    ck_assert_int_eq(redisson_unlock(&b, "n", REQUEST), REDISSON_NIL);
    field(A, "2");
    gone(LATCH);
    ck_assert_int_eq(redisson_unlock(&a, "n", REQUEST), 0);
    field(A, "1");
    redis_expect(stand.redis, "0", "GET " LATCH);
    near(redis_ask_int(stand.redis, "PTTL " LATCH), 16000);
    ck_assert_int_eq(redisson_unlock(&a, "n", REQUEST), 0);
    field(A, "1"); /* the same request again changes nothing */
    redisson_hear_nothing(ear);
    ck_assert_int_eq(redisson_unlock(&a, "n", "another"), 1);
    gone("n");
    redis_expect(stand.redis, "1", "GET redisson_unlock_latch:{n}:another");
    redisson_hear(ear, "0");
    ck_assert_int_eq(redisson_force_unlock(&a, "n"), 0);
    redisson_hear_nothing(ear);
    redisFree(ear);
}

START_TEST(fair_steps)
{
    redisContext *ear = redisson_listen(&a, "redisson_lock__channel:{n}:" B);
    int64_t due_c;

    ck_assert_int_eq(redisson_fair_lock(&a, "n", LEASE, WAIT), REDISSON_NIL);
    near(redisson_fair_lock(&b, "n", LEASE, WAIT), LEASE);
    near(redisson_fair_lock(&c, "n", LEASE, WAIT), LEASE + WAIT);
    redis_expect(stand.redis, B, "LINDEX " QUEUE " 0");
    redis_expect(stand.redis, C, "LINDEX " QUEUE " 1");
    near(due_in(B), LEASE + WAIT);
    near(due_in(C), LEASE + 2 * WAIT);
    ck_assert_int_eq(redis_ask_int(stand.redis, "PTTL " QUEUE), -1);
    ck_assert_int_eq(redis_ask_int(stand.redis, "PTTL " DUE), -1);
    near(redisson_fair_lock(&b, "n", LEASE, WAIT), LEASE);
    ck_assert_int_eq(redisson_fair_unlock(&a, "n", NULL), 1);
    gone("n");
    redisson_hear(ear, "0");
    ck_assert_int_eq(redisson_fair_lock(&c, "n", LEASE, WAIT), 0);
    ck_assert_int_eq(redisson_fair_try(&d, "n", LEASE, WAIT), 1);
    due_c = due_in(C);
    ck_assert_int_eq(redisson_fair_lock(&b, "n", LEASE, WAIT), REDISSON_NIL);
    field(B, "1");
    ck_assert_int_eq(redis_ask_int(stand.redis, "LLEN " QUEUE), 1);
    near(due_in(C), due_c - WAIT);
    redisson_fair_leave(&c, "n", WAIT);
    gone(QUEUE);
    gone(DUE);
    (void)redis_ask_int(stand.redis, "DEL n");
    ck_assert_int_eq(redisson_fair_unlock(&d, "n", REQUEST), 1);
    redis_expect(stand.redis, "1", "GET " LATCH);
    redisson_hear_nothing(ear);
    redisFree(ear);
}

START_TEST(read_steps)
{
    redisContext *ear = redisson_listen(&a, "redisson_rwlock:{n}");

    ck_assert_int_eq(redisson_read_lock(&a, "n", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_read_lock(&a, "n", 5000), REDISSON_NIL);
    ck_assert_int_eq(redisson_read_lock(&b, "n", 60000), REDISSON_NIL);
    field("mode", "read");
    field(A, "2");
    field(B, "1");
    pttl_near("n", 60000);
    pttl_near("{n}:" A ":rwlock_timeout:1", LEASE);
    pttl_near(redisson_hold_key("n", A, 2), 5000);
    pttl_near(redisson_hold_key("n", B, 1), 60000);
    near(redisson_write_lock(&c, "n", LEASE), 60000);
    ck_assert_int_eq(redisson_read_renew(&a, "n", LEASE), 1);
    ck_assert_int_eq(redisson_read_renew(&b, "n", LEASE), 1);
    pttl_near("n", LEASE);
    pttl_near(redisson_hold_key("n", A, 2), LEASE);
    pttl_near(redisson_hold_key("n", B, 1), LEASE);
    ck_assert_int_eq(redisson_read_unlock(&a, "n", NULL), 0);
    gone(redisson_hold_key("n", A, 2));
    ck_assert_int_eq(redisson_read_unlock(&a, "n", NULL), 0);
    field(A, NULL);
    ck_assert_int_eq(redisson_read_unlock(&a, "n", NULL), REDISSON_NIL);
    redisson_hear_nothing(ear);
    ck_assert_int_eq(redisson_read_unlock(&b, "n", NULL), 1);
    gone("n");
    gone(redisson_hold_key("n", B, 1));
    redisson_hear(ear, "0");
    ck_assert_int_eq(redisson_read_unlock(&b, "n", NULL), REDISSON_NIL);
    redisson_hear(ear, "0");
    redisFree(ear);
}

START_TEST(write_steps)
{
    redisContext *ear = redisson_listen(&a, "redisson_rwlock:{n}");

    ck_assert_int_eq(redisson_write_lock(&a, "n", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_write_lock(&a, "n", LEASE), REDISSON_NIL);
    field("mode", "write");
    field(A ":write", "2");
    pttl_near("n", 2 * LEASE);
    ck_assert_int_eq(redisson_read_lock(&a, "n", LEASE), REDISSON_NIL);
    near(redisson_read_lock(&b, "n", LEASE), 2 * LEASE);
    field(A, "1");
    pttl_near(redisson_hold_key("n", A, 1), LEASE);
    ck_assert_int_eq(redisson_write_unlock(&a, "n", NULL), 0);
    ck_assert_int_eq(redisson_write_unlock(&a, "n", NULL), 1);
    field("mode", "read");
    redisson_hear_nothing(ear); /* nobody is told that readers may come in now */
    ck_assert_int_eq(redisson_read_unlock(&a, "n", NULL), 1);
    redisson_hear(ear, "0");
    ck_assert_int_eq(redisson_write_lock(&a, "n", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_write_unlock(&a, "n", NULL), 1);
    redisson_hear(ear, "1");
    ck_assert_int_eq(redisson_read_lock(&a, "n", LEASE), REDISSON_NIL);
    ck_assert_int_eq(redisson_read_force_unlock(&b, "n"), 1);
    gone("n");
    pttl_near(redisson_hold_key("n", A, 1), LEASE); /* is left to expire */
    redisson_hear(ear, "0");
    redisFree(ear);
}

START_TEST(renewal_steps)
{
    ck_assert_int_eq(redisson_lock(&a, "k1", 5000), REDISSON_NIL);
    ck_assert_int_eq(redisson_lock(&b, "k2", 5000), REDISSON_NIL);
    ck_assert_int_eq(redisson_renew_lock(&a, "k1", LEASE), 1);
    ck_assert_int_eq(redisson_renew_lock(&a, "k2", LEASE), 0);
    ck_assert_int_eq(redisson_renew_lock(&a, "k3", LEASE), 0);
    pttl_near("k1", LEASE);
    pttl_near("k2", 5000);
}

START_TEST(fenced_steps)
{
    int64_t token;

    ck_assert_int_eq(redisson_fenced_lock(&a, "n", LEASE, &token), REDISSON_NIL);
    ck_assert_int_eq(token, 1);
    ck_assert_int_eq(redisson_fenced_lock(&a, "n", LEASE, &token), REDISSON_NIL);
    ck_assert_int_eq(token, 2);
    near(redisson_fenced_lock(&b, "n", LEASE, &token), LEASE);
    ck_assert_int_eq(token, -1);
    redis_expect(stand.redis, "2", "GET redisson_lock_token:{n}");
    ck_assert_int_eq(redis_ask_int(stand.redis, "PTTL redisson_lock_token:{n}"), -1);
    ck_assert_int_eq(redisson_unlock(&a, "n", NULL), 0);
    ck_assert_int_eq(redisson_unlock(&a, "n", NULL), 1);
    redis_expect(stand.redis, "2", "GET redisson_lock_token:{n}");
    /* After latchd raised it: Redisson reads the number as it is. */
    redis_expect(stand.redis, "OK", "SET redisson_lock_token:{n} 1795343931563564");
    ck_assert_int_eq(redisson_fenced_lock(&b, "n", LEASE, &token), REDISSON_NIL);
    ck_assert_int_eq(token, 1795343931563565);
    redis_expect(stand.redis, "1795343931563565", "GET redisson_lock_token:{n}");
}
