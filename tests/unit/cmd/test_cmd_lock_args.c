#include "cmd/cmd.h"
#include "cmd/lock_args.h"
#include "latchd/protocol.h"
#include "support/runner.h"

#include <stdio.h>
#include <string.h>

#define ID16 "0123456789abcdef"
#define X64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct cmd_limits LIMITS = {
    .max_name = 64, .max_lease_ms = 86400000, .max_keep_ms = 30000, .watchdog_ms = 30000
};

static bool parse(const struct lock_syntax *syntax, const struct cmd_limits *limits,
                  const char *line, struct lock_args *ret, char *reterr)
{
    static struct span argv[32];
    size_t argc = 0;

    reterr[0] = '\0';
    while (*line != '\0') {
        size_t len = strcspn(line, " ");

        argv[argc++] = span_of(line, len);
        line += len + (line[len] == ' ');
    }
    return lock_args_parse(syntax, limits, argv, argc, ret, reterr);
}

/* Each word of `text` says what the refusal must mention. */
static const struct {
    const struct lock_syntax *syntax;
    const char *line;
    const char *text;
} BAD[] = {
    { &SYNTAX_LOCK, "", "name" },
    { &SYNTAX_LOCK, " WAIT 0", "name must be 1..64 bytes" },
    { &SYNTAX_LOCK, X64 "x", "name must be 1..64 bytes (max-name-length)" },
    { &SYNTAX_LOCK, "latchd:x", "reserved" },
    { &SYNTAX_LOCK, "redisson_x", "reserved" },
    { &SYNTAX_LOCK, "{a}:o:rwlock_timeout:1", "key of another lock's readers" },
    { &SYNTAX_LOCK, "a:{b}:o:rwlock_timeout:20", "name is reserved" },
    { &SYNTAX_LOCK, "a:o:rwlock_timeout:1", "name is reserved" },
    { &SYNTAX_LOCK, "a FOO", "'FOO'" },
    { &SYNTAX_LOCK, "a TOKEN 5", "'TOKEN'" },
    { &SYNTAX_LOCK, "a ANY", "'ANY'" },
    { &SYNTAX_LOCK, "a WAIT", "option WAIT needs a value" },
    { &SYNTAX_LOCK, "a WAIT -1", "WAIT must be 0.." },
    { &SYNTAX_LOCK, "a WAIT 1s", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT 1.5", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT 01", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT +1", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT 99999999999999999999", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT 18446744073709551615", "WAIT must be" },
    { &SYNTAX_LOCK, "a WAIT 1 wait 1", "WAIT is given twice" },
    { &SYNTAX_LOCK, "a LEASE 99",
      "LEASE must be 100..86400000 milliseconds (max-lease)" },
    { &SYNTAX_LOCK, "a LEASE 0", "LEASE must be 100" },
    { &SYNTAX_LOCK, "a LEASE 86400001", "LEASE must be 100" },
    { &SYNTAX_LOCK, "a OWNER", "option OWNER needs a value" },
    { &SYNTAX_LOCK, "a OWNER ", "OWNER" },
    { &SYNTAX_LOCK, "a OWNER x\ty", "OWNER must be 1..128" },
    { &SYNTAX_LOCK, "a OWNER \xc3\xa9", "OWNER must be 1..128" },
    { &SYNTAX_LOCK, "a OWNER " X64 X64 "x", "OWNER must be 1..128" },
    { &SYNTAX_LOCK, "a OWNER mode", "OWNER must not" },
    { &SYNTAX_LOCK, "a OWNER latchd:1", "OWNER must not" },
    { &SYNTAX_LOCK, "a OWNER joe:write", "OWNER must not" },
    { &SYNTAX_LOCK, "a OWNER :write", "OWNER must not" },
    { &SYNTAX_LOCK, "a ID 0123456789abcde", "ID must be 16..64" },
    { &SYNTAX_LOCK, "a ID " X64 "x", "ID must be 16..64" },
    { &SYNTAX_LOCK, "a ID 0123456789abcde\x7f", "ID must be 16..64" },
    { &SYNTAX_LOCK, "a KEEP 5", "KEEP needs ID" },
    { &SYNTAX_LOCK, "a ID " ID16 " KEEP 30001",
      "KEEP must be 0..30000 milliseconds (max-keep)" },
    { &SYNTAX_LOCK, "a GRACE 0 LEASE 100",
      "LEASE does not go with GRACE: a fixed lease" },
    { &SYNTAX_LOCK, "a GRACE 86400001", "86400000 milliseconds (max-lease)" },
    { &SYNTAX_LOCK, "a HEARTBEAT 199", "HEARTBEAT must be 200..30000" },
    { &SYNTAX_LOCK, "a HEARTBEAT 30001", "HEARTBEAT must be 200..30000" },
    { &SYNTAX_LOCK, "a HEARTBEAT 500 LEASE 100",
      "LEASE does not go with HEARTBEAT: a fixed lease" },
    { &SYNTAX_LOCK, "a QUEUE -1", "QUEUE must be 0..1000000000" },
    { &SYNTAX_LOCK, "a QUEUE 1000000001", "QUEUE must be 0..1000000000" },
    { &SYNTAX_LOCK, "a QUEUE", "option QUEUE needs a value" },
    { &SYNTAX_LOCK, "a PRIORITY 10", "PRIORITY must be 0..9" },
    { &SYNTAX_LOCK, "a PRIORITY -1", "PRIORITY must be 0..9" },
    { &SYNTAX_LOCK, "a PRIORITY high", "PRIORITY must be 0..9" },
    { &SYNTAX_LOCK, "a PRIORITY 1 FAIR", "PRIORITY does not go with FAIR" },
    { &SYNTAX_MLOCK, "2 a b QUEUE 1", "unknown option 'QUEUE' for MLOCK" },
    { &SYNTAX_UNLOCK, "a PRIORITY 1", "'PRIORITY'" },
    { &SYNTAX_UNLOCK, "a TO short", "TO must be 16..64" },
    { &SYNTAX_LOCK, "a WAIT 0 ATLEAST 99", "ATLEAST must be 100..86400000" },
    { &SYNTAX_LOCK, "a WAIT 0 ATLEAST 86400001", "ATLEAST must be 100..86400000" },
    { &SYNTAX_LOCK, "a ATLEAST 100", "ATLEAST needs WAIT 0" },
    { &SYNTAX_LOCK, "a WAIT 1 ATLEAST 100", "ATLEAST needs WAIT 0" },
    { &SYNTAX_LOCK, "a WAIT 0 OWNER o ATLEAST 100", "ATLEAST does not go with OWNER" },
    { &SYNTAX_LOCK, "a FAIR WAIT 0 ATLEAST 100", "ATLEAST does not go with FAIR" },
    { &SYNTAX_LOCK, "a WAIT 0 QUEUE 1 ATLEAST 100", "ATLEAST does not go with QUEUE" },
    { &SYNTAX_LOCK, "a WAIT 0 PRIORITY 1 ATLEAST 100",
      "ATLEAST does not go with PRIORITY" },
    { &SYNTAX_LOCK, "a LOCAL WAIT 0 ATLEAST 100", "LOCAL does not go with ATLEAST" },
    { &SYNTAX_MLOCK, "1 a WAIT 0 ATLEAST 100", "unknown option 'ATLEAST'" },
    { &SYNTAX_LOCK, "a TRACE 012345678901234567890123456789012345678901234567890123",
      "TRACE must be 55..128" },
    { &SYNTAX_LOCK, "a TRACE " X64 X64 "x", "TRACE must be 55..128" },
    { &SYNTAX_UNLOCK, "a TRACE " X64, "unknown option 'TRACE'" },
    { &SYNTAX_LOCK, "a TO " ID16, "unknown option 'TO'" },
    { &SYNTAX_UNLOCK, "a HEARTBEAT 500", "unknown option 'HEARTBEAT'" },
    { &SYNTAX_LOCK, "a READ WRITE", "only one of FAIR, READ, WRITE or PERMITS" },
    { &SYNTAX_LOCK, "a FAIR WAIT 0 write", "only one of FAIR, READ, WRITE or PERMITS" },
    { &SYNTAX_LOCK, "a FAIR FAIR", "FAIR is given twice" },
    { &SYNTAX_LOCK, "a READ PERMITS 1", "only one of FAIR, READ, WRITE or PERMITS" },
    { &SYNTAX_LOCK, "a PERMITS 1 FAIR", "only one of FAIR, READ, WRITE or PERMITS" },
    { &SYNTAX_LOCK, "a PERMITS 0", "PERMITS must be 1..1000" },
    { &SYNTAX_LOCK, "a PERMITS 1001", "PERMITS must be 1..1000" },
    { &SYNTAX_LOCK, "a PERMITS -1", "PERMITS must be 1..1000" },
    { &SYNTAX_LOCK, "a PERMITS 1 OF 0", "OF must be 1..2147483647" },
    { &SYNTAX_LOCK, "a PERMITS 1 OF 2147483648", "OF must be 1..2147483647" },
    { &SYNTAX_LOCK, "a PERMITS 1 OF 4294967297", "OF must be 1..2147483647" },
    { &SYNTAX_LOCK, "a PERMITS", "option PERMITS needs a value" },
    { &SYNTAX_LOCK, "a PERMITS 1 OF", "option OF needs a value" },
    { &SYNTAX_LOCK, "a PERMITS 1 PERMITS 1", "PERMITS is given twice" },
    { &SYNTAX_LOCK, "a OF 3", "OF needs PERMITS" },
    { &SYNTAX_LOCK, "a PERMITS 4 OF 3", "PERMITS must be at most OF" },
    { &SYNTAX_LOCK, "a PERMITS 1 OWNER joe", "PERMITS does not go with OWNER" },
    { &SYNTAX_LOCK, "a PERMITS 1 LOCAL", "LOCAL does not go with PERMITS" },
    { &SYNTAX_UNLOCK, "a PERMITS 1", "'PERMITS'" },
    { &SYNTAX_RENEW, "a PERMITS 1", "'PERMITS'" },
    { &SYNTAX_MLOCK, "2 a b PERMITS 1", "'PERMITS'" },
    { &SYNTAX_LOCK, "a LOCAL FAIR", "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a READ LOCAL", "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a WRITE LOCAL", "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a LOCAL OWNER joe", "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a LOCAL ID " ID16, "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a LOCAL KEEP 5 ID " ID16, "LOCAL does not go with" },
    { &SYNTAX_LOCK, "a LOCAL LOCAL", "LOCAL is given twice" },
    { &SYNTAX_UNLOCK, "a LOCAL", "'LOCAL'" },
    { &SYNTAX_RENEW, "a LOCAL", "'LOCAL'" },
    { &SYNTAX_MLOCK, "1 a LOCAL", "unknown option 'LOCAL' for MLOCK" },
    { &SYNTAX_UNLOCK, "a WAIT 5", "'WAIT'" },
    { &SYNTAX_UNLOCK, "a TOKEN 0", "TOKEN must be 1..9007199254740992" },
    { &SYNTAX_UNLOCK, "a TOKEN 9007199254740993", "TOKEN must be" },
    { &SYNTAX_UNLOCK, "a TOKEN -5", "TOKEN must be" },
    { &SYNTAX_UNLOCK, "a READ WRITE", "only one of READ or WRITE" },
    { &SYNTAX_UNLOCK, "a FAIR", "'FAIR'" },
    { &SYNTAX_UNLOCK, "a LEASE 5000", "'LEASE'" },
    { &SYNTAX_RENEW, "a LEASE 99", "LEASE must be" },
    { &SYNTAX_RENEW, "a VALUE v TOKEN 5", "VALUE does not go with TOKEN" },
    { &SYNTAX_RENEW, "a VALUE " X64 X64 X64 X64 X64 X64 X64 X64 "x",
      "VALUE must be 0..512 bytes" },
    { &SYNTAX_RENEW, "a READ VALUE v",
      "VALUE does not go with READ: it goes with LEASE only" },
    { &SYNTAX_UNLOCK, "a VALUE v", "'VALUE'" },
    { &SYNTAX_RENEW, "a KEEP 99", "'KEEP'" },
    { &SYNTAX_RENEW, "a FAIR", "'FAIR'" },
    { &SYNTAX_RENEW, "a WRITE TOKEN 5 READ", "only one of READ or WRITE" },
    { &SYNTAX_CANCEL, "a READ", "'READ'" },
    { &SYNTAX_FORCEUNLOCK, "a WRITE", "'WRITE'" },
    { &SYNTAX_CANCEL, "a", "CANCEL needs exactly one of OWNER or ID" },
    { &SYNTAX_CANCEL, "a OWNER joe ID " ID16, "exactly one" },
    { &SYNTAX_CANCEL, "a TOKEN 5", "'TOKEN'" },
    { &SYNTAX_FORCEUNLOCK, "a", "exactly one of TOKEN, OWNER or ANY" },
    { &SYNTAX_FORCEUNLOCK, "a ANY TOKEN 5", "exactly one" },
    { &SYNTAX_FORCEUNLOCK, "a OWNER joe ANY", "exactly one" },
    { &SYNTAX_LOCKINFO, "a x", "takes no options" },
    { &SYNTAX_LOCKINFO, "", "name" },
    { &SYNTAX_LOCKS, "COUNT 0", "COUNT must be 1..1000" },
    { &SYNTAX_LOCKS, "COUNT 1001", "COUNT must be 1..1000" },
    { &SYNTAX_LOCKS, "CURSOR x", "CURSOR must be" },
    { &SYNTAX_LOCKS, "TOP 0", "TOP must be 1..100" },
    { &SYNTAX_LOCKS, "TOP 101", "TOP must be 1..100" },
    { &SYNTAX_LOCKS, "TOP 5 COUNT 3", "TOP does not go with COUNT: it goes alone" },
    { &SYNTAX_LOCKS, "REDIS TOP 5", "TOP does not go with REDIS" },
    { &SYNTAX_LOCKS, "REDIS redis", "REDIS is given twice" },
    { &SYNTAX_LOCKS, "REDIS COUNT 1001", "COUNT must be 1..1000" },
    { &SYNTAX_LOCKS, "MATCH", "MATCH needs a value" },
    { &SYNTAX_LOCKS, "MATCH " X64 X64 X64 X64 X64 X64 X64 X64 ID16 "x",
      "MATCH must be 0..528 bytes" },
    { &SYNTAX_WAITERS, "a MATCH x", "'MATCH'" },
    { &SYNTAX_MLOCK, "", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "0 a", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "1001 a", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "-1 a", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "a b", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "02 a b", "count must be 1..1000" },
    { &SYNTAX_MLOCK, "3 a b", "count says 3 names, but only 2 arguments follow" },
    { &SYNTAX_MLOCK, "1 a b", "unknown option 'b' for MLOCK" },
    { &SYNTAX_MLOCK, "2 a a", "name 'a' is given twice" },
    { &SYNTAX_MLOCK, "5 a bb c bb d", "name 'bb' is given twice" },
    { &SYNTAX_MLOCK, "2 a  WAIT 5", "name 2 must be 1..64 bytes" },
    { &SYNTAX_MLOCK, "2 a " X64 "x", "name 2 must be 1..64 bytes" },
    { &SYNTAX_MLOCK, "3 a b latchd:c", "name 3 is reserved" },
    { &SYNTAX_MLOCK, "2 redisson_a b", "name 1 is reserved" },
    { &SYNTAX_MLOCK, "2 a {a}:o:rwlock_timeout:1", "name 2 is reserved" },
    { &SYNTAX_MLOCK, "2 a b FAIR", "'FAIR'" },
    { &SYNTAX_MLOCK, "2 a b READ", "'READ'" },
    { &SYNTAX_MLOCK, "2 a b TOKEN 5", "'TOKEN'" },
    { &SYNTAX_MLOCK, "2 a b WAIT", "option WAIT needs a value" },
    { &SYNTAX_MLOCK, "2 a b KEEP 5", "KEEP needs ID" },
    { &SYNTAX_MLOCK, "2 a b GRACE 0 LEASE 500",
      "LEASE does not go with GRACE: a fixed lease" },
};

START_TEST(a_bad_combination_is_refused_with_its_reason, TEST_ROWS(BAD))
{
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert_msg(!parse(BAD[_i].syntax, &LIMITS, BAD[_i].line, &args, text),
                  "%s %s was taken", BAD[_i].syntax->command, BAD[_i].line);
    ck_assert_msg(strstr(text, BAD[_i].text) != NULL, "%s %s: %s",
                  BAD[_i].syntax->command, BAD[_i].line, text);
}

static const struct {
    const struct lock_syntax *syntax;
    const char *line;
    unsigned has;
} GOOD[] = {
    { &SYNTAX_LOCK, "a", 0 },
    { &SYNTAX_LOCK, X64, 0 },
    { &SYNTAX_LOCK, "Latchd:x WAIT 0", OPT_WAIT },
    { &SYNTAX_LOCK, "a wait 9007199254740992", OPT_WAIT },
    { &SYNTAX_LOCK, "a LEASE 100", OPT_LEASE },
    { &SYNTAX_LOCK, "a LEASE 86400000 WAIT 5", OPT_LEASE | OPT_WAIT },
    { &SYNTAX_LOCK, "a OWNER WAIT WAIT 5", OPT_OWNER | OPT_WAIT },
    { &SYNTAX_LOCK, "a OWNER " X64 X64, OPT_OWNER },
    { &SYNTAX_LOCK, "a OWNER modes", OPT_OWNER },
    { &SYNTAX_LOCK, "a KEEP 0 ID " ID16, OPT_KEEP | OPT_ID },
    { &SYNTAX_LOCK, "a ID " X64 " OWNER joe GRACE 0", OPT_ID | OPT_OWNER | OPT_GRACE },
    { &SYNTAX_LOCK, "a FAIR", OPT_FAIR },
    { &SYNTAX_LOCK, "a LOCAL WAIT 5 GRACE 0", OPT_LOCAL | OPT_WAIT | OPT_GRACE },
    { &SYNTAX_LOCK, "a local LEASE 100", OPT_LOCAL | OPT_LEASE },
    { &SYNTAX_LOCK, "a OWNER LOCAL", OPT_OWNER },
    { &SYNTAX_LOCK, "a WAIT 0 read", OPT_READ | OPT_WAIT },
    { &SYNTAX_LOCK, "a OWNER READ WRITE", OPT_OWNER | OPT_WRITE },
    { &SYNTAX_LOCK, "a PERMITS 1", OPT_PERMITS },
    { &SYNTAX_LOCK, "a PERMITS 1000 WAIT 0", OPT_PERMITS | OPT_WAIT },
    { &SYNTAX_LOCK, "a of 3 permits 3", OPT_PERMITS | OPT_OF },
    { &SYNTAX_LOCK, "a PERMITS 1 OF 2147483647", OPT_PERMITS | OPT_OF },
    { &SYNTAX_LOCK, "a PERMITS 1 ID " ID16 " KEEP 9 GRACE 5",
      OPT_PERMITS | OPT_ID | OPT_KEEP | OPT_GRACE },
    { &SYNTAX_UNLOCK, "a", 0 },
    { &SYNTAX_UNLOCK, "a READ TOKEN 5", OPT_READ | OPT_TOKEN },
    { &SYNTAX_RENEW, "a write", OPT_WRITE },
    { &SYNTAX_RENEW, "a value latchd:v lease 100", OPT_VALUE | OPT_LEASE },
    { &SYNTAX_RENEW, "a VALUE " X64 X64 X64 X64 X64 X64 X64 X64, OPT_VALUE },
    { &SYNTAX_UNLOCK, "a TOKEN 9007199254740992 OWNER x", OPT_TOKEN | OPT_OWNER },
    { &SYNTAX_RENEW, "a LEASE 100 ID " ID16, OPT_LEASE | OPT_ID },
    { &SYNTAX_CANCEL, "a OWNER joe", OPT_OWNER },
    { &SYNTAX_FORCEUNLOCK, "a any", OPT_ANY },
    { &SYNTAX_LOCKINFO, "a", 0 },
    { &SYNTAX_LOCKS, "", 0 },
    { &SYNTAX_LOCKS, "TOP 100", OPT_TOP },
    { &SYNTAX_LOCKS, "MATCH " X64 X64 X64 X64 X64 X64 X64 X64 ID16, OPT_MATCH },
    { &SYNTAX_LOCKS, "REDIS COUNT 1000 MATCH a*", OPT_REDIS | OPT_COUNT | OPT_MATCH },
    { &SYNTAX_LOCKS, "MATCH * COUNT 1000 CURSOR 18446744073709551615",
      OPT_MATCH | OPT_COUNT | OPT_CURSOR },
    { &SYNTAX_WAITERS, "a COUNT 1", OPT_COUNT },
    { &SYNTAX_MLOCK, "1 a", 0 },
    { &SYNTAX_MLOCK, "2 a A WAIT 5", OPT_WAIT },
    { &SYNTAX_MLOCK, "3 WAIT LEASE OWNER OWNER joe LEASE 500", OPT_OWNER | OPT_LEASE },
    { &SYNTAX_UNLOCK, "a TO " ID16, OPT_TO },
    { &SYNTAX_LOCK, "a WAIT 0 ATLEAST 100", OPT_WAIT | OPT_ATLEAST },
    { &SYNTAX_LOCK, "a ATLEAST 86400000 WAIT 0 LEASE 100",
      OPT_WAIT | OPT_ATLEAST | OPT_LEASE },
    { &SYNTAX_LOCK, "a TRACE " X64 X64 " FAIR", OPT_TRACE | OPT_FAIR },
    { &SYNTAX_MLOCK,
      "1 a TRACE 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", OPT_TRACE },
    { &SYNTAX_LOCK, "a HEARTBEAT 200 GRACE 0", OPT_HEARTBEAT | OPT_GRACE },
    { &SYNTAX_MLOCK, "1 a HEARTBEAT 30000", OPT_HEARTBEAT },
    { &SYNTAX_LOCK, "a QUEUE 0 FAIR", OPT_QUEUE | OPT_FAIR },
    { &SYNTAX_LOCK, "a QUEUE 1000000000 PRIORITY 9 LOCAL",
      OPT_QUEUE | OPT_PRIORITY | OPT_LOCAL },
    { &SYNTAX_LOCK, "a PRIORITY 0 PERMITS 2 OF 3",
      OPT_PRIORITY | OPT_PERMITS | OPT_OF },
    { &SYNTAX_MLOCK, "1 a PRIORITY 9", OPT_PRIORITY },
    { &SYNTAX_MLOCK, "2 a b ID " ID16 " KEEP 9 GRACE 5",
      OPT_ID | OPT_KEEP | OPT_GRACE },
};

START_TEST(what_is_listed_is_taken, TEST_ROWS(GOOD))
{
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert_msg(parse(GOOD[_i].syntax, &LIMITS, GOOD[_i].line, &args, text), "%s: %s",
                  GOOD[_i].line, text);
    ck_assert_uint_eq(args.terms.has, GOOD[_i].has);
}

START_TEST(values_arrive)
{
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(parse(&SYNTAX_LOCK, &LIMITS,
                    "job GRACE 7 keep 8 Id " ID16 " owner joe wait 9", &args, text));
    ck_assert_uint_eq(args.terms.permits, 0);
    ck_assert_uint_eq(args.terms.limit, 0);
    ck_assert(span_eq(args.name, SPAN("job")));
    ck_assert(span_eq(args.terms.owner, SPAN("joe")));
    ck_assert(span_eq(args.terms.id, SPAN(ID16)));
    ck_assert_uint_eq(args.terms.grace_ms, 7);
    ck_assert_uint_eq(args.terms.keep_ms, 8);
    ck_assert_uint_eq(args.terms.wait_ms, 9);
    ck_assert_uint_eq(args.terms.lease_ms, 0);
    ck_assert_uint_eq(args.count, ARGS_COUNT_DEFAULT);
    ck_assert(parse(&SYNTAX_LOCK, &LIMITS, "job PERMITS 3 OF 2147483647", &args, text));
    ck_assert_uint_eq(args.terms.permits, 3);
    ck_assert_uint_eq(args.terms.limit, LATCHD_LIMIT_MAX);
}

static const struct {
    const char *line;
    enum lock_kind kind;
} KINDS[] = {
    { "a", KIND_PLAIN },       { "a fair", KIND_FAIR },         { "a READ", KIND_READ },
    { "a Write", KIND_WRITE }, { "a Permits 2", KIND_PERMITS },
};

START_TEST(the_kind_arrives, TEST_ROWS(KINDS))
{
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(parse(&SYNTAX_LOCK, &LIMITS, KINDS[_i].line, &args, text));
    ck_assert_int_eq(args.terms.lock_kind, KINDS[_i].kind);
}

START_TEST(names_arrive_in_the_order_given)
{
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(parse(&SYNTAX_MLOCK, &LIMITS, "3 c WAIT b WAIT 7", &args, text));
    ck_assert_uint_eq(args.name_count, 3);
    ck_assert(span_eq(args.names[0], SPAN("c")));
    ck_assert(span_eq(args.names[1], SPAN("WAIT")));
    ck_assert(span_eq(args.names[2], SPAN("b")));
    ck_assert_uint_eq(args.terms.wait_ms, 7);
}

START_TEST(as_many_names_as_the_limit_says)
{
    static char words[LATCHD_MLOCK_MAX][8];
    static struct span argv[LATCHD_MLOCK_MAX + 1];
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    argv[0] = SPAN("1000");
    for (size_t i = 0; i < LATCHD_MLOCK_MAX; i++) {
        argv[i + 1] = span_of(words[i], (size_t)sprintf(words[i], "n%zu", 999 - i));
    }
    ck_assert(lock_args_parse(&SYNTAX_MLOCK, &LIMITS, argv, LATCHD_MLOCK_MAX + 1, &args,
                              text));
    ck_assert_uint_eq(args.name_count, LATCHD_MLOCK_MAX);
    argv[17] = argv[970];
    ck_assert(!lock_args_parse(&SYNTAX_MLOCK, &LIMITS, argv, LATCHD_MLOCK_MAX + 1,
                               &args, text));
    ck_assert_str_eq(text, "name 'n30' is given twice");
}

START_TEST(a_heartbeat_is_a_lease_or_a_minute_at_most)
{
    struct cmd_limits limits = LIMITS;
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(!parse(&SYNTAX_LOCK, &limits, "a HEARTBEAT 30001", &args, text));
    ck_assert_ptr_nonnull(strstr(text, "200..30000 milliseconds (watchdog-timeout)"));
    limits.watchdog_ms = 3600000;
    ck_assert(parse(&SYNTAX_LOCK, &limits, "a HEARTBEAT 60000", &args, text));
    ck_assert_uint_eq(args.terms.heartbeat_ms, LATCHD_HEARTBEAT_MAX_MS);
    ck_assert(!parse(&SYNTAX_LOCK, &limits, "a HEARTBEAT 60001", &args, text));
    ck_assert_str_eq(text, "HEARTBEAT must be 200..60000 milliseconds");
}

START_TEST(a_limit_of_the_wait_makes_it_mandatory)
{
    struct cmd_limits limits = LIMITS;
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    limits.max_wait_ms = 5000;
    ck_assert(!parse(&SYNTAX_LOCK, &limits, "a", &args, text));
    ck_assert_str_eq(text, "WAIT is needed here: 0..5000 milliseconds (max-wait)");
    ck_assert(!parse(&SYNTAX_LOCK, &limits, "a WAIT 5001", &args, text));
    ck_assert_str_eq(text, "WAIT must be 0..5000 milliseconds (max-wait)");
    ck_assert(parse(&SYNTAX_LOCK, &limits, "a WAIT 5000", &args, text));
    ck_assert(!parse(&SYNTAX_MLOCK, &limits, "1 a", &args, text));
}

static const struct {
    const char *name;
    bool good;
} TAGGED[] = {
    { "a", true },      { "a{b}c", true },   { "{b}", true },    { "{}", false },
    { "a{b", false },   { "a}b", false },    { "a}b{", false },  { "}a{b}", false },
    { "{{b}}", false }, { "{a}{b}", false }, { "{a}b}", false }, { "{a{b}", false },
};

START_TEST(in_a_cluster_a_name_has_one_tag_at_most, TEST_ROWS(TAGGED))
{
    struct cmd_limits limits = LIMITS;
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(parse(&SYNTAX_LOCK, &limits, TAGGED[_i].name, &args, text));
    limits.one_tag = true;
    ck_assert_msg(parse(&SYNTAX_LOCK, &limits, TAGGED[_i].name, &args, text) ==
                      TAGGED[_i].good,
                  "%s", TAGGED[_i].name);
    if (!TAGGED[_i].good) {
        ck_assert_str_eq(text,
                         "name must have no brace, or one {tag}, in a Redis Cluster");
    }
}

/* Redisson's channel of a latch has braces around the name, whatever the name has. */
START_TEST(a_latch_in_a_cluster_has_no_brace, TEST_ROWS(TAGGED))
{
    bool is_braced = strpbrk(TAGGED[_i].name, "{}") != NULL;
    struct cmd_limits limits = LIMITS;
    struct lock_args args;
    char text[ARGS_ERROR_ROOM];

    ck_assert(parse(&SYNTAX_LATCH_AWAIT, &limits, TAGGED[_i].name, &args, text));
    limits.one_tag = true;
    ck_assert(parse(&SYNTAX_LATCH_AWAIT, &limits, TAGGED[_i].name, &args, text) ==
              !is_braced);
    if (TAGGED[_i].good && is_braced) {
        ck_assert_str_eq(text, "name of a latch must have no brace in a Redis Cluster");
    }
}
