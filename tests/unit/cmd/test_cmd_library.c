/* The plain commands of lock libraries: what they ask of the engine, and reply. */
#include "unit/cmd/cmd_fake.h"

#include "cmd/cmd_priv.h"
#include "cmd/library_args.h"
#include "lockscript/lock_script.h"
#include "support/runner.h"

enum { DAY = 86400000 };

#define OK "+OK\r\n"
#define NULL_2 "$-1\r\n"
#define VALUE_512                                                                      \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"                 \
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* The engine's last answers: yes, and no. Who gives no end asks for a DAY. */
static const struct {
    const char *line, *asked;
    uint64_t lease_ms;
    enum reply_kind yes;
    const char *done, *in_vain;
} CASES[] = {
    { "SET job v NX PX 1", "lock", 1, REPLY_TOKEN, OK, NULL_2 },
    { "set job v px 30000 nx", "lock", 30000, REPLY_TOKEN, OK, NULL_2 },
    { "SET job v Ex 3 Nx", "lock", 3000, REPLY_TOKEN, OK, NULL_2 },
    { "SET job v NX", "lock", DAY, REPLY_TOKEN, OK, NULL_2 },
    { "SET job " VALUE_512 " NX", "lock", DAY, REPLY_TOKEN, OK, NULL_2 },
    { "SETNX job v", "lock", DAY, REPLY_TOKEN, ":1\r\n", ":0\r\n" },
    { "SET job  NX", "lock", DAY, REPLY_TOKEN, OK, NULL_2 },
    { "SET job v XX", "renew", DAY, REPLY_INT, OK, NULL_2 },
    { "SET job v XX PX 700", "renew", 700, REPLY_INT, OK, NULL_2 },
    { "EXPIRE job 7", "renew", 7000, REPLY_INT, ":1\r\n", ":0\r\n" },
    { "PEXPIRE job 7", "renew", 7, REPLY_INT, ":1\r\n", ":0\r\n" },
    { "PEXPIRE job 0", "unlock", 0, REPLY_INT, ":1\r\n", ":0\r\n" },
    { "EXPIREAT job 1", "unlock", 0, REPLY_INT, ":1\r\n", ":0\r\n" },
    { "DEL job", "unlock", 0, REPLY_INT, ":1\r\n", ":0\r\n" },
    { "UNLINK job", "unlock", 0, REPLY_INT, ":1\r\n", ":0\r\n" },
};

enum { CASE_COUNT = sizeof(CASES) / sizeof(CASES[0]) };

TEST_GROUP(.setup = fake_setup_libraries, .teardown = fake_teardown);

START_TEST(each_command_asks_the_engine_and_replies_as_redis_does, CASE_COUNT)
{
    for (int yes = 0; yes <= 1; yes++) {
        bool takes = strcmp(CASES[_i].asked, "lock") == 0;

        ck_assert_str_eq(fake_run(me, CASES[_i].line), "");
        ck_assert_str_eq(fake.asked, CASES[_i].asked);
        ck_assert_uint_eq(takes ? fake.lock.terms.lease_ms : fake.hold.lease_ms,
                          CASES[_i].lease_ms);
        if (takes) {
            ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
            ck_assert_uint_eq(
                fake.lock.terms.has,
                OPT_WAIT | (CASES[_i].lease_ms == DAY ? OPT_ENDLESS : OPT_LEASE));
        } else {
            ck_assert_int_eq(fake.hold.endless, CASES[_i].lease_ms == DAY);
        }
        fake_answer(yes == 1 ? CASES[_i].yes : takes ? REPLY_NULL : REPLY_ERROR, 0, 9);
        ck_assert_str_eq(fake_output(me),
                         yes == 1 ? CASES[_i].done : CASES[_i].in_vain);
    }
}

