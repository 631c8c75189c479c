/* Waiting: order, exactly once, kept places, and what a hand-over costs Redis. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

#define R1 "11111111-1111-1111-1111-111111111111"
#define R2 "22222222-2222-2222-2222-222222222222"

enum { CROWD = 1000, FEW = 5 };

static void allow_many_files(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_gt(limit.rlim_cur, CROWD + 100);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_thousand_clients_get_it_in_order_once_each_with_one_script_each)
{
    static struct client *c[CROWD];
    struct client *first;
    int64_t token;
    long long before;

    allow_many_files();
    stand_up(NULL);
    first = open_client();
    token = ask_int(first, "LOCK job");
    for (int i = 0; i < CROWD; i++) {
        c[i] = open_client();
        send_lock(c[i], "job", "", i + 1);
    }
    before = peek_script_calls();
    ck_assert_int_eq(ask_int(first, "UNLOCK job TOKEN %" PRId64, token), 0);
    for (int i = 0; i < CROWD; i++) {
        int64_t next = client_read_int(c[i]);

        ck_assert_int_gt(next, token);
        token = next;
        if (i + 1 < CROWD) {
            expect_silence(c[i + 1]);
        }
        ck_assert_int_eq(ask_int(c[i], "UNLOCK job TOKEN %" PRId64, token), 0);
    }
    before = peek_script_calls() - before;
    ck_assert_msg(before <= CROWD * 11 / 10, "%lld scripts for %d hand-overs", before,
                  CROWD);
    expect_no_locks();
    close_clients(c, CROWD);
    client_close(first);
    stand_down();
}

START_TEST(those_who_leave_are_out_of_the_queue_at_once)
{
    struct client *holder, *c[FEW];
    int64_t token;

    stand_up(NULL);
    holder = open_client();
    token = ask_int(holder, "LOCK job");
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        send_lock(c[i], "job", "", i + 1);
    }
    client_close(c[0]);
    client_reset(c[2]);
    client_half_close(c[3]);
    await_waiting(stand.admin, "job", 2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TOKEN %" PRId64, token), 0);
    (void)client_read_int(c[1]);
    expect_silence(c[4]);
    ck_assert_int_eq(ask_int(c[1], "UNLOCK job"), 0);
    (void)client_read_int(c[4]);
    client_close(c[1]);
    client_close(c[3]);
    client_close(c[4]);
    client_close(holder);
    stand_down();
}

START_TEST(a_wait_that_ends_does_not_disturb_those_behind_it)
{
    struct client *holder, *short_one, *long_one;

    stand_up(NULL);
    holder = open_client();
    short_one = open_client();
    long_one = open_client();
    (void)ask_int(holder, "LOCK job");
    send_lock(short_one, "job", "WAIT 300", 1);
    send_lock(long_one, "job", "", 2);
    expect_nil(short_one);
    expect_silence(long_one);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    (void)client_read_int(long_one);
    client_close(holder);
    client_close(short_one);
    client_close(long_one);
    stand_down();
}

START_TEST(an_id_keeps_its_place_between_two_askings)
{
    struct client *holder, *polling, *rival;

    stand_up(NULL);
    holder = open_client();
    polling = open_client();
    rival = open_client();
    (void)ask_int(holder, "LOCK job");
    ask_nil(polling, "LOCK job WAIT 0 KEEP 10000 ID " R1);
    send_lock(rival, "job", "", 2);
    client_close(polling); /* redis-py closes before it connects again */
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    await_state(stand.admin, "job", "held");
    polling = open_client();
    (void)ask_int(polling, "LOCK job WAIT 0 ID " R1);
    expect_silence(rival);
    ck_assert_int_gt(peek_int("PTTL job"), 25000); /* the full lease */
    ck_assert_int_eq(ask_int(polling, "UNLOCK job ID " R1), 0);
    (void)client_read_int(rival);
    client_close(holder);
    client_close(polling);
    client_close(rival);
    stand_down();
}

START_TEST(a_kept_grant_that_nobody_fetches_goes_to_the_next)
{
    struct client *holder, *gone, *rival;
    uint64_t start;

    stand_up(NULL);
    holder = open_client();
    gone = open_client();
    rival = open_client();
    (void)ask_int(holder, "LOCK job");
    ask_nil(gone, "LOCK job WAIT 0 KEEP 700 ID " R1);
    client_close(gone);
    send_lock(rival, "job", "", 2);
    start = test_now_ms();
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    (void)client_read_int(rival);
    expect_elapsed(start, 0, 700);
    client_close(holder);
    client_close(rival);
    stand_down();
}

START_TEST(keep_0_keeps_nothing)
{
    struct client *holder, *c;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    ask_nil(c, "LOCK job WAIT 0 KEEP 0 ID " R1);
    await_waiting(stand.admin, "job", 0);
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(cancel_ends_waits_and_gives_back_a_kept_grant)
{
    struct client *holder, *c;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    send_lock(c, "job", "ID " R1, 1);
    ck_assert_int_eq(ask_int(stand.admin, "CANCEL job ID " R1), 1);
    expect_nil(c);
    ck_assert_int_eq(ask_int(stand.admin, "CANCEL job ID " R1), 0);
    send_lock(c, "job", "OWNER o", 1);
    ck_assert_int_eq(ask_int(stand.admin, "CANCEL job OWNER o"), 1);
    expect_nil(c);
    ask_error(c, "NOTHELD request is over", "LOCK job ID " R1);

    ask_nil(c, "LOCK job WAIT 0 KEEP 20000 ID " R2);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    await_state(stand.admin, "job", "held");
    ck_assert_int_eq(ask_int(stand.admin, "CANCEL job ID " R2), 1);
    await_no_locks(0);
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(every_waiter_of_many_names_gets_its_own)
{
    struct client *a[FEW], *b[FEW];

    stand_up(NULL);
    for (int i = 0; i < FEW; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "job%d", i);
        a[i] = open_client();
        b[i] = open_client();
        (void)ask_int(a[i], "LOCK %s", name);
        send_lock(b[i], name, "", 1);
    }
    for (int i = FEW - 1; i >= 0; i--) {
        ck_assert_int_eq(ask_int(a[i], "UNLOCK job%d", i), 0);
        (void)client_read_int(b[i]);
    }
    close_clients(a, FEW);
    close_clients(b, FEW);
    stand_down();
}
