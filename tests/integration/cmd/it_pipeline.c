/* Commands that come together on one connection, with the real daemon and a real Redis.
 */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    DEPTH = 16,
    LONG = 100, /* more than are in flight together */
    TIMES = 200,
    MOMENT_US = 1500,
    ROUNDS = 100,
    CALLS_MAX = 6,
};

/* Lines in one packet. */
static void send_lines(struct client *c, const char *const *lines)
{
    char text[16384] = "";
    size_t len = 0;

    for (; *lines != NULL; lines++) {
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\r\n", *lines);
        ck_assert_uint_lt(len, sizeof(text));
    }
    client_send_raw(c, text, len);
}

#define LINES(c, ...) send_lines((c), (const char *const[]){ __VA_ARGS__, NULL })

static void expect_tokens(struct client *c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_gt(client_read_int(c), 1000);
    }
}

static void send_many(struct client *c, const char *command, size_t count)
{
    char lines[LONG][40];
    const char *list[LONG + 1] = { NULL };

    ck_assert_uint_le(count, LONG);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(lines[i], sizeof(lines[i]), "%s name:%zu", command, i);
        list[i] = lines[i];
    }
    send_lines(c, list);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(replies_come_in_the_order_of_the_commands)
{
    struct client *c, *other;

    stand_up(NULL);
    c = open_client();
    other = open_client();
    (void)ask_int(other, "LOCK taken");
    for (int i = 0; i < ROUNDS; i++) {
        LINES(c, "LOCK a", "LOCK b OWNER me", "LOCK taken WAIT 0", "LOCK c", "PING",
              "UNLOCK a", "UNLOCK a TOKEN 5", "UNLOCK nothing TOKEN 5",
              "UNLOCK b OWNER me", "LOCK d WAIT soon", "LOCK e", "LOCK e WAIT 0",
              "LOCK f READ", "LOCK a", "NONSENSE", "UNLOCK c", "UNLOCK e", "UNLOCK f",
              "UNLOCK", "UNLOCK a", "ECHO end");
        expect_tokens(c, 2);
        expect_nil(c);
        expect_tokens(c, 1);
        expect_status(c, "PONG");
        expect_int(c, 0);
        expect_error(c, "NOTHELD");
        expect_error(c, "NOTHELD");
        expect_int(c, 0);
        expect_error(c, "ERR");
        expect_tokens(c, 1);
        expect_nil(c);
        expect_tokens(c, 2);
        expect_error(c, "ERR unknown command");
        for (int k = 0; k < 3; k++) {
            expect_int(c, 0);
        }
        expect_error(c, "ERR wrong number");
        expect_int(c, 0);
        expect_text(c, "end");
    }
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(nothing_is_held_behind_a_lock_that_waits, 2)
{
    struct client *c, *other;

    stand_up(NULL);
    c = open_client();
    other = open_client();
    if (_i == 0) {
        (void)ask_int(other, "LOCK b"); /* known here */
    } else {
        ck_assert_int_eq(peek_int("HSET b r:1 1"), 1); /* only Redis knows */
        ck_assert_int_eq(peek_int("PEXPIRE b 60000"), 1);
    }
    LINES(c, "LOCK a", "LOCK b", "LOCK c", "LOCK d", "PING");
    expect_tokens(c, 1);
    await_waiting(stand.admin, "b", 1);
    ck_assert_int_eq(peek_int("EXISTS a"), 1);
    ck_assert_int_eq(peek_int("EXISTS c d"), 0);
    (void)ask_int(other, "LOCK c WAIT 0");
    (void)ask_int(other, "LOCK d WAIT 0");
    ck_assert_int_eq(ask_int(other, "UNLOCK c"), 0);
    ck_assert_int_eq(ask_int(other, "UNLOCK d"), 0);
    expect_silence(c);
    ck_assert_int_eq(ask_int(other, "FORCEUNLOCK b ANY"), 1);
    expect_tokens(c, 3);
    expect_status(c, "PONG");
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(a_run_is_one_call_of_redis_and_so_is_its_end)
{
    struct client *c;
    long long before;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK warm");
    before = peek_script_calls();
    send_many(c, "LOCK", DEPTH);
    expect_tokens(c, DEPTH);
    send_many(c, "UNLOCK", DEPTH);
    for (int i = 0; i < DEPTH; i++) {
        expect_int(c, 0);
    }
    /* One each, if all came in one read. */
    ck_assert_int_le(peek_script_calls() - before, CALLS_MAX);
    client_close(c);
    stand_down();
}

START_TEST(more_than_are_in_flight_together_are_served_as_well)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < 5; i++) {
        send_many(c, "LOCK", LONG);
        send_many(c, "UNLOCK", LONG);
        expect_tokens(c, LONG);
        for (int k = 0; k < LONG; k++) {
            expect_int(c, 0);
        }
    }
    ck_assert_int_eq(peek_int("EXISTS name:0 name:99"), 0);
    client_close(c);
    stand_down();
}