static const struct {
    const char *line, *reply;
} REFUSED[] = {
    { "SET job v",
      "-ERR latchd keeps locks, not data: SET without NX, which takes a free lock, or "
      "XX is not served\r\n" },
    { "SET job v NX GET",
      "-ERR latchd keeps locks, not data: SET with GET is not served\r\n" },
    { "SET job v NX XX", "-ERR syntax error\r\n" },
    { "SET job v NX PX", "-ERR syntax error\r\n" },
    { "SET job v NX PX 5 EX 5", "-ERR syntax error\r\n" },
    { "SET job v NX PX x", "-ERR value is not an integer or out of range\r\n" },
    { "SET job v NX PX 0", "-ERR invalid expire time in 'set' command\r\n" },
    { "SET job v NX EX 9223372036854775807",
      "-ERR invalid expire time in 'set' command\r\n" },
    { "SET job v NX PX 86400001",
      "-ERR the time to live must be at most 86400000 ms (max-lease)\r\n" },
    { "SET job latchd:v NX",
      "-ERR the value of a lock must not begin with 'latchd:'\r\n" },
    { "SET job " VALUE_512 "x NX",
      "-ERR the value of a lock must be at most 512 bytes\r\n" },
    { "SET latchd:job v NX",
      "-ERR name is reserved: it begins with 'latchd:' or 'redisson_'\r\n" },
    /* Redis says OK, and has nothing. */
    { "SET job v NX PXAT 1", NULL_2 },
    { "GET latchd:job", NULL_2 },
    { "TTL redisson_x", ":-2\r\n" },
};

enum { REFUSED_COUNT = sizeof(REFUSED) / sizeof(REFUSED[0]) };

START_TEST(what_is_no_lock_never_reaches_the_engine, REFUSED_COUNT)
{
    ck_assert_str_eq(fake_run(me, REFUSED[_i].line), REFUSED[_i].reply);
    ck_assert_str_eq(fake.asked, "");
    ck_assert(!me->suspended && !me->awaited);
}

#define RELEASE "c3f8721cbb97f72bc19e972846bd7aaf91901658" /* of redis-py's Lock */
#define EXTEND "a4e8783852e6b949f9ef3a97212805108459a890"
#define OBTAIN "80a1b5f2cfccec3b7119ba7721d2127682b691a7" /* of redislock */

START_TEST(a_known_script_is_what_it_does_to_a_lock)
{
    ck_assert_str_eq(fake_run(me, "EVALSHA " RELEASE " 1 job v"), "");
    ck_assert_str_eq(fake.asked, "unlock");
    ck_assert(span_eq(fake.hold.name, SPAN("job")));
    ck_assert(span_eq(fake.hold.value, SPAN("*:v")));
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), ":1\r\n");
    (void)fake_run(me, "evalsha " RELEASE " 1 job v");
    fake_answer(REPLY_ERROR, 0, 0); /* not held */
    ck_assert_str_eq(fake_output(me), ":0\r\n");
}

/* The time is added to what is left, which has to be asked for. */
START_TEST(a_script_that_depends_on_more_asks_for_it_first)
{
    struct hold_view hold = { .owner = SPAN("latchd:value:0123456789abcdef:7:00:v") };
    struct lock_info info = { .holds = &hold, .hold_count = 1, .ttl_ms = 5000 };
    struct effect_reply told = { .kind = REPLY_INFO, .info = &info };

    (void)fake_run(me, "EVALSHA " EXTEND " 1 job v 1000 0");
    ck_assert_str_eq(fake.asked, "lockinfo");
    ck_assert_str_eq(fake_hear(me, fake.hold.from, told), "");
    ck_assert_str_eq(fake.asked, "renew");
    ck_assert_uint_eq(fake.hold.lease_ms, 6000);
    fake_answer(REPLY_INT, 6000, 0);
    ck_assert_str_eq(fake_output(me), ":1\r\n");
    (void)fake_run(me, "EVALSHA " EXTEND " 1 job w 1000 0"); /* another's */
    ck_assert_str_eq(fake_hear(me, fake.hold.from, told), ":0\r\n");
}

START_TEST(a_lock_that_is_anothers_needs_no_look)
{
    (void)fake_run(me, "EVALSHA " OBTAIN " 1 job v 1 1000");
    ck_assert_str_eq(fake.asked, "lock");
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert_str_eq(fake.asked, "renew");
    fake_answer(REPLY_ERROR, 0, 0); /* not held */
    ck_assert_str_eq(fake_output(me), NULL_2);
}

