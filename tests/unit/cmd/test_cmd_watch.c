/* WATCH: what it remembers, and what EXEC compares, over a fake engine. */
#include "unit/cmd/cmd_fake.h"

#include "cmd/library_args.h"
#include "support/runner.h"

#include <stdio.h>

#define MINE "latchd:value:0123456789abcdef:7:aa:v"
#define AGAIN                                                                          \
    "latchd:value:0123456789abcdef:8:aa:v" /* the same value, another hold             \
                                            */
#define DISCARDED "-EXECABORT Transaction discarded: after WATCH it must be one DEL"
#define CHANGED "*-1\r\n"

/* The engine says who holds what it was asked about; NULL: nobody. */
static const char *tell_hold(const char *owner, uint64_t token)
{
    struct hold_view hold = { .owner = owner == NULL ? SPAN_NONE : span_str(owner),
                              .token = token };
    struct lock_info info = { .holds = &hold, .hold_count = owner != NULL };

    ck_assert_str_eq(fake.asked, "lockinfo");
    return fake_hear(me, fake.hold.from,
                     (struct effect_reply){ .kind = REPLY_INFO, .info = &info });
}

static void watch_key(const char *owner, uint64_t token)
{
    expect_text(fake_run(me, "WATCH job"), "");
    expect_text(tell_hold(owner, token), "+OK\r\n");
}

/* Queues one command, and has EXEC run. */
static const char *exec_line(const char *line)
{
    expect_text(fake_run(me, "MULTI"), "+OK\r\n");
    expect_text(fake_run(me, line), "+QUEUED\r\n");
    return fake_run(me, "EXEC");
}

TEST_GROUP(.setup = fake_setup_libraries, .teardown = fake_teardown);

static const struct {
    const char *line, *asked;
    uint64_t lease_ms;
} ACTS[] = {
    { "DEL job", "unlock", 0 },        { "UNLINK job", "unlock", 0 },
    { "EXPIRE job 7", "renew", 7000 }, { "PEXPIRE job 7", "renew", 7 },
    { "EXPIREAT job 1", "unlock", 0 }, { "PEXPIREAT job 1", "unlock", 0 },
};

START_TEST(what_was_held_is_compared_in_the_same_step, TEST_ROWS(ACTS))
{
    watch_key(MINE, 77);
    expect_text(exec_line(ACTS[_i].line), "");
    expect_text(fake.asked, ACTS[_i].asked);
    ck_assert_uint_eq(fake.hold.lease_ms, ACTS[_i].lease_ms);
    ck_assert_uint_eq(fake.hold.token, 77);
    ck_assert(span_eq(fake.hold.value, SPAN("aa:v")));
    expect_text(fake_hear(me, fake.hold.from, INT(0)), "*1\r\n:1\r\n");
    ck_assert(!me->suspended);
    /* The next one watches nothing. */
    (void)exec_line("DEL job");
    ck_assert_uint_eq(fake.hold.token, 0);
}

START_TEST(who_holds_no_longer_is_null, 2)
{
    if (_i == 1) {
        (void)fake_run(me, "HELLO 3");
    }
    watch_key(MINE, 77);
    (void)exec_line("DEL job");
    fake_answer(REPLY_ERROR, 0, 0); /* not held */
    expect_text(fake_output(me), _i == 1 ? "_\r\n" : CHANGED);
    expect_text(fake_run(me, "PING"), "+PONG\r\n");
}

/* A key that is not a lock library's is never acted on. */
START_TEST(a_key_that_is_free_or_anothers_is_looked_at, 4)
{
    const char *before = _i < 2 ? NULL : "somebody";

    watch_key(before, 5);
    expect_text(exec_line("DEL job"), "");
    expect_text(_i % 2 == 0 ? tell_hold(before, 5) : tell_hold(MINE, 6),
                _i % 2 == 0 ? "*1\r\n:0\r\n" : CHANGED);
}

START_TEST(other_watched_keys_are_looked_at_first, 3)
{
    (void)fake_run(me, "WATCH job b job");
    (void)tell_hold(MINE, 77);
    (void)tell_hold(MINE, 78);
    expect_text(tell_hold(MINE, 79), "+OK\r\n"); /* the first answer counts */
    (void)exec_line("DEL job");
    ck_assert(span_eq(fake.hold.name, SPAN("b")));
    if (_i > 0) {
        expect_text(_i == 1 ? tell_hold(NULL, 0) : tell_hold(AGAIN, 80), CHANGED);
        return;
    }
    expect_text(tell_hold(MINE, 78), "");
    expect_text(fake.asked, "unlock");
    ck_assert_uint_eq(fake.hold.token, 77);
    expect_text(fake_hear(me, fake.hold.from, INT(0)), "*1\r\n:1\r\n");
}

