/* MULTI, EXEC and DISCARD over fake connections and a fake engine. */
#include "unit/cmd/cmd_fake.h"

#include "cmd/client.h"
#include "support/runner.h"

#include <stdio.h>

#define ABORTED "-EXECABORT Transaction discarded because of previous errors.\r\n"

static void expect(const char *line, const char *reply)
{
    const char *got = fake_run(me, line);

    ck_assert_msg(strcmp(got, reply) == 0, "%s: %s", line, got);
}

static void queue(const char *line)
{
    expect(line, "+QUEUED\r\n");
}

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(replies_come_as_one_array)
{
    expect("multi", "+OK\r\n");
    queue("PING");
    queue("ECHO a");
    queue("GET nothing");
    queue("UNWATCH");
    expect("EXEC", "*4\r\n+PONG\r\n$1\r\na\r\n$-1\r\n+OK\r\n");
    expect("PING", "+PONG\r\n");
    expect("MULTI", "+OK\r\n");
    expect("EXEC", "*0\r\n");
}

START_TEST(what_waits_holds_up_the_rest)
{
    expect("MULTI", "+OK\r\n");
    queue("UNLOCK a TOKEN 5");
    queue("PING");
    queue("LOCK b WAIT 0");
    queue("LOCKINFO c");
    ck_assert_str_eq(fake.asked, "");
    expect("EXEC", "");
    ck_assert_str_eq(fake.asked, "unlock");
    ck_assert(me->suspended);
    fake_answer(REPLY_ERROR, 0, 0);
    ck_assert_str_eq(fake_output(me), "");
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert(span_eq(fake.lock.name, SPAN("b")));
    fake_answer(REPLY_TOKEN, 7, 1);
    ck_assert_str_eq(fake.asked, "lockinfo");
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert_str_eq(fake_output(me),
                     "*4\r\n-NOTHELD not held\r\n+PONG\r\n:7\r\n$-1\r\n");
    ck_assert(!me->suspended);
}

static const struct {
    const char *line;
    const char *reply;
} REFUSED[] = {
    { "NOSUCH a", "-ERR unknown command 'NOSUCH', with args beginning with: 'a' \r\n" },
    { "CLIENT NOSUCH", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.\r\n" },
    { "ECHO", "-ERR wrong number of arguments for 'echo' command\r\n" },
    { "LOCK a", "-ERR LOCK in a transaction must have WAIT 0\r\n" },
    { "LOCK a WAIT 5", "-ERR LOCK in a transaction must have WAIT 0\r\n" },
    { "MLOCK 1 a", "-ERR MLOCK in a transaction must have WAIT 0\r\n" },
    { "LOCK a FAIR READ",
      "-ERR only one of FAIR, READ, WRITE or PERMITS can be given\r\n" },
    { "SUBSCRIBE a", "-ERR Command not allowed inside a transaction\r\n" },
    { "CLIENT REPLY OFF", "-ERR Command not allowed inside a transaction\r\n" },
    { "SHUTDOWN", "-ERR Command not allowed inside a transaction\r\n" },
};

enum { REFUSED_COUNT = sizeof(REFUSED) / sizeof(REFUSED[0]) };

START_TEST(after_a_refused_command_nothing_is_run, REFUSED_COUNT)
{
    expect("MULTI", "+OK\r\n");
    queue("UNLOCK a TOKEN 5");
    expect(REFUSED[_i].line, REFUSED[_i].reply);
    queue("PING");
    expect("EXEC", ABORTED);
    ck_assert_str_eq(fake.asked, "");
    expect("EXEC", "-ERR EXEC without MULTI\r\n");
}

START_TEST(errors_have_the_words_of_redis)
{
    expect("EXEC", "-ERR EXEC without MULTI\r\n");
    expect("DISCARD", "-ERR DISCARD without MULTI\r\n");
    expect("UNWATCH", "+OK\r\n");
    ck_assert_ptr_nonnull(strstr(fake_run(me, "WATCH a"), "-ERR WATCH is not supp"));
    expect("MULTI", "+OK\r\n");
    expect("MULTI", "-ERR MULTI calls can not be nested\r\n");
    expect("WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n");
    queue("PING");
    expect("EXEC", "*1\r\n+PONG\r\n");
    expect("MULTI", "+OK\r\n");
    expect("DISCARD now", "-ERR wrong number of arguments for 'discard' command\r\n");
    expect("EXEC now", "-EXECABORT Transaction discarded because of: wrong number of "
                       "arguments for 'exec' command\r\n");
    expect("DISCARD", "-ERR DISCARD without MULTI\r\n");
}

START_TEST(discard_and_reset_forget_what_was_queued)
{
    expect("MULTI", "+OK\r\n");
    queue("UNLOCK a TOKEN 5");
    expect("DISCARD", "+OK\r\n");
    expect("MULTI", "+OK\r\n");
    queue("UNLOCK a TOKEN 5");
    expect("RESET", "+RESET\r\n");
    expect("EXEC", "-ERR EXEC without MULTI\r\n");
    ck_assert_str_eq(fake.asked, "");
    expect("MULTI", "+OK\r\n");
    queue("PING");
    expect("QUIT", "+OK\r\n");
    ck_assert(me->draining);
}

/* Two grants are in the reply that was never written, one is in flight. */
START_TEST(grants_of_a_client_that_goes_in_the_middle_are_taken_back, 2)
{
    expect("MULTI", "+OK\r\n");
    queue("LOCK a WAIT 0");
    queue("MLOCK 1 b WAIT 0");
    queue("LOCK c WAIT 0");
    expect("EXEC", "");
    fake_answer(REPLY_TOKEN, 1, 11);
    fake_answer(REPLY_TOKEN, 2, 12);
    ck_assert_uint_eq(fake.undelivered_count, 0);
    fake_close(me, _i == 1);
    ck_assert_uint_eq(fake.undelivered_count, 2);
    ck_assert_uint_eq(fake.undelivered[0], 11);
    ck_assert_uint_eq(fake.undelivered[1], 12);
    ck_assert_uint_eq(fake.closed_conn, 1);
    fake_answer(REPLY_TOKEN, 3, 13);
}

START_TEST(grants_that_were_written_are_in_doubt_until_the_client_speaks, 2)
{
    expect("MULTI", "+OK\r\n");
    queue("LOCK a WAIT 0");
    queue("LOCK b WAIT 0");
    expect("EXEC", "");
    fake_answer(REPLY_TOKEN, 1, 11);
    fake_answer(REPLY_TOKEN, 2, 12);
    ck_assert_str_eq(fake_output(me), "*2\r\n:1\r\n:2\r\n");
    if (_i == 0) {
        expect("PING", "+PONG\r\n");
    }
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, _i == 0 ? 0 : 2);
}