#define TAKE "redis.call('set',KEYS[1],ARGV[1],'NX','PX',9)and'mine'or"
#define TELL_MS "EVAL return(" TAKE "(redis.call('pttl',KEYS[1]))) 1 job v"
#define TELL_S "EVAL return(" TAKE "(redis.call('ttl',KEYS[1]))) 1 job v"
#define TELL_VALUE "EVAL return(" TAKE "(redis.call('get',KEYS[1]))) 1 job v"

/* By the time of the look the lock is nearly over, or over: 0, or nothing, would look
 * as if it were the asker's. */
START_TEST(a_lock_that_was_not_taken_is_anothers_though_it_is_free_by_now)
{
    static const struct {
        const char *line;
        int64_t ttl_ms; /* -2: free */
        const char *reply;
    } LINES[] = {
        { TELL_MS, 700, ":700\r\n" },
        { TELL_MS, 0, ":1\r\n" },
        { TELL_MS, -2, ":1\r\n" },
        { TELL_S, 1600, ":2\r\n" },
        { TELL_S, 300, ":1\r\n" },
        { TELL_S, -2, ":1\r\n" },
        { TELL_VALUE, 700, "$1\r\nw\r\n" },
        { TELL_VALUE, -2, "$12\r\nlatchd:held:\r\n" },
    };

    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        struct hold_view hold = { .owner =
                                      SPAN("latchd:value:0123456789abcdef:7:0:w") };
        struct lock_info info = { .holds = &hold,
                                  .hold_count = LINES[i].ttl_ms != -2,
                                  .ttl_ms = LINES[i].ttl_ms };
        struct effect_reply told = { .kind = REPLY_INFO, .info = &info };

        ck_assert_str_eq(fake_run(me, LINES[i].line), "");
        ck_assert_str_eq(fake.asked, "lock");
        fake_answer(REPLY_NULL, 0, 0);
        ck_assert_str_eq(fake.asked, "lockinfo");
        ck_assert_str_eq(fake_hear(me, fake.hold.from, told), LINES[i].reply);
    }
}

/* The words of a reply are a script's, which may be forgotten meanwhile. */
START_TEST(a_reply_outlives_the_script_that_has_its_words)
{
    ck_assert_str_eq(
        fake_run(me, "EVAL if\tredis.call('set',KEYS[1],ARGV[1],'NX')then\treturn{1}"
                     "end\treturn{0,'not'} 1 job v"),
        "");
    lock_script_cache_flush(fake.cmd->scripts);
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert_str_eq(fake_output(me), "*2\r\n:0\r\n$3\r\nnot\r\n");
}

/* A script that compares no value, of a lock that latchd does not let it change. */
START_TEST(a_script_that_did_nothing_to_anothers_lock_says_so)
{
    static const struct {
        const char *owner, *reply;
    } LINES[] = {
        { "", "$4\r\nfree\r\n" },
        { "latchd:value:0123456789abcdef:7:0:w", "-ERR nothing was done: " },
        { "somebody's", "-ERR nothing was done: " },
    };

    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        struct hold_view hold = { .owner = span_str(LINES[i].owner) };
        struct lock_info info = { .holds = &hold,
                                  .hold_count = LINES[i].owner[0] != '\0',
                                  .ttl_ms = 700 };
        struct effect_reply told = { .kind = REPLY_INFO, .info = &info };

        (void)fake_run(me,
                       "EVAL return(redis.call('del',KEYS[1])==1)and'freed'or'free' 1 "
                       "job");
        ck_assert_str_eq(fake.asked, "unlock");
        fake_answer(REPLY_ERROR, 0, 0); /* not held */
        ck_assert_str_eq(fake.asked, "lockinfo");
        ck_assert(starts(fake_hear(me, fake.hold.from, told), LINES[i].reply));
    }
}