/* In opposite orders they could block each other for ever, as one by one. */
START_TEST(the_same_pipelines_never_block_each_other)
{
    enum { CLIENTS = 4 };
    struct client *c[CLIENTS];
    struct test_daemon *second;

    stand_up(NULL);
    second = stand_second();
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        client_set_deadline(c[i], 30000);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CLIENTS; i++) {
            LINES(c[i], "LOCK a", "LOCK b", "LOCK c", "UNLOCK c", "UNLOCK a",
                  "UNLOCK b");
        }
        for (int i = 0; i < CLIENTS; i++) {
            expect_tokens(c[i], 3);
            for (int k = 0; k < 3; k++) {
                expect_int(c[i], 0);
            }
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        client_close(c[i]);
    }
    daemon_stop(second);
    stand_down();
}

START_TEST(nothing_is_left_of_those_who_leave_in_the_middle, 3)
{
    struct client *other;

    stand_up(NULL);
    other = open_client();
    (void)ask_int(other, "LOCK taken");
    for (int i = 0; i < TIMES; i++) {
        struct client *c = _i == 1 ? client_open_unix(stand.daemon) : open_client();
        struct timespec ts = { .tv_nsec = (rand() % MOMENT_US) * 1000L };

        LINES(c, "LOCK a GRACE 0", "LOCK b GRACE 0", "LOCK c GRACE 0", "UNLOCK b",
              "LOCK d GRACE 0", "LOCK e GRACE 0", i % 2 == 0 ? "PING" : "LOCK taken",
              "LOCK f GRACE 0");
        (void)nanosleep(&ts, NULL);
        if (_i == 2) {
            client_abort(c);
        } else {
            client_close(c);
        }
    }
    ck_assert_int_eq(ask_int(other, "UNLOCK taken"), 0);
    await_no_locks(30000);
    client_close(other);
    stand_down();
}

START_TEST(an_unblocked_wait_lets_those_behind_it_begin)
{
    struct client *c, *other;
    int64_t id;

    stand_up(NULL);
    c = open_client();
    other = open_client();
    (void)ask_int(other, "LOCK b");
    id = ask_int(c, "CLIENT ID");
    LINES(c, "LOCK a", "LOCK b", "LOCK c", "LOCK d");
    expect_tokens(c, 1);
    await_waiting(stand.admin, "b", 1);
    ck_assert_int_eq(ask_int(other, "CLIENT UNBLOCK %d", (int)id), 1);
    expect_nil(c);
    expect_tokens(c, 2);
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(a_pause_holds_up_those_that_a_run_did_not_reach)
{
    struct client *c, *other;

    stand_up(NULL);
    c = open_client();
    other = open_client();
    (void)ask_int(other, "LOCK b");
    LINES(c, "LOCK a", "LOCK b", "LOCK c", "PING");
    expect_tokens(c, 1);
    await_waiting(stand.admin, "b", 1);
    ask_ok(stand.admin, "CLIENT PAUSE 600000 WRITE");
    ck_assert_int_eq(peek_int("DEL b"), 1);
    ck_assert_int_eq(peek_int("PUBLISH redisson_lock__channel:{b} 0"), 1);
    expect_tokens(c, 1);
    ck_assert_int_eq(peek_int("EXISTS c"), 0);
    expect_silence(c);
    ask_ok(stand.admin, "CLIENT UNPAUSE");
    expect_tokens(c, 1);
    expect_status(c, "PONG");
    client_close(c);
    client_close(other);
    stand_down();
}

START_TEST(what_ends_a_connection_comes_after_the_replies_before_it, 2)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    if (_i == 0) {
        LINES(c, "LOCK a", "LOCK b", "UNLOCK a", "UNLOCK b", "QUIT", "LOCK c");
    } else {
        LINES(c, "LOCK a", "LOCK b", "UNLOCK a", "UNLOCK b", "*x", "LOCK c");
    }
    expect_tokens(c, 2);
    expect_int(c, 0);
    expect_int(c, 0);
    if (_i == 0) {
        expect_status(c, "OK");
    } else {
        expect_error(c, "ERR Protocol error");
    }
    expect_closed(c);
    client_close(c);
    ck_assert_int_eq(peek_int("EXISTS a b c"), 0);
    stand_down();
}

START_TEST(an_unlock_makes_room_for_the_lock_behind_it)
{
    struct client *c;

    stand_up("--max-holds", "2", NULL);
    c = open_client();
    for (int i = 0; i < ROUNDS; i++) {
        LINES(c, "LOCK a", "LOCK b", "LOCK c", "UNLOCK a", "LOCK c", "UNLOCK b",
              "UNLOCK c");
        expect_tokens(c, 2);
        expect_error(c, "LIMIT");
        expect_int(c, 0);
        expect_tokens(c, 1);
        expect_int(c, 0);
        expect_int(c, 0);
    }
    client_close(c);
    stand_down();
}

START_TEST(replies_that_nobody_wants_are_left_out)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK a");
    (void)ask_int(c, "LOCK b");
    (void)ask_int(c, "LOCK c");
    LINES(c, "CLIENT REPLY SKIP", "UNLOCK a", "UNLOCK b TOKEN 7", "CLIENT REPLY OFF",
          "UNLOCK b", "UNLOCK c", "LOCK d", "LOCK e", "CLIENT REPLY ON", "PING");
    expect_error(c, "NOTHELD");
    expect_status(c, "OK");
    expect_status(c, "PONG");
    ck_assert_int_eq(peek_int("EXISTS a b c d e"), 0);
    client_close(c);
    stand_down();
}
