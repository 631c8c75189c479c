/* Clients that close between LOCK and the answer, at random moments, in every way. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdlib.h>
#include <time.h>

enum {
    TIMES = 2500,    /* of each of the four ways */
    MOMENT_US = 400, /* an uncontended grant takes about this long */
    NAMES = 7,
};

enum way { CLOSE_TCP, RESET_TCP, CLOSE_UNIX, HALF_CLOSE };

static void spend_a_moment(void)
{
    struct timespec ts = { .tv_nsec = (rand() % MOMENT_US) * 1000L };

    if (rand() % 4 != 0) {
        (void)nanosleep(&ts, NULL);
    }
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
        struct client *c =
            way == CLOSE_UNIX ? client_open_unix(stand.daemon) : open_client();

        client_send(c, "LOCK job%d%s", rand() % NAMES, grace);
        spend_a_moment();
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
        spend_a_moment();
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
