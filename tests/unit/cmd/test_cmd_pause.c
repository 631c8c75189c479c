/* CLIENT PAUSE and UNPAUSE over fake connections; it is 1000 ms there. */
#include "unit/cmd/cmd_fake.h"

#include "support/runner.h"

static struct conn *other;

static void setup(void)
{
    fake_setup();
    other = fake_open(1);
}

static void expect(struct conn *c, const char *line, const char *reply)
{
    const char *got = fake_run(c, line);

    ck_assert_msg(strcmp(got, reply) == 0, "%s: %s", line, got);
}

static void put_off(struct conn *c, const char *line)
{
    expect(c, line, "");
    ck_assert_msg(c->suspended, "%s", line);
    ck_assert_str_eq(fake.asked, "");
}

TEST_GROUP(.setup = setup, .teardown = fake_teardown);

START_TEST(commands_run_when_the_pause_is_over)
{
    expect(me, "CLIENT PAUSE 500", "+OK\r\n");
    ck_assert_uint_eq(cmd_next_deadline(fake.cmd), 1500);
    put_off(me, "LOCK a WAIT 7");
    put_off(other, "EXISTS a");
    ck_assert_ptr_nonnull(strstr(fake_run(fake_open(2), "INFO"), "blocked_clients:2"));
    cmd_tick(fake.cmd, 1499);
    fake_settle();
    ck_assert(me->suspended);
    cmd_tick(fake.cmd, 1500);
    fake_settle();
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 7);
    ck_assert(!other->suspended);
    ck_assert_str_eq(fake_output(other), ":0\r\n");
    ck_assert(cmd_next_deadline(fake.cmd) == UINT64_MAX);
}

START_TEST(unpause_and_the_end_of_the_daemon_end_it, 2)
{
    expect(me, "CLIENT PAUSE 500 all", "+OK\r\n");
    put_off(other, "UNLOCK a TOKEN 5");
    if (_i == 0) {
        expect(me, "CLIENT UNPAUSE", "+OK\r\n");
    } else {
        cmd_stop(fake.cmd);
    }
    fake_settle();
    ck_assert_str_eq(fake.asked, "unlock");
    ck_assert_uint_eq(fake.hold.token, 5);
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(other), ":0\r\n");
}

START_TEST(write_lets_through_what_only_looks)
{
    expect(me, "CLIENT PAUSE 500 WRITE", "+OK\r\n");
    expect(me, "EXISTS a", ":0\r\n");
    put_off(other, "RENEW a TOKEN 5");
}

START_TEST(what_is_about_connections_and_the_server_is_never_put_off)
{
    expect(me, "CLIENT PAUSE 500", "+OK\r\n");
    expect(me, "PING", "+PONG\r\n");
    expect(me, "DBSIZE", ":5\r\n");
    expect(me, "CLIENT KILL ID 77", ":0\r\n");
    expect(me, "NOSUCH",
           "-ERR unknown command 'NOSUCH', with args beginning with: \r\n");
    expect(me, "LOCK", "-ERR wrong number of arguments for 'lock' command\r\n");
}

START_TEST(a_transaction_is_put_off_as_a_whole)
{
    expect(other, "MULTI", "+OK\r\n");
    expect(other, "ECHO a", "+QUEUED\r\n");
    expect(other, "UNLOCK a TOKEN 5", "+QUEUED\r\n");
    expect(me, "MULTI", "+OK\r\n");
    expect(me, "ECHO a", "+QUEUED\r\n");
    expect(me, "CLIENT PAUSE 500 WRITE", "+QUEUED\r\n");
    expect(me, "EXISTS a", "+QUEUED\r\n");
    expect(me, "EXEC", "*3\r\n$1\r\na\r\n+OK\r\n:0\r\n");
    put_off(other, "EXEC");
    expect(me, "CLIENT UNPAUSE", "+OK\r\n");
    fake_settle();
    ck_assert_str_eq(fake.asked, "unlock");
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(other), "*2\r\n$1\r\na\r\n:0\r\n");
}

START_TEST(a_pause_only_becomes_longer_and_stricter)
{
    expect(me, "CLIENT PAUSE 500", "+OK\r\n");
    expect(me, "CLIENT PAUSE 100 WRITE", "+OK\r\n");
    ck_assert_uint_eq(cmd_next_deadline(fake.cmd), 1500);
    put_off(other, "EXISTS a");
    expect(me, "CLIENT UNPAUSE", "+OK\r\n");
    expect(me, "CLIENT PAUSE 100 WRITE", "+OK\r\n");
    expect(me, "EXISTS a", ":0\r\n");
    expect(me, "CLIENT PAUSE 900", "+OK\r\n");
    ck_assert_uint_eq(cmd_next_deadline(fake.cmd), 1900);
    put_off(me, "EXISTS a");
}

START_TEST(who_goes_while_put_off_is_forgotten)
{
    expect(me, "CLIENT PAUSE 500", "+OK\r\n");
    put_off(other, "UNLOCK a TOKEN 5");
    put_off(me, "UNLOCK b TOKEN 6");
    fake_close(other, false);
    cmd_tick(fake.cmd, 2000);
    fake_settle();
    ck_assert_uint_eq(fake.hold.token, 6);
}

START_TEST(a_skipped_reply_stays_skipped)
{
    expect(me, "CLIENT PAUSE 500", "+OK\r\n");
    expect(me, "CLIENT REPLY SKIP", "");
    put_off(me, "EXISTS a");
    cmd_tick(fake.cmd, 2000);
    fake_settle();
    ck_assert_str_eq(fake_output(me), "");
    expect(me, "PING", "+PONG\r\n");
}
