/* Users: who may run what, and the ACL commands. */
#include "support/runner.h"
#include "unit/cmd/cmd_fake.h"
#include "unit/cmd/cmd_users.h"
#include "util/log.h"

#include <stdio.h>
#include <string.h>

#define NO_COMMAND(name)                                                               \
    "-NOPERM this user has no permissions to run the '" name "' command\r\n"
#define NO_KEY                                                                         \
    "-NOPERM this user has no permissions to access one of the keys used as "          \
    "arguments\r\n"
#define NO_CHANNEL                                                                     \
    "-NOPERM this user has no permissions to access one of the channels used as "      \
    "arguments\r\n"
/* The engine was asked; it answers. */
static void expect_runs(const char *line, const char *asked)
{
    ck_assert_str_eq(fake_run(user, line), "");
    ck_assert_str_eq(fake.asked, asked);
    fake_answer(REPLY_INT, 1, 0);
}

TEST_GROUP(.setup = users_setup, .teardown = fake_teardown);

START_TEST(commands_and_categories_are_what_the_user_may_run)
{
    ann_may("~* +@lock -@admin +client|id");
    expect_runs("LOCK a", "lock");
    expect_runs("UNLOCK a TOKEN 1", "unlock");
    expect("FORCEUNLOCK a ANY", NO_COMMAND("forceunlock"));
    expect("CLIENT ID", ":2\r\n");
    expect("CLIENT LIST", NO_COMMAND("client|list"));
    expect("CONFIG GET port", NO_COMMAND("config|get"));
    expect("PING", NO_COMMAND("ping"));
    expect("ACL WHOAMI", NO_COMMAND("acl|whoami"));
    expect("CLIENT NONSENSE",
           "-ERR unknown subcommand 'NONSENSE'. Try CLIENT HELP.\r\n");
    ck_assert_str_eq(fake.asked, "");
}

START_TEST(who_is_refused_everything_can_still_log_in_and_leave)
{
    ann_may("");
    expect("AUTH ann pw", "+OK\r\n");
    expect("RESET", "+RESET\r\n");
    expect("PING", "+PONG\r\n"); /* default again */
    expect("AUTH ann pw", "+OK\r\n");
    ck_assert(starts(fake_run(user, "HELLO 2"), "*14\r\n"));
    expect("QUIT", "+OK\r\n");
}

START_TEST(names_have_to_match_all_of_them)
{
    ann_may("+@all %W~take:* %R~look:* ~both:*");
    expect_runs("LOCK take:1", "lock");
    expect_runs("LOCK both:1 READ", "lock");
    expect("LOCK look:1", NO_KEY);
    expect("LOCK look:1 READ", NO_KEY);
    expect_runs("LOCKINFO look:1", "lockinfo");
    expect("LOCKINFO take:1", NO_KEY);
    expect("WAITERS take:1", NO_KEY);
    expect("UNLOCK look:1 TOKEN 1", NO_KEY);
    expect("RENEW other TOKEN 1", NO_KEY);
    expect("CANCEL other OWNER o", NO_KEY);
    expect("FORCEUNLOCK other ANY", NO_KEY);
    expect_runs("MLOCK 2 take:1 both:1", "mlock");
    expect("MLOCK 2 take:1 other", NO_KEY);
    expect("MLOCK 1 take:1 other",
           "-ERR unknown option 'other' for MLOCK, which takes "
           "WAIT, LEASE, OWNER, ID, KEEP, GRACE, HEARTBEAT, PRIORITY or TRACE\r\n");
    expect("EXISTS look:1 other", NO_KEY);
    expect("LOCK", "-ERR wrong number of arguments for 'lock' command\r\n");
    ck_assert(!starts(fake_run(user, "MLOCK 9 other"), "-NOPERM"));
}

START_TEST(channels_are_the_users_own)
{
    ann_may("+@all ~* &lost:a:* &granted:b");
    ck_assert(starts(fake_run(user, "SUBSCRIBE lost:a:1 granted:b"), "*3\r\n"));
    expect("SUBSCRIBE lost:a:1 lost:b", NO_CHANNEL);
    ck_assert(starts(fake_run(user, "PSUBSCRIBE lost:a:*"), "*3\r\n"));
    expect("PSUBSCRIBE lost:a:1*", NO_CHANNEL);
    ck_assert(starts(fake_run(user, "UNSUBSCRIBE lost:b"), "*3\r\n"));
}

START_TEST(who_listens_to_what_is_taken_away_is_closed)
{
    ann_may("+@all ~* &lost:*");
    (void)fake_run(user, "PSUBSCRIBE lost:*");
    ck_assert_str_eq(fake_run(me, "ACL SETUSER ann &granted:*"), "+OK\r\n");
    ck_assert_uint_ne(user->id, 0);
    ck_assert_str_eq(fake_run(me, "ACL SETUSER ann resetchannels &granted:*"),
                     "+OK\r\n");
    ck_assert_uint_eq(user->id, 0);
}

