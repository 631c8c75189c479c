/* Plain locks, one by one: take, be refused, wait, release, expire; and what Redis
 * shows. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WATCHDOG_MS = 30000 };

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(lock_gives_a_token_and_tokens_grow)
{
    struct client *c;
    int64_t before = 0;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < 20; i++) {
        int64_t token = ask_int(c, "LOCK job WAIT 0");

        ck_assert_int_gt(token, before);
        before = token;
        ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    }
    client_close(c);
    stand_down();
}

START_TEST(wait_0_on_a_held_name_is_nil_at_once)
{
    struct client *a, *b;
    uint64_t start;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job");
    start = test_now_ms();
    ask_nil(b, "LOCK job WAIT 0");
    expect_elapsed(start, 0, 0);
    (void)ask_int(b, "LOCK other WAIT 0");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_second_one_waits_and_unlock_wakes_it)
{
    struct client *a, *b;
    int64_t first;

    stand_up(NULL);
    a = open_client();
    b = client_open_unix(stand.daemon);
    first = ask_int(a, "LOCK job");
    send_lock(b, "job", "", 1);
    expect_silence(b);
    ck_assert_int_eq(ask_int(a, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(b), first);
    ck_assert_int_eq(ask_int(b, "UNLOCK job"), 0);
    expect_no_locks();
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(redis_shows_redissons_layout)
{
    struct client *c;
    char *text, field[64];
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK job");
    (void)snprintf(field, sizeof field, "latchd:%" PRId64, token);
    text = peek_text("HGET job %s", field);
    ck_assert_str_eq(text, "1");
    free(text);
    ck_assert_int_eq(peek_int("HLEN job"), 1);
    text = peek_text("GET latchd:fence:{job}");
    ck_assert_int_eq(atoll(text), token);
    free(text);

    (void)ask_int(c, "LOCK idle ID 0123456789abcdef");
    ck_assert_int_eq(peek_int("HEXISTS idle latchd:id:0123456789abcdef"), 1);
    (void)ask_int(c, "LOCK mine OWNER worker-7");
    (void)ask_int(c, "LOCK mine OWNER worker-7");
    text = peek_text("HGET mine worker-7");
    ck_assert_str_eq(text, "2");
    free(text);
    ck_assert_int_eq(peek_int("HLEN mine"), 1);
    ck_assert_int_eq(peek_int("HLEN latchd:entries:{mine}"), 2);
    client_close(c);
    stand_down();
}

START_TEST(everything_in_redis_has_a_ttl_always)
{
    struct client *c, *w;
    int64_t ttl;

    stand_up(NULL);
    c = open_client();
    w = open_client();
    (void)ask_int(c, "LOCK job");
    ttl = peek_int("PTTL job");
    ck_assert_int_gt(ttl, WATCHDOG_MS - 5000);
    ck_assert_int_le(ttl, WATCHDOG_MS);
    ck_assert_int_gt(peek_int("PTTL latchd:fence:{job}"), ttl);
    send_lock(w, "job", "ID 0123456789abcdef", 1);
    (void)ask_int(c, "LOCK two OWNER o LEASE 5000");
    (void)ask_int(c, "LOCK two OWNER o");
    (void)ask_int(c, "LOCK three ID fedcba9876543210 LEASE 86400000");
    expect_ttl_everywhere();
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    (void)client_read_int(w);
    ck_assert_int_eq(ask_int(c, "UNLOCK two OWNER o"), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK three ID fedcba9876543210"), 0);
    expect_ttl_everywhere();
    client_close(c);
    client_close(w);
    stand_down();
}

/* The keys of a released name go with its lease and fence-ttl, and no sooner than
 * half of that later. */
