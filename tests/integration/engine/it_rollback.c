/* A Redis that comes back with what it had a while ago, and two daemons that lived
 * through it: the last holder has its lock again, and waiters have their order. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SOON_MS = 10000 };

static struct test_daemon *second;

static void stand_up_two(void)
{
    static const char *const ARGS[] = { "--dbfilename", "dump.rdb", NULL };

    stand.redis = redis_start_with(false, ARGS);
    stand_up(NULL);
    second = stand_second();
}

static void stand_down_two(void)
{
    daemon_stop(second);
    stand_down();
}

static struct client *open_second(void)
{
    return client_open(second);
}

/* What happens from now on will be lost. */
static void keep_data(void)
{
    redis_expect(stand.redis, "OK", "SAVE");
}

static void roll_back(void)
{
    redis_kill(stand.redis);
    redis_restart(stand.redis);
}

/* The hash of that name has that field, and no other hold. */
static void await_holder(const char *name, const char *field)
{
    uint64_t end = test_now_ms() + SOON_MS;

    while (peek_int("HEXISTS %s %s", name, field) == 0) {
        ck_assert_uint_lt(test_now_ms(), end);
        test_sleep_ms(5);
    }
}

static void put_back(const char *before, const char *after, bool late)
{
    struct client *a, *b, *listener;
    uint64_t token;
    char field[64];

    stand_up_two();
    a = open_client();
    b = open_second();
    listener = open_second();
    subscribe(listener, "lost:job");
    token = (uint64_t)ask_int(a, "%s", before);
    keep_data();
    ck_assert_int_eq(ask_int(a, "UNLOCK job TOKEN %" PRIu64, token), 0);
    token = (uint64_t)ask_int(b, "%s", after);
    if (late) {
        daemon_pause(stand.daemon); /* who would release once more what was released */
    }
    roll_back();
    (void)snprintf(field, sizeof field, "latchd:%" PRIu64, token);
    await_holder("job", field);
    if (late) {
        daemon_resume(stand.daemon);
    }
    ck_assert_int_gt(ask_int(b, "RENEW job TOKEN %" PRIu64, token), 0);
    ck_assert_int_eq(ask_int(b, "UNLOCK job TOKEN %" PRIu64, token), 0);
    await_no_locks(SOON_MS);
    expect_silence(listener);
    client_close(a);
    client_close(b);
    client_close(listener);
    stand_down_two();
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(who_was_granted_last_has_it_again_and_who_held_before_has_not)
{
    put_back("LOCK job", "LOCK job", false);
    put_back("LOCK job", "LOCK job", true);
    put_back("LOCK job ID 11111111-1111-4111", "LOCK job", true);
}

/* Its daemon lives, and takes it out of the queue; other ones need not wait until
 * nobody can have renewed its place. */
START_TEST(who_left_the_fair_queue_is_not_waited_for)
{
    struct client *holder, *gone, *b;
    uint64_t start;

    stand_up_two();
    holder = open_second();
    gone = open_client();
    b = open_second();
    (void)ask_int(holder, "LOCK job");
    client_send(gone, "LOCK job FAIR");
    await_queue("job", 1);
    keep_data();
    client_close(gone);
    await_queue("job", 0);
    roll_back();
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    start = test_now_ms();
    (void)ask_int(b, "LOCK job FAIR WAIT 9000");
    expect_elapsed(start, 0, 3000);
    client_close(holder);
    client_close(b);
    stand_down_two();
}

/* Their daemons put back what is theirs, each its own, and the order is that in which
 * they came. */
START_TEST(waiters_of_two_daemons_have_their_order_again)
{
    enum { WAITERS = 6 };
    struct client *holder, *c[WAITERS];

    stand_up_two();
    holder = open_second();
    (void)ask_int(holder, "LOCK job");
    keep_data();
    for (int i = 0; i < WAITERS; i++) {
        c[i] = i % 3 == 1 ? open_second() : open_client();
        client_send(c[i], "LOCK job FAIR");
        await_queue("job", i + 1);
        test_sleep_ms(20); /* so that who came later did so by any clock */
    }
    roll_back();
    await_queue("job", WAITERS);
    test_sleep_ms(200); /* each has told since when it waits */
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < WAITERS; i++) {
        (void)client_read_int(c[i]);
        for (int k = i + 1; k < WAITERS; k++) {
            expect_silence(c[k]);
        }
        ck_assert_int_eq(ask_int(c[i], "UNLOCK job"), 0);
    }
    close_clients(c, WAITERS);
    client_close(holder);
    stand_down_two();
}
