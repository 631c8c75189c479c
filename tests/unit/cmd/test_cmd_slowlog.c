/* SLOWLOG and MONITOR. */
#include "cmd/slowlog.h"
#include "unit/cmd/cmd_fake.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

static struct conn *other;
static struct cmd_limits limits;

static void setup(void)
{
    fake_setup();
    other = fake_open(1);
    limits = (struct cmd_limits){ .max_name = 512, .slowlog_us = 0, .slowlog_len = 3 };
    cmd_set_limits(fake.cmd, &limits);
}

static void run_args(struct conn *c, const struct span *argv, size_t argc)
{
    const struct resp_request req = { argv, argc };

    buf_clear(&c->out);
    cmd_on_request(fake.cmd, c, &req);
}

/* --- SLOWLOG -----------------------------------------------------------------------
 */

TEST_GROUP(.setup = setup, .teardown = fake_teardown);

START_TEST(slow_commands_are_remembered_newest_first)
{
    const char *out;

    (void)fake_run(me, "CLIENT SETNAME joe");
    (void)fake_run(me, "ECHO one");
    (void)fake_run(other, "ECHO two");
    out = fake_run(other, "SLOWLOG GET 2");
    ck_assert(strncmp(out, "*2\r\n*6\r\n:2\r\n:", 13) == 0);
    ck_assert(has(out, "\r\n*2\r\n$4\r\nECHO\r\n$3\r\ntwo\r\n$11\r\n127.0.0.1:2\r\n"
                       "$0\r\n\r\n*6\r\n:1\r\n:"));
    ck_assert(has(out, "$3\r\none\r\n$11\r\n127.0.0.1:1\r\n$3\r\njoe\r\n"));
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":3\r\n");
    ck_assert_int_eq(fake_run(me, "SLOWLOG GET -1")[1], '3');
    ck_assert_str_eq(fake_run(me, "SLOWLOG RESET"), "+OK\r\n");
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":1\r\n"); /* the RESET */
}

START_TEST(quick_commands_are_not)
{
    limits.slowlog_us = 10000000;
    cmd_set_limits(fake.cmd, &limits);
    (void)fake_run(me, "ECHO one");
    ck_assert_str_eq(fake_run(me, "SLOWLOG GET"), "*0\r\n");
    limits.slowlog_us = -1;
    cmd_set_limits(fake.cmd, &limits);
    (void)fake_run(me, "ECHO one");
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":0\r\n");
    limits.slowlog_us = 0;
    limits.slowlog_len = 0;
    cmd_set_limits(fake.cmd, &limits);
    (void)fake_run(me, "ECHO one");
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":0\r\n");
}

START_TEST(waiting_is_not_work)
{
    limits.slowlog_us = 1000000;
    cmd_set_limits(fake.cmd, &limits);
    (void)fake_run(me, "LOCK a");
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":0\r\n");
}

START_TEST(what_is_remembered_is_bounded)
{
    char big[200];
    struct span argv[40];
    const char *out;

    memset(big, 'x', sizeof(big));
    argv[0] = SPAN("EXISTS");
    for (size_t i = 1; i < 40; i++) {
        argv[i] = span_of(big, sizeof(big));
    }
    run_args(me, argv, 40);
    out = fake_run(me, "SLOWLOG GET 1");
    ck_assert(has(out, "*32\r\n$6\r\nEXISTS\r\n$147\r\nxxx"));
    ck_assert(has(out, "x... (72 more bytes)\r\n"));
    ck_assert(has(out, "... (9 more arguments)\r\n"));
    limits.slowlog_len = 1;
    cmd_set_limits(fake.cmd, &limits);
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":1\r\n");
}

