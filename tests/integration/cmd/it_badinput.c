/* Input that is wrong: a clear error or a closed connection, and nobody else notices.
 */
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_KIB = 40 * 1024 };

#define LONG_50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define LONG_150 LONG_50 LONG_50 LONG_50

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(each_bad_command_is_an_error_and_the_connection_goes_on)
{
    static const char *const BAD[] = {
        "LOCK",
        "LOCK job NONSENSE",
        "LOCK job WAIT",
        "LOCK job WAIT -1",
        "LOCK job WAIT 1.5",
        "LOCK job WAIT 99999999999999999999999",
        "LOCK job WAIT 1 WAIT 2",
        "LOCK job LEASE 99",
        "LOCK job LEASE 86400001",
        "LOCK job LEASE 0",
        "LOCK job LEASE 1000 GRACE 0",
        "LOCK job KEEP 1000",
        "LOCK job ID short",
        "LOCK job ID " LONG_150,
        "LOCK job ID 0123456789abcdef KEEP 30001",
        "LOCK job OWNER",
        "LOCK job OWNER mode",
        "LOCK job OWNER me:write",
        "LOCK job OWNER latchd:5",
        "LOCK job OWNER " LONG_150,
        "LOCK job GRACE -1",
        "LOCK latchd:job",
        "LOCK redisson_lock_queue:{x}",
        "LOCK job FAIR WRITE",
        "MLOCK 0 a",
        "MLOCK x a",
        "MLOCK 1001 a",
        "MLOCK 3 a b",
        "MLOCK 1 a b",
        "MLOCK 2 a a",
        "MLOCK 2 a latchd:b",
        "MLOCK 2 a b FAIR",
        "LOCK job PERMITS 0",
        "LOCK job PERMITS 1001",
        "LOCK job PERMITS 1 OF 2147483648",
        "LOCK job PERMITS 2 OF 1",
        "LOCK job OF 1",
        "UNLOCK",
        "UNLOCK job TOKEN 0",
        "UNLOCK job TOKEN -5",
        "UNLOCK job TOKEN 9007199254740993",
        "UNLOCK job TOKEN x",
        "UNLOCK job TOKEN 1 TOKEN 1",
        "RENEW",
        "RENEW job LEASE 1",
        "CANCEL job",
        "CANCEL job OWNER o ID 0123456789abcdef",
        "FORCEUNLOCK job",
        "FORCEUNLOCK job TOKEN 5 ANY",
        "LOCKINFO",
        "LOCKINFO a b",
        "LOCKS CURSOR x",
        "LOCKS COUNT 0",
        "WAITERS",
        "CONFIG SET nonsense 1",
        "CONFIG SET grace",
        "SUBSCRIBE",
        "HELLO x",
    };
    struct client *c;

    stand_up(NULL);
    c = open_client();
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct value v = ask(c, "%s", BAD[i]);

        ck_assert_msg(v.type == VALUE_ERROR, "%s: no error", BAD[i]);
        value_fini(&v);
        client_send(c, "PING");
        expect_status(c, "PONG");
    }
    expect_no_locks();
    client_close(c);
    stand_down();
}

START_TEST(names_are_1_to_512_bytes_of_anything)
{
    static char name[600];
    const char *args[] = { "LOCK", name };
    const char *unlock[] = { "UNLOCK", name };
    size_t lens[] = { 4, 0 }, unlock_lens[] = { 6, 512 };
    struct client *c;

    stand_up(NULL);
    c = open_client();
    client_send_args(c, 2, args, lens);
    expect_error(c, "ERR");
    lens[1] = 513;
    client_send_args(c, 2, args, lens);
    expect_error(c, "ERR");
    for (int i = 0; i < 512; i++) {
        name[i] = (char)i; /* NUL, CR, LF, braces, and what is not UTF-8 */
    }
    lens[1] = 512;
    client_send_args(c, 2, args, lens);
    (void)client_read_int(c);
    ck_assert_int_eq(peek_int("DBSIZE") >= 2, 1);
    client_send_args(c, 2, unlock, unlock_lens);
    expect_int(c, 0);
    client_close(c);
    stand_down();
}

