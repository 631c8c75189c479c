/* LOCAL holds, and idle loans, when a daemon is killed or stopped, when somebody
 * meddles with the lock in Redis, and when Redis has no memory left. */
#include "support/runner.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <stdlib.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

static void renew_admin(void)
{
    client_close(stand.admin);
    stand.admin = open_client();
}

/* Kills the daemon while a hold is young, and starts it again. Returns its token. */
static int64_t kill_over_young_hold(void)
{
    for (;;) {
        struct client *c = open_client();
        int64_t token = take_lent(c, "job");

        daemon_kill(stand.daemon);
        client_close(c);
        if (is_lent("job", token)) {
            return token;
        }
        free(peek_text("DEL job"));
        daemon_restart(stand.daemon);
    }
}

START_TEST(a_crash_ends_a_young_hold_and_nobody_gets_in_before_its_lease_is_over)
{
    struct test_daemon *second;
    struct client *c;
    int64_t token, left, next;
    uint64_t start;

    stand_up(LOCAL_WINDOW, "--watchdog-timeout", "2s", "--redis-timeout", "300ms",
             NULL);
    second = stand_second();
    c = client_open(second);
    token = kill_over_young_hold();
    start = test_now_ms();
    left = peek_int("PTTL job");
    ck_assert_int_gt(left, 1000);
    ask_error(c, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    ask_error(c, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    ask_nil(c, "LOCK job WAIT 0");
    daemon_restart(stand.daemon);
    renew_admin();
    ask_error(stand.admin, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    ask_nil(stand.admin, "LOCK job LOCAL WAIT 0");
    next = ask_int(stand.admin, "LOCK job LOCAL WAIT 10000");
    expect_elapsed(start, (uint64_t)left - 2, (uint64_t)left);
    ck_assert_int_gt(next, token);
    ask_error(c, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    client_close(c);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_hold_older_than_a_window_outlives_a_crash)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    token = take_lent(c, "job");
    await_settled("job", token);
    daemon_kill(stand.daemon);
    client_close(c);
    daemon_restart(stand.daemon);
    renew_admin();
    ask_nil(stand.admin, "LOCK job LOCAL WAIT 0");
    ck_assert_int_gt(ask_int(stand.admin, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_gt(ask_int(stand.admin, "LOCK job LOCAL WAIT 0"), token);
    stand_down();
}

START_TEST(an_orderly_stop_returns_an_idle_loan)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    token = take_lent(c, "job");
    client_send_raw(c, "UNLOCK job\r\nSHUTDOWN\r\n", 22);
    expect_int(c, 0);
    expect_closed(c);
    daemon_await_end(stand.daemon);
    ck_assert_int_eq(peek_int("EXISTS job"), 0);
    ck_assert_int_ge(token_of_fence("job"), token);
    daemon_restart(stand.daemon);
    renew_admin();
    ck_assert_int_gt(ask_int(stand.admin, "LOCK job WAIT 0"), token);
    client_close(c);
    stand_down();
}

START_TEST(an_orderly_stop_settles_a_young_hold)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    (void)take_lent(c, "job");
    client_send_raw(c, "UNLOCK job\r\nLOCK job LOCAL\r\nSHUTDOWN\r\n", 38);
    expect_int(c, 0);
    token = client_read_int(c);
    expect_closed(c);
    daemon_await_end(stand.daemon);
    ck_assert_int_eq(token_in_redis("job"), token);
    ck_assert_int_ge(token_of_fence("job"), token);
    ck_assert_int_gt(peek_int("PTTL job"), 20000);
    daemon_restart(stand.daemon);
    renew_admin();
    ck_assert_int_gt(ask_int(stand.admin, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %" PRId64, token), 0);
    client_close(c);
    stand_down();
}

START_TEST(a_sigterm_among_waiters_leaves_nothing_but_the_holder)
{
    enum { WAITERS = 5 };
    struct client *c, *waiters[WAITERS];
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    token = take_lent(c, "job");
    for (int i = 0; i < WAITERS; i++) {
        waiters[i] = open_client();
        send_lock(waiters[i], "job", "LOCAL", i + 1);
    }
    daemon_terminate(stand.daemon);
    for (int i = 0; i < WAITERS; i++) {
        expect_error(waiters[i], "GOAWAY");
    }
    daemon_await_end(stand.daemon);
    ck_assert_int_eq(token_in_redis("job"), token);
    daemon_restart(stand.daemon);
    renew_admin();
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %" PRId64, token), 0);
    close_clients(waiters, WAITERS);
    client_close(c);
    stand_down();
}

/* 0: DEL; 1: FORCEUNLOCK through another daemon. */
START_TEST(what_is_done_to_a_young_hold_from_outside_is_told_within_a_window, 2)
{
    struct test_daemon *second;
    struct client *c, *other, *events;
    int64_t token, next;
    uint64_t start;

    stand_up(LOCAL_WINDOW, NULL);
    second = stand_second();
    c = open_client();
    other = client_open(second);
    events = open_client();
    subscribe(events, "lost:job");
    token = take_lent(c, "job");
    start = test_now_ms();
    if (_i == 0) {
        ck_assert_int_eq(peek_int("DEL job"), 1);
    } else {
        ck_assert_int_eq(ask_int(other, "FORCEUNLOCK job ANY"), 1);
    }
    next = ask_int(other, "LOCK job WAIT 0");
    expect_message(events, "lost:job", "latchd:");
    expect_elapsed(start, 0, LOCAL_WINDOW_MS);
    ck_assert_int_gt(next, token);
    ask_error(c, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    ask_error(c, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    ck_assert_int_eq(token_in_redis("job"), next);
    ck_assert_int_eq(ask_int(other, "UNLOCK job TOKEN %" PRId64, next), 0);
    client_close(c);
    client_close(other);
    client_close(events);
    daemon_stop(second);
    stand_down();
}

START_TEST(forceunlock_here_takes_a_young_hold_away)
{
    struct client *c, *events;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    events = open_client();
    subscribe(events, "lost:job");
    token = take_lent(c, "job");
    ck_assert_int_eq(ask_int(stand.admin, "FORCEUNLOCK job TOKEN %" PRId64, token), 1);
    expect_message(events, "lost:job", "latchd:");
    ck_assert_int_eq(peek_int("EXISTS job"), 0);
    ask_error(c, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token);
    ck_assert_int_gt(ask_int(c, "LOCK job LOCAL WAIT 0"), token);
    client_close(c);
    client_close(events);
    stand_down();
}

START_TEST(a_hold_is_settled_once_redis_has_memory_again)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    do {
        token = take_lent(c, "job");
        free(peek_text("CONFIG SET maxmemory-policy noeviction maxmemory 1"));
        if (is_lent("job", token)) {
            break;
        }
        free(peek_text("CONFIG SET maxmemory 0"));
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    } while (true);
    test_sleep_ms(3 * LOCAL_WINDOW_MS); /* it is to be settled, and cannot be */
    free(peek_text("CONFIG SET maxmemory 0"));
    await_settled("job", token);
    ck_assert_int_gt(ask_int(c, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_no_locks(1000);
    client_close(c);
    stand_down();
}
