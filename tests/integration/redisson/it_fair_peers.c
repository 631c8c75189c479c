/* FAIR beside Redisson's fair locks on one name, and what goes wrong with theirs. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand_fair.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEASE = REDISSON_LEASE,
    WAIT = REDISSON_FAIR_WAIT,
    HOUR = 3600000,
    TRIES = 40, /* of what depends on who is faster */
};

static struct redisson r, q;

static void up(const char *key, const char *value)
{
    stand_up(key, value, NULL);
    r = (struct redisson){ .redis = stand.redis,
                           .owner = "8743c9c0-0795-4907-87fd-6c719a6b4586:1" };
    q = (struct redisson){ .redis = stand.redis,
                           .owner = "9c0fe05b-5c6e-4d8e-9f0c-2f0f9e1e7a11:42" };
}

static void peer_joins(const struct redisson *peer, int64_t wait_ms)
{
    ck_assert_int_ne(redisson_fair_lock(peer, "job", LEASE, wait_ms), REDISSON_NIL);
}

static bool peer_takes(const struct redisson *peer)
{
    return redisson_fair_lock(peer, "job", LEASE, WAIT) == REDISSON_NIL;
}

/* It asks as often as a client that was woken would. */
static void peer_gets(const struct redisson *peer)
{
    AWAIT(peer_takes(peer));
}

static void unlock(struct client *c)
{
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
}

static redisContext *listen_as(const struct redisson *peer)
{
    char channel[200];

    (void)snprintf(channel, sizeof channel, "redisson_lock__channel:{job}:%s",
                   peer->owner);
    return redisson_listen(peer, channel);
}

