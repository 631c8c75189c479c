#include "unit/cmd/cmd_fake.h"

#include "support/runner.h"

/* --- texts that clients parse ------------------------------------------------------
 */

static const struct {
    const char *line;
    const char *reply;
} TEXTS[] = {
    { "FOO 'a' b",
      "-ERR unknown command 'FOO', with args beginning with: ''a'' 'b' \r\n" },
    { "foo", "-ERR unknown command 'foo', with args beginning with: \r\n" },
    { "SET a b", "-ERR latchd keeps locks, not data: 'SET' is not served; send it to a "
                 "Redis, and LOCK and UNLOCK to latchd\r\n" },
    { "evalSha a 0",
      "-ERR latchd keeps locks, not data: 'evalSha' is not served; a library "
      "that brings its own scripts, such as Redisson, is to connect to the "
      "Redis that keeps the locks\r\n" },
    { "EVA", "-ERR unknown command 'EVA', with args beginning with: \r\n" },
    { "SENTINEL masters",
      "-ERR unknown command 'SENTINEL', with args beginning with: 'masters' \r\n" },
    { "client|id", "-ERR unknown command 'client|id', with args beginning with: \r\n" },
    { "LOCK", "-ERR wrong number of arguments for 'lock' command\r\n" },
    { "CLIENT", "-ERR wrong number of arguments for 'client' command\r\n" },
    { "client kill", "-ERR wrong number of arguments for 'client|kill' command\r\n" },
    { "CLIENT X\ny", "-ERR unknown subcommand 'X y'. Try CLIENT HELP.\r\n" },
    { "PING", "+PONG\r\n" },
    { "ping hi", "$2\r\nhi\r\n" },
    { "PING a b", "-ERR wrong number of arguments for 'ping' command\r\n" },
    { "ECHO hi", "$2\r\nhi\r\n" },
    { "SELECT 0", "+OK\r\n" },
    { "SELECT 1",
      "-ERR DB index is out of range: this latchd keeps its locks in database 0 of its "
      "Redis; connect with that number or without one, or to a latchd whose option "
      "redis "
      "names the other database\r\n" },
    { "SELECT -1",
      "-ERR DB index is out of range: this latchd keeps its locks in database 0 of its "
      "Redis; connect with that number or without one, or to a latchd whose option "
      "redis "
      "names the other database\r\n" },
    { "SELECT x", "-ERR value is not an integer or out of range\r\n" },
    { "HELLO 4", "-NOPROTO unsupported protocol version\r\n" },
    { "HELLO x", "-ERR Protocol version is not an integer or out of range\r\n" },
    { "HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n" },
    { "HELLO 3 AUTH x", "-ERR Syntax error in HELLO option 'AUTH'\r\n" },
    { "AUTH x", "-ERR AUTH <password> called without any password configured for the "
                "default user. "
                "Are you sure your configuration is correct?\r\n" },
    { "AUTH default x", "+OK\r\n" },
    { "AUTH joe x",
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n" },
    { "AUTH a b c", "-ERR syntax error\r\n" },
    { "READONLY", "+OK\r\n" },
    { "ROLE", "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n" },
    { "WAIT 0 0", ":0\r\n" },
    { "WAIT 1 x", "-ERR timeout is not an integer or out of range\r\n" },
    { "GET x", "$-1\r\n" },
    { "EXISTS x y", ":0\r\n" },
    { "DBSIZE", ":5\r\n" },
    { "CLUSTER SLOTS", "-ERR This instance has cluster support disabled\r\n" },
    { "CLIENT ID", ":1\r\n" },
    { "CLIENT GETNAME", "$-1\r\n" },
    { "CLIENT SETNAME a\tb",
      "-ERR Client names cannot contain spaces, newlines or special characters.\r\n" },
    { "CLIENT SETINFO LIB-NAME x", "+OK\r\n" },
    { "client setinfo lib-ver 1.0", "+OK\r\n" },
    { "CLIENT SETINFO FOO x", "-ERR Unrecognized option 'FOO'\r\n" },
    { "CLIENT MAINT_NOTIFICATIONS ON",
      "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n" },
    { "CLIENT NO-EVICT on", "+OK\r\n" },
    { "CLIENT NO-TOUCH x", "-ERR syntax error\r\n" },
    { "CLIENT REPLY x", "-ERR syntax error\r\n" },
    { "CLIENT UNBLOCK x", "-ERR value is not an integer or out of range\r\n" },
    { "CLIENT UNBLOCK 5 FOO",
      "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n" },
    { "CLIENT UNBLOCK 99", ":0\r\n" },
    { "CLIENT KILL foo", "-ERR No such client\r\n" },
    { "CLIENT KILL ID 0", "-ERR client-id should be greater than 0\r\n" },
    { "CLIENT KILL ID 99", ":0\r\n" },
    { "CLIENT KILL TYPE x", "-ERR Unknown client type 'x'\r\n" },
    { "CLIENT KILL SKIPME x", "-ERR syntax error\r\n" },
    { "CLIENT KILL ID 1 ADDR", "-ERR syntax error\r\n" },
    { "CLIENT KILL USER joe", "-ERR No such user 'joe'\r\n" },
    { "CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n" },
    { "CLIENT LIST ID x", "-ERR Invalid client ID\r\n" },
    { "CLIENT LIST TYPE pubsub", "$0\r\n\r\n" },
    { "CONFIG GET nosuch", "*0\r\n" },
    { "CONFIG GET PORT port *",
      "*4\r\n$4\r\nport\r\n$4\r\n5625\r\n$4\r\nbind\r\n$3\r\n::1\r\n" },
    { "CONFIG SET a 1 b", "-ERR syntax error\r\n" },
    { "CONFIG SET a 1", "+OK\r\n" },
    { "CONFIG SET a 1 b 2", "-ERR 2 pairs refused\r\n" },
    { "COMMAND GETKEYS LOCK a WAIT 5", "*1\r\n$1\r\na\r\n" },
    { "COMMAND GETKEYS MLOCK 2 a b WAIT 5", "*2\r\n$1\r\na\r\n$1\r\nb\r\n" },
    { "COMMAND GETKEYS MLOCK 9 a b",
      "-ERR Invalid arguments specified for command\r\n" },
    { "COMMAND GETKEYSANDFLAGS UNLOCK a", "*1\r\n*2\r\n$1\r\na\r\n*1\r\n+RW\r\n" },
    { "COMMAND GETKEYS MEMORY USAGE a", "*1\r\n$1\r\na\r\n" },
    { "COMMAND GETKEYS PING", "-ERR The command has no key arguments\r\n" },
    { "COMMAND GETKEYS CLIENT ID", "-ERR The command has no key arguments\r\n" },
    { "COMMAND GETKEYS nosuch", "-ERR Invalid command specified\r\n" },
    { "COMMAND GETKEYS LOCK",
      "-ERR Invalid number of arguments specified for command\r\n" },
    { "COMMAND INFO nosuch", "*1\r\n$-1\r\n" },
    { "COMMAND DOCS nosuch", "*0\r\n" },
    { "COMMAND LIST FILTERBY PATTERN lock*",
      "*3\r\n$4\r\nlock\r\n$8\r\nlockinfo\r\n$5\r\nlocks\r\n" },
    { "COMMAND LIST FILTERBY X y", "-ERR syntax error\r\n" },
    { "PUBSUB CHANNELS", "*0\r\n" },
    { "PUBSUB NUMSUB lost:a", "*2\r\n$6\r\nlost:a\r\n:0\r\n" },
    { "PUBSUB NUMPAT", ":0\r\n" },
    { "CLIENT CAPA redirect", "+OK\r\n" },
    { "READWRITE", "+OK\r\n" },
    { "ASKING", "-ERR This instance has cluster support disabled\r\n" },
    { "MEMORY USAGE job", ":500\r\n" },
    { "MEMORY USAGE job SAMPLES 0", ":501\r\n" },
    { "MEMORY USAGE nosuch", "$-1\r\n" },
    { "MEMORY USAGE job SAMPLES -1", "-ERR syntax error\r\n" },
    { "SHUTDOWN FOO", "-ERR syntax error\r\n" },
    { "SHUTDOWN ABORT", "-ERR No shutdown in progress.\r\n" },
    { "CANCEL a OWNER joe", ":3\r\n" },
    { "MLOCK 2 a a", "-ERR name 'a' is given twice\r\n" },
    { "COMMAND GETKEYS LOCK a READ", "*1\r\n$1\r\na\r\n" },
    { "LOCKS", "*2\r\n$2\r\n17\r\n*2\r\n$5\r\njob:1\r\n$5\r\nother\r\n" },
    { "LOCKS CURSOR 17 MATCH job:*", "*2\r\n$1\r\n0\r\n*1\r\n$5\r\njob:1\r\n" },
    { "WAITERS a COUNT 1",
      "*1\r\n*16\r\n$5\r\nowner\r\n$3\r\nann\r\n$4\r\nkind\r\n$5\r\nplain\r\n"
      "$6\r\nwaited\r\n:20\r\n$4\r\nleft\r\n$-1\r\n$6\r\nclient\r\n:1\r\n"
      "$7\r\naddress\r\n$11\r\n127.0.0.1:1\r\n$5\r\nlocal\r\n:0\r\n"
      "$8\r\npriority\r\n:9\r\n" },
};

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(the_reply_is_what_redis_would_say, TEST_ROWS(TEXTS))
{
    ck_assert_str_eq(fake_run(me, TEXTS[_i].line), TEXTS[_i].reply);
    ck_assert(!me->suspended);
}
