/* The Redis of the simulator is right: Redisson's own sequences, reply by reply and key
 * by key, as its scripts gave them on a real Redis. */
#include "sim/redis/sim_redisson.h"
#include "support/runner.h"

#include <stdio.h>

#define A SPAN("aaaaaaaa-0000-0000-0000-000000000001:1")
#define B SPAN("bbbbbbbb-0000-0000-0000-000000000002:1")
#define C SPAN("cccccccc-0000-0000-0000-000000000003:7")

enum { NOW = 1700000000, LEASE = 30000, MESSAGES_MAX = 8 };

static struct sim_redis redis;
static struct redis_name *n;
static char heard[MESSAGES_MAX][200];
static size_t heard_count;

static void hear(void *ctx, const struct redis_message *m)
{
    static const char *const CLASSES[LOCK_CLASSES] = {
        [CLASS_PLAIN] = "plain",
        [CLASS_RW] = "rw",
    };

    (void)ctx;
    ck_assert_uint_lt(heard_count, MESSAGES_MAX);
    (void)snprintf(heard[heard_count++], sizeof(heard[0]), "%s %.*s%c",
                   m->member.len > 0 ? "member" : CLASSES[m->lock_class],
                   (int)m->member.len, m->member.len > 0 ? m->member.ptr : "",
                   m->payload);
}

static void setup(void)
{
    sim_redis_init(&redis);
    redis.now_ms = NOW;
    redis.hooks.published = hear;
    n = sim_redis_name(&redis, SPAN("n"));
    heard_count = 0;
}

static void teardown(void)
{
    sim_redis_fini(&redis);
}

static struct redis_name *pass(uint64_t ms)
{
    redis.now_ms += ms;
    return sim_redis_name(&redis, SPAN("n"));
}

static void heard_only(const char *text)
{
    ck_assert_uint_eq(heard_count, 1);
    ck_assert_str_eq(heard[0], text);
    heard_count = 0;
}

static void holds(struct span owner, int64_t count, int64_t pttl)
{
    struct redis_hash_field *f = redis_field(n, owner);

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(f->count, count);
    ck_assert_int_eq(redis_pttl(&redis, n), pttl);
}

TEST_GROUP(.setup = setup, .teardown = teardown);

START_TEST(rlock_as_redisson_plays_it)
{
    ck_assert(redis_foreign_take(&redis, n, A, LEASE));
    holds(A, 1, LEASE);
    ck_assert(redis_foreign_take(&redis, n, A, LEASE));
    holds(A, 2, LEASE);
    ck_assert(!redis_foreign_take(&redis, n, B, LEASE));
    ck_assert(!redis_foreign_release(&redis, n, B, true));
    ck_assert(redis_foreign_release(&redis, n, A, true));
    holds(A, 1, LEASE);
    ck_assert_uint_eq(heard_count, 0);
    ck_assert(redis_foreign_release(&redis, n, A, true));
    ck_assert_uint_eq(n->field_count, 0);
    heard_only("plain 0");
}

/* --- fair ----------------------------------------------------------------- */

static struct redisson_fair fair(struct span owner)
{
    return (struct redisson_fair){ owner, LEASE, REDISSON_FAIR_WAIT_MS, redis.now_ms };
}

static struct redisson_wait fair_take(struct span owner)
{
    struct redisson_fair f = fair(owner);

    return redis_foreign_fair_take(&redis, n, &f);
}

static int fair_release(struct span owner)
{
    struct redisson_fair f = fair(owner);

    return redis_foreign_fair_release(&redis, n, &f);
}

static void waits(size_t at, struct span owner, int64_t score)
{
    ck_assert_uint_gt(n->queue_count, at);
    ck_assert(rtext_is(&n->queue[at], owner));
    ck_assert_ptr_nonnull(redis_score(n, owner));
    ck_assert_int_eq(redis_score(n, owner)->score, score);
}

START_TEST(fair_as_redisson_plays_it)
{
    struct redisson_fair d = fair(SPAN("dddddddd-0000-0000-0000-000000000004:1"));
    struct redisson_fair c = fair(C);

    ck_assert(fair_take(A).taken);
    ck_assert_int_eq(fair_take(B).ttl_ms, 30000);
    ck_assert_int_eq(fair_take(C).ttl_ms, 330000);
    waits(0, B, NOW + 330000);
    waits(1, C, NOW + 630000);
    ck_assert_int_eq(fair_take(B).ttl_ms, 30000);
    ck_assert_uint_eq(n->queue_count, 2);

    ck_assert_int_eq(fair_release(A), 1);
    ck_assert_uint_eq(n->field_count, 0);
    heard_only("member bbbbbbbb-0000-0000-0000-000000000002:10");
    ck_assert(!fair_take(C).taken);
    ck_assert_int_eq(fair_take(C).ttl_ms, 0);
    ck_assert(!redis_foreign_fair_try(&redis, n, &d));
    ck_assert(fair_take(B).taken);
    holds(B, 1, LEASE);
    waits(0, C, NOW + 330000);
    ck_assert_uint_eq(n->queue_count, 1);

    redis_foreign_fair_failed(&redis, n, &c);
    ck_assert_uint_eq(n->queue_count, 0);
    ck_assert_uint_eq(n->score_count, 0);
    ck_assert_int_eq(fair_release(B), 1);
    ck_assert_int_eq(fair_release(C), 1);
    ck_assert_uint_eq(heard_count, 0);
}