START_TEST(bad_counts_are_refused_in_words_of_redis)
{
    static const char COUNT[] = "-ERR count should be greater than or equal to -1\r\n";

    ck_assert_str_eq(fake_run(me, "SLOWLOG GET -2"), COUNT);
    ck_assert_str_eq(fake_run(me, "SLOWLOG GET x"), COUNT);
    ck_assert_str_eq(fake_run(me, "SLOWLOG GET 1 2"),
                     "-ERR unknown subcommand or wrong number of arguments for 'GET'. "
                     "Try SLOWLOG HELP.\r\n");
    ck_assert_str_eq(fake_run(me, "SLOWLOG"),
                     "-ERR wrong number of arguments for 'slowlog' command\r\n");
    ck_assert(has(fake_run(me, "SLOWLOG HELP"), "GET [count]"));
}

START_TEST(passwords_are_not_remembered)
{
    const char *out;

    fake_password("sesame");
    (void)fake_run(me, "AUTH default sesame");
    (void)fake_run(me, "HELLO 3 SETNAME x AUTH default sesame SETNAME joe");
    (void)fake_run(me, "CONFIG SET requirepass sesame");
    out = fake_run(me, "SLOWLOG GET");
    ck_assert(!has(out, "sesame"));
    ck_assert(has(out, "$10\r\n(redacted)\r\n$7\r\nSETNAME\r\n$3\r\njoe\r\n"));
    ck_assert(has(out, "$11\r\nrequirepass\r\n$10\r\n(redacted)\r\n"));
    ck_assert(has(out, "$4\r\nAUTH\r\n$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n"));
    (void)fake_run(me, "CONFIG SET redis redis://u:sesame@h");
    (void)fake_run(me, "ACL DRYRUN default auth x sesame");
    out = fake_run(me, "SLOWLOG GET");
    ck_assert(!has(out, "sesame"));
    ck_assert(has(out, "$5\r\nredis\r\n$10\r\n(redacted)\r\n"));
    ck_assert(has(out, "$4\r\nauth\r\n$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n"));
}

START_TEST(long_waits_are_kept_apart)
{
    const struct effect_waited waited = { .end = WAIT_GRANTED,
                                          .name = SPAN("job"),
                                          .owner = SPAN("ann"),
                                          .waited_ms = 12345,
                                          .conn = 2 };
    const struct effect_waited refused = { .end = WAIT_REFUSED,
                                           .error = LOCK_BACKEND,
                                           .lock_kind = KIND_READ,
                                           .name = SPAN("x") };
    const char *out;

    limits.slowlog_us = -1;
    cmd_set_limits(fake.cmd, &limits);
    cmd_waited(fake.cmd, &waited);
    cmd_waited(fake.cmd, &refused);
    ck_assert_str_eq(fake_run(me, "SLOWLOG LEN"), ":0\r\n");
    out = fake_run(me, "SLOWLOG WAITS");
    ck_assert(has(out, "*2\r\n*18\r\n$2\r\nid\r\n:1\r\n$4\r\ntime\r\n:1"));
    ck_assert(has(out, "$4\r\nname\r\n$3\r\njob\r\n$4\r\nkind\r\n$5\r\nplain\r\n"
                       "$5\r\nowner\r\n$3\r\nann\r\n$6\r\nwaited\r\n:12345\r\n"
                       "$7\r\noutcome\r\n$7\r\ngranted\r\n$6\r\nclient\r\n:2\r\n"
                       "$7\r\naddress\r\n$11\r\n127.0.0.1:2\r\n"));
    ck_assert(has(out, "$7\r\noutcome\r\n$7\r\nBACKEND\r\n"));
    (void)fake_run(me, "HELLO 3");
    ck_assert(strncmp(fake_run(me, "SLOWLOG WAITS 1"), "*1\r\n%9\r\n", 8) == 0);
    ck_assert_str_eq(fake_run(me, "SLOWLOG RESET"), "+OK\r\n");
    ck_assert_str_eq(fake_run(me, "SLOWLOG WAITS"), "*0\r\n");
}

/* --- MONITOR -----------------------------------------------------------------------
 */

