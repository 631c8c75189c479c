#include "unit/cmd/cmd_fake.h"

#include "cmd/client.h"
#include "support/runner.h"

/* --- connections -------------------------------------------------------------------
 */

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(hello_switches_and_tells)
{
    const char *out = fake_run(me, "HELLO 3 SETNAME joe");

    ck_assert_int_eq(*out, '%');
    expect_fields(out, "server", "latchd", "proto", ":3", "id", ":1", NULL);
    ck_assert_str_eq(fake_run(me, "GET x"), "_\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT GETNAME"), "$3\r\njoe\r\n");
    ck_assert_int_eq(fake_run(me, "HELLO")[0], '%');
    expect_keys(fake_run(me, "HELLO 2"), "",
                "server version proto id mode role modules ");
    ck_assert_str_eq(fake_run(me, "GET x"), "$-1\r\n");
}

START_TEST(nothing_runs_before_the_password)
{
    struct conn *c;

    fake_password("sesame");
    c = fake_open(1);
    ck_assert(!c->trusted);
    ck_assert_str_eq(fake_run(c, "LOCK a"), "-NOAUTH Authentication required.\r\n");
    ck_assert_str_eq(fake_run(c, "PING"), "-NOAUTH Authentication required.\r\n");
    ck_assert(starts(fake_run(c, "HELLO 3"),
                     "-NOAUTH HELLO must be called with the client already"));
    ck_assert(starts(fake_run(c, "AUTH open"), "-WRONGPASS "));
    ck_assert(starts(fake_run(c, "AUTH sesam"), "-WRONGPASS "));
    ck_assert(starts(fake_run(c, "AUTH sesamesesame"), "-WRONGPASS "));
    ck_assert(starts(fake_run(c, "AUTH joe sesame"), "-WRONGPASS "));
    ck_assert(starts(fake_run(c, "HELLO 3 AUTH default x"), "-WRONGPASS "));
    ck_assert(!c->trusted);
    ck_assert_str_eq(fake_run(c, "AUTH sesame"), "+OK\r\n");
    ck_assert(c->trusted);
    ck_assert_str_eq(fake_run(c, "PING"), "+PONG\r\n");
    ck_assert_str_eq(fake_run(c, "RESET"), "+RESET\r\n");
    ck_assert(!c->trusted);
    ck_assert_int_eq(fake_run(c, "HELLO 3 AUTH default sesame")[0], '%');
    ck_assert(c->trusted);
}

START_TEST(replies_can_be_switched_off)
{
    ck_assert_str_eq(fake_run(me, "CLIENT REPLY SKIP"), "");
    ck_assert_str_eq(fake_run(me, "PING"), "");
    ck_assert_str_eq(fake_run(me, "PING"), "+PONG\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT REPLY OFF"), "");
    ck_assert_str_eq(fake_run(me, "LOCK a"), "");
    ck_assert_str_eq(fake.asked, "");
    ck_assert(!me->suspended);
    ck_assert_str_eq(fake_run(me, "UNLOCK a TOKEN 5"), "");
    ck_assert_str_eq(fake.asked, "unlock");
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), "");
    ck_assert(!me->suspended);
    ck_assert_str_eq(fake_run(me, "CLIENT REPLY ON"), "+OK\r\n");
}

START_TEST(reset_makes_a_new_client)
{
    (void)fake_run(me, "HELLO 3 SETNAME joe");
    (void)fake_run(me, "SUBSCRIBE lost:a");
    ck_assert_str_eq(fake_run(me, "RESET"), "+RESET\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT GETNAME"), "$-1\r\n");
    ck_assert_str_eq(fake_run(me, "PUBSUB NUMSUB lost:a"),
                     "*2\r\n$6\r\nlost:a\r\n:0\r\n");
}

START_TEST(quit_and_shutdown_end_it)
{
    ck_assert_str_eq(fake_run(me, "QUIT"), "+OK\r\n");
    ck_assert(me->draining);
    ck_assert_str_eq(fake_run(me, "SHUTDOWN NOSAVE"), "");
    ck_assert(fake.shut_down);
    ck_assert(me->suspended);
}

