/* LOCK ... LOCAL: names that are lent to the daemon, which hands them on in memory. */
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

START_TEST(names_that_are_used_once_are_not_lent)
{
    struct client *c;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    for (int i = 0; i < 20; i++) {
        int64_t token = ask_int(c, "LOCK once-%d LOCAL", i);
        char name[16];

        (void)snprintf(name, sizeof name, "once-%d", i);
        ck_assert_int_eq(token_in_redis(name), token);
        ck_assert_int_eq(token_of_fence(name), token);
    }
    client_close(c);
    stand_down();
}

START_TEST(a_hold_older_than_a_window_stands_in_redis_under_its_own_token)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    token = take_lent(c, "job");
    await_settled("job", token);
    ck_assert_int_ge(token_of_fence("job"), token);
    ck_assert_int_gt(peek_int("PTTL job"), 20000);
    ck_assert_int_gt(ask_int(c, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(renew_settles_a_young_hold)
{
    struct client *c;
    int64_t token;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    token = take_lent(c, "job");
    ck_assert_int_gt(ask_int(c, "RENEW job TOKEN %" PRId64, token), 20000);
    ck_assert_int_eq(token_in_redis("job"), token);
    ck_assert_int_ge(token_of_fence("job"), token);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    client_close(c);
    stand_down();
}

START_TEST(a_young_hold_of_a_closed_connection_goes_to_the_next)
{
    struct client *c, *next;
    int64_t token;

    stand_up(LOCAL_WINDOW, "--grace", "0", NULL);
    c = open_client();
    next = open_client();
    token = take_lent(c, "job");
    send_lock(next, "job", "LOCAL", 1);
    client_close(c);
    ck_assert_int_gt(client_read_int(next), token);
    client_close(next);
    await_no_locks(1000);
    stand_down();
}

START_TEST(others_in_the_queue_have_their_turn_behind_a_local_holder)
{
    static const char *const WORDS[] = { "ID " R1, "OWNER o", "LEASE 5000", "" };
    enum { OTHERS = TEST_ROWS(WORDS) };
    struct client *c, *last, *others[OTHERS];
    int64_t token, next;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    last = open_client();
    token = take_lent(c, "job");
    for (int i = 0; i < OTHERS; i++) {
        others[i] = open_client();
        send_lock(others[i], "job", WORDS[i], i + 1);
    }
    send_lock(last, "job", "LOCAL", OTHERS + 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    for (int i = 0; i < OTHERS; i++) {
        next = client_read_int(others[i]);
        ck_assert_int_gt(next, token);
        token = next;
        ck_assert_int_eq(ask_int(others[i], "UNLOCK job%s", i == 1 ? " OWNER o" : ""),
                         0);
    }
    ck_assert_int_gt(client_read_int(last), token);
    ck_assert_int_eq(ask_int(last, "UNLOCK job"), 0);
    close_clients(others, OTHERS);
    client_close(c);
    client_close(last);
    await_no_locks(1000);
    stand_down();
}

START_TEST(null_means_that_somebody_has_it_also_from_memory)
{
    struct client *c, *other;

    stand_up(LOCAL_WINDOW, NULL);
    c = open_client();
    other = open_client();
    (void)take_lent(c, "job");
    ask_nil(other, "LOCK job LOCAL WAIT 0");
    ask_nil(other, "LOCK job WAIT 0");
    ask_nil(other, "LOCK job LOCAL WAIT 250");
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    (void)ask_int(other, "LOCK job LOCAL WAIT 0");
    ck_assert_int_eq(ask_int(other, "UNLOCK job"), 0);
    (void)ask_int(other, "LOCK job WAIT 0"); /* an idle loan hinders nobody here */
    client_close(c);
    client_close(other);
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

START_TEST(local_goes_with_no_kind_and_no_identity_and_then_does_nothing)
{
    static const char *const WORDS[] = {
        "LOCAL FAIR",    "LOCAL READ",      "WRITE LOCAL",
        "LOCAL OWNER o", "ID " R1 " LOCAL", "LOCAL ID " R1 " KEEP 1000",
    };
    long long calls;

    stand_up(LOCAL_WINDOW, NULL);
    calls = peek_script_calls();
    for (int i = 0; i < TEST_ROWS(WORDS); i++) {
        ask_error(stand.admin, "ERR LOCAL does not go with", "LOCK job %s", WORDS[i]);
    }
    ask_error(stand.admin, "ERR", "LOCK job LOCAL LOCAL");
    ask_error(stand.admin, "ERR", "LOCK job LOCAL KEEP 1000");
    ask_error(stand.admin, "ERR", "MLOCK 1 job LOCAL");
    ask_error(stand.admin, "ERR", "UNLOCK job LOCAL");
    ck_assert_int_eq(peek_script_calls(), calls);
    ck_assert_int_eq(peek_int("DBSIZE"), 0);
    stand_down();
}

/* Whether LOCKs with these words of that name, again and again, are granted by Redis
 * only. */
static bool is_ordinary(struct client *c, const char *name, const char *words)
{
    enum { PAIRS = 100 };
    long long calls = peek_script_calls();

    for (int i = 0; i < PAIRS; i++) {
        (void)ask_int(c, "LOCK %s%s%s", name, *words == '\0' ? "" : " ", words);
        ck_assert_int_eq(ask_int(c, "UNLOCK %s%s", name,
                                 strstr(words, "OWNER") == NULL ? "" : " OWNER o"),
                         0);
    }
    return peek_script_calls() - calls >= 2LL * PAIRS;
}

START_TEST(a_lock_with_a_lease_is_an_ordinary_one)
{
    stand_up(LOCAL_WINDOW, NULL);
    await_lending(stand.admin, "job");
    ck_assert(is_ordinary(stand.admin, "job", "LOCAL LEASE 5000"));
    ck_assert(!is_ordinary(stand.admin, "job", "LOCAL GRACE 1000"));
    stand_down();
}

START_TEST(names_of_local_names_are_local_without_a_word)
{
    stand_up(LOCAL_WINDOW, "--local-names", "hot:* job", NULL);
    await_lending(stand.admin, "hot:1");
    ck_assert(!is_ordinary(stand.admin, "hot:1", ""));
    ck_assert(!is_ordinary(stand.admin, "job", ""));
    ck_assert(is_ordinary(stand.admin, "jobs", ""));
    ck_assert(is_ordinary(stand.admin, "hot:2", "OWNER o"));
    ck_assert(is_ordinary(stand.admin, "hot:3", "LEASE 5000"));
    ck_assert(is_ordinary(stand.admin, "hot:4", "FAIR"));
    ck_assert(is_ordinary(stand.admin, "hot:5", "WRITE"));
    ask_ok(stand.admin, "CONFIG SET local-names other");
    ck_assert(is_ordinary(stand.admin, "job", ""));
    ck_assert(!is_ordinary(stand.admin, "other", ""));
    stand_down();
}