START_TEST(a_live_head_is_thrown_out_when_its_score_is_past_F2)
{
    ck_assert(fair_take(A).taken);
    (void)fair_take(B);
    (void)fair_take(C);
    n = pass(330000);
    ck_assert_int_eq(fair_take(C).ttl_ms, 0);
    ck_assert_uint_eq(n->queue_count, 0);
    ck_assert(fair_take(C).taken);
}

/* --- read and write ------------------------------------------------------- */

static void lives(struct span reader, int64_t index, uint64_t ms)
{
    struct redis_hold_key *k = redis_hold_key(n, reader, index);

    ck_assert_ptr_nonnull(k);
    ck_assert_uint_eq(k->expires - redis.now_ms, ms);
}

START_TEST(readers_as_redisson_plays_them)
{
    ck_assert(redis_foreign_read(&redis, n, A, LEASE).taken);
    ck_assert(redis_foreign_read(&redis, n, A, 5000).taken);
    ck_assert(redis_foreign_read(&redis, n, B, 60000).taken);
    ck_assert_int_eq(n->mode, MODE_READ);
    holds(A, 2, 60000);
    holds(B, 1, 60000);
    lives(A, 1, 30000);
    lives(A, 2, 5000);
    lives(B, 1, 60000);
    n = pass(150);
    ck_assert_int_eq(redis_foreign_write(&redis, n, C, LEASE).ttl_ms, 59850);
    ck_assert(redis_foreign_renew_reads(&redis, n, A, LEASE));
    ck_assert(redis_foreign_renew_reads(&redis, n, B, LEASE));
    holds(A, 2, LEASE);
    lives(A, 1, LEASE);
    lives(A, 2, LEASE);
    lives(B, 1, LEASE);

    ck_assert_int_eq(redis_foreign_unread(&redis, n, A), 0);
    ck_assert_ptr_null(redis_hold_key(n, A, 2));
    ck_assert_int_eq(redis_foreign_unread(&redis, n, A), 0);
    ck_assert_ptr_null(redis_hold_key(n, A, 1));
    ck_assert_ptr_null(redis_field(n, A));
    ck_assert_int_eq(redis_foreign_unread(&redis, n, A), -1);
    ck_assert_uint_eq(heard_count, 0);
    ck_assert_int_eq(redis_foreign_unread(&redis, n, B), 1);
    ck_assert_uint_eq(n->field_count + n->hold_key_count, 0);
    heard_only("rw 0");
    ck_assert_int_eq(redis_foreign_unread(&redis, n, B), -1);
    heard_only("rw 0");
}

START_TEST(a_writer_as_redisson_plays_it)
{
    ck_assert(redis_foreign_write(&redis, n, A, LEASE).taken);
    ck_assert(redis_foreign_write(&redis, n, A, LEASE).taken);
    ck_assert_int_eq(n->mode, MODE_WRITE);
    holds(SPAN("aaaaaaaa-0000-0000-0000-000000000001:1:write"), 2, 2 * LEASE);
    ck_assert(redis_foreign_read(&redis, n, A, LEASE).taken);
    ck_assert_int_eq(redis_foreign_read(&redis, n, B, LEASE).ttl_ms, 2 * LEASE);
    holds(A, 1, 2 * LEASE);
    lives(A, 1, LEASE);
    ck_assert_int_eq(redis_foreign_unwrite(&redis, n, A), 0);
    ck_assert_int_eq(redis_foreign_unwrite(&redis, n, A), 1);
    ck_assert_int_eq(n->mode, MODE_READ);
    ck_assert_uint_eq(heard_count, 0);
    ck_assert_int_eq(redis_foreign_unread(&redis, n, A), 1);
    heard_only("rw 0");

    ck_assert(redis_foreign_write(&redis, n, A, LEASE).taken);
    ck_assert_int_eq(redis_foreign_unwrite(&redis, n, A), 1);
    ck_assert_uint_eq(n->field_count, 0);
    heard_only("rw 1");
}

START_TEST(a_read_release_cuts_the_writers_lease_W1)
{
    ck_assert(redis_foreign_write(&redis, n, A, 60000).taken);
    ck_assert(redis_foreign_read(&redis, n, A, 2000).taken);
    ck_assert(redis_foreign_read(&redis, n, A, 2000).taken);
    n = pass(200);
    ck_assert_int_eq(redis_foreign_unread(&redis, n, A), 0);
    ck_assert_int_eq(redis_pttl(&redis, n), 1800);
}