START_TEST(scripts_and_their_keys_are_checked)
{
    expect_text(fake_run(me, "EVALSHA 0000000000000000000000000000000000000000 1 a"),
                "-NOSCRIPT No matching script. Please use EVAL.\r\n");
    expect_text(fake_run(me, "EVALSHA " RELEASE " 2 a"),
                "-ERR Number of keys can't be greater than number of args\r\n");
    expect_text(fake_run(me, "EVALSHA " RELEASE " -1 a"),
                "-ERR Number of keys can't be negative\r\n");
    expect_text(fake_run(me, "EVALSHA " RELEASE " x a"),
                "-ERR value is not an integer or out of range\r\n");
    ck_assert(starts(fake_run(me, "EVALSHA " RELEASE " 1 job"), "-ERR this script "));
    ck_assert(has(fake_run(me, "EVAL return(redis.call('incr',KEYS[1])) 1 job"),
                  "(line 1: "));
    expect_text(fake_run(me, "SCRIPT EXISTS " RELEASE " x"), "*2\r\n:1\r\n:0\r\n");
    expect_text(fake_run(me, "SCRIPT FLUSH NOW"),
                "-ERR SCRIPT FLUSH only support SYNC|ASYNC option\r\n");
    expect_text(fake_run(me, "SCRIPT FLUSH"), OK);
    expect_text(fake_run(me, "COMMAND GETKEYS EVALSHA x 2 a b c"),
                "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    ck_assert_str_eq(fake.asked, "");
}

#define SELECTS "EVAL redis.pcall('SELECT',tonumber(ARGV[1]));return(redis.call("

START_TEST(a_script_selects_the_database_that_has_the_locks)
{
    struct cmd_limits limits = FAKE_LIBRARY_LIMITS;

    limits.database = 3;
    cmd_set_limits(fake.cmd, &limits);
    ck_assert(starts(fake_run(me, SELECTS "'exists',KEYS[1])) 1 job 1"),
                     "-ERR DB index is out of range: this latchd keeps its locks in "
                     "database 3 of its Redis;"));
    ck_assert_str_eq(fake.asked, "");
    ck_assert_str_eq(fake_run(me, SELECTS "'exists',KEYS[1])) 1 job 3"), "");
    ck_assert_str_eq(fake.asked, "lockinfo");
}

/* The engine says who holds. */
static const char *told_lease(const char *line, const char *owner, int64_t ttl_ms,
                              enum lease_kind lease)
{
    struct hold_view hold = { .owner = span_str(owner), .token = 77, .lease = lease };
    struct lock_info info = { .holds = &hold,
                              .hold_count = owner[0] != '\0',
                              .ttl_ms = ttl_ms };

    ck_assert_str_eq(fake_run(me, line), "");
    ck_assert_str_eq(fake.asked, "lockinfo");
    return fake_hear(me, fake.hold.from,
                     (struct effect_reply){ .kind = REPLY_INFO, .info = &info });
}

static const char *told(const char *line, const char *owner, int64_t ttl_ms)
{
    return told_lease(line, owner, ttl_ms, LEASE_FIXED);
}

#define HELD "latchd:value:0123456789abcdef:7:00:a%20%3Ab"

START_TEST(queries_tell_what_a_library_expects)
{
    ck_assert_str_eq(told("GET job", HELD, 1499), "$4\r\na :b\r\n");
    ck_assert_str_eq(told("PTTL job", HELD, 1499), ":1499\r\n");
    ck_assert_str_eq(told("TTL job", HELD, 1499), ":1\r\n");
    ck_assert_str_eq(told("EXISTS job", HELD, 1499), ":1\r\n");
    ck_assert_str_eq(told("GET job", "", -2), NULL_2);
    ck_assert_str_eq(told("PTTL job", "", -2), ":-2\r\n");
    ck_assert_str_eq(told("EXISTS job", "", -2), ":0\r\n");
    ck_assert_str_eq(told("GET job", "somebody", 5), "$14\r\nlatchd:held:77\r\n");
    ck_assert_str_eq(told("EXISTS job", "somebody", 5), ":1\r\n");
}

START_TEST(a_lock_without_an_end_says_so)
{
    static const struct {
        const char *line, *reply;
    } LINES[] = {
        { "PTTL job", ":-1\r\n" },
        { "TTL job", ":-1\r\n" },
        { "EXISTS job", ":1\r\n" },
        /* Nothing can be added to its time. */
        { "EVALSHA " EXTEND " 1 job v 1000 0", ":0\r\n" },
    };

    for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
        ck_assert_str_eq(told_lease(LINES[i].line,
                                    "latchd:value:0123456789abcdef:7:00:v", 86000000,
                                    LEASE_ENDLESS),
                         LINES[i].reply);
    }
}