/* Member and place in the queue: `latchd:...` for ours. */
static void expect_at(long long place, const char *start)
{
    char *member = peek_text("LINDEX " QUEUE " %lld", place);

    ck_assert_ptr_nonnull(member);
    ck_assert_msg(strncmp(member, start, strlen(start)) == 0, "%s", member);
    free(member);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(order_holds_over_latchd_and_redisson_and_each_wakes_the_other)
{
    struct test_daemon *second;
    struct client *a, *b, *c;
    redisContext *ear;

    up(NO_RECHECK);
    second = daemon_start(redis_path(stand.redis), NO_RECHECK, NULL);
    a = open_client();
    b = client_open(second);
    c = open_client();
    ck_assert(peer_takes(&r));
    fair_join(a, "", 1);
    peer_joins(&q, WAIT);
    fair_join(b, "", 3);
    fair_join(c, "", 4);
    ear = listen_as(&q);
    ck_assert_int_eq(redisson_fair_unlock(&r, "job", NULL), 1);
    (void)client_read_int(a);
    ck_assert(!peer_takes(&q));
    redisson_hear_nothing(ear);
    unlock(a);
    redisson_hear(ear, "0");
    ck_assert_int_eq(redisson_fair_try(&r, "job", LEASE, WAIT), 1);
    ck_assert(peer_takes(&q));
    expect_silence(b);
    ck_assert_int_eq(redisson_fair_unlock(&q, "job", NULL), 1);
    (void)client_read_int(b);
    expect_silence(c);
    unlock(b);
    (void)client_read_int(c);
    unlock(c);
    await_no_locks(0);
    redisFree(ear);
    client_close(a);
    client_close(b);
    client_close(c);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_plain_release_goes_to_redissons_fair_waiter_H22)
{
    struct client *a, *plain;
    redisContext *ear;

    up(NULL, NULL);
    a = open_client();
    plain = open_client();
    (void)ask_int(a, "LOCK job");
    send_lock(plain, "job", "", 1);
    peer_joins(&r, WAIT);
    ear = listen_as(&r);
    unlock(a);
    redisson_hear(ear, "0");
    ck_assert(peer_takes(&r));
    expect_silence(plain);
    ck_assert_int_eq(redisson_fair_unlock(&r, "job", NULL), 1);
    (void)client_read_int(plain);
    redisFree(ear);
    client_close(a);
    client_close(plain);
    stand_down();
}

START_TEST(a_head_that_leaves_as_it_is_woken_passes_it_on_H21)
{
    struct client *c;

    up(NO_RECHECK);
    for (int i = 0; i < TRIES; i++) {
        c = open_client();
        ck_assert(peer_takes(&r));
        fair_join(c, "", 1);
        peer_joins(&q, WAIT);
        ck_assert_int_eq(redisson_fair_unlock(&r, "job", NULL), 1);
        client_abort(c); /* as it gets it, or before */
        peer_gets(&q);
        ck_assert_int_eq(redisson_fair_unlock(&q, "job", NULL), 1);
        await_no_locks(0);
    }
    stand_down();
}

START_TEST(a_dead_head_of_redisson_is_waited_for_without_spinning_F1)
{
    enum { THEIR_WAIT = 1500 };
    struct client *c;
    long long calls;
    uint64_t start;

    up(NO_RECHECK);
    c = open_client();
    start = test_now_ms();
    (void)ask_int(stand.admin, "LOCK job LEASE 500");
    peer_joins(&r, THEIR_WAIT); /* and is never heard of again */
    fair_join(c, "", 2);
    calls = peek_script_calls();
    (void)client_read_int(c);
    expect_not_before(start, 500);
    calls = peek_script_calls() - calls;
    ck_assert_msg(calls < 30, "%lld scripts while it waited", calls);
    client_close(c);
    stand_down();
}

START_TEST(a_live_waiter_is_not_thrown_out_however_long_it_waits_F2)
{
    enum { LONG_MS = 4500 };
    struct client *holder, *a, *b;

    up("--fair-wait-timeout", "1s");
    holder = open_client();
    a = open_client();
    b = open_client();
    (void)ask_int(holder, "LOCK job LEASE 60000");
    fair_join(a, "", 1);
    fair_join(b, "", 2);
    /* The lease is cut, so that nothing but the refresh keeps their scores ahead. */
    STAYS(LONG_MS, peek_int("PEXPIRE job 2500") == 1 &&
                       redisson_fair_try(&r, "job", LEASE, WAIT) == 1 &&
                       peek_int("LLEN " QUEUE) == 2);
    (void)ask_int(stand.admin, "FORCEUNLOCK job ANY");
    (void)client_read_int(a);
    expect_silence(b);
    unlock(a);
    (void)client_read_int(b);
    client_close(holder);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_clock_ahead_that_purges_us_does_not_cost_us_our_place_F3)
{
    struct redisson ahead;
    struct client *holder, *a, *b;

    up("--fair-wait-timeout", "1s");
    ahead = r;
    ahead.skew_ms = 600000;
    holder = open_client();
    a = open_client();
    b = open_client();
    (void)ask_int(holder, "LOCK job");
    fair_join(a, "", 1);
    fair_join(b, "", 2);
    peer_joins(&q, HOUR);
    daemon_pause(stand.daemon); /* ours do not come back before the look */
    ck_assert_int_eq(redisson_fair_try(&ahead, "job", LEASE, WAIT), 1);
    ck_assert_int_eq(peek_int("LLEN " QUEUE), 1); /* both of ours are out */
    daemon_resume(stand.daemon);
    await_queue("job", 3);
    expect_at(0, "latchd:");
    expect_at(1, "latchd:");
    unlock(holder);
    (void)client_read_int(a);
    expect_silence(b);
    unlock(a);
    (void)client_read_int(b);
    ck_assert(!peer_takes(&q));
    unlock(b);
    peer_gets(&q);
    client_close(holder);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_lost_zset_or_list_is_repaired_F4)
{
    static const char *const KEYS[] = { DUE, QUEUE };

    up("--fair-wait-timeout", "1s");
    for (size_t i = 0; i < 2; i++) {
        struct client *holder = open_client(), *a = open_client(), *b = open_client();

        (void)ask_int(holder, "LOCK job");
        fair_join(a, "", 1);
        fair_join(b, "", 2);
        ck_assert_int_eq(peek_int("DEL %s", KEYS[i]), 1);
        AWAIT(peek_int("ZCARD " DUE) == 2 && peek_int("LLEN " QUEUE) == 2);
        unlock(holder);
        (void)client_read_int(a);
        expect_silence(b);
        unlock(a);
        (void)client_read_int(b);
        unlock(b);
        await_no_locks(0);
        client_close(holder);
        client_close(a);
        client_close(b);
    }
    stand_down();
}

START_TEST(a_score_less_head_of_ours_blocks_nobody_F4)
{
    struct client *holder, *a;

    up(NULL, NULL);
    holder = open_client();
    a = open_client();
    (void)ask_int(holder, "LOCK job");
    fair_join(a, "", 1);
    peer_joins(&r, WAIT);
    ck_assert_int_eq(peek_int("DEL " DUE), 1);
    client_close(a); /* it leaves, though there is no score to remove */
    await_queue("job", 1);
    unlock(holder);
    peer_gets(&r);
    client_close(holder);
    stand_down();
}

START_TEST(an_unlock_by_somebody_else_or_after_the_end_is_refused_F6)
{
    struct client *a, *b;
    int64_t token;

    up(NULL, NULL);
    a = open_client();
    b = open_client();
    token = ask_int(a, "LOCK job FAIR LEASE 200");
    ask_error(b, "NOTHELD", "UNLOCK job OWNER b");
    (void)ask_int(b, "LOCK job FAIR OWNER b");
    ask_error(a, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    ck_assert_int_eq(peek_int("HEXISTS job b"), 1);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(redissons_shift_does_not_throw_us_out_H20)
{
    struct client *a, *b;

    up("--fair-wait-timeout", "2s");
    a = open_client();
    b = open_client();
    (void)ask_int(stand.admin, "LOCK job");
    peer_joins(&r, HOUR);
    fair_join(a, "", 2);
    fair_join(b, "", 3);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job"), 0);
    /* Its grant takes an hour from every score. */
    ck_assert_int_eq(redisson_fair_lock(&r, "job", LEASE, HOUR), REDISSON_NIL);
    ck_assert_int_eq(peek_int("LLEN " QUEUE), 2);
    ck_assert_int_eq(redisson_fair_unlock(&r, "job", NULL), 1);
    (void)client_read_int(a);
    expect_silence(b);
    unlock(a);
    (void)client_read_int(b);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(redisson_behind_many_of_us_parks_no_longer_than_it_must_H20)
{
    enum { MANY = 64 };
    struct client *holder, *c[MANY];
    int64_t parks;

    up(NULL, NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    for (int i = 0; i < MANY; i++) {
        c[i] = open_client();
        fair_join(c[i], "", i + 1);
    }
    parks = redisson_fair_lock(&r, "job", LEASE, WAIT);
    ck_assert_int_le(parks, 30000 + 30000 + 1000);
    close_clients(c, MANY);
    await_queue("job", 1);
    unlock(holder);
    peer_gets(&r);
    client_close(holder);
    stand_down();
}

START_TEST(a_release_that_tells_nobody_is_found_by_recheck_H24)
{
    struct client *c;

    up("--recheck", "400ms");
    c = open_client();
    ck_assert_int_eq(redisson_lock(&r, "job", LEASE), REDISSON_NIL);
    fair_join(c, "", 1);
    ck_assert_int_eq(redisson_spin_unlock(&r, "job"), 1);
    client_set_deadline(c, 4000); /* the default is 5 s */
    (void)client_read_int(c);
    client_close(c);
    stand_down();
}

START_TEST(redisson_leaving_wakes_who_is_behind_it)
{
    struct client *c;

    up("--recheck", "400ms");
    c = open_client();
    ck_assert(peer_takes(&q));
    peer_joins(&r, WAIT);
    fair_join(c, "", 2);
    ck_assert_int_eq(redisson_fair_unlock(&q, "job", NULL), 1);
    redisson_fair_leave(&r, "job", WAIT); /* tells nobody */
    (void)client_read_int(c);
    client_close(c);
    stand_down();
}
