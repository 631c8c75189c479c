/* The connection itself: inline, pipelines, RESP3, what ordinary clients send first. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void send_text(struct client *c, const char *text)
{
    client_send_raw(c, text, strlen(text));
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_telnet_user_can_lock)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    send_text(c, "lock job\r\n");
    (void)client_read_int(c);
    send_text(c, "LOCK job WAIT 0\n");
    expect_nil(c);
    send_text(c, "\r\n  \r\nunlock job\r\n");
    expect_int(c, 0);
    send_text(c, "LOCK \"a name\" OWNER 'o'\r\n");
    (void)client_read_int(c);
    send_text(c, "UNLOCK \"a name\" OWNER o\r\n");
    expect_int(c, 0);
    client_close(c);
    stand_down();
}

START_TEST(commands_may_come_byte_by_byte)
{
    static const char TEXT[] = "*2\r\n$4\r\nLOCK\r\n$3\r\njob\r\nPING\r\n";
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (size_t i = 0; i + 1 < sizeof TEXT; i++) {
        client_send_raw(c, TEXT + i, 1);
    }
    (void)client_read_int(c);
    expect_status(c, "PONG");
    client_close(c);
    stand_down();
}

enum { TOGETHER = 64, FEW_CALLS = TOGETHER / 4 };

/* Input that came while the daemon stood still is one turn of its loop. */
static void expect_few_calls(struct client *const *c, const char *command)
{
    long long before = peek_script_calls();

    daemon_pause(stand.daemon);
    for (int i = 0; i < TOGETHER; i++) {
        client_send(c[i], "%s t:%d", command, i);
    }
    daemon_resume(stand.daemon);
    for (int i = 0; i < TOGETHER; i++) {
        (void)client_read_int(c[i]);
    }
    ck_assert_int_lt(peek_script_calls() - before, FEW_CALLS);
}

START_TEST(locks_that_are_asked_for_together_are_few_calls_of_redis)
{
    struct client *c[TOGETHER];

    stand_up(NULL);
    for (int i = 0; i < TOGETHER; i++) {
        c[i] = open_client();
        ask_ok(c[i], "CLIENT SETNAME c%d", i);
    }
    expect_few_calls(c, "LOCK");
    ck_assert_int_eq(peek_int("HLEN t:%d", TOGETHER - 1), 1);
    expect_few_calls(c, "UNLOCK");
    await_no_locks(0);
    close_clients(c, TOGETHER);
    stand_down();
}