static const char *ask_foreign(const char *line, struct span data, int64_t ttl_ms)
{
    ck_assert_str_eq(fake_run(me, line), "");
    return fake_hear(me, fake.hold.from,
                     (struct effect_reply){ .kind = REPLY_ERROR,
                                            .error = LOCK_WRONGTYPE,
                                            .value = ttl_ms,
                                            .data = data });
}

START_TEST(a_string_that_is_no_lock_of_latchd_is_told_as_it_is)
{
    ck_assert_str_eq(ask_foreign("GET job", SPAN("v"), 1499), "$1\r\nv\r\n");
    ck_assert_str_eq(ask_foreign("PTTL job", SPAN("v"), 1499), ":1499\r\n");
    ck_assert_str_eq(ask_foreign("TTL job", SPAN("v"), -1), ":-1\r\n");
    ck_assert_str_eq(ask_foreign("EXISTS job", SPAN("v"), 1499), ":1\r\n");
    ck_assert_str_eq(ask_foreign("GET job", SPAN_NONE, 1499),
                     "$12\r\nlatchd:held:\r\n");
}

START_TEST(several_keys_are_deleted_one_after_the_other)
{
    ck_assert_str_eq(fake_run(me, "DEL a b c"), "");
    ck_assert(span_eq(fake.hold.name, SPAN("a")));
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), "");
    ck_assert(span_eq(fake.hold.name, SPAN("b")));
    fake_answer(REPLY_ERROR, 0, 0); /* not held */
    ck_assert(span_eq(fake.hold.name, SPAN("c")));
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake_output(me), ":2\r\n");
}

START_TEST(an_outage_is_told_and_does_not_look_like_a_free_lock, 4)
{
    static const char *const LINES[] = { "SET job v NX", "DEL job", "GET job",
                                         "PEXPIRE job 5" };
    struct effect_reply down = { .kind = REPLY_ERROR,
                                 .error = LOCK_BACKEND,
                                 .text = SPAN("Redis does not answer") };

    (void)fake_run(me, LINES[_i]);
    ck_assert_str_eq(fake_hear(me, fake.hold.from, down),
                     "-BACKEND Redis does not answer\r\n");
}

START_TEST(the_same_user_has_the_same_origin_from_any_address)
{
    static char first[64];

    (void)fake_run(me, "SET job v NX");
    (void)snprintf(first, sizeof(first), "%.*s", (int)fake.lock.terms.value.len,
                   fake.lock.terms.value.ptr);
    ck_assert_uint_eq(strlen(first), ORIGIN_DIGITS + 2);
    fake_answer(REPLY_TOKEN, 5, 9);
    (void)fake_run(fake_open(1), "SET job v NX"); /* from another port */
    ck_assert(span_eq(fake.lock.terms.value, span_str(first)));
    (void)snprintf(fake.peer, sizeof(fake.peer), "127.0.0.2:5");
    (void)fake_run(fake_open(2), "SET job v NX");
    ck_assert(span_eq(fake.lock.terms.value, span_str(first)));
}

START_TEST(values_are_words_and_can_be_read_back)
{
    char raw[256];
    struct buf text = { 0 }, back = { 0 };

    for (size_t i = 0; i < sizeof(raw); i++) {
        raw[i] = (char)i;
    }
    value_escape(&text, span_of(raw, sizeof(raw)));
    ck_assert_uint_le(buf_len(&text), 3 * sizeof(raw));
    for (size_t i = 0; i < buf_len(&text); i++) {
        ck_assert(strchr(" :*", buf_ptr(&text)[i]) == NULL);
        ck_assert(buf_ptr(&text)[i] > ' ' && buf_ptr(&text)[i] < 0x7f);
    }
    value_unescape(&back, buf_span(&text));
    ck_assert(span_eq(buf_span(&back), span_of(raw, sizeof(raw))));
    buf_reset(&text);
    buf_reset(&back);
}

