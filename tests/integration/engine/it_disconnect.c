/* Clients that close between LOCK and the answer, at random moments, in every way. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    TIMES = 2500,    /* of each of the four ways */
    MOMENT_US = 400, /* an uncontended grant takes about this long */
    RUN_TIMES = 300, /* of each way to leave within a transaction or a pipeline.. */
    RUN_US = 1500,   /* ..which take about this long */
    NAMES = 7,
};

enum way { CLOSE_TCP, RESET_TCP, CLOSE_UNIX, HALF_CLOSE };

static void spend_at_most(int us)
{
    struct timespec ts = { .tv_nsec = (rand() % us) * 1000L };

    if (rand() % 4 != 0) {
        (void)nanosleep(&ts, NULL);
    }
}

static struct client *open_to_leave(enum way way)
{
    return way == CLOSE_UNIX ? client_open_unix(stand.daemon) : open_client();
}

static void leave(struct client *c, enum way way)
{
    switch (way) {
    case RESET_TCP:
        client_abort(c);
        break;
    case HALF_CLOSE:
        client_half_close(c);
        expect_closed(c);
        client_close(c);
        break;
    default:
        client_close(c);
        break;
    }
}

/* GRACE 0 for those whose close comes after they could have read the token: then the
 * default leaves the lock its lease. */
static void ask_and_leave(enum way way)
{
    const char *grace = way == HALF_CLOSE ? " GRACE 0" : "";

    for (int i = 0; i < TIMES; i++) {
        struct client *c = open_to_leave(way);

        client_send(c, "LOCK job%d%s", rand() % NAMES, grace);
        spend_at_most(MOMENT_US);
        leave(c, way);
    }
}

static void expect_nothing_left(void)
{
    struct value v;
    uint64_t deadline = test_now_ms() + 3000;

    await_no_locks(2000);
    for (;;) {
        v = ask(stand.admin, "LOCKS COUNT 1000");
        if (v.items[1].count == 0) {
            break;
        }
        ck_assert_msg(test_now_ms() < deadline, "the daemon still knows %s",
                      v.items[1].items[0].text);
        value_fini(&v);
        test_sleep_ms(5);
    }
    value_fini(&v);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(nothing_is_left_of_those_who_left_before_the_answer, HALF_CLOSE + 1)
{
    int fds;

    stand_up(NULL);
    srand((unsigned)_i + 1);
    client_send(stand.admin, "PING"); /* then it has been accepted */
    expect_status(stand.admin, "PONG");
    fds = daemon_open_fds(stand.daemon);
    ask_and_leave((enum way)_i);
    expect_nothing_left();
    for (int i = 0; daemon_open_fds(stand.daemon) > fds; i++) {
        ck_assert_int_lt(i, 2000);
        test_sleep_ms(2);
    }
    stand_down();
}

START_TEST(those_who_leave_while_others_hold_disturb_nobody)
{
    struct client *holder;

    stand_up(NULL);
    holder = open_client();
    srand(42);
    for (int i = 0; i < NAMES; i++) {
        (void)ask_int(holder, "LOCK job%d", i);
    }
    for (int i = 0; i < TIMES; i++) {
        struct client *c = open_client();

        client_send(c, "LOCK job%d", rand() % NAMES);
        spend_at_most(MOMENT_US);
        leave(c, (enum way)(rand() % 2));
        if (i % 10 == 0) { /* a hand-over to somebody who may be gone */
            int name = rand() % NAMES;

            ck_assert_int_eq(ask_int(holder, "UNLOCK job%d", name), 0);
            (void)ask_int(holder, "LOCK job%d", name);
        }
    }
    for (int i = 0; i < NAMES; i++) {
        ck_assert_int_eq(ask_int(holder, "UNLOCK job%d", i), 0);
    }
    expect_nothing_left();
    client_close(holder);
    stand_down();
}

START_TEST(a_grant_to_a_closed_connection_goes_to_the_next_waiter)
{
    struct client *holder, *gone, *next;

    stand_up(NULL);
    for (int i = 0; i < 200; i++) {
        holder = open_client();
        gone = open_client();
        next = open_client();
        (void)ask_int(holder, "LOCK job");
        send_lock(gone, "job", "", 1);
        send_lock(next, "job", "", 2);
        client_send(holder, "UNLOCK job");
        client_abort(gone);
        expect_int(holder, 0);
        (void)client_read_int(next);
        ck_assert_int_eq(ask_int(next, "UNLOCK job"), 0);
        client_close(holder);
        client_close(next);
    }
    expect_nothing_left();
    stand_down();
}

static const enum way WAYS[] = { CLOSE_TCP, CLOSE_UNIX, RESET_TCP };

START_TEST(nothing_is_left_of_those_who_leave_in_a_transaction, TEST_ROWS(WAYS))
{
    static const char QUEUED[] = "MULTI\r\nLOCK a WAIT 0 GRACE 0\r\n"
                                 "LOCK b WAIT 0 GRACE 0\r\n"
                                 "MLOCK 2 c d WAIT 0 GRACE 0\r\n";

    stand_up(NULL);
    for (int i = 0; i < RUN_TIMES; i++) {
        struct client *c = open_to_leave(WAYS[_i]);

        client_send_raw(c, QUEUED, strlen(QUEUED));
        expect_status(c, "OK");
        for (int queued = 0; queued < 3; queued++) {
            expect_status(c, "QUEUED");
        }
        client_send(c, "EXEC");
        spend_at_most(RUN_US);
        leave(c, WAYS[_i]);
    }
    expect_nothing_left();
    stand_down();
}

START_TEST(nothing_is_left_of_those_who_leave_in_a_pipeline, TEST_ROWS(WAYS))
{
    struct client *other;

    stand_up(NULL);
    other = open_client();
    (void)ask_int(other, "LOCK taken");
    for (int i = 0; i < RUN_TIMES; i++) {
        struct client *c = open_to_leave(WAYS[_i]);
        char lines[256];

        (void)snprintf(
            lines, sizeof lines,
            "LOCK a GRACE 0\r\nLOCK b GRACE 0\r\nLOCK c GRACE 0\r\nUNLOCK b\r\n"
            "LOCK d GRACE 0\r\nLOCK e GRACE 0\r\n%s\r\nLOCK f GRACE 0\r\n",
            i % 2 == 0 ? "PING" : "LOCK taken");
        client_send_raw(c, lines, strlen(lines));
        spend_at_most(RUN_US);
        leave(c, WAYS[_i]);
    }
    ck_assert_int_eq(ask_int(other, "UNLOCK taken"), 0);
    await_no_locks(30000);
    client_close(other);
    stand_down();
}