START_TEST(a_released_name_leaves_its_token_for_fence_ttl)
{
    enum { LEASE_MS = 5000, TTL_MS = 60000 };
    struct client *c;
    long long left;

    stand_up("--fence-ttl", "1m", NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job LEASE %d", LEASE_MS);
    (void)ask_int(c, "UNLOCK job");
    left = peek_int("PTTL latchd:fence:{job}");
    ck_assert_int_le(left, LEASE_MS + TTL_MS);
    ck_assert_int_gt(left, TTL_MS / 2);
    ck_assert_int_le(peek_int("MEMORY USAGE latchd:fence:{job}"), 200);
    client_close(c);
    stand_down();
}

START_TEST(the_watchdog_renews_as_long_as_the_connection_is_open)
{
    struct client *a, *b;
    uint64_t start;

    stand_up("--watchdog-timeout", "1s", "--redis-timeout", "300ms", NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job");
    start = test_now_ms();
    while (test_now_ms() < start + 3000) {
        ck_assert_int_gt(peek_int("PTTL job"), 0);
        ask_nil(b, "LOCK job WAIT 50");
    }
    client_close(a);
    start = test_now_ms();
    (void)ask_int(b, "LOCK job WAIT 5000");
    expect_elapsed(start, 0, 1000);
    client_close(b);
    stand_down();
}

START_TEST(a_fixed_lease_ends_and_the_waiter_gets_it)
{
    struct client *a, *b;
    uint64_t start;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    start = test_now_ms();
    token = ask_int(a, "LOCK job LEASE 700");
    ck_assert_int_gt(ask_int(b, "LOCK job WAIT 10000"), token);
    expect_elapsed(start, 650, 700);
    ask_error(a, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    ask_error(a, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(wait_is_exact)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job");
    for (int wait = 0; wait <= 900; wait += 300) {
        uint64_t start = test_now_ms();

        ask_nil(b, "LOCK job WAIT %d", wait);
        expect_elapsed(start, (uint64_t)wait, (uint64_t)wait);
    }
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_closed_connection_leaves_the_lease_or_with_grace_0_nothing)
{
    struct client *a, *b;
    uint64_t start;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK stays");
    (void)ask_int(a, "LOCK goes GRACE 0");
    (void)ask_int(a, "LOCK soon GRACE 400");
    client_close(a);
    start = test_now_ms();
    (void)ask_int(b, "LOCK goes WAIT 5000");
    expect_elapsed(start, 0, 0);
    (void)ask_int(b, "LOCK soon WAIT 5000");
    expect_elapsed(start, 300, 400);
    ask_nil(b, "LOCK stays WAIT 0");
    ck_assert_int_gt(peek_int("PTTL stays"), WATCHDOG_MS / 2);
    client_close(b);
    stand_down();
}

START_TEST(bare_unlock_frees_only_what_is_beyond_doubt)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    ask_error(a, "ERR TOKEN, OWNER or ID needed", "UNLOCK job");
    (void)ask_int(a, "LOCK job");
    ask_error(b, "ERR TOKEN, OWNER or ID needed", "UNLOCK job");
    ck_assert_int_eq(ask_int(a, "UNLOCK job"), 0);

    /* The first lease ends, another user of this connection takes the name. */
    (void)ask_int(a, "LOCK job LEASE 200");
    (void)ask_int(a, "LOCK job WAIT 5000");
    ask_error(a, "ERR TOKEN, OWNER or ID needed", "UNLOCK job");
    ask_nil(b, "LOCK job WAIT 0");
    client_close(a);
    client_close(b);
    stand_down();
}

static const char *const HELD_BY[] = {
    "LOCK job",
    "LOCK job ID 11111111-1111-1111-1111-111111111111",
    "LOCK job WRITE ID 11111111-1111-1111-1111-111111111111",
    "LOCK job READ ID 11111111-1111-1111-1111-111111111111",
    "LOCK job PERMITS 1 OF 2 ID 11111111-1111-1111-1111-111111111111",
};

START_TEST(an_unlock_by_token_can_be_repeated_here_and_elsewhere, TEST_ROWS(HELD_BY))
{
    struct test_daemon *second;
    struct client *c, *far;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    far = client_open(second);
    token = ask_int(c, "%s", HELD_BY[_i]);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
        ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    }
    client_close(c);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(two_threads_on_one_pooled_connection_exclude_each_other)
{
    struct client *c;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK job");
    ask_nil(c, "LOCK job WAIT 0");
    ask_nil(c, "LOCK job WAIT 100");
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_gt(ask_int(c, "LOCK job WAIT 0"), token);
    client_close(c);
    stand_down();
}