START_TEST(a_connection_that_closes_meanwhile_leaves_nothing_behind)
{
    (void)fake_run(me, "SET job v NX");
    fake_close(me, true);
    (void)fake_open(0);
    (void)fake_send(me, "DEL a b", true);
    fake_close(me, true);
}

/* Spring Integration's, and what it publishes. */
#define RELEASE_AND_TELL "7a71e9443a2a41539fb115a5a27d5a748a871aed"
#define TOLD "*3\r\n$7\r\nmessage\r\n$6\r\ntold:x\r\n$3\r\njob\r\n"
#define TOLD_P "*4\r\n$8\r\npmessage\r\n$6\r\ntold:*\r\n$6\r\ntold:x\r\n$3\r\njob\r\n"

static const struct {
    const char *subscribe, *heard, *no_more, *message;
    bool hears, publish_fails, later;
} MESSAGES[] = {
    { "SUBSCRIBE told:x", "+told:x", "-told:x", TOLD, .hears = false },
    { "SUBSCRIBE told:x", "+told:x", "-told:x", TOLD, .hears = true, .later = true },
    { "SUBSCRIBE told:x", "+told:x", "-told:x", TOLD, .hears = true,
      .publish_fails = true },
    { "PSUBSCRIBE told:*", "+p:told:*", "-p:told:*", TOLD_P, .hears = false },
    { "PSUBSCRIBE told:*", "+p:told:*", "-p:told:*", TOLD_P, .hears = true,
      .later = true },
};

START_TEST(a_release_sends_the_message_of_its_script_once, TEST_ROWS(MESSAGES))
{
    struct conn *waiter = fake_open(1);
    bool is_pattern = MESSAGES[_i].subscribe[0] == 'P';

    fake.hears = MESSAGES[_i].hears;
    fake.publish_fails = MESSAGES[_i].publish_fails;
    (void)fake_run(waiter, MESSAGES[_i].subscribe);
    ck_assert_str_eq(fake.heard, MESSAGES[_i].heard);
    (void)fake_run(me, "EVALSHA " RELEASE_AND_TELL " 1 job v told:x");
    ck_assert_str_eq(fake.published, "");
    fake_answer(REPLY_INT, 0, 0);
    ck_assert_str_eq(fake.published, "told:x job");
    ck_assert_str_eq(fake_output(waiter),
                     MESSAGES[_i].later ? "" : MESSAGES[_i].message);
    if (MESSAGES[_i].later) {
        cmd_published(fake.cmd, is_pattern ? SPAN("told:*") : SPAN_NONE, SPAN("told:x"),
                      SPAN("job"));
        ck_assert_str_eq(fake_output(waiter), MESSAGES[_i].message);
    }
    fake_close(waiter, false);
    ck_assert_str_eq(fake.heard, MESSAGES[_i].no_more);
}

START_TEST(a_release_in_vain_sends_none)
{
    (void)fake_run(me, "EVALSHA " RELEASE_AND_TELL " 1 job v told");
    fake_answer(REPLY_ERROR, 0, 0); /* not held */
    ck_assert_str_eq(fake.published, "");
}

static const char *const NO_LIBRARYS[] = {
    "SUBSCRIBE granted:job",
    "SUBSCRIBE lost:job",
    "SUBSCRIBE leader:job",
    "SUBSCRIBE latchd:daemons:0",
    "SUBSCRIBE redisson_lock:{job}",
    "SUBSCRIBE __keyevent@0__:expired",
    "PSUBSCRIBE *",
    "PSUBSCRIBE *:job",
    "PSUBSCRIBE lost:*",
    "PSUBSCRIBE ?x",
};

START_TEST(channels_of_latchd_or_redis_are_not_heard_there, TEST_ROWS(NO_LIBRARYS))
{
    (void)fake_run(me, NO_LIBRARYS[_i]);
    ck_assert_str_eq(fake.heard, "");
    cmd_published(fake.cmd, SPAN("l*"), SPAN("lost:job"), SPAN("x"));
    ck_assert(!has(fake_output(me), "\r\nx\r\n"));
}
