/* Redisson's own checks of RFairLock and MultiLock that no other test of ours makes.
 * tests/REDISSON.md says which is which. Times are theirs, shortened. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

#define R "8743c9c0-0795-4907-87fd-6c719a6b4586:1"
#define DUE "redisson_lock_timeout:{job}"

enum { LEASE = REDISSON_LEASE };

/* --- RFairLock -------------------------------------------------------------------- */

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(leases_that_end_serve_the_queue_in_order)
{
    enum { WAITERS = 8, LEASE_MS = 300 };
    struct client *c[WAITERS];
    uint64_t start;

    stand_up(NO_RECHECK, NULL);
    start = test_now_ms();
    for (int i = 0; i < WAITERS; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job FAIR WAIT 60000 LEASE %d", LEASE_MS);
        if (i > 0) {
            await_waiting(stand.admin, "job", i);
        } else {
            (void)client_read_int(c[0]);
        }
    }
    for (int i = 1; i < WAITERS; i++) { /* nobody unlocks */
        (void)client_read_int(c[i]);
        if (i + 1 < WAITERS) {
            expect_silence(c[i + 1]);
        }
    }
    expect_not_before(start, (WAITERS - 1) * LEASE_MS);
    close_clients(c, WAITERS);
    stand_down();
}

static int64_t redis_now_ms(void)
{
    redisReply *r = redis_ask(stand.redis, "TIME");
    int64_t now = strtoll(r->element[0]->str, NULL, 10) * 1000;

    freeReplyObject(r);
    return now;
}

/* Nobody's score is further ahead than a lease and what two waiters add. */
static void expect_no_drift(void)
{
    redisReply *r = redis_ask(stand.redis, "ZRANGE " DUE " -1 -1 WITHSCORES");

    if (r->elements == 2) {
        int64_t ahead = strtoll(r->element[1]->str, NULL, 10) - redis_now_ms();

        ck_assert_msg(ahead <= LEASE + REDISSON_FAIR_WAIT + LEASE + 2000,
                      "%s is %" PRId64 " ms ahead", r->element[0]->str, ahead);
    }
    freeReplyObject(r);
}

START_TEST(short_waits_and_dead_waiters_make_no_deadline_drift)
{
    struct redisson r;
    struct client *c[3];

    stand_up(NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
    (void)ask_int(stand.admin, "LOCK job");
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++) {
            c[i] = open_client();
            client_send(c[i], "LOCK job FAIR WAIT %d", i == 2 ? 60000 : 10);
        }
        client_abort(c[2]); /* the last one dies while it waits */
        expect_nil(c[0]);
        expect_nil(c[1]);
        client_close(c[0]);
        client_close(c[1]);
        (void)redisson_fair_lock(&r, "job", LEASE, REDISSON_FAIR_WAIT);
        expect_no_drift();
    }
    await_queue("job", 1);
    redisson_fair_leave(&r, "job", REDISSON_FAIR_WAIT);
    await_queue("job", 0);
    stand_down();
}

START_TEST(grants_in_turn_with_redisson_make_no_deadline_drift)
{
    enum { ROUNDS = 60 };
    struct redisson r;
    struct client *c;

    stand_up(NULL);
    r = (struct redisson){ .redis = stand.redis, .owner = R };
    c = open_client();
    (void)ask_int(c, "LOCK job FAIR");
    for (int round = 0; round < ROUNDS; round++) {
        (void)redisson_fair_lock(&r, "job", LEASE, REDISSON_FAIR_WAIT);
        expect_no_drift();
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        ck_assert_int_eq(redisson_fair_lock(&r, "job", LEASE, REDISSON_FAIR_WAIT),
                         REDISSON_NIL);
        client_send(c, "LOCK job FAIR");
        await_queue("job", 1);
        expect_no_drift();
        ck_assert_int_eq(redisson_fair_unlock(&r, "job", NULL), 1);
        (void)client_read_int(c);
    }
    client_close(c);
    stand_down();
}

START_TEST(a_failed_wait_does_not_delay_the_next_try)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job FAIR");
    ask_nil(b, "LOCK job FAIR WAIT 100");
    ck_assert_int_eq(ask_int(a, "UNLOCK job"), 0);
    (void)ask_int(b, "LOCK job FAIR WAIT 0");
    ck_assert_int_eq(ask_int(b, "UNLOCK job"), 0);
    (void)ask_int(a, "LOCK job FAIR WAIT 0");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(a_redis_that_stood_still_while_a_wait_ended_has_no_place_left)
{
    struct client *c;
    struct value v;

    stand_up("--redis-timeout", "500ms", NULL);
    c = open_client();
    (void)ask_int(stand.admin, "LOCK job LEASE 60000");
    free(peek_text("CLIENT PAUSE 1500 WRITE"));
    v = ask(c, "LOCK job FAIR WAIT 800");
    ck_assert(v.type == VALUE_NIL || v.type == VALUE_ERROR);
    value_fini(&v);
    ask_nil(c, "LOCK job WAIT 5000");
    await_queue("job", 0);
    client_close(c);
    stand_down();
}

/* --- MultiLock -------------------------------------------------------------------- */

START_TEST(of_ten_who_try_at_once_one_has_all)
{
    enum { TEN = 10 };
    struct client *c[TEN];
    int won = 0;

    stand_up(NULL);
    for (int i = 0; i < TEN; i++) {
        c[i] = open_client();
    }
    for (int i = 0; i < TEN; i++) {
        client_send(c[i], "MLOCK 3 m1 m2 m3 WAIT 0 LEASE 10000");
    }
    for (int i = 0; i < TEN; i++) {
        struct value v = client_read(c[i]);

        won += v.type == VALUE_LIST && v.count == 3;
        value_fini(&v);
    }
    ck_assert_int_eq(won, 1);
    ck_assert_int_eq(peek_int("EXISTS m1 m2 m3"), 3);
    close_clients(c, TEN);
    stand_down();
}
