/* READ and WRITE beside Redisson's RReadWriteLock on one name, and what goes wrong with
 * its leases. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define R "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
#define CHANNEL "redisson_rwlock:{doc}"

enum { LEASE = REDISSON_LEASE, LONG = 60000, NEAR = 20000 };

static struct redisson r, s;

static void up(const char *key, const char *value)
{
    stand_up("--redis-timeout", "1s", key, value, NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
    s = (struct redisson){ .redis = stand.redis,
                           .owner = "9c0fe05b-5c6e-4d8e-9f0c-2f0f9e1e7a11:42" };
}

static bool reads(const struct redisson *peer, int64_t lease_ms)
{
    return redisson_read_lock(peer, "doc", lease_ms) == REDISSON_NIL;
}

static bool writes(const struct redisson *peer, int64_t lease_ms)
{
    return redisson_write_lock(peer, "doc", lease_ms) == REDISSON_NIL;
}

static void pttl_near(const char *key, int64_t want)
{
    int64_t ttl = peek_int("PTTL %s", key);

    ck_assert_msg(ttl > want - NEAR && ttl <= want + NEAR, "%s: %" PRId64, key, ttl);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(our_readers_are_laid_out_as_redissons)
{
    struct client *c;
    int64_t token;
    char *value;

    up(NULL, NULL);
    c = open_client();
    token = ask_int(c, "LOCK doc READ OWNER o");
    (void)ask_int(c, "LOCK doc READ OWNER o LEASE 5000");
    ck_assert(reads(&r, LONG));
    redis_expect(stand.redis, "read", "HGET doc mode");
    redis_expect(stand.redis, "2", "HGET doc o");
    redis_expect(stand.redis, "1", "HGET doc " R);
    ck_assert_int_eq(peek_int("HLEN doc"), 3);
    value = peek_text("GET {doc}:o:rwlock_timeout:1");
    ck_assert_int_eq(strtoll(value, NULL, 10), token); /* Redisson has `1` there */
    free(value);
    ck_assert_int_gt(peek_int("PTTL {doc}:o:rwlock_timeout:1"), LEASE - NEAR);
    ck_assert_int_gt(peek_int("PTTL {doc}:o:rwlock_timeout:2"), 0);
    pttl_near("doc", LONG);
    ck_assert_int_eq(redisson_read_unlock(&r, "doc", NULL), 0); /* it sees ours */
    redis_expect(stand.redis, "2", "HGET doc o");
    ck_assert_int_gt(peek_int("PTTL doc"), 0);
    client_close(c);
    stand_down();
}

START_TEST(our_writer_is_laid_out_as_redissons)
{
    struct client *c;

    up(NULL, NULL);
    c = open_client();
    (void)ask_int(c, "LOCK doc WRITE OWNER o LEASE 60000");
    redis_expect(stand.redis, "write", "HGET doc mode");
    redis_expect(stand.redis, "1", "HGET doc o:write");
    ck_assert_int_eq(peek_int("HLEN doc"), 2);
    pttl_near("doc", LONG);
    ck_assert(!reads(&r, LEASE));
    ck_assert(!writes(&r, LEASE));
    ck_assert_int_eq(redisson_read_force_unlock(&r, "doc"), 0);
    ck_assert_int_eq(redisson_write_unlock(&r, "doc", NULL), REDISSON_NIL);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    ck_assert(writes(&r, LEASE));
    client_close(c);
    stand_down();
}

START_TEST(redissons_writer_wakes_all_our_readers)
{
    enum { FEW = 5 };
    struct client *c[FEW];

    up(NO_RECHECK);
    ck_assert(writes(&r, LEASE));
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        send_lock(c[i], "doc", "READ", i + 1);
    }
    ck_assert_int_eq(redisson_write_unlock(&r, "doc", NULL), 1);
    for (int i = 0; i < FEW; i++) {
        (void)client_read_int(c[i]);
    }
    ck_assert(reads(&r, LEASE));
    ck_assert(!writes(&s, LEASE));
    close_clients(c, FEW);
    stand_down();
}

START_TEST(redissons_last_reader_wakes_our_writer)
{
    struct client *c;

    up(NO_RECHECK);
    c = open_client();
    ck_assert(reads(&r, LEASE));
    ck_assert(reads(&s, LEASE));
    send_lock(c, "doc", "WRITE", 1);
    ck_assert_int_eq(redisson_read_unlock(&r, "doc", NULL), 0);
    expect_silence(c);
    ck_assert_int_eq(redisson_read_unlock(&s, "doc", NULL), 1);
    (void)client_read_int(c);
    ck_assert(!reads(&r, LEASE));
    client_close(c);
    stand_down();
}

