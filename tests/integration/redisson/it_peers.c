/* latchd beside others who use the same names in the same Redis, as Redisson does: its
 * steps, told here in scripts of our own. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define CHANNEL "redisson_lock__channel:{job}"
#define PEER "8743c9c0-0795-4907-87fd-6c719a6b4586:1"

enum { LEASE_MS = 30000 };

/* Nil: taken; else the TTL of its holder. */
static const char TAKE[] = "if redis.call('exists', KEYS[1]) == 0 "
                           "or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then "
                           "redis.call('hincrby', KEYS[1], ARGV[1], 1) "
                           "redis.call('pexpire', KEYS[1], ARGV[2]) return -3 end "
                           "return redis.call('pttl', KEYS[1])";

static const char FREE[] =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return -3 end "
    "local left = redis.call('hincrby', KEYS[1], ARGV[1], -1) "
    "if left > 0 then return left end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') return 0";

static bool peer_take(const char *owner)
{
    return redis_ask_int(stand.redis, "EVAL %s 1 job %s %d", TAKE, owner, LEASE_MS) ==
           -3;
}

static long long peer_free(const char *owner)
{
    return redis_ask_int(stand.redis, "EVAL %s 2 job %s %s", FREE, CHANNEL, owner);
}

static redisContext *peer_listen(void)
{
    redisContext *c = redisConnectUnix(redis_path(stand.redis));
    struct timeval patience = { .tv_sec = 10 };
    redisReply *r;

    ck_assert_int_eq(c->err, 0);
    ck_assert_int_eq(redisSetTimeout(c, patience), REDIS_OK);
    r = redisCommand(c, "SUBSCRIBE " CHANNEL);
    ck_assert_ptr_nonnull(r);
    freeReplyObject(r);
    return c;
}

static void peer_hear(redisContext *c)
{
    redisReply *r = NULL;

    ck_assert_int_eq(redisGetReply(c, (void **)&r), REDIS_OK);
    ck_assert_uint_eq(r->elements, 3);
    ck_assert_str_eq(r->element[1]->str, CHANNEL);
    ck_assert_str_eq(r->element[2]->str, "0");
    freeReplyObject(r);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_foreign_holder_is_respected_and_its_release_wakes_us)
{
    struct client *c;

    stand_up(NO_RECHECK, NULL);
    c = open_client();
    ck_assert(peer_take(PEER));
    ask_nil(c, "LOCK job WAIT 0");
    send_lock(c, "job", "", 1);
    expect_silence(c);
    ck_assert_int_eq(peer_free(PEER), 0);
    (void)client_read_int(c);
    ck_assert(!peer_take(PEER));
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert(peer_take(PEER));
    client_close(c);
    stand_down();
}

START_TEST(our_release_wakes_a_foreign_waiter)
{
    struct client *c;
    redisContext *peer;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job");
    peer = peer_listen();
    ck_assert(!peer_take(PEER));
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    peer_hear(peer);
    ck_assert(peer_take(PEER));
    redisFree(peer);
    client_close(c);
    stand_down();
}