/* Sends it; the daemon must answer with an error and close, or just close. */
static void expect_refused(const char *text, size_t len)
{
    struct client *c = open_client();

    (void)client_try_send_raw(c, text, len);
    expect_closed(c);
    client_close(c);
    client_send(stand.admin, "PING");
    expect_status(stand.admin, "PONG");
}

START_TEST(a_protocol_error_closes_the_connection)
{
    static const char *const BAD[] = {
        "*1\r\n$1073741824\r\n",
        "*2\r\n$4\r\nLOCK\r\n$1073741824\r\n",
        "*1073741824\r\n",
        "*2147483647\r\n",
        "*99999999999999999999\r\n",
        "*x\r\n",
        "*1\r\n$x\r\n",
        "*1\r\n$-5\r\n",
        "*1\r\n:5\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n$4\r\nPING\r\n",
        "*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
        "LOCK \"unbalanced\r\n",
    };
    long before;

    stand_up(NULL);
    before = daemon_memory_kib(stand.daemon);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        struct client *c = open_client();

        client_send_raw(c, BAD[i], strlen(BAD[i]));
        expect_error(c, "ERR Protocol error");
        expect_closed(c);
        client_close(c);
    }
    ck_assert_int_lt(daemon_memory_kib(stand.daemon), before + MEMORY_KIB);
    stand_down();
}

START_TEST(an_endless_inline_line_is_cut)
{
    static char junk[1 << 20];
    long before;

    stand_up(NULL);
    before = daemon_memory_kib(stand.daemon);
    memset(junk, 'a', sizeof junk);
    for (int i = 0; i < 3; i++) {
        expect_refused(junk, sizeof junk);
    }
    ck_assert_int_lt(daemon_memory_kib(stand.daemon), before + MEMORY_KIB);
    stand_down();
}

START_TEST(deep_nesting_is_refused)
{
    static char junk[400000];

    stand_up(NULL);
    for (size_t i = 0; i + 4 <= sizeof junk; i += 4) {
        memcpy(junk + i, "*1\r\n", 4);
    }
    expect_refused(junk, sizeof junk);
    stand_down();
}

START_TEST(half_a_command_and_a_close_leaves_nothing)
{
    static const char TEXT[] =
        "*4\r\n$4\r\nLOCK\r\n$3\r\njob\r\n$5\r\nLEASE\r\n$4\r\n1000\r\n";
    int fds;

    stand_up(NULL);
    client_send(stand.admin, "PING"); /* then it has been accepted */
    expect_status(stand.admin, "PONG");
    fds = daemon_open_fds(stand.daemon);
    for (size_t len = 1; len + 1 < sizeof TEXT; len++) {
        struct client *c = open_client();

        client_send_raw(c, TEXT, len);
        if (len % 2 == 0) {
            client_close(c);
        } else {
            client_abort(c);
        }
    }
    AWAIT(daemon_open_fds(stand.daemon) <= fds);
    expect_no_locks();
    stand_down();
}

START_TEST(random_bytes_never_hurt_others)
{
    enum { ROUNDS = 300 };
    char junk[512];

    stand_up(NULL);
    srand(5625);
    (void)ask_int(stand.admin, "LOCK job");
    for (int i = 0; i < ROUNDS; i++) {
        struct client *c = open_client();
        size_t len = 1 + (size_t)rand() % sizeof junk;

        for (size_t k = 0; k < len; k++) {
            junk[k] = (char)(rand() % 4 == 0 ? "*$\r\n1-"[rand() % 6] : rand());
        }
        (void)client_try_send_raw(c, junk, len);
        client_close(c);
        if (i % 50 == 0) {
            ask_nil(stand.admin, "LOCK job WAIT 0");
        }
    }
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job"), 0);
    stand_down();
}

START_TEST(data_of_another_type_is_left_alone)
{
    char *text;

    stand_up(NULL);
    free(peek_text("SET job precious"));
    ask_error(stand.admin, "WRONGTYPE", "LOCK job WAIT 0");
    ask_error(stand.admin, "WRONGTYPE", "LOCK job WAIT 300");
    text = peek_text("GET job");
    ck_assert_str_eq(text, "precious");
    free(text);
    stand_down();
}