START_TEST(rules_count_from_the_next_command_on)
{
    ann_may("+ping");
    expect("PING", "+PONG\r\n");
    (void)fake_run(me, "ACL SETUSER ann -ping");
    expect("PING", NO_COMMAND("ping"));
    (void)fake_run(me, "ACL SETUSER ann off +ping");
    expect("PING", "+PONG\r\n"); /* as in Redis: only logins are over */
    expect("AUTH ann pw", WRONG);
}

START_TEST(who_waits_for_what_is_taken_away_is_refused)
{
    ann_may("+@all ~take:*");
    ck_assert_str_eq(fake_run(user, "LOCK take:1"), "");
    fake.asked[0] = '\0';
    (void)fake_run(me, "ACL SETUSER ann -unlock %R~look:*");
    ck_assert_str_eq(fake.asked, "");
    (void)fake_run(me, "ACL SETUSER ann -lock");
    ck_assert_str_eq(fake.asked, "refuse");
    fake.asked[0] = '\0';
    (void)fake_run(me, "ACL SETUSER ann +lock resetkeys %R~take:*");
    ck_assert_str_eq(fake.asked, "refuse");
}

START_TEST(who_listens_to_a_name_that_is_taken_away_is_closed)
{
    ann_may("+@all %R~take:* allchannels");
    (void)fake_run(user, "SUBSCRIBE leader:take:1");
    (void)fake_run(me, "ACL SETUSER ann ~other");
    ck_assert_uint_ne(user->id, 0);
    (void)fake_run(me, "ACL SETUSER ann resetkeys ~other");
    ck_assert_uint_eq(user->id, 0);
}

START_TEST(deleted_users_leave_and_the_others_stay)
{
    ann_may("+@all");
    ck_assert_str_eq(fake_run(me, "ACL DELUSER ann nobody"), ":1\r\n");
    ck_assert_uint_eq(user->id, 0);
    ck_assert_str_eq(fake_run(me, "ACL DELUSER default"),
                     "-ERR The 'default' user cannot be removed\r\n");
    user = fake_open(1);
    ann_may("+@all");
    expect("ACL DELUSER ann", ":1\r\n"); /* himself: answered, then closed */
    ck_assert(user->draining);
}

START_TEST(a_transaction_is_looked_at_twice)
{
    ann_may("+multi +exec +ping");
    expect("MULTI", "+OK\r\n");
    expect("ECHO x", NO_COMMAND("echo"));
    ck_assert(starts(fake_run(user, "EXEC"), "-EXECABORT "));
    expect("MULTI", "+OK\r\n");
    expect("PING", "+QUEUED\r\n");
    (void)fake_run(me, "ACL SETUSER ann -ping");
    buf_clear(&user->out);
    (void)fake_run(user, "EXEC");
    ck_assert_ptr_nonnull(
        strstr(fake_output(user), "-NOPERM ACLs rules changed between"));
}

START_TEST(requests_carry_their_user)
{
    uint32_t id;

    expect_runs("LOCK a", "lock");
    id = fake.lock.terms.user;
    ck_assert_uint_ne(id, 0);
    expect_runs("UNLOCK a TOKEN 1", "unlock");
    ck_assert_uint_eq(fake.hold.user, id);
    ck_assert(fake.hold.overrides); /* default may FORCEUNLOCK */
    ann_may("+@lock -@admin ~*");
    expect_runs("MLOCK 1 a", "mlock");
    ck_assert_uint_ne(fake.mlock.terms.user, id);
    expect_runs("RENEW a TOKEN 1", "renew");
    ck_assert_uint_eq(fake.hold.user, fake.mlock.terms.user);
    ck_assert(!fake.hold.overrides);
}

/* --- the ACL commands
 * ------------------------------------------------------------------ */

static const struct {
    const char *line;
    const char *reply;
} REPLIES[] = {
    { "ACL WHOAMI", "$7\r\ndefault\r\n" },
    { "ACL LIST", "*1\r\n$34\r\nuser default on nopass ~* &* +@all\r\n" },
    { "ACL USERS", "*1\r\n$7\r\ndefault\r\n" },
    { "ACL GETUSER nobody", "$-1\r\n" },
    { "ACL GETUSER default",
      "*12\r\n$5\r\nflags\r\n*2\r\n$2\r\non\r\n$6\r\nnopass\r\n$9\r\npasswords\r\n*"
      "0\r\n"
      "$8\r\ncommands\r\n$5\r\n+@all\r\n$4\r\nkeys\r\n$2\r\n~*\r\n$8\r\nchannels\r\n"
      "$2\r\n&*\r\n$9\r\nselectors\r\n*0\r\n" },
    { "ACL SETUSER x +nosuch", "-ERR Error in ACL SETUSER modifier '+nosuch': Unknown "
                               "command or category name in ACL\r\n" },
    { "ACL SETUSER x (+lock)",
      "-ERR Error in ACL SETUSER modifier '(+lock)': Selectors are not supported\r\n" },
    { "ACL CAT nosuch", "-ERR Unknown category 'nosuch'\r\n" },
    { "ACL CAT a b",
      "-ERR unknown subcommand or wrong number of arguments for 'CAT'. Try "
      "ACL HELP.\r\n" },
    { "ACL GENPASS 0", "-ERR ACL GENPASS argument must be the number of bits for the "
                       "output password, a positive number up to 4096\r\n" },
    { "ACL GENPASS x", "-ERR value is not an integer or out of range\r\n" },
    { "ACL LOG", "*0\r\n" },
    { "ACL LOG x", "-ERR value is not an integer or out of range\r\n" },
    { "ACL LOG -1", "*0\r\n" },
    { "ACL LOG RESET", "+OK\r\n" },
    { "ACL DRYRUN nobody ping", "-ERR User 'nobody' not found\r\n" },
    { "ACL DRYRUN default nosuch", "-ERR Command 'nosuch' not found\r\n" },
    { "ACL DRYRUN default lock",
      "-ERR wrong number of arguments for 'lock' command\r\n" },
    { "ACL DRYRUN default lock a", "+OK\r\n" },
    { "ACL LOAD", "-ERR This Redis instance is not configured to use an ACL file: set "
                  "aclfile, and start again\r\n" },
    { "ACL nosuch", "-ERR unknown subcommand 'nosuch'. Try ACL HELP.\r\n" },
    { "ACL WHOAMI x", "-ERR wrong number of arguments for 'acl|whoami' command\r\n" },
    { "CLIENT KILL USER nobody", "-ERR No such user 'nobody'\r\n" },
};

