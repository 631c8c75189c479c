/* Redis is killed, hangs, forgets: no second holder that is vouched for, exact waits.
 */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

#define TIMEOUT "300ms"

enum { TIMEOUT_MS = 300, RUN = 16 };

static void stand_up_impatient(const char *watchdog)
{
    stand_up("--redis-timeout", TIMEOUT, "--watchdog-timeout", watchdog, NULL);
}

static void keep_data(void)
{
    static const char *const ARGS[] = { "--appendonly", "yes", "--appendfsync",
                                        "always", NULL };

    stand.redis = redis_start_with(false, ARGS);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(waits_are_exact_while_redis_hangs)
{
    struct client *holder, *c;

    stand_up_impatient("30s");
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    ask_nil(c, "LOCK job WAIT 100");
    redis_pause(stand.redis);
    for (uint64_t wait = 0; wait <= 1400; wait += 700) {
        uint64_t start = test_now_ms();
        uint64_t due = wait > TIMEOUT_MS ? wait : TIMEOUT_MS;

        ask_error(c, "BACKEND", "LOCK other WAIT %" PRIu64, wait);
        expect_elapsed(start, due - 20, due);
    }
    redis_resume(stand.redis);
    (void)ask_int(c, "LOCK other WAIT 5000");
    (void)ask_int(holder, "UNLOCK job");
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(waits_are_exact_while_redis_is_dead)
{
    struct client *c;

    stand_up_impatient("30s");
    c = open_client();
    redis_kill(stand.redis);
    for (uint64_t wait = 0; wait <= 1400; wait += 700) {
        uint64_t start = test_now_ms();

        ask_error(c, "BACKEND", "LOCK other WAIT %" PRIu64, wait);
        expect_elapsed(start, wait > 0 ? wait - 20 : 0,
                       wait > TIMEOUT_MS ? wait : TIMEOUT_MS);
    }
    redis_restart(stand.redis);
    (void)ask_int(c, "LOCK other WAIT 10000");
    client_close(c);
    stand_down();
}

/* Whatever needs Redis. What an UNLOCK or FORCEUNLOCK said is done afterwards. */
START_TEST(in_an_outage_that_lasts_everything_is_answered_at_once)
{
    enum { LONG_MS = 2000 };
    static const char *const COMMANDS[] = {
        "LOCK other WAIT 0",
        "LOCK other QUEUE 0",
        "LOCK other WAIT 1",
        "LOCK other READ WAIT 0",
        "LOCK other FAIR WAIT 0",
        "LOCK other PERMITS 1 OF 2 WAIT 0",
        "MLOCK 2 other more WAIT 0",
        "SET other v NX PX 10000",
        "GET other",
        "PTTL other",
        "EXISTS other",
        "LOCKINFO other",
        "LEADER other",
        "LEADER other AFTER 0 WAIT 0",
        "RENEW other TOKEN 7",
        "UNLOCK other TOKEN 7",
        "UNLOCK kept",
        "FORCEUNLOCK other TOKEN 7",
        "LATCH COUNT other ID 7c0e8e0a-5d5e-4a53-9d0e-0d1e2f3a4b5c",
        "LATCH INFO other",
        "LATCH AWAIT other WAIT 0",
        "SEMAPHORE LIMIT other 3",
    };
    struct client *c, *holder;
    int64_t forced;

    keep_data();
    stand_up("--redis-timeout", "2s", "--watchdog-timeout", "30s", NULL);
    c = open_client();
    holder = open_client();
    (void)ask_int(c, "LOCK kept");
    forced = ask_int(holder, "LOCK forced");
    redis_kill(stand.redis);
    ask_error(c, "BACKEND", "LOCK other WAIT 0"); /* the outage of a moment? */
    for (size_t i = 0; i < sizeof COMMANDS / sizeof COMMANDS[0]; i++) {
        uint64_t start = test_now_ms();

        ask_error(c, "BACKEND", "%s", COMMANDS[i]);
        ck_assert_msg(test_now_ms() - start < LONG_MS / 2, "%s", COMMANDS[i]);
    }
    ask_error(c, "BACKEND", "FORCEUNLOCK forced TOKEN %" PRId64, forced);
    redis_restart(stand.redis);
    await_no_locks(10000);
    (void)ask_int(c, "LOCK kept WAIT 10000");
    ck_assert_int_eq(ask_int(c, "UNLOCK kept"), 0);
    client_close(c);
    client_close(holder);
    stand_down();
}

START_TEST(a_wait_rides_out_an_outage)
{
    struct client *c;

    stand_up_impatient("30s");
    c = open_client();
    redis_kill(stand.redis);
    client_send(c, "LOCK job WAIT 20000");
    for (uint64_t start = test_now_ms(); test_now_ms() < start + 2 * TIMEOUT_MS;) {
        expect_silence(c);
        test_sleep_ms(10);
    }
    redis_restart(stand.redis);
    (void)client_read_int(c);
    client_close(c);
    stand_down();
}

START_TEST(a_short_hang_makes_holds_uncertain_and_certain_again)
{
    struct client *holder, *events;
    int64_t token;

    stand_up_impatient("3s");
    holder = open_client();
    events = open_client();
    subscribe(events, "uncertain:job");
    token = ask_int(holder, "LOCK job OWNER o");
    redis_pause(stand.redis);
    expect_message(events, "uncertain:job", "o ");
    redis_resume(stand.redis);
    await_state(stand.admin, "job", "held");
    ck_assert_int_gt(peek_int("PTTL job"), 0);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o TOKEN %" PRId64, token), 0);
    client_close(holder);
    client_close(events);
    stand_down();
}

START_TEST(a_hang_longer_than_a_lease_loses_it_in_time)
{
    struct client *holder, *waiter, *events;
    uint64_t start;
    int64_t token;

    stand_up_impatient("1s");
    holder = open_client();
    waiter = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    token = ask_int(holder, "LOCK job OWNER o");
    send_lock(waiter, "job", "", 1);
    redis_pause(stand.redis);
    start = test_now_ms();
    expect_message(events, "lost:job", "o ");
    expect_elapsed(start, 400, 1000);
    expect_silence(waiter); /* Redis does not answer: nobody is granted anything */
    redis_resume(stand.redis);
    ck_assert_int_gt(client_read_int(waiter), token);
    ask_error(holder, "NOTHELD", "UNLOCK job OWNER o");
    ask_error(holder, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    client_close(holder);
    client_close(waiter);
    client_close(events);
    stand_down();
}

START_TEST(a_killed_redis_that_kept_its_data_loses_no_lock)
{
    struct client *holder, *waiter, *events;
    int64_t token;

    keep_data();
    stand_up_impatient("10s");
    holder = open_client();
    waiter = open_client();
    events = open_client();
    subscribe(events, "uncertain:job");
    token = ask_int(holder, "LOCK job OWNER o");
    send_lock(waiter, "job", "", 1);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    expect_message(events, "uncertain:job", "o "); /* another server */
    await_state(stand.admin, "job", "held");
    expect_silence(waiter);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o"), 0);
    ck_assert_int_gt(client_read_int(waiter), token);
    client_close(holder);
    client_close(waiter);
    client_close(events);
    stand_down();
}

START_TEST(a_killed_redis_that_forgot_has_its_holds_put_back)
{
    struct client *holder, *waiter;
    int64_t token;
    uint64_t start;

    stand_up_impatient("10s");
    holder = open_client();
    waiter = open_client();
    token = ask_int(holder, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(holder, "LOCK job OWNER o"), token);
    send_lock(waiter, "job", "", 1);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    for (start = test_now_ms(); peek_int("HLEN latchd:entries:{job}") != 2;) {
        ck_assert_uint_lt(test_now_ms(), start + 5000);
        test_sleep_ms(10);
    }
    expect_silence(waiter);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o TOKEN %" PRId64, token), 1);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job OWNER o"), 0);
    ck_assert_int_gt(client_read_int(waiter), token);
    ck_assert_int_eq(ask_int(waiter, "UNLOCK job"), 0);
    client_close(holder);
    client_close(waiter);
    stand_down();
}

START_TEST(flushall_is_reported_as_loss_and_never_two_are_vouched_for)
{
    struct client *holder, *rival, *events;
    int64_t token;

    stand_up_impatient("1500ms");
    holder = open_client();
    rival = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    token = ask_int(holder, "LOCK job OWNER o");
    free(peek_text("FLUSHALL"));
    ck_assert_int_gt(ask_int(rival, "LOCK job WAIT 10000"), token);
    ask_error(holder, "NOTHELD", "RENEW job OWNER o");
    ask_error(holder, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    expect_message(events, "lost:job", "o ");
    ck_assert_int_eq(ask_int(rival, "UNLOCK job"), 0);
    client_close(holder);
    client_close(rival);
    client_close(events);
    stand_down();
}

START_TEST(flushall_is_noticed_without_being_asked)
{
    struct client *holder, *events;
    uint64_t start;

    stand_up_impatient("900ms");
    holder = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    (void)ask_int(holder, "LOCK job OWNER o");
    free(peek_text("FLUSHALL"));
    start = test_now_ms();
    expect_message(events, "lost:job", "o ");
    expect_elapsed(start, 0, 400); /* the next renewal */
    await_state(stand.admin, "job", "free");
    client_close(holder);
    client_close(events);
    stand_down();
}

START_TEST(an_unlock_during_an_outage_is_done_afterwards)
{
    struct client *holder;

    keep_data();
    stand_up_impatient("30s");
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    redis_pause(stand.redis);
    ask_error(holder, "BACKEND", "UNLOCK job");
    redis_resume(stand.redis);
    await_no_locks(5000);
    client_close(holder);
    stand_down();
}

static const char UUID[] = "7c0e8e0a-5d5e-4a53-9d0e-0d1e2f3a4b5c";

START_TEST(out_of_memory_nothing_is_granted_and_every_release_works)
{
    struct client *c;
    int64_t token;

    stand_up_impatient("30s");
    c = open_client();
    (void)ask_int(c, "LOCK id ID %s", UUID);
    token = ask_int(c, "LOCK token");
    (void)ask_int(c, "LOCK owner OWNER o");
    (void)ask_int(c, "LOCK reader READ ID %s", UUID);
    (void)ask_int(c, "LOCK bare");
    redis_expect(stand.redis, "OK", "CONFIG SET maxmemory 1");
    ask_error(c, "BACKEND", "LOCK other WAIT 0");
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(ask_int(c, "UNLOCK id ID %s", UUID), 0);
        ck_assert_int_eq(ask_int(c, "UNLOCK token TOKEN %" PRId64, token), 0);
        ck_assert_int_eq(ask_int(c, "UNLOCK reader READ ID %s", UUID), 0);
    }
    ck_assert_int_eq(ask_int(c, "UNLOCK owner OWNER o"), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK bare"), 0);
    ck_assert_int_eq(redis_ask_int(stand.redis, "EXISTS id token owner reader bare"),
                     0);
    redis_expect(stand.redis, "OK", "CONFIG SET maxmemory 0");
    client_close(c);
    stand_down();
}

START_TEST(a_lock_that_failed_in_an_outage_is_undone_afterwards)
{
    struct client *c;
    uint64_t start;

    stand_up_impatient("30s");
    c = open_client();
    redis_pause(stand.redis);
    ask_error(c, "BACKEND", "LOCK job WAIT 0");
    redis_resume(stand.redis);
    start = test_now_ms();
    (void)ask_int(stand.admin, "LOCK job WAIT 10000");
    expect_elapsed(start, 0, 2000);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job"), 0);
    await_no_locks(2000);
    client_close(c);
    stand_down();
}

static void send_run(struct client *c, const char *command, const char *options)
{
    char text[RUN * 40];
    size_t len = 0;

    for (int i = 0; i < RUN; i++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s name:%d%s\r\n",
                                command, i, options);
    }
    client_send_raw(c, text, len);
}

/* It may have run before Redis died, or not, or its answer was under way. */
START_TEST(a_pipeline_of_locks_rides_out_an_outage)
{
    struct client *c, *other;

    keep_data();
    stand_up_impatient("30s");
    c = open_client();
    other = open_client();
    client_set_deadline(c, 30000);
    for (int round = 0; round < 4; round++) {
        int64_t last = 0;

        send_run(c, "LOCK", "");
        if (round % 2 == 1) {
            last = client_read_int(c); /* the run was there */
        }
        redis_kill(stand.redis);
        redis_restart(stand.redis);
        for (int i = round % 2; i < RUN; i++) {
            last = client_read_int(c);
            ck_assert_int_gt(last, 1000);
        }
        ask_nil(other, "LOCK name:0 WAIT 0");
        ask_nil(other, "LOCK name:%d WAIT 0", RUN - 1);
        ck_assert_int_eq(ask_int(c, "UNLOCK name:%d TOKEN %" PRId64, RUN - 1, last), 0);
        (void)ask_int(c, "LOCK name:%d", RUN - 1);
        send_run(c, "UNLOCK", "");
        for (int i = 0; i < RUN; i++) {
            expect_int(c, 0);
        }
        await_no_locks(5000);
    }
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(a_pipeline_that_failed_in_an_outage_is_undone_afterwards)
{
    struct client *c;

    stand_up_impatient("30s");
    c = open_client();
    client_set_deadline(c, 30000);
    redis_pause(stand.redis);
    send_run(c, "LOCK", " WAIT 10");
    for (int i = 0; i < RUN; i++) {
        expect_error(c, "BACKEND");
    }
    redis_resume(stand.redis);
    await_no_locks(5000);
    for (int i = 0; i < RUN; i++) {
        (void)ask_int(stand.admin, "LOCK name:%d WAIT 10000", i);
    }
    client_close(c);
    stand_down();
}
