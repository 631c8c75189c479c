/* A connection that many share, who know nothing of each other: what names its own hold
 * or request does not wait for the LOCKs of others. With the real daemon and a real
 * Redis. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TASKS = 100, TIMES = 100, MOMENT_US = 2000, KEEP_MS = 2000 };

#define ID "4f1c8a52-0000-4000-8000-%012d"

static struct client *shared, *other;

static void up(void)
{
    stand_up(NO_RECHECK, NULL);
    shared = open_client();
    other = open_client();
}

static void down(void)
{
    client_close(shared);
    client_close(other);
    stand_down();
}

/* The other one holds `job`, and the shared connection waits for it as number 0. */
static void up_waiting(void)
{
    up();
    (void)ask_int(other, "LOCK job");
    client_send(shared, "LOCK job WAIT 60000 OWNER ann ID " ID, 0);
    await_waiting(stand.admin, "job", 1);
}

static void job_is_free(void)
{
    ck_assert_int_eq(ask_int(other, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(shared), 0);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(tasks_take_turns_without_a_stall, 2)
{
    up();
    for (int i = 0; i < TASKS; i++) {
        client_send(shared, "LOCK job%s WAIT 20000 ID " ID, _i == 0 ? "" : " FAIR", i);
    }
    for (int i = 0; i < TASKS; i++) {
        ck_assert_int_gt(client_read_int(shared), 0);
        client_send(shared, "UNLOCK job ID " ID, i);
    }
    for (int i = 0; i < TASKS; i++) {
        expect_int(shared, 0);
    }
    down();
}

START_TEST(holds_are_released_and_renewed_behind_a_wait)
{
    int64_t a, b;

    up();
    a = ask_int(shared, "LOCK a LEASE 5000");
    b = ask_int(shared, "LOCK b OWNER bob");
    (void)ask_int(shared, "LOCK c ID " ID, 1);
    (void)ask_int(shared, "LOCK d");
    (void)ask_int(other, "LOCK job");
    client_send(shared, "LOCK job WAIT 60000 OWNER ann ID " ID, 0);
    await_waiting(stand.admin, "job", 1);
    client_send(shared, "RENEW a TOKEN %" PRId64 " LEASE 50000", a);
    client_send(shared, "PING");
    client_send(shared, "UNLOCK b OWNER bob");
    client_send(shared, "LOCKINFO nothing");
    client_send(shared, "UNLOCK c ID " ID, 1);
    client_send(shared, "UNLOCK d");
    await_state(stand.admin, "b", "free");
    await_state(stand.admin, "c", "free");
    await_state(stand.admin, "d", "held"); /* that may not have been meant */
    ck_assert_int_gt(peek_int("PTTL a"), 40000);
    expect_silence(shared);
    job_is_free();
    ck_assert_int_gt(client_read_int(shared), 40000);
    expect_status(shared, "PONG");
    expect_int(shared, 0);
    {
        struct value v = client_read(shared);

        value_fini(&v);
    }
    expect_int(shared, 0);
    expect_int(shared, 0);
    await_state(stand.admin, "d", "free");
    ck_assert_int_gt(b, 0);
    down();
}

START_TEST(a_wait_is_cancelled_from_behind_it, 2)
{
    up_waiting();
    if (_i == 0) {
        client_send(shared, "CANCEL job ID " ID, 0);
    } else {
        client_send(shared, "CANCEL job OWNER ann");
    }
    expect_nil(shared);
    expect_int(shared, 1);
    await_waiting(stand.admin, "job", 0);
    down();
}

START_TEST(locks_stand_in_their_queues_meanwhile)
{
    struct client *third;

    up_waiting();
    third = open_client();
    (void)ask_int(other, "LOCK page");
    client_send(shared, "LOCK page WAIT 60000 ID " ID, 1);
    await_waiting(stand.admin, "page", 1);
    send_lock(third, "page", "WAIT 60000", 2);
    ck_assert_int_eq(ask_int(other, "UNLOCK page"), 0);
    await_waiting(stand.admin, "page", 1); /* it was first, and is kept */
    expect_silence(third);
    job_is_free();
    ck_assert_int_gt(client_read_int(shared), 0);
    ck_assert_int_eq(ask_int(shared, "UNLOCK page ID " ID, 1), 0);
    ck_assert_int_gt(client_read_int(third), 0);
    client_close(third);
    down();
}

START_TEST(what_cannot_be_told_within_keep_goes_on)
{
    uint64_t start;

    up_waiting();
    start = test_now_ms();
    client_send(shared, "LOCK page WAIT 60000 KEEP %d ID " ID, KEEP_MS, 1);
    await_state(stand.admin, "page", "held");
    ck_assert_int_gt(ask_int(other, "LOCK page WAIT 10000"), 0);
    expect_not_before(start, KEEP_MS / 2);
    job_is_free();
    await_waiting(stand.admin, "page", 1);
    expect_silence(shared);
    ck_assert_int_eq(ask_int(other, "UNLOCK page"), 0);
    ck_assert_int_gt(client_read_int(shared), 0);
    down();
}

START_TEST(a_lock_without_an_id_is_not_taken_before_its_turn)
{
    up_waiting();
    client_send(shared, "LOCK page");
    client_send(shared, "LOCK side ID " ID " KEEP 0", 1);
    client_send(shared, "UNLOCK nothing TOKEN 5");
    client_send(shared, "LOCK mark ID " ID, 2);
    await_state(stand.admin, "mark", "held"); /* it came last */
    ck_assert_int_eq(peek_int("EXISTS page side"), 0);
    job_is_free();
    ck_assert_int_gt(client_read_int(shared), 0);
    ck_assert_int_gt(client_read_int(shared), 0);
    expect_error(shared, "NOTHELD");
    ck_assert_int_gt(client_read_int(shared), 0);
    down();
}

START_TEST(unblock_ends_the_oldest_of_several_waits)
{
    int64_t id;

    up();
    id = ask_int(shared, "CLIENT ID");
    (void)ask_int(other, "LOCK job");
    (void)ask_int(other, "LOCK page");
    client_send(shared, "LOCK job WAIT 60000 ID " ID, 0);
    client_send(shared, "LOCK page WAIT 60000 ID " ID, 1);
    await_waiting(stand.admin, "page", 1);
    ck_assert_int_eq(ask_int(other, "CLIENT UNBLOCK %" PRId64, id), 1);
    expect_nil(shared);
    expect_silence(shared);
    ck_assert_int_eq(ask_int(other, "CLIENT UNBLOCK %" PRId64 " ERROR", id), 1);
    expect_error(shared, "UNBLOCKED");
    down();
}

START_TEST(owners_that_share_a_connection_are_told_of_a_deadlock)
{
    up();
    (void)ask_int(shared, "LOCK a OWNER ann");
    (void)ask_int(shared, "LOCK b OWNER bob");
    client_send(shared, "LOCK b OWNER ann ID " ID, 0);
    await_waiting(stand.admin, "b", 1);
    client_send(shared, "LOCK a OWNER bob ID " ID, 1);
    client_send(shared, "UNLOCK b OWNER bob");
    ck_assert_int_gt(client_read_int(shared), 0);
    expect_error(shared, "DEADLOCK");
    expect_int(shared, 0);
    down();
}

START_TEST(a_stop_is_told_to_each_wait)
{
    up_waiting();
    (void)ask_int(other, "LOCK page");
    client_send(shared, "LOCK page WAIT 60000 ID " ID, 1);
    client_send(shared, "LOCK late");
    client_send(shared, "PING");
    await_waiting(stand.admin, "page", 1);
    daemon_terminate(stand.daemon);
    expect_error(shared, "GOAWAY");
    expect_error(shared, "GOAWAY");
    expect_error(shared, "GOAWAY");
    expect_status(shared, "PONG");
    expect_closed(shared);
    daemon_await_end(stand.daemon);
    daemon_restart(stand.daemon);
    client_close(stand.admin);
    stand.admin = open_client();
    down();
}

START_TEST(a_pause_holds_up_what_passes_too)
{
    int64_t token;

    up_waiting();
    token = ask_int(other, "LOCK page");
    ask_ok(stand.admin, "CLIENT PAUSE 600000 WRITE");
    client_send(shared, "UNLOCK page TOKEN %" PRId64, token);
    client_send(shared, "PING");
    await_state(stand.admin, "page", "held");
    ask_ok(stand.admin, "CLIENT UNPAUSE");
    await_state(stand.admin, "page", "free");
    expect_silence(shared);
    job_is_free();
    expect_int(shared, 0);
    expect_status(shared, "PONG");
    down();
}

START_TEST(a_mistake_in_the_protocol_is_told_in_its_turn)
{
    up_waiting();
    client_send(shared, "UNLOCK nothing TOKEN 5");
    client_send_raw(shared, "*x\r\n", 4);
    client_send_raw(shared, "PING\r\n", 6);
    client_send_raw(shared, "PING\r\n", 6);
    (void)ask_int(stand.admin, "LOCK mark");
    expect_silence(shared);
    job_is_free();
    expect_error(shared, "NOTHELD");
    expect_error(shared, "ERR Protocol error");
    expect_closed(shared);
    down();
}

START_TEST(nothing_is_left_of_a_connection_that_ends_in_the_middle, 3)
{
    up();
    (void)ask_int(other, "LOCK job");
    for (int i = 0; i < TIMES; i++) {
        struct client *c = _i == 1 ? client_open_unix(stand.daemon) : open_client();
        struct timespec ts = { .tv_nsec = (rand() % MOMENT_US) * 1000L };

        client_send(c, "LOCK first GRACE 0 ID " ID, 10 * i);
        client_send(c, "LOCK job GRACE 0 ID " ID, 10 * i + 1);
        client_send(c, "LOCK a KEEP 200 GRACE 0 ID " ID, 10 * i + 2);
        client_send(c, "UNLOCK first ID " ID, 10 * i);
        client_send(c, "LOCK b KEEP 200 GRACE 0 ID " ID, 10 * i + 3);
        client_send(c, "LOCK c");
        (void)nanosleep(&ts, NULL);
        if (i % 3 == 0) {
            client_half_close(c);
        }
        if (_i == 2) {
            client_abort(c);
        } else {
            client_close(c);
        }
    }
    ck_assert_int_eq(ask_int(other, "UNLOCK job"), 0);
    await_no_locks(30000);
    down();
}

START_TEST(a_half_close_ends_the_waits_and_what_was_put_off)
{
    up_waiting();
    client_send(shared, "UNLOCK job");
    client_send(shared, "PING");
    client_half_close(shared);
    expect_closed(shared);
    ck_assert_int_eq(ask_int(other, "UNLOCK job"), 0);
    down();
}

/* More than can be in flight: it is read, and run when there is room. */
START_TEST(a_flood_behind_a_wait_is_answered_in_order)
{
    enum { FLOOD = 3000 };

    up_waiting();
    for (int i = 0; i < FLOOD; i++) {
        client_send(shared,
                    i % 3 == 0   ? "ECHO %d"
                    : i % 3 == 1 ? "UNLOCK n%d TOKEN 5"
                                 : "LOCK n%d WAIT 0",
                    i);
    }
    await_waiting(stand.admin, "job", 1);
    expect_silence(shared);
    job_is_free();
    for (int i = 0; i < FLOOD; i++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "%d", i);
        if (i % 3 == 0) {
            expect_text(shared, text);
        } else if (i % 3 == 1) {
            expect_error(shared, "NOTHELD");
        } else {
            ck_assert_int_gt(client_read_int(shared), 0);
        }
    }
    down();
}