START_TEST(kill_closes_others_and_oneself_last)
{
    struct conn *other = fake_open(1);

    ck_assert_str_eq(fake_run(me, "CLIENT KILL ADDR 127.0.0.1:2 LADDR x"), ":0\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT KILL 127.0.0.1:2"), "+OK\r\n");
    ck_assert_uint_eq(other->id, 0);
    (void)fake_open(1);
    (void)fake_open(2);
    ck_assert_str_eq(fake_run(me, "CLIENT KILL TYPE pubsub"), ":0\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT KILL TYPE normal"), ":2\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT KILL ID 1"), ":0\r\n");
    ck_assert_str_eq(fake_run(me, "CLIENT KILL ID 1 SKIPME no"), ":1\r\n");
    ck_assert(me->draining);
}

START_TEST(list_describes_clients)
{
    struct conn *other = fake_open(1);
    const char *out;

    (void)fake_run(other, "LOCK a");
    (void)fake_run(me, "CLIENT SETNAME joe");
    out = fake_run(me, "CLIENT LIST");
    ck_assert_ptr_nonnull(strstr(out, "id=1 addr=127.0.0.1:1 laddr=127.0.0.1:5625 fd=7 "
                                      "name=joe "));
    ck_assert_ptr_nonnull(strstr(out, " flags=b "));
    ck_assert_ptr_nonnull(strstr(out, " cmd=lock "));
    ck_assert_ptr_null(strstr(fake_run(me, "CLIENT LIST ID 1 77"), "id=2"));
}

/* --- pub/sub -----------------------------------------------------------------------
 */

static void notice(void)
{
    const struct effect_notice n = {
        .kind = NOTICE_LOST, .name = SPAN("job"), .owner = SPAN("ann"), .token = 7
    };

    buf_clear(&me->out);
    cmd_notice(fake.cmd, &n);
}

