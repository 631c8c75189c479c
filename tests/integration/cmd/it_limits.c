/* Limits of the configuration: reached, said, and nobody else notices. */
#include "latchd/protocol.h"
#include "support/runner.h"
#include "support/stand.h"
#include "util/alloc.h"

#include <stdio.h>
#include <string.h>

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* Opens a connection, which it keeps if it is served. */
static bool is_let_in(struct client **ret)
{
    struct client *c = open_client();
    struct value v;
    bool served;

    client_send(stand.admin, "PING");
    expect_status(stand.admin, "PONG");
    served = !client_has_reply(c) && client_try_send_raw(c, "PING\r\n", 6) &&
             client_try_read(c, TEST_PATIENCE_MS, &v);
    if (served) {
        served = v.type == VALUE_STATUS;
        value_fini(&v);
    }
    if (served) {
        *ret = c;
    } else {
        client_close(c);
    }
    return served;
}

START_TEST(the_client_too_many_is_told_and_closed)
{
    struct client *c[3], *extra;

    stand_up("--maxclients", "4", NULL);
    for (int i = 0; i < 3; i++) { /* and the admin */
        c[i] = open_client();
        client_send(c[i], "PING");
        expect_status(c[i], "PONG");
    }
    extra = open_client();
    expect_closed(extra);
    client_close(extra);
    client_close(c[0]);
    AWAIT(is_let_in(&c[0])); /* the place is free again */
    close_clients(c, 3);
    stand_down();
}

START_TEST(the_waiter_too_many_is_refused)
{
    struct client *a, *b, *c;

    stand_up("--max-waiters", "1", NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    (void)ask_int(a, "LOCK job");
    send_lock(b, "job", "", 1);
    ask_error(c, "LIMIT", "LOCK job WAIT 1000");
    (void)ask_int(a, "UNLOCK job");
    (void)client_read_int(b);
    client_close(a);
    client_close(b);
    client_close(c);
    stand_down();
}

START_TEST(who_does_not_wait_is_no_waiter_too_many)
{
    static const char *const ID = "11111111-1111-1111-1111-111111111111";
    struct client *a, *b, *c;

    stand_up("--max-waiters", "1", NULL);
    a = open_client();
    b = open_client();
    c = open_client();
    (void)ask_int(a, "LOCK job");
    send_lock(b, "job", "", 1);
    (void)ask_int(c, "LOCK free WAIT 0");
    (void)ask_int(c, "LOCK fair FAIR WAIT 0");
    (void)ask_int(c, "LOCK once WAIT 0 ID %s", ID);
    ask_nil(c, "LOCK job WAIT 0");
    ask_nil(c, "LOCK job WAIT 0 ID %s KEEP 0", ID);
    ask_error(c, "LIMIT", "LOCK kept WAIT 10");
    ask_error(c, "LIMIT", "LOCK job WAIT 0 ID %s-2", ID); /* it is to keep its place */
    await_waiters(1);
    (void)ask_int(a, "UNLOCK job");
    (void)client_read_int(b);
    client_close(a);
    client_close(b);
    client_close(c);
    stand_down();
}

START_TEST(the_hold_too_many_is_refused)
{
    struct client *c;

    stand_up("--max-holds", "2", NULL);
    c = open_client();
    (void)ask_int(c, "LOCK one");
    (void)ask_int(c, "LOCK two");
    ask_error(c, "LIMIT", "LOCK three");
    (void)ask_int(c, "UNLOCK one");
    (void)ask_int(c, "LOCK three");
    client_close(c);
    stand_down();
}

START_TEST(a_client_that_does_not_read_is_dropped)
{
    static const char ASK[] = "COMMAND DOCS\r\n";
    struct client *c;
    int sent = 0;

    stand_up("--output-buffer-limit", "256kb", NULL);
    c = open_client();
    while (sent < 20000 && client_try_send_raw(c, ASK, sizeof ASK - 1)) {
        sent++;
        if (sent % 100 == 0) {
            client_send(stand.admin, "PING");
            expect_status(stand.admin, "PONG");
        }
    }
    expect_closed(c);
    client_close(c);
    ck_assert_int_lt(daemon_memory_kib(stand.daemon), 400 * 1024);
    stand_down();
}

START_TEST(config_set_changes_a_limit_while_it_runs)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    ask_error(c, "ERR", "LOCK job LEASE 90000000");
    ask_ok(c, "CONFIG SET max-lease 30h");
    (void)ask_int(c, "LOCK job LEASE 90000000");
    ck_assert_int_gt(peek_int("PTTL job"), 86400000);
    ask_error(c, "ERR", "CONFIG SET max-lease nonsense");
    ask_error(c, "ERR", "CONFIG SET port 1");
    v = ask(c, "CONFIG GET max-lease");
    ck_assert_uint_eq(v.count, 2);
    ck_assert(value_is_text(&v.items[1], "30h"));
    value_fini(&v);
    client_close(c);
    stand_down();
}

