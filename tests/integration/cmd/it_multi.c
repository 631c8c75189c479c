/* MULTI and EXEC, and CLIENT PAUSE, with the real daemon and a real Redis. */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    TIMES = 300,      /* clients that leave at a random moment */
    MOMENT_US = 1500, /* an EXEC with three grants takes about this long */
    PAUSE_MS = 2500,
};

static void queue(struct client *c, const char *line)
{
    client_send(c, "%s", line);
    expect_status(c, "QUEUED");
}

static struct value exec(struct client *c)
{
    struct value v = ask(c, "EXEC");

    ck_assert_int_eq(v.type, VALUE_LIST);
    return v;
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(replies_come_in_order_as_one_array)
{
    struct client *c, *other;
    struct value v;

    stand_up(NULL);
    c = open_client();
    other = open_client();
    (void)ask_int(other, "LOCK taken");
    ask_ok(c, "MULTI");
    queue(c, "LOCK a WAIT 0");
    queue(c, "LOCK taken WAIT 0");
    queue(c, "PING");
    queue(c, "UNLOCK a");
    queue(c, "UNLOCK a TOKEN 5");
    queue(c, "MLOCK 2 b c WAIT 0");
    queue(c, "LOCKINFO b");
    v = exec(c);
    ck_assert_uint_eq(v.count, 7);
    ck_assert_int_eq(v.items[0].type, VALUE_INT);
    ck_assert_int_eq(v.items[1].type, VALUE_NIL);
    ck_assert_str_eq(v.items[2].text, "PONG");
    ck_assert_int_eq(v.items[3].integer, 0);
    ck_assert(strncmp(v.items[4].text, "NOTHELD ", 8) == 0);
    ck_assert_uint_eq(v.items[5].count, 2);
    ck_assert_str_eq(v.items[6].items[5].text, "held");
    value_fini(&v);
    ask_nil(other, "LOCK b WAIT 0");
    client_close(c);
    client_close(other);
    stand_down();
}

static void ask_for_three(struct client *c)
{
    ask_ok(c, "MULTI");
    queue(c, "LOCK a WAIT 0 GRACE 0");
    queue(c, "LOCK b WAIT 0 GRACE 0");
    queue(c, "MLOCK 2 c d WAIT 0 GRACE 0");
    client_send(c, "EXEC");
}

START_TEST(nothing_is_left_of_those_who_leave_in_the_middle, 3)
{
    stand_up(NULL);
    for (int i = 0; i < TIMES; i++) {
        struct client *c = _i == 1 ? client_open_unix(stand.daemon) : open_client();
        struct timespec ts = { .tv_nsec = (rand() % MOMENT_US) * 1000L };

        ask_for_three(c);
        (void)nanosleep(&ts, NULL);
        if (_i == 2) {
            client_abort(c);
        } else {
            client_close(c);
        }
    }
    await_no_locks(0);
    stand_down();
}

/* A client has these flags in CLIENT LIST. */
static bool any_has_flags(const char *flags)
{
    struct value v = ask(stand.admin, "CLIENT LIST");
    char text[32];
    bool found;

    (void)snprintf(text, sizeof(text), " flags=%s ", flags);
    found = strstr(v.text, text) != NULL;
    value_fini(&v);
    return found;
}

/* Redis stands still while EXEC waits for it. */
START_TEST(what_a_killed_client_was_granted_is_taken_back)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    redis_pause(stand.redis);
    ask_for_three(c);
    AWAIT(any_has_flags("xb"));
    ck_assert_int_eq(ask_int(stand.admin, "CLIENT KILL TYPE normal"), 1);
    expect_closed(c);
    client_close(c);
    redis_resume(stand.redis);
    await_no_locks(0);
    stand_down();
}

START_TEST(a_daemon_that_stops_ends_a_transaction)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    redis_pause(stand.redis);
    ask_for_three(c);
    AWAIT(any_has_flags("xb"));
    daemon_terminate(stand.daemon);
    if (client_try_read(c, 5000, &v)) { /* or the end came first */
        for (size_t i = 0; i < v.count; i++) {
            ck_assert_int_eq(v.items[i].type, VALUE_ERROR);
        }
        value_fini(&v);
        expect_closed(c);
    }
    client_close(c);
    client_close(stand.admin);
    daemon_await_end(stand.daemon);
    daemon_free(stand.daemon);
    redis_stop(stand.redis);
}

START_TEST(a_pause_puts_off_commands_but_no_renewal)
{
    struct client *holder, *other;
    uint64_t start;

    stand_up(SHORT_LEASES, NULL);
    holder = open_client();
    other = open_client();
    (void)ask_int(holder, "LOCK job");
    start = test_now_ms();
    ask_ok(stand.admin, "CLIENT PAUSE %d WRITE", PAUSE_MS);
    client_send(other, "LOCK job WAIT 0");
    client_send(holder, "UNLOCK job");
    await_renewals("job", 1);
    expect_nil(other); /* it asked first */
    expect_not_before(start, PAUSE_MS);
    expect_int(holder, 0);
    client_close(holder);
    client_close(other);
    stand_down();
}

START_TEST(unpause_lets_all_of_them_go_on)
{
    enum { CLIENTS = 20 };
    struct client *clients[CLIENTS];

    stand_up(NULL);
    ask_ok(stand.admin, "CLIENT PAUSE 600000");
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = open_client();
        client_send(clients[i], "LOCK job%d WAIT 0", i);
        client_send(clients[i], "UNLOCK job%d", i);
    }
    ask_ok(stand.admin, "CLIENT UNPAUSE");
    for (int i = 0; i < CLIENTS; i++) {
        (void)client_read_int(clients[i]);
        expect_int(clients[i], 0);
    }
    close_clients(clients, CLIENTS);
    stand_down();
}