START_TEST(a_foreign_waiter_gets_its_chance_among_many_of_ours)
{
    enum { WAITERS = 12 };
    struct client *c[WAITERS], *holder;
    redisContext *peer;
    bool got = false;
    int served = 0;

    stand_up("--handoff-limit", "2", "--handoff-pause", "50ms", NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    for (int i = 0; i < WAITERS; i++) {
        c[i] = open_client();
        send_lock(c[i], "job", "", i + 1);
    }
    peer = peer_listen();
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    while (served < WAITERS && !got) {
        (void)client_read_int(c[served]);
        ck_assert_int_eq(ask_int(c[served], "UNLOCK job"), 0);
        served++;
        got = peer_take(PEER);
    }
    ck_assert_msg(got, "the foreign waiter was passed %d times", served);
    ck_assert_int_eq(peer_free(PEER), 0);
    for (; served < WAITERS; served++) {
        (void)client_read_int(c[served]);
        ck_assert_int_eq(ask_int(c[served], "UNLOCK job"), 0);
    }
    redisFree(peer);
    close_clients(c, WAITERS);
    client_close(holder);
    stand_down();
}

/* The foreign waiter listens, and is too slow to ever ask. */
START_TEST(the_lock_stays_free_for_longer_while_a_foreign_waiter_does_not_get_it)
{
    enum { WAITERS = 3, FREE_MS = 60 };
    struct client *c[WAITERS];
    redisContext *peer;
    uint64_t free_ms = 0;

    stand_up(NULL);
    c[0] = open_client();
    (void)ask_int(c[0], "LOCK job");
    for (int i = 1; i < WAITERS; i++) {
        c[i] = open_client();
        send_lock(c[i], "job", "", i);
    }
    peer = peer_listen();
    for (int i = 0; free_ms < FREE_MS; i = (i + 1) % WAITERS) {
        uint64_t freed;

        ck_assert_int_eq(ask_int(c[i], "UNLOCK job"), 0);
        for (freed = test_now_ms(); peek_int("EXISTS job") == 0;) {
            free_ms = test_now_ms() - freed;
        }
        (void)client_read_int(c[(i + 1) % WAITERS]);
        send_lock(c[i], "job", "", WAITERS - 1);
    }
    redisFree(peer);
    close_clients(c, WAITERS);
    stand_down();
}

START_TEST(a_foreign_lease_that_ends_unannounced_wakes_us)
{
    struct client *c;
    uint64_t start;

    stand_up(NO_RECHECK, NULL);
    c = open_client();
    ck_assert(peer_take(PEER));
    start = test_now_ms();
    free(peek_text("PEXPIRE job 700"));
    (void)ask_int(c, "LOCK job WAIT 20000");
    expect_not_before(start, 600);
    client_close(c);
    stand_down();
}

START_TEST(a_foreign_delete_without_a_message_is_found_by_recheck)
{
    struct client *c;
    long long calls;

    stand_up("--recheck", "400ms", NULL);
    c = open_client();
    ck_assert(peer_take(PEER));
    calls = peek_script_calls();
    send_lock(c, "job", "", 1);
    AWAIT(peek_script_calls() >= calls + 2); /* once more after it subscribed */
    ck_assert_int_eq(peek_int("DEL job"), 1);
    client_set_deadline(c, 4000); /* the default is 5 s */
    (void)client_read_int(c);
    client_close(c);
    stand_down();
}

START_TEST(a_foreign_holder_is_shown_and_can_be_forced_out)
{
    struct client *c;
    const struct value *holds;
    struct value v;

    stand_up(NULL);
    c = open_client();
    ck_assert(peer_take(PEER));
    ck_assert(peer_take(PEER));
    v = ask(c, "LOCKINFO job");
    holds = value_get(&v, "holds");
    ck_assert(value_is_text(value_get(&v, "state"), "held"));
    ck_assert_uint_eq(holds->count, 1);
    ck_assert(value_is_text(value_get(&holds->items[0], "owner"), PEER));
    ck_assert_int_eq(value_get(&holds->items[0], "count")->integer, 2);
    value_fini(&v);
    ask_error(c, "NOTHELD", "UNLOCK job OWNER somebody");
    ck_assert_int_eq(ask_int(c, "FORCEUNLOCK job OWNER " PEER), 1);
    expect_no_locks();
    client_close(c);
    stand_down();
}

/* As forceUnlock() does it, and the next one is faster than ours, who waits here. */
static const char FORCE[] = "redis.call('del', KEYS[1]) "
                            "redis.call('publish', KEYS[2], '0') "
                            "redis.call('hset', KEYS[1], ARGV[1], 1) "
                            "redis.call('pexpire', KEYS[1], 30000) return 1";

static const char LISTEN[] = "return redis.call('pubsub', 'numsub', KEYS[1])[2]";

START_TEST(a_hold_that_was_freed_by_force_is_missed_at_once_where_others_wait)
{
    struct client *holder, *waiter, *events;

    stand_up("--watchdog-timeout", "10m", NO_RECHECK, NULL); /* no renewal soon */
    holder = open_client();
    waiter = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    (void)ask_int(holder, "LOCK job");
    send_lock(waiter, "job", "", 1);
    AWAIT(redis_ask_int(stand.redis, "EVAL %s 1 " CHANNEL, LISTEN) > 0);
    ck_assert_int_eq(
        redis_ask_int(stand.redis, "EVAL %s 2 job %s " PEER, FORCE, CHANNEL), 1);
    expect_message(events, "lost:job", "latchd:");
    ask_error(holder, "NOTHELD", "UNLOCK job");
    ck_assert_int_eq(peer_free(PEER), 0);
    (void)client_read_int(waiter);
    client_close(holder);
    client_close(waiter);
    client_close(events);
    stand_down();
}

START_TEST(a_foreign_watchdog_may_cut_a_fixed_lease_and_it_is_raised_again)
{
    struct client *c;

    stand_up(SHORT_LEASES, NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job LEASE 60000");
    free(peek_text("PEXPIRE job 20000"));
    AWAIT(peek_int("PTTL job") > 30000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    client_close(c);
    stand_down();
}