static const char *seen(void)
{
    const char *out = fake_output(me);
    const char *line = strchr(out, '[');

    return line == NULL ? out : line;
}

START_TEST(monitors_see_what_others_run)
{
    ck_assert_str_eq(fake_run(me, "MONITOR"), "+OK\r\n");
    ck_assert_str_eq(fake_run(me, "MONITOR"), "+OK\r\n");
    buf_clear(&me->out);
    (void)fake_run(other, "LOCK job WAIT 5");
    ck_assert_int_eq(fake_output(me)[0], '+');
    ck_assert_str_eq(seen(), "[0 127.0.0.1:2] \"LOCK\" \"job\" \"WAIT\" \"5\"\r\n");
    ck_assert_str_eq(fake_run(me, "RESET"), "+RESET\r\n");
    buf_clear(&me->out);
    (void)fake_run(other, "PING");
    ck_assert_str_eq(fake_output(me), "");
}

START_TEST(a_monitor_sees_itself_after_its_reply)
{
    (void)fake_run(me, "MONITOR");
    ck_assert(strncmp(fake_run(me, "PING"), "+PONG\r\n+1", 9) == 0);
    ck_assert_str_eq(seen(), "[0 127.0.0.1:1] \"PING\"\r\n");
}

START_TEST(operators_commands_are_hidden_but_forced_unlocks_shown)
{
    (void)fake_run(me, "MONITOR");
    buf_clear(&me->out);
    (void)fake_run(other, "CONFIG GET port");
    (void)fake_run(other, "CLIENT LIST");
    (void)fake_run(other, "NONSENSE");
    (void)fake_run(other, "ECHO");
    ck_assert_str_eq(fake_output(me), "");
    buf_clear(&me->out);
    (void)fake_run(other, "FORCEUNLOCK job ANY");
    ck_assert_str_eq(seen(), "[0 127.0.0.1:2] \"FORCEUNLOCK\" \"job\" \"ANY\"\r\n");
}

START_TEST(hostile_names_cannot_forge_lines)
{
    const struct span argv[] = { SPAN("exists"), SPAN("a\r\n+OK \"\x00\xff") };

    (void)fake_run(me, "MONITOR");
    buf_clear(&me->out);
    run_args(other, argv, 2);
    ck_assert_str_eq(seen(), "[0 127.0.0.1:2] \"exists\" "
                             "\"a\\r\\n+OK \\\"\\x00\\xff\"\r\n");
}

START_TEST(monitors_do_not_see_passwords)
{
    (void)fake_run(me, "MONITOR");
    (void)fake_run(other, "AUTH sesame");
    (void)fake_run(other, "HELLO 3 AUTH default sesame");
    (void)fake_run(other, "HELLO 3 SETNAME AUTH AUTH default sesame");
    (void)fake_run(other, "HELLO 3 AUTH u1 p1 AUTH u2 sesame");
    ck_assert(!has(fake_output(me), "sesame"));
    buf_clear(&me->out);
    (void)fake_run(other, "HELLO 2 AUTH default sesame SETNAME joe");
    ck_assert_str_eq(seen(), "[0 127.0.0.1:2] \"HELLO\" \"2\" \"AUTH\" \"(redacted)\" "
                             "\"(redacted)\" \"SETNAME\" \"joe\"\r\n");
}

START_TEST(who_does_not_read_gets_no_more_than_the_limit)
{
    size_t len;

    (void)fake_run(me, "MONITOR");
    do {
        len = buf_len(&me->out);
        (void)fake_run(other, "PING");
    } while (buf_len(&me->out) > len);
    ck_assert(conn_overflows(me));
}

START_TEST(a_monitor_that_leaves_is_forgotten)
{
    (void)fake_run(me, "MONITOR");
    fake_close(me, false);
    ck_assert_str_eq(fake_run(other, "PING"), "+PONG\r\n");
}
