/* Who holds: owners that re-enter, requests that are sent twice, tokens from elsewhere.
 */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>

#define R1 "11111111-1111-1111-1111-111111111111"
#define R2 "22222222-2222-2222-2222-222222222222"

enum { RETRIES = 11 };

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(an_owner_re_enters_over_any_connection_with_one_token)
{
    struct client *a, *b;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    token = ask_int(a, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(b, "LOCK job OWNER o WAIT 0"), token);
    ask_nil(b, "LOCK job OWNER other WAIT 0");
    ask_nil(b, "LOCK job WAIT 0");
    ck_assert_int_eq(ask_int(b, "UNLOCK job OWNER o"), 1);
    ck_assert_int_eq(ask_int(b, "UNLOCK job OWNER o"), 0);
    ask_error(a, "NOTHELD", "UNLOCK job OWNER o");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(an_owner_re_enters_through_another_daemon)
{
    struct test_daemon *second;
    struct client *a, *b;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    a = open_client();
    b = client_open(second);
    token = ask_int(a, "LOCK job OWNER o");
    ck_assert_int_eq(ask_int(b, "LOCK job OWNER o WAIT 0"), token);
    ck_assert_int_eq(peek_int("HLEN latchd:entries:{job}"), 2);
    ck_assert_int_eq(ask_int(a, "UNLOCK job OWNER o"), 1);
    ck_assert_int_eq(peek_int("HEXISTS job o"), 1);
    ck_assert_int_eq(ask_int(b, "UNLOCK job OWNER o"), 0);
    expect_no_locks();
    client_close(a);
    client_close(b);
    daemon_stop(second);
    stand_down();
}

START_TEST(re_entry_never_waits_behind_others)
{
    struct client *a, *b, *c;
    int64_t token;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    token = ask_int(a, "LOCK job OWNER o");
    send_lock(b, "job", "OWNER p", 1);
    ck_assert_int_eq(ask_int(c, "LOCK job OWNER o WAIT 0"), token);
    ck_assert_int_eq(ask_int(c, "LOCK job OWNER o"), token);
    expect_silence(b);
    client_close(a);
    client_close(b);
    client_close(c);
    stand_down();
}

START_TEST(the_same_id_sent_11_times_is_one_grant)
{
    struct client *c[RETRIES];
    char *count;
    int64_t token = 0;

    stand_up(NULL);
    for (int i = 0; i < RETRIES; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job ID " R1);
    }
    for (int i = 0; i < RETRIES; i++) {
        struct value v = client_read(c[i]);

        while (v.type == VALUE_NIL) { /* a later one took its place: it asks again */
            v = ask(c[i], "LOCK job ID " R1);
        }
        ck_assert_int_eq(v.type, VALUE_INT);
        ck_assert(i == 0 || v.integer == token);
        token = v.integer;
    }
    count = peek_text("HGET job latchd:id:" R1);
    ck_assert_str_eq(count, "1");
    free(count);
    ck_assert_int_eq(peek_int("HLEN job"), 1);
    ck_assert_int_eq(ask_int(c[3], "UNLOCK job ID " R1), 0);
    expect_no_locks();
    ask_error(c[4], "NOTHELD request is over", "LOCK job ID " R1);
    close_clients(c, RETRIES);
    stand_down();
}

START_TEST(the_same_id_sent_11_times_with_an_owner_is_one_entry)
{
    struct client *c[RETRIES];
    int64_t token;

    stand_up(NULL);
    for (int i = 0; i < RETRIES; i++) {
        c[i] = open_client();
    }
    token = ask_int(c[0], "LOCK job OWNER o ID " R1);
    for (int i = 1; i < RETRIES; i++) {
        ck_assert_int_eq(ask_int(c[i], "LOCK job OWNER o ID " R1), token);
    }
    ck_assert_int_eq(ask_int(c[5], "LOCK job OWNER o ID " R2), token);
    ck_assert_int_eq(ask_int(c[6], "UNLOCK job ID " R1), 1);
    ck_assert_int_eq(ask_int(c[7], "UNLOCK job ID " R1), 1);
    ck_assert_int_eq(ask_int(c[8], "UNLOCK job ID " R2), 0);
    ck_assert_int_eq(ask_int(c[9], "UNLOCK job ID " R2), 0);
    expect_no_locks();
    close_clients(c, RETRIES);
    stand_down();
}

START_TEST(the_same_id_while_waiting_takes_over_the_place)
{
    struct client *holder, *old, *rival, *new;
    int64_t token;

    stand_up(NULL);
    holder = open_client();
    old = open_client();
    rival = open_client();
    new = open_client();
    token = ask_int(holder, "LOCK job");
    send_lock(old, "job", "ID " R1, 1);
    send_lock(rival, "job", "", 2);
    client_send(new, "LOCK job ID " R1);
    expect_nil(old);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_gt(client_read_int(new), token);
    expect_silence(rival);
    ck_assert_int_eq(ask_int(new, "UNLOCK job ID " R1), 0);
    (void)client_read_int(rival);
    client_close(holder);
    client_close(old);
    client_close(rival);
    client_close(new);
    stand_down();
}

START_TEST(an_id_finds_its_grant_through_another_daemon)
{
    struct test_daemon *second;
    struct client *a, *b;
    int64_t token;

    stand_up("--grace", "0", NULL);
    second = stand_second();
    a = open_client();
    b = client_open(second);
    token = ask_int(a, "LOCK job ID " R1);
    ck_assert_int_eq(ask_int(b, "LOCK job WAIT 0 ID " R1), token);
    client_close(a); /* the hold is the other's now: nothing is freed */
    await_state(stand.admin, "job", "held");
    ask_nil(stand.admin, "LOCK job WAIT 100");
    ck_assert_int_eq(ask_int(b, "UNLOCK job ID " R1), 0);
    expect_no_locks();
    client_close(b);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_token_unlocks_from_elsewhere_and_again)
{
    struct test_daemon *second;
    struct client *a, *b, *c;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    a = open_client();
    b = open_client();
    c = client_open(second);
    token = ask_int(a, "LOCK job");
    ask_error(b, "NOTHELD", "UNLOCK job TOKEN %" PRId64, token + 1);
    ck_assert_int_eq(ask_int(b, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_eq(ask_int(a, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    token = ask_int(a, "LOCK job ID " R1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    expect_no_locks();
    client_close(a);
    client_close(b);
    client_close(c);
    daemon_stop(second);
    stand_down();
}

START_TEST(an_owner_and_a_token_must_both_fit)
{
    struct client *c;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK job OWNER o");
    ask_error(c, "NOTHELD", "UNLOCK job OWNER p TOKEN %" PRId64, token);
    ask_error(c, "NOTHELD", "UNLOCK job OWNER o TOKEN %" PRId64, token - 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job OWNER o TOKEN %" PRId64, token), 0);
    client_close(c);
    stand_down();
}

START_TEST(renew_brings_a_client_back)
{
    struct client *a, *b;
    uint64_t start;
    int64_t token;

    stand_up("--watchdog-timeout", "1s", "--redis-timeout", "300ms", NULL);
    a = open_client();
    token = ask_int(a, "LOCK job");
    client_close(a);
    b = open_client();
    ck_assert_int_gt(ask_int(b, "RENEW job TOKEN %" PRId64, token), 500);
    start = test_now_ms();
    while (test_now_ms() < start + 2500) { /* the watchdog keeps it now */
        ask_nil(stand.admin, "LOCK job WAIT 50");
    }
    ck_assert_int_eq(ask_int(b, "UNLOCK job TOKEN %" PRId64, token), 0);
    ask_error(b, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    client_close(b);
    stand_down();
}

START_TEST(renew_with_lease_sets_the_end)
{
    struct client *a;
    uint64_t start;
    int64_t token, left;

    stand_up(NULL);
    a = open_client();
    token = ask_int(a, "LOCK job");
    start = test_now_ms();
    left = ask_int(a, "RENEW job TOKEN %" PRId64 " LEASE 600", token);
    ck_assert_int_gt(left, 300);
    ck_assert_int_le(left, 600);
    (void)ask_int(stand.admin, "LOCK job WAIT 5000");
    expect_elapsed(start, 550, 600);
    client_close(a);
    stand_down();
}