START_TEST(values_up_to_a_limit_are_taken_and_no_more)
{
    static const struct {
        const char *at, *beyond;
    } ROWS[] = {
        { "LOCK 0123456789 WAIT 0", "LOCK 0123456789a WAIT 0" },
        { "LOCK lease WAIT 0 LEASE 5000", "LOCK lease2 WAIT 0 LEASE 5001" },
        { "LOCK wait WAIT 6000", "LOCK wait2 WAIT 6001" },
        { "LOCK keep WAIT 0 ID 0123456789abcdef KEEP 700",
          "LOCK keep2 WAIT 0 ID 0123456789abcdeg KEEP 701" },
    };
    struct client *c;

    stand_up("--max-name-length", "10", "--max-lease", "5s", "--max-wait", "6s",
             "--max-keep", "700", NULL);
    c = open_client();
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        ask_error(c, "ERR", "%s", ROWS[i].beyond);
        (void)ask_int(c, "%s", ROWS[i].at);
    }
    ask_error(c, "ERR", "LOCK wait2");
    client_close(c);
    stand_down();
}

START_TEST(silent_clients_leave_and_those_with_a_hold_stay)
{
    struct client *silent, *holder;

    stand_up("--timeout", "1s", NULL);
    silent = open_client();
    client_send(silent, "PING");
    expect_status(silent, "PONG");
    holder = open_client();
    (void)ask_int(holder, "LOCK job");
    expect_closed(silent);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    client_close(silent);
    client_close(holder);
    stand_down();
}

START_TEST(strangers_leave_in_time_and_keep_nobody_out)
{
    struct client *stranger, *slow, *known, *next;

    stand_up("--requirepass", "sesame", "--maxclients", "4", NULL);
    ask_ok(stand.admin, "AUTH sesame");
    known = open_client();
    ask_ok(known, "AUTH sesame");
    (void)ask_int(known, "LOCK job");
    client_send(known, "RESET");
    expect_status(known, "RESET");
    stranger = open_client();
    slow = open_client();
    ask_error(slow, "NOAUTH", "PING");
    next = open_client();
    ask_ok(next, "AUTH sesame");
    expect_closed(stranger); /* for the next */
    ask_error(slow, "NOAUTH", "PING");
    ask_ok(stand.admin, "CONFIG SET auth-timeout 1");
    expect_error(slow, "NOAUTH");
    expect_closed(slow);
    ask_ok(known, "AUTH sesame"); /* it had logged in once */
    ck_assert_int_eq(ask_int(known, "UNLOCK job"), 0);
    client_close(stranger);
    client_close(slow);
    client_close(known);
    client_close(next);
    stand_down();
}

/* 60,000 names, each with its hold, and then nothing: what they took goes back. */
START_TEST(memory_goes_back_once_it_is_quiet)
{
    enum { NAMES = 60000, AT_ONCE = 500, GROWN_KIB = 8 * 1024 };
    static char text[AT_ONCE * 64];
    struct client *c;
    long storm = 0;

    if (!ALLOC_KEEPS) {
        TEST_SKIP("malloc() is another one");
    }
    stand_up(NULL);
    c = open_client();
    for (int from = 0; from < 2 * NAMES; from += AT_ONCE) {
        size_t len = 0;

        for (int i = 0; i < AT_ONCE; i++) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s job:%d%s\r\n",
                                    from < NAMES ? "LOCK" : "UNLOCK",
                                    (from + i) % NAMES, from < NAMES ? " WAIT 0" : "");
        }
        client_send_raw(c, text, len);
        for (int i = 0; i < AT_ONCE; i++) {
            (void)client_read_int(c);
        }
        storm = from < NAMES ? daemon_memory_kib(stand.daemon) : storm;
    }
    client_close(c);
    ck_assert_int_gt(storm, 2 * GROWN_KIB);
    AWAIT_FOR(20000, daemon_memory_kib(stand.daemon) <= storm - GROWN_KIB / 2);
    stand_down();
}

static void send_data(struct client *c, const char *data, size_t len)
{
    const char *const args[] = { "LOCK", "job", "DATA", data };
    const size_t lens[] = { 4, 3, 4, len };

    client_send_args(c, 4, args, lens);
}

static void expect_data(const char *want, size_t len)
{
    struct value info = ask(stand.admin, "LOCKINFO job");
    const struct value *data = value_get(&value_get(&info, "holds")->items[0], "data");

    ck_assert_uint_eq(data->len, len);
    ck_assert_mem_eq(data->text, want, len);
    value_fini(&info);
}

START_TEST(data_has_a_limit_and_may_be_any_bytes)
{
    static const char BYTES[] = "host\0 1\n{\"a\":\r\n2}\n";
    static char most[LATCHD_DATA_MAX + 1];
    struct client *c;

    stand_up(NULL);
    c = open_client();
    memset(most, '\n', sizeof most);
    send_data(c, most, sizeof most);
    expect_error(c, "ERR DATA must be 0..4096 bytes");
    send_data(c, most, LATCHD_DATA_MAX);
    ck_assert_int_gt(client_read_int(c), 0);
    expect_data(most, LATCHD_DATA_MAX);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    send_data(c, BYTES, sizeof BYTES - 1);
    ck_assert_int_gt(client_read_int(c), 0);
    expect_data(BYTES, sizeof BYTES - 1);
    client_close(c);
    stand_down();
}