START_TEST(our_last_reader_and_our_writer_tell_redisson)
{
    struct client *a, *b;
    redisContext *ear;

    up(NULL, NULL);
    a = open_client();
    b = open_client();
    ear = redisson_listen(&r, CHANNEL);
    (void)ask_int(a, "LOCK doc READ");
    (void)ask_int(b, "LOCK doc READ");
    ck_assert(!writes(&r, LEASE));
    ck_assert_int_eq(ask_int(a, "UNLOCK doc"), 0);
    redisson_hear_nothing(ear);
    ck_assert_int_eq(ask_int(b, "UNLOCK doc"), 0);
    redisson_hear(ear, "0");
    (void)ask_int(a, "LOCK doc WRITE");
    ck_assert_int_eq(ask_int(a, "UNLOCK doc"), 0);
    redisson_hear(ear, "1"); /* so that all its readers wake */
    ck_assert(writes(&r, LEASE));
    redisFree(ear);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(our_downgrade_tells_redissons_readers_W3)
{
    struct client *c;
    redisContext *ear;

    up(NULL, NULL);
    c = open_client();
    ear = redisson_listen(&r, CHANNEL);
    (void)ask_int(c, "LOCK doc WRITE OWNER o");
    (void)ask_int(c, "LOCK doc READ OWNER o");
    ck_assert(!reads(&r, LEASE));
    ck_assert_int_eq(ask_int(c, "UNLOCK doc WRITE OWNER o"), 0);
    redisson_hear(ear, "1");
    ck_assert(reads(&r, LEASE));
    redisFree(ear);
    client_close(c);
    stand_down();
}

START_TEST(redissons_downgrade_tells_nobody_and_is_found_by_recheck_H24)
{
    struct client *c;

    up("--recheck", "400ms");
    c = open_client();
    ck_assert(writes(&r, LEASE));
    ck_assert(reads(&r, LEASE));
    send_lock(c, "doc", "READ", 1);
    ck_assert_int_eq(redisson_write_unlock(&r, "doc", NULL), 1);
    client_set_deadline(c, 4000); /* the default is 5 s */
    (void)client_read_int(c);
    client_close(c);
    stand_down();
}

START_TEST(a_writers_lease_is_not_cut_by_its_own_reader_leaving_W1)
{
    struct client *c;

    up(NULL, NULL);
    c = open_client();
    (void)ask_int(c, "LOCK doc WRITE OWNER o LEASE 60000");
    (void)ask_int(c, "LOCK doc READ OWNER o LEASE 2000 ID 11111111-1111-1111");
    (void)ask_int(c, "LOCK doc READ OWNER o LEASE 2000 ID 22222222-2222-2222");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc READ OWNER o"), 1);
    pttl_near("doc", LONG);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc READ OWNER o"), 0);
    pttl_near("doc", LONG);
    client_close(c);
    stand_down();
}

START_TEST(our_renewals_never_cut_a_foreign_readers_lease_W2)
{
    struct client *c;

    up("--watchdog-timeout", "3s");
    c = open_client();
    (void)ask_int(c, "LOCK doc READ OWNER o");
    ck_assert(reads(&r, LONG));
    for (int i = 0; i < 2; i++) {
        await_renewals("{doc}:o:rwlock_timeout:1", 1);
        pttl_near("doc", LONG);
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    pttl_near("doc", LONG);
    ck_assert(!writes(&s, LEASE));
    client_close(c);
    stand_down();
}

START_TEST(a_foreign_watchdog_that_cuts_our_readers_lease_is_made_good_H14)
{
    struct client *c;

    up("--watchdog-timeout", "3s");
    c = open_client();
    (void)ask_int(c, "LOCK doc READ LEASE 60000");
    daemon_pause(stand.daemon); /* it is not to make it good before the look */
    ck_assert(reads(&r, 20000));
    ck_assert_int_eq(redisson_read_renew(&r, "doc", 20000), 1);
    ck_assert_int_le(peek_int("PTTL doc"), 20000);
    daemon_resume(stand.daemon);
    AWAIT(peek_int("PTTL doc") > LONG / 2);
    client_close(c);
    stand_down();
}

START_TEST(a_writer_is_renewed_after_its_owner_stopped_reading_W5)
{
    struct client *c;

    up("--watchdog-timeout", "3s");
    c = open_client();
    (void)ask_int(c, "LOCK doc WRITE OWNER o");
    (void)ask_int(c, "LOCK doc READ OWNER o");
    ck_assert_int_eq(ask_int(c, "UNLOCK doc READ OWNER o"), 0);
    await_renewals("doc", 2);
    ck_assert_int_eq(ask_int(c, "UNLOCK doc OWNER o"), 0);
    client_close(c);
    stand_down();
}

START_TEST(readers_are_renewed_while_their_connections_live)
{
    enum { MANY = 50 };
    struct client *c[MANY];

    up("--watchdog-timeout", "3s");
    for (int i = 0; i < MANY; i++) {
        c[i] = open_client();
        (void)ask_int(c[i], "LOCK doc READ OWNER %d", i);
    }
    await_renewals("{doc}:0:rwlock_timeout:1", 4); /* for longer than a lease */
    ck_assert_int_eq(peek_int("HLEN doc"), MANY + 1);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(peek_int("EXISTS {doc}:%d:rwlock_timeout:1", i), 1);
    }
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(ask_int(c[i], "UNLOCK doc OWNER %d", i), 0);
    }
    expect_no_locks();
    close_clients(c, MANY);
    stand_down();
}

START_TEST(a_dead_reader_does_not_outlive_the_last_live_one_W6)
{
    struct client *a, *b;

    up(NO_RECHECK);
    a = open_client();
    b = open_client();
    ck_assert(reads(&r, 200)); /* and is never heard of again */
    (void)ask_int(a, "LOCK doc READ");
    send_lock(b, "doc", "WRITE", 1);
    AWAIT(peek_int("EXISTS %s", redisson_hold_key("doc", R, 1)) == 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK doc"), 0);
    (void)client_read_int(b);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_reader_that_ends_does_not_live_on_with_a_longer_one)
{
    struct client *a, *b;
    uint64_t start;

    up(NO_RECHECK);
    a = open_client();
    b = open_client();
    start = test_now_ms();
    (void)ask_int(a, "LOCK doc READ LEASE 1500");
    (void)ask_int(b, "LOCK doc READ LEASE 60000");
    ck_assert_int_eq(ask_int(b, "UNLOCK doc"), 0);
    (void)ask_int(b, "LOCK doc WRITE");
    expect_not_before(start, 1300);
    client_close(a);
    client_close(b);
    stand_down();
}
