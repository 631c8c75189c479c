/* LOCK ... LOCAL in loops: names that are lent to the daemon, which hands them on in
 * memory; and faults that have to come before a window is over. The sequences are
 * scenarios/wire/local.scn. */
#include "support/runner.h"
#include "support/stand.h"
#include "support/stand_local.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define R1 "11111111-1111-1111-1111-111111111111"

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* A client that takes so long to ask again may find that the loan was returned. */
enum { IDLE_MS = 1 };

/* Scripts that a name needs which is lent all the time: one to take it and one to look
 * for others at the end of each window, and as many again for a busy machine. */
static long long scripts_in(uint64_t ms)
{
    return 4 + 2 * (long long)(ms / LOCAL_WINDOW_MS + 1);
}

START_TEST(one_client_asks_again_and_again_and_redis_hardly_hears_of_it)
{
    enum { PAIRS = 2000 };
    struct client *c;
    int64_t last = 0;
    long long calls, late = 0;
    uint64_t start;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    await_lending(c, "job");
    calls = peek_script_calls();
    start = test_now_ms();
    for (int i = 0; i < PAIRS; i++) {
        uint64_t asked = test_now_ms();
        int64_t token = ask_int(c, "LOCK job LOCAL");

        late += test_now_ms() - asked >= IDLE_MS;
        ck_assert_int_gt(token, last);
        last = token;
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        late += test_now_ms() - asked >= IDLE_MS;
    }
    ck_assert_int_le(peek_script_calls() - calls,
                     scripts_in(test_now_ms() - start) + 2 * late);
    await_no_locks(1000); /* an idle loan is returned */
    ck_assert_int_ge(token_of_fence("job"), last);
    client_close(c);
    stand_down();
}

/* Whether it was granted, not answered null. */
static bool takes(struct client *c, const char *words)
{
    struct value v = ask(c, "%s", words);
    bool granted = v.type == VALUE_INT;

    ck_assert(granted || v.type == VALUE_NIL);
    value_fini(&v);
    return granted;
}

/* The name stays lent, but not so that nobody else has a chance: a client that only
 * tries now and then, through another daemon, gets in. */
START_TEST(a_name_in_constant_use_has_its_loan_renewed_and_others_get_in)
{
    struct test_daemon *second;
    struct client *c, *other;
    uint64_t deadline;
    bool is_in = false;

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    other = client_open(second);
    deadline = test_now_ms() + 20000;
    while (!is_in || info_number("loan_renewals") == 0) {
        ck_assert_uint_lt(test_now_ms(), deadline);
        for (int i = 0; i < 100; i++) {
            ck_assert_int_gt(ask_int(c, "LOCK job LOCAL WAIT 5000"), 0);
            ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
            if (!is_in && takes(other, "LOCK job WAIT 0")) {
                is_in = true;
                ck_assert_int_eq(ask_int(other, "UNLOCK job"), 0);
            }
        }
    }
    client_close(c);
    client_close(other);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_hundred_waiters_are_served_in_order_from_memory)
{
    enum { WAITERS = 100, HANDOVERS = 5000 };
    struct client *c[WAITERS];
    int64_t last = 0;
    long long calls;
    uint64_t start;

    stand_up(LOCAL_WINDOW, NULL);
    await_lending(stand.admin, "job");
    for (int i = 0; i < WAITERS; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job LOCAL");
        await_waiting(stand.admin, "job", i);
    }
    calls = peek_script_calls();
    start = test_now_ms();
    for (int i = 0; i < HANDOVERS; i++) {
        struct client *head = c[i % WAITERS];
        int64_t token = client_read_int(head);

        ck_assert_int_gt(token, last);
        last = token;
        client_send(head, "UNLOCK job TOKEN %" PRId64, token);
        client_send(head, "LOCK job LOCAL");
        expect_int(head, 0);
    }
    ck_assert_int_le(peek_script_calls() - calls, scripts_in(test_now_ms() - start));
    close_clients(c, WAITERS);
    await_no_locks(1000);
    stand_down();
}

/* Redis lends all names of a run by one script; then they are granted from memory. */
START_TEST(the_names_of_pipelined_locks_are_lent_together)
{
    enum { NAMES = 16, WAIT_MS = 10000 };
    int64_t last[NAMES] = { 0 };
    char locks[NAMES * 32] = "", unlocks[NAMES * 32] = "";
    uint64_t deadline = test_now_ms() + WAIT_MS;
    long long calls, fewest = NAMES;
    struct client *c;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    for (int i = 0; i < NAMES; i++) {
        (void)sprintf(locks + strlen(locks), "LOCK n:%d LOCAL\r\n", i);
        (void)sprintf(unlocks + strlen(unlocks), "UNLOCK n:%d\r\n", i);
    }
    while (fewest > 0) {
        ck_assert(test_now_ms() < deadline);
        calls = peek_script_calls();
        client_send_raw(c, locks, strlen(locks));
        for (int i = 0; i < NAMES; i++) {
            int64_t token = client_read_int(c);

            ck_assert_int_gt(token, last[i]);
            last[i] = token;
        }
        calls = peek_script_calls() - calls;
        fewest = calls < fewest ? calls : fewest;
        client_send_raw(c, unlocks, strlen(unlocks));
        for (int i = 0; i < NAMES; i++) {
            expect_int(c, 0);
        }
    }
    client_close(c);
    await_no_locks(1000);
    stand_down();
}

START_TEST(an_unlock_sent_again_has_its_answer_at_this_daemon_only)
{
    struct test_daemon *second;
    struct client *c, *other;
    int64_t young, old;

    stand_up(LOCAL_WINDOW, NULL);
    second = stand_second();
    c = open_client();
    other = client_open(second);
    do { /* until its UNLOCK stayed in memory */
        young = take_lent(c, "job");
        client_send(c, "UNLOCK job TOKEN %" PRId64, young);
        client_send(c, "UNLOCK job TOKEN %" PRId64, young);
        expect_int(c, 0);
        expect_int(c, 0);
    } while (peek_int("EXISTS latchd:ended:{job}:latchd:%" PRId64, young) == 1);
    await_no_locks(1000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, young), 0);
    ask_error(other, "NOTHELD", "UNLOCK job TOKEN %" PRId64, young);

    old = take_lent(c, "job");
    await_settled("job", old);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, old), 0);
    ck_assert_int_eq(ask_int(other, "UNLOCK job TOKEN %" PRId64, old), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, young), 0);
    ask_error(c, "NOTHELD", "UNLOCK job TOKEN %" PRId64, old + 1);
    client_close(c);
    client_close(other);
    daemon_stop(second);
    stand_down();
}

/* --- when the daemon or Redis fails over a young hold -------------------------------
 */

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
    client_close(stand.admin);
    stand.admin = open_client();
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