START_TEST(events_reach_resp2_subscribers)
{
    ck_assert_str_eq(fake_run(me, "SUBSCRIBE lost:job x"),
                     "*3\r\n$9\r\nsubscribe\r\n$8\r\nlost:job\r\n:1\r\n"
                     "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:2\r\n");
    notice();
    ck_assert_str_eq(fake_output(me),
                     "*3\r\n$7\r\nmessage\r\n$8\r\nlost:job\r\n$5\r\nann 7\r\n");
    ck_assert_str_eq(fake_run(me, "LOCK a"),
                     "-ERR Can't execute 'lock': only (P|S)SUBSCRIBE / "
                     "(P|S)UNSUBSCRIBE / PING / QUIT / "
                     "RESET are allowed in this context\r\n");
    ck_assert_str_eq(fake_run(me, "PING"), "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    ck_assert_str_eq(fake_run(me, "UNSUBSCRIBE"),
                     "*3\r\n$11\r\nunsubscribe\r\n$8\r\nlost:job\r\n:1\r\n"
                     "*3\r\n$11\r\nunsubscribe\r\n$1\r\nx\r\n:0\r\n");
    ck_assert_str_eq(fake_run(me, "UNSUBSCRIBE"),
                     "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
    ck_assert_str_eq(fake_run(me, "PING"), "+PONG\r\n");
}

START_TEST(events_are_pushes_in_resp3)
{
    (void)fake_run(me, "HELLO 3");
    ck_assert_str_eq(fake_run(me, "PSUBSCRIBE lost:*"),
                     ">3\r\n$10\r\npsubscribe\r\n$6\r\nlost:*\r\n:1\r\n");
    notice();
    ck_assert_str_eq(fake_output(me), ">4\r\n$8\r\npmessage\r\n$6\r\nlost:*\r\n"
                                      "$8\r\nlost:job\r\n$5\r\nann 7\r\n");
    ck_assert_str_eq(fake_run(me, "PING"), "+PONG\r\n");
    ck_assert_str_eq(fake_run(me, "PUBSUB NUMPAT"), ":1\r\n");
}

START_TEST(patterns_are_limited)
{
    char line[32] = "PSUBSCRIBE p000";

    for (int i = 0; i < PUBSUB_PATTERNS_MAX; i++) {
        line[12] = (char)('0' + i / 100);
        line[13] = (char)('0' + i / 10 % 10);
        line[14] = (char)('0' + i % 10);
        ck_assert_int_eq(fake_run(me, line)[0], '*');
    }
    ck_assert(starts(fake_run(me, "PSUBSCRIBE q"), "-LIMIT "));
}

/* Whatever they are, an event is not matched for long. */
START_TEST(patterns_that_are_slow_to_match_are_limited)
{
    char pattern[PUBSUB_NAME_MAX + 1], line[PUBSUB_NAME_MAX + 16];
    int taken = 0;

    memset(pattern, '?', sizeof(pattern));
    pattern[0] = pattern[101] = '*';
    pattern[102] = '\0';
    for (; taken < PUBSUB_PATTERNS_MAX; taken++) {
        pattern[1] = (char)('a' + taken);
        (void)snprintf(line, sizeof(line), "PSUBSCRIBE %s", pattern);
        if (fake_run(me, line)[0] == '-') {
            break;
        }
    }
    ck_assert_int_eq(taken, PUBSUB_WORK_MAX / 100);
    ck_assert(starts(fake_run(me, line), "-LIMIT "));
    ck_assert_int_eq(fake_run(me, "PSUBSCRIBE lost:* *a*")[0], '*');
    ck_assert_int_eq(fake_run(me, "PUNSUBSCRIBE")[0], '*');
    ck_assert_int_eq(fake_run(me, line)[0], '*');
    /* All of them, or none. */
    memset(pattern, '?', sizeof(pattern));
    pattern[0] = pattern[PUBSUB_WORK_MAX - 98] = '*';
    pattern[PUBSUB_WORK_MAX - 97] = '\0';
    (void)snprintf(line, sizeof(line), "PSUBSCRIBE x* %s", pattern);
    ck_assert(starts(fake_run(me, line), "-LIMIT "));
    ck_assert_str_eq(fake_run(me, "PUNSUBSCRIBE x*"),
                     "*3\r\n$12\r\npunsubscribe\r\n$2\r\nx*\r\n:1\r\n");
}

/* --- describing --------------------------------------------------------------------
 */

START_TEST(info_has_what_ready_checks_read)
{
    static const char *const FIELDS[] = {
        "# Server\r\n",
        "\r\nredis_version:7.",
        "\r\nredis_mode:standalone\r\n",
        "\r\nprocess_id:",
        "\r\nrun_id:",
        "\r\nuptime_in_seconds:0\r\n",
        "\r\nrole:master\r\n",
        "\r\nconnected_slaves:0\r\n",
        "\r\nloading:0\r\n",
        "\r\nconnected_clients:1\r\n",
    };
    const char *out = fake_run(me, "INFO");

    for (size_t i = 0; i < sizeof(FIELDS) / sizeof(FIELDS[0]); i++) {
        ck_assert_msg(strstr(out, FIELDS[i]) != NULL, "%s", FIELDS[i]);
    }
    ck_assert_ptr_null(strstr(out, "cmdstat_"));
    ck_assert_ptr_nonnull(
        strstr(fake_run(me, "INFO everything"), "cmdstat_info:calls=1,"));
    ck_assert_str_eq(fake_run(me, "INFO nosuch"), "$0\r\n\r\n");
    ck_assert_str_eq(fake_run(me, "CONFIG RESETSTAT"), "+OK\r\n");
    ck_assert_ptr_null(strstr(fake_run(me, "INFO commandstats"), "cmdstat_info"));
}

START_TEST(command_describes_lock)
{
    const char *out = fake_run(me, "COMMAND INFO lock");

    ck_assert(starts(out,
                     "*1\r\n*10\r\n$4\r\nlock\r\n:-2\r\n*2\r\n+write\r\n+blocking\r\n"
                     ":1\r\n:1\r\n:1\r\n"));
    ck_assert_ptr_nonnull(strstr(out, "+@lock\r\n"));
    out = fake_run(me, "COMMAND DOCS lock");
    ck_assert(starts(out, "*2\r\n$4\r\nlock\r\n*10\r\n$7\r\nsummary\r\n"));
    ck_assert_ptr_nonnull(strstr(out, " [WAIT ms] "));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "COMMAND DOCS"), "client|kill"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "COMMAND"), "client|kill"));
    ck_assert_ptr_nonnull(strstr(fake_run(me, "CLIENT HELP"), "+KILL "));
}
