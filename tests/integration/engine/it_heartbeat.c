/* HEARTBEAT: a lock is free again soon after its client's machine has vanished. */
#include "support/runner.h"
#include "support/stand.h"
#include "util/clock.h"

#include <poll.h>
#include <signal.h>
#include <time.h>

#define R1 "11111111-1111-1111-1111-111111111111"

enum {
    SHORT = 200,   /* for those who are silent from the grant on */
    LONGER = 1000, /* for those who say something more, and are silent then */
    LONG = 2000,   /* for those who are heard, on a machine that may be busy */
    OFTEN = 100,   /* how often they are heard */
    STILL = 2000,  /* latchd stands still for longer than a heartbeat */
};

static void spend(uint64_t ms)
{
    const struct timespec ts = { .tv_sec = (time_t)(ms / 1000),
                                 .tv_nsec = (long)(ms % 1000) * 1000000 };

    (void)nanosleep(&ts, NULL);
}

/* Whether the end of the connection has arrived. Does not wait. */
static bool is_closed(struct client *c)
{
    struct pollfd fd = { .fd = client_fd(c), .events = POLLIN };

    return poll(&fd, 1, 0) == 1;
}

static void says_pong(struct client *c)
{
    client_send(c, "PING");
    expect_status(c, "PONG");
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

static const char *const SILENT[] = {
    "LOCK job HEARTBEAT 200 GRACE 0",
    "LOCK job LOCAL HEARTBEAT 200 GRACE 0",
    "LOCK job READ HEARTBEAT 200 GRACE 0",
    "MLOCK 1 job HEARTBEAT 200 GRACE 0",
};

START_TEST(a_silent_client_is_closed_before_the_next_one_is_granted, TEST_ROWS(SILENT))
{
    bool reads = strstr(SILENT[_i], "READ") != NULL;
    struct client *holder, *next;
    uint64_t start;
    struct value v;

    stand_up(NULL);
    holder = open_client();
    next = open_client();
    start = clock_boot_ms();
    v = ask(holder, "%s", SILENT[_i]);
    value_fini(&v);
    client_send(next, reads ? "LOCK job WRITE" : "LOCK job");
    ck_assert_int_gt(client_read_int(next), 0);
    ck_assert(is_closed(holder));
    expect_elapsed(start, SHORT, SHORT + 200);
    expect_closed(holder);
    v = ask(stand.admin, "INFO stats");
    ck_assert_ptr_nonnull(strstr(v.text, "heartbeats_missed:1\r\n"));
    value_fini(&v);
    client_close(holder);
    client_close(next);
    stand_down();
}

START_TEST(whoever_is_heard_keeps_the_lock)
{
    struct client *holder;
    uint64_t start;

    stand_up(NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job HEARTBEAT 2000 GRACE 0");
    start = clock_boot_ms();
    while (clock_boot_ms() - start < 2 * LONG) {
        spend(OFTEN);
        says_pong(holder);
    }
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    client_close(holder);
    stand_down();
}

START_TEST(a_client_that_waits_for_a_reply_is_not_silent)
{
    struct client *holder, *other;

    stand_up(NULL);
    holder = open_client();
    other = open_client();
    (void)ask_int(other, "LOCK far");
    (void)ask_int(holder, "LOCK job HEARTBEAT 1000 GRACE 0");
    ask_nil(holder, "LOCK far WAIT 2500");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    client_close(holder);
    client_close(other);
    stand_down();
}

START_TEST(without_the_lock_a_client_may_be_silent)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job HEARTBEAT 1000");
    (void)ask_int(c, "LOCK calm");
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    spend(2 * LONGER);
    says_pong(c);
    client_close(c);
    stand_down();
}

/* The hold has its heartbeat from its LOCK, and each connection that comes to keep it
 * has to be heard. */
START_TEST(a_connection_that_takes_the_hold_over_is_heard_or_closed)
{
    struct client *first, *second, *next;

    stand_up(NULL);
    first = open_client();
    second = open_client();
    next = open_client();
    (void)ask_int(first, "LOCK job ID " R1 " HEARTBEAT 1000 GRACE 0");
    (void)ask_int(second, "RENEW job ID " R1);
    client_send(next, "LOCK job");
    expect_closed(first);
    expect_closed(second);
    ck_assert_int_gt(client_read_int(next), 0);
    client_close(first);
    client_close(second);
    client_close(next);
    stand_down();
}

/* PING is all that RESP2 leaves it, and what is sent to it is not said by it. */
START_TEST(a_subscriber_is_heard_or_closed)
{
    struct client *holder, *next;
    uint64_t start;

    stand_up(NULL);
    holder = open_client();
    next = open_client();
    (void)ask_int(holder, "LOCK job HEARTBEAT 1000 GRACE 0");
    subscribe(holder, "granted:noise");
    start = clock_boot_ms();
    while (clock_boot_ms() - start < 2 * LONGER) {
        struct value pong = ask(holder, "PING");

        ck_assert_int_eq(pong.type, VALUE_LIST);
        value_fini(&pong);
        spend(OFTEN);
    }
    client_send(next, "LOCK job");
    while (!client_has_reply(next)) {
        ck_assert_int_gt(ask_int(stand.admin, "LOCK noise"), 0);
        ck_assert_int_eq(ask_int(stand.admin, "UNLOCK noise"), 0);
        spend(OFTEN);
    }
    ck_assert_int_gt(client_read_int(next), 0);
    client_close(holder);
    client_close(next);
    stand_down();
}

/* A command that a pause puts off waits for its answer; PING is answered meanwhile. */
START_TEST(a_pause_keeps_nobody_from_being_heard)
{
    struct client *waits, *pings;
    uint64_t start;

    stand_up(NULL);
    waits = open_client();
    pings = open_client();
    (void)ask_int(waits, "LOCK one HEARTBEAT 1000 GRACE 0");
    (void)ask_int(pings, "LOCK two HEARTBEAT 1000 GRACE 0");
    ask_ok(stand.admin, "CLIENT PAUSE 2500 ALL");
    client_send(waits, "LOCK more WAIT 0");
    start = clock_boot_ms();
    while (clock_boot_ms() - start < 2 * LONGER) {
        says_pong(pings);
        spend(OFTEN);
    }
    ck_assert_int_gt(client_read_int(waits), 0);
    ck_assert_int_eq(ask_int(waits, "UNLOCK one"), 0);
    ck_assert_int_eq(ask_int(pings, "UNLOCK two"), 0);
    client_close(waits);
    client_close(pings);
    stand_down();
}

START_TEST(a_lock_from_a_transaction_has_its_heartbeat)
{
    struct client *holder;

    stand_up(NULL);
    holder = open_client();
    ask_ok(holder, "MULTI");
    client_send(holder, "LOCK job WAIT 0 HEARTBEAT 200 GRACE 0");
    expect_status(holder, "QUEUED");
    client_send(holder, "EXEC");
    ck_assert_int_gt(ask_int(stand.admin, "LOCK job"), 0);
    ck_assert(is_closed(holder));
    client_close(holder);
    stand_down();
}

/* Words sent meanwhile are read first. */
START_TEST(a_daemon_that_stood_still_blames_nobody)
{
    struct client *holder;

    stand_up(NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job HEARTBEAT 1000 GRACE 0");
    (void)kill(daemon_pid(stand.daemon), SIGSTOP);
    spend(STILL);
    (void)kill(daemon_pid(stand.daemon), SIGCONT);
    says_pong(holder);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    client_close(holder);
    stand_down();
}

START_TEST(a_heartbeat_has_bounds)
{
    stand_up("--watchdog-timeout", "5s", NULL);
    ask_error(stand.admin, "ERR HEARTBEAT must be 200..5000 milliseconds",
              "LOCK job HEARTBEAT 199");
    ask_error(stand.admin, "ERR HEARTBEAT must be 200..5000 milliseconds",
              "LOCK job HEARTBEAT 5001");
    ask_error(stand.admin, "ERR LEASE does not go with HEARTBEAT",
              "LOCK job HEARTBEAT 500 LEASE 500");
    ask_error(stand.admin, "ERR unknown option", "RENEW job HEARTBEAT 500");
    stand_down();
}
