/* kill -9 and SIGSTOP of the daemon, more than one daemon, and coming back. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

#define R1 "11111111-1111-1111-1111-111111111111"

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_killed_daemon_frees_nothing_early_and_its_token_still_counts)
{
    struct test_daemon *second;
    struct client *holder, *waiter, *c;
    int64_t token, by_second;

    stand_up(NULL);
    second = stand_second();
    holder = open_client();
    waiter = open_client();
    token = ask_int(holder, "LOCK job");
    by_second = ask_int(holder, "LOCK job2 ID " R1);
    send_lock(waiter, "job", "", 1);
    daemon_kill(stand.daemon);
    expect_closed(holder);
    expect_closed(waiter);

    c = client_open(second);
    ask_nil(c, "LOCK job WAIT 0");
    ask_nil(c, "LOCK job2 WAIT 0");
    ck_assert_int_gt(ask_int(c, "RENEW job2 TOKEN %" PRId64, by_second), 20000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job2 TOKEN %" PRId64, by_second), 0);

    daemon_restart(stand.daemon);
    client_close(stand.admin);
    stand.admin = open_client();
    ask_nil(stand.admin, "LOCK job WAIT 0");
    ck_assert_int_gt(ask_int(stand.admin, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_gt(ask_int(stand.admin, "LOCK job WAIT 1000"), token);
    client_close(holder);
    client_close(waiter);
    client_close(c);
    daemon_stop(second);
    stand_down();
}

START_TEST(what_a_killed_daemon_held_ends_with_its_lease)
{
    struct client *holder, *c;
    uint64_t start;

    stand_up("--watchdog-timeout", "1500ms", "--redis-timeout", "300ms", NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    (void)ask_int(holder, "LOCK owned OWNER o");
    daemon_kill(stand.daemon);
    start = test_now_ms();
    daemon_restart(stand.daemon);
    c = open_client();
    (void)ask_int(c, "LOCK job WAIT 10000");
    expect_elapsed(start, 900, 1500); /* renewed at least every third */
    (void)ask_int(c, "LOCK owned WAIT 10000");
    expect_elapsed(start, 900, 1500);
    client_close(stand.admin);
    stand.admin = open_client();
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(an_id_continues_through_the_restarted_daemon)
{
    struct client *c;
    char *count;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK job ID " R1);
    daemon_kill(stand.daemon);
    daemon_restart(stand.daemon);
    client_close(c);
    c = open_client();
    ck_assert_int_eq(ask_int(c, "LOCK job WAIT 4000 ID " R1), token);
    count = peek_text("HGET job latchd:id:" R1);
    ck_assert_str_eq(count, "1");
    free(count);
    ck_assert_int_eq(ask_int(c, "UNLOCK job ID " R1), 0);
    client_close(stand.admin);
    stand.admin = open_client();
    client_close(c);
    stand_down();
}

START_TEST(two_daemons_pass_a_lock_on_by_message)
{
    enum { ROUNDS = 40 };
    struct test_daemon *second;
    struct client *c[2], *admin[2];
    uint64_t start;

    stand_up(NULL);
    second = stand_second();
    c[0] = open_client();
    c[1] = client_open(second);
    admin[0] = stand.admin;
    admin[1] = client_open(second);
    (void)ask_int(c[0], "LOCK job");
    start = test_now_ms();
    for (int i = 0; i < ROUNDS; i++) {
        struct client *holder = c[i % 2], *next = c[(i + 1) % 2];

        client_send(next, "LOCK job");
        await_waiting(admin[(i + 1) % 2], "job", 1);
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        (void)client_read_int(next);
    }
    expect_elapsed(start, 0, 3000); /* far below one `recheck` each */
    client_close(c[0]);
    client_close(c[1]);
    client_close(admin[1]);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_daemon_that_stood_still_vouches_for_nothing)
{
    struct test_daemon *second;
    struct client *a, *b, *events;
    struct value v;
    int64_t old, new;

    stand_up("--watchdog-timeout", "1s", "--redis-timeout", "300ms", NULL);
    second = stand_second();
    a = open_client();
    b = client_open(second);
    events = open_client();
    subscribe(events, "lost:job");
    old = ask_int(a, "LOCK job ID " R1);
    daemon_pause(stand.daemon);
    new = ask_int(b, "LOCK job WAIT 10000");
    ck_assert_int_gt(new, old);
    client_send(a, "LOCK job WAIT 0 ID " R1); /* served by the one that wakes up */
    daemon_resume(stand.daemon);
    v = client_read(a);
    ck_assert_msg(v.type != VALUE_INT || v.integer != old,
                  "the dead lease was vouched for");
    value_fini(&v);
    expect_message(events, "lost:job", "latchd:id:" R1);
    ask_error(a, "NOTHELD", "UNLOCK job TOKEN %" PRId64, old);
    ck_assert_int_eq(ask_int(b, "UNLOCK job TOKEN %" PRId64, new), 0);
    client_close(a);
    client_close(b);
    client_close(events);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_hold_released_through_another_daemon_ends_silently)
{
    struct test_daemon *second;
    struct client *a, *b, *events;
    uint64_t start;
    int64_t token;

    stand_up("--watchdog-timeout", "600ms", "--redis-timeout", "200ms", NULL);
    second = stand_second();
    a = open_client();
    b = client_open(second);
    events = open_client();
    subscribe(events, "lost:job");
    token = ask_int(a, "LOCK job");
    ck_assert_int_eq(ask_int(b, "UNLOCK job TOKEN %" PRId64, token), 0);
    for (start = test_now_ms(); test_now_ms() < start + 1500;) {
        expect_silence(events);
        test_sleep_ms(10);
    }
    client_close(a);
    client_close(b);
    client_close(events);
    daemon_stop(second);
    stand_down();
}