static const char *const OTHER[] = { "GET job", "DEL other", "DEL job job",
                                     "SET job v NX", "UNLOCK job" };

START_TEST(a_transaction_that_watches_does_one_thing, TEST_ROWS(OTHER))
{
    watch_key(MINE, 77);
    ck_assert(starts(exec_line(OTHER[_i]), DISCARDED));
    expect_text(fake.asked, "");
    expect_text(fake_run(me, "EXEC"), "-ERR EXEC without MULTI\r\n");
    (void)exec_line("DEL job"); /* which watches nothing */
    ck_assert_uint_eq(fake.hold.token, 0);
}

START_TEST(none_and_two_commands_are_not_one)
{
    watch_key(MINE, 77);
    (void)fake_run(me, "MULTI");
    ck_assert(starts(fake_run(me, "EXEC"), DISCARDED));
    watch_key(MINE, 77);
    (void)fake_run(me, "MULTI");
    (void)fake_run(me, "DEL job");
    (void)fake_run(me, "DEL job");
    ck_assert(starts(fake_run(me, "EXEC"), DISCARDED));
}

static const char *const FORGET[] = { "UNWATCH", "DISCARD", "RESET" };

START_TEST(these_forget_what_is_watched, TEST_ROWS(FORGET))
{
    watch_key(MINE, 77);
    if (_i == 1) {
        (void)fake_run(me, "MULTI");
    }
    ck_assert_int_eq(fake_run(me, FORGET[_i])[0], '+');
    (void)exec_line("DEL job");
    expect_text(fake.asked, "unlock");
    ck_assert_uint_eq(fake.hold.token, 0);
}

START_TEST(who_cannot_be_told_counts_as_changed)
{
    struct effect_reply down = { .kind = REPLY_ERROR,
                                 .error = LOCK_BACKEND,
                                 .text = SPAN("down") };

    (void)fake_run(me, "WATCH job");
    expect_text(fake_hear(me, fake.hold.from, down), "-BACKEND down\r\n");
    (void)exec_line("DEL job");
    expect_text(tell_hold(NULL, 0), CHANGED);
    watch_key(NULL, 0);
    (void)exec_line("DEL job");
    expect_text(fake_hear(me, fake.hold.from, down), "*1\r\n-BACKEND down\r\n");
}

START_TEST(as_many_keys_are_watched_as_the_limit_says)
{
    char line[32];

    for (int i = 0; i < WATCH_KEYS_MAX; i += 2) {
        (void)snprintf(line, sizeof(line), "WATCH k%d k%d", i, i + 1);
        expect_text(fake_run(me, line), "");
        expect_text(tell_hold(NULL, 0), "");
        expect_text(tell_hold(NULL, 0), "+OK\r\n");
    }
    (void)fake_run(me, "WATCH k1 k2"); /* again: these are none more */
    (void)tell_hold(NULL, 0);
    expect_text(tell_hold(NULL, 0), "+OK\r\n");
    expect_text(fake_run(me, "WATCH one-more"),
                "-LIMIT a connection watches at most 64 keys\r\n");
    expect_text(fake_run(me, "UNWATCH"), "+OK\r\n");
    watch_key(NULL, 0);
}

START_TEST(a_connection_that_closes_meanwhile_leaves_nothing_behind, 2)
{
    (void)fake_run(me, "WATCH a job");
    if (_i == 1) {
        (void)tell_hold(MINE, 5);
        (void)tell_hold(MINE, 6);
        (void)exec_line("DEL job");
    }
    fake_close(me, true);
}

START_TEST(without_lock_libraries_there_is_nothing_to_watch)
{
    struct cmd_limits off = FAKE_LIBRARY_LIMITS;

    off.lock_libraries = false;
    cmd_set_limits(fake.cmd, &off);
    ck_assert(starts(fake_run(me, "WATCH job"), "-ERR WATCH is not supported"));
    expect_text(fake_run(me, "MULTI"), "+OK\r\n");
    expect_text(fake_run(me, "EXEC"), "*0\r\n");
}