START_TEST(a_grant_whose_lease_ran_down_meanwhile_is_given_back)
{
    expect("MULTI", "+OK\r\n");
    queue("ECHO a");
    queue("LOCK a WAIT 0");
    queue("UNLOCK b TOKEN 5");
    expect("EXEC", "");
    fake_answer(REPLY_TOKEN, 1, 11);
    fake.grant_state = GRANT_STALE;
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(
        fake_output(me),
        "*3\r\n$1\r\na\r\n-BACKEND the transaction took too long: the lock "
        "is given back\r\n:0\r\n");
    ck_assert_uint_eq(fake.undelivered_count, 1);
    ck_assert_uint_eq(fake.undelivered[0], 11);
}

START_TEST(a_grant_that_is_over_is_told_if_the_transaction_ended_it, 2)
{
    expect("MULTI", "+OK\r\n");
    queue("LOCK a WAIT 0");
    queue(_i == 0 ? "UNLOCK a" : "UNLOCK b TOKEN 5");
    expect("EXEC", "");
    fake_answer(REPLY_TOKEN, 1, 11);
    fake.grant_state = GRANT_OVER;
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me),
                     _i == 0 ? "*2\r\n:1\r\n:0\r\n"
                             : "*2\r\n-BACKEND the transaction took too long: the lock "
                               "is lost\r\n:0\r\n");
}

START_TEST(locks_are_not_taken_when_nobody_is_told)
{
    expect("MULTI", "+OK\r\n");
    queue("LOCK a WAIT 0");
    queue("UNLOCK b TOKEN 5");
    (void)fake_run(me, "CLIENT GETNAME");
    expect("DISCARD", "+OK\r\n");
    expect("CLIENT REPLY OFF", "");
    expect("MULTI", "");
    expect("LOCK a WAIT 0", "");
    expect("UNLOCK b TOKEN 5", "");
    expect("EXEC", "");
    ck_assert_str_eq(fake.asked, "unlock");
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), "");
    expect("CLIENT REPLY ON", "+OK\r\n");
    expect("EXEC", "-ERR EXEC without MULTI\r\n");
}

START_TEST(replies_that_are_too_much_close_the_connection)
{
    fake.output_limit = 1000;
    expect("MULTI", "+OK\r\n");
    queue("LOCK a WAIT 0");
    for (int i = 0; i < 10; i++) {
        queue("INFO");
    }
    expect("EXEC", "");
    fake_answer(REPLY_TOKEN, 1, 11);
    ck_assert_uint_eq(fake.closed_conn, 1);
    ck_assert_uint_eq(fake.undelivered_count, 1);
}

START_TEST(a_queue_is_bounded, 2)
{
    static char line[MULTI_BYTES_MAX / 4] = "ECHO ";

    expect("MULTI", "+OK\r\n");
    if (_i == 0) {
        for (int i = 0; i < MULTI_COMMANDS_MAX; i++) {
            queue("PING");
        }
    } else {
        memset(line + 5, 'x', sizeof(line) - 6);
        queue(line);
        queue(line);
        queue(line);
    }
    expect(_i == 0 ? "PING" : line,
           "-LIMIT a transaction has at most 10000 commands and 1048576 bytes\r\n");
    expect("EXEC", ABORTED);
}

START_TEST(a_client_that_kills_itself_is_answered_first)
{
    expect("MULTI", "+OK\r\n");
    queue("CLIENT KILL ID 1 SKIPME no");
    queue("UNLOCK a TOKEN 5");
    expect("EXEC", "");
    ck_assert(!me->draining);
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), "*2\r\n:1\r\n:0\r\n");
    ck_assert(me->draining);
}