START_TEST(replies_are_those_of_redis, TEST_ROWS(REPLIES))
{
    ck_assert_str_eq(fake_run(me, REPLIES[_i].line), REPLIES[_i].reply);
}

START_TEST(a_dry_run_tells_what_would_be_refused)
{
    ann_may("+lock +subscribe ~a");
    ck_assert(has(fake_run(me, "ACL DRYRUN ann lock a"), "OK"));
    ck_assert(has(fake_run(me, "ACL DRYRUN ann lock b"),
                  "This user has no permissions to access the 'b' key"));
    ck_assert(has(fake_run(me, "ACL DRYRUN ann client kill x"),
                  "This user has no permissions to run the 'client|kill' command"));
    ck_assert(has(fake_run(me, "ACL DRYRUN ann subscribe x"),
                  "This user has no permissions to access the 'x' channel"));
    ck_assert_str_eq(fake_run(me, "ACL LOG"), "*0\r\n");
}

START_TEST(what_was_refused_is_in_the_log)
{
    const char *log;

    ann_may("+lock ~a");
    (void)fake_run(user, "LOCK b");
    (void)fake_run(user, "LOCK b");
    (void)fake_run(user, "CLIENT LIST");
    log = fake_run(me, "ACL LOG 1");
    ck_assert(starts(log,
                     "*1\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$7\r\n"
                     "command\r\n$7\r\ncontext\r\n$8\r\ntoplevel\r\n$6\r\nobject\r\n"
                     "$11\r\nclient|list\r\n$8\r\nusername\r\n$3\r\nann\r\n"
                     "$11\r\nage-seconds\r\n$1\r\n0\r\n$11\r\nclient-info\r\n"));
    ck_assert(has(log, "user=ann"));
    log = fake_run(me, "ACL LOG");
    ck_assert(has(log, ":2\r\n$6\r\nreason\r\n$3\r\nkey\r\n"));
    ck_assert(has(fake_run(me, "INFO stats"), "acl_access_denied_key:2\r\n"));
    ck_assert(has(fake_run(me, "INFO stats"), "acl_access_denied_cmd:1\r\n"));
    (void)fake_run(me, "ACL LOG RESET");
    ck_assert_str_eq(fake_run(me, "ACL LOG"), "*0\r\n");
}

START_TEST(the_file_is_loaded_and_saved)
{
    ann_may("+@all");
    fake.acl_text = "user default on nopass ~* &* +@all\nuser bob on";
    ck_assert_str_eq(fake_run(me, "ACL LOAD"), "+OK\r\n");
    ck_assert_uint_eq(user->id, 0); /* ann is not in it */
    ck_assert_str_eq(fake_run(me, "ACL USERS"), "*2\r\n$3\r\nbob\r\n$7\r\ndefault\r\n");
    ck_assert_str_eq(fake_run(me, "ACL SAVE"), "+OK\r\n");
    ck_assert(span_eq(buf_span(&fake.acl_saved),
                      SPAN("user bob on resetchannels -@all\n"
                           "user default on nopass ~* &* +@all\n")));
    fake.acl_text = "nonsense";
    ck_assert(
        starts(fake_run(me, "ACL LOAD"), "-ERR users.acl:1 should start with user"));
    ck_assert(has(fake_run(me, "ACL USERS"), "bob"));
}

START_TEST(connections_are_told_apart_by_their_user)
{
    ann_may("+@all");
    ck_assert(has(fake_run(me, "CLIENT LIST"), " user=ann "));
    ck_assert(has(fake_run(me, "CLIENT INFO"), " user=default "));
    ck_assert_str_eq(fake_run(me, "CLIENT KILL USER ann"), ":1\r\n");
    ck_assert_uint_eq(user->id, 0);
}