START_TEST(a_pipeline_is_answered_in_order)
{
    enum { PAIRS = 500 };
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (int i = 0; i < PAIRS; i++) {
        client_send(c, "LOCK job:%d OWNER o", i);
        client_send(c, "ECHO %d", i);
        client_send(c, "UNLOCK job:%d OWNER o", i);
    }
    for (int i = 0; i < PAIRS; i++) {
        char text[16];

        (void)snprintf(text, sizeof text, "%d", i);
        ck_assert_int_gt(client_read_int(c), 0);
        expect_text(c, text);
        expect_int(c, 0);
    }
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(what_is_behind_a_waiting_lock_runs_after_it)
{
    struct client *a, *b;

    stand_up(NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job");
    client_send(b, "LOCK job");
    client_send(b, "LOCK other");
    client_send(b, "PING");
    await_waiting(stand.admin, "job", 1);
    expect_silence(b);
    ck_assert_int_eq(peek_int("EXISTS other"), 0);
    (void)ask_int(a, "UNLOCK job");
    (void)client_read_int(b);
    (void)client_read_int(b);
    expect_status(b, "PONG");
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(too_much_behind_a_waiting_lock_closes_the_connection)
{
    static char junk[65536];
    struct client *a, *b;

    stand_up("--query-buffer-limit", "100kb", NULL);
    a = open_client();
    b = open_client();
    (void)ask_int(a, "LOCK job");
    send_lock(b, "job", "", 1);
    for (size_t i = 0; i + 6 <= sizeof junk; i += 6) {
        memcpy(junk + i, "PING\r\n", 6);
    }
    for (int i = 0; i < 64 && client_try_send_raw(b, junk, sizeof junk / 6 * 6); i++) {
    }
    expect_closed(b);
    await_waiting(stand.admin, "job", 0);
    client_close(a);
    client_close(b);
    stand_down();
}

START_TEST(hello_3_switches_to_resp3)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    ask_error(c, "NOPROTO", "HELLO 4");
    v = ask(c, "PING");
    value_fini(&v);
    v = ask(c, "HELLO 3");
    ck_assert_int_eq(v.type, VALUE_MAP);
    ck_assert(value_is_text(value_get(&v, "role"), "master"));
    ck_assert_int_eq(value_get(&v, "proto")->integer, 3);
    ck_assert_int_ge(atoi(value_get(&v, "version")->text), 6);
    value_fini(&v);
    (void)ask_int(c, "LOCK job");
    send_text(c, "LOCK job WAIT 0\r\n");
    expect_nil(c);
    v = ask(c, "HELLO 2");
    ck_assert_int_eq(v.type, VALUE_LIST);
    value_fini(&v);
    (void)ask_int(c, "UNLOCK job");
    client_close(c);
    stand_down();
}

START_TEST(nil_is_spelled_as_each_protocol_has_it)
{
    struct client *c;
    struct value v;
    char text[8];
    size_t len = 0;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK job");
    client_send(c, "LOCK job WAIT 0");
    while (len < 5) {
        ssize_t n = read(client_fd(c), text + len, 5 - len);

        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    ck_assert_mem_eq(text, "$-1\r\n", 5);
    v = ask(c, "HELLO 3");
    value_fini(&v);
    client_send(c, "LOCK job WAIT 0");
    for (len = 0; len < 3;) {
        ssize_t n = read(client_fd(c), text + len, 3 - len);

        ck_assert_int_gt(n, 0);
        len += (size_t)n;
    }
    ck_assert_mem_eq(text, "_\r\n", 3);
    client_close(c);
    stand_down();
}

START_TEST(a_password_is_asked_for)
{
    struct client *c;
    struct value v;

    stand_up("--requirepass", "sesame", NULL);
    c = open_client();
    ask_error(c, "NOAUTH", "LOCK job");
    ask_error(c, "WRONGPASS", "AUTH wrong");
    ask_error(c, "NOAUTH", "PING");
    ask_ok(c, "AUTH sesame");
    (void)ask_int(c, "LOCK job");
    client_close(c);
    c = open_client();
    ask_ok(c, "AUTH default sesame");
    ask_nil(c, "LOCK job WAIT 0");
    client_close(c);
    c = open_client();
    ask_error(c, "WRONGPASS", "HELLO 3 AUTH default wrong");
    v = ask(c, "HELLO 3 AUTH default sesame SETNAME me");
    ck_assert_int_eq(v.type, VALUE_MAP);
    value_fini(&v);
    v = ask(c, "CLIENT GETNAME");
    ck_assert(value_is_text(&v, "me"));
    value_fini(&v);
    client_close(c);
    stand_down();
}

START_TEST(the_first_commands_of_ordinary_clients_are_answered)
{
    static const char *const OK[] = {
        "SELECT 0",
        "CLIENT SETNAME worker",
        "CLIENT SETINFO LIB-NAME x",
        "CLIENT SETINFO LIB-VER 1",
        "READONLY",
        "CONFIG SET recheck 4s",
    };
    static const char *const ANY[] = {
        "CONFIG GET save",   "CONFIG GET *", "INFO",        "INFO server",  "COMMAND",
        "COMMAND COUNT",     "COMMAND DOCS", "CLIENT LIST", "CLIENT INFO",  "CLIENT ID",
        "COMMAND INFO LOCK", "TIME",         "ROLE",        "COMMAND LIST", "WAIT 0 0",
    };
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    for (size_t i = 0; i < sizeof OK / sizeof *OK; i++) {
        ask_ok(c, "%s", OK[i]);
    }
    for (size_t i = 0; i < sizeof ANY / sizeof *ANY; i++) {
        v = ask(c, "%s", ANY[i]);
        ck_assert_msg(v.type != VALUE_ERROR, "%s: %s", ANY[i], v.text);
        value_fini(&v);
    }
    ask_error(c, "ERR DB index is out of range", "SELECT 1");
    ask_error(c, "ERR unknown command 'FOO', with args beginning with: 'a' 'b' ",
              "FOO a b");
    ask_error(c, "ERR unknown subcommand 'X'. Try CLIENT HELP.", "CLIENT X");
    ask_error(c, "ERR", "LOCK job FAIR READ");
    ask_ok(c, "QUIT");
    expect_closed(c);
    client_close(c);
    stand_down();
}

START_TEST(info_has_what_ready_checks_read)
{
    static const char *const LINES[] = { "redis_version:", "redis_mode:standalone",
                                         "role:master",    "loading:0",
                                         "run_id:",        "uptime_in_seconds:" };
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    v = ask(c, "INFO");
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        ck_assert_msg(strstr(v.text, LINES[i]) != NULL, "INFO lacks %s", LINES[i]);
    }
    value_fini(&v);
    client_close(c);
    stand_down();
}

START_TEST(reset_and_quit_leave_holds_alone)
{
    struct client *c;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK job");
    client_send(c, "RESET");
    expect_status(c, "RESET");
    ask_nil(c, "LOCK job WAIT 0");
    ask_ok(c, "QUIT");
    expect_closed(c);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job TOKEN %" PRId64, token), 0);
    client_close(c);
    stand_down();
}
