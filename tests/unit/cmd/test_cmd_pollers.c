/* Lock libraries that ask again and again: who is known, and who waits in the queue. */
#include "unit/cmd/cmd_fake.h"

#include "cmd/library_call.h"
#include "support/runner.h"

enum { PARK_MS = 80, NOW_MS = 5000 };

static void setup(void)
{
    struct cmd_limits limits = FAKE_LIBRARY_LIMITS;

    limits.library_park_ms = PARK_MS;
    fake_setup();
    cmd_set_limits(fake.cmd, &limits);
    fake.now_ms = NOW_MS;
}

/* Asks; *ret is what the engine was asked for. */
static void ask_lock(const char *line)
{
    ck_assert_str_eq(fake_run(me, line), "");
    ck_assert_str_eq(fake.asked, "lock");
}

static void ask_in_vain(const char *line)
{
    ask_lock(line);
    fake_answer(REPLY_NULL, 0, 0);
    ck_assert(fake_output(me)[0] != '\0');
}

#define TAKE "SET job v NX PX 30000"

TEST_GROUP(.setup = setup, .teardown = fake_teardown);

START_TEST(who_asks_once_is_answered_at_once_and_who_comes_again_waits)
{
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
    ck_assert_uint_eq(fake.lock.polls_since, 0);
    fake.now_ms += 100;
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, PARK_MS);
    ck_assert_uint_eq(fake.lock.polls_since, NOW_MS);
    fake.now_ms += POLLER_KNOWN_MS; /* from its last answer on */
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.polls_since, NOW_MS);
    fake.now_ms += POLLER_KNOWN_MS + 1;
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

START_TEST(who_has_got_it_is_a_stranger_again)
{
    ask_in_vain(TAKE);
    ask_lock(TAKE);
    fake_answer(REPLY_TOKEN, 5, 9);
    ck_assert_str_eq(fake_output(me), "+OK\r\n");
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

START_TEST(a_wait_is_a_small_part_of_the_time_asked_for, 4)
{
    static const struct {
        const char *line;
        uint64_t wait_ms;
    } ROWS[] = {
        { "SET job v NX PX 1000", 40 },
        { "SET job v NX PX 2000", PARK_MS },
        { "SET job v NX PX 24", 0 },
        { "SET job v NX", PARK_MS },
    };

    ask_in_vain(ROWS[_i].line);
    ask_in_vain(ROWS[_i].line);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, ROWS[_i].wait_ms);
    ck_assert_int_eq(fake.lock.polls_since != 0, ROWS[_i].wait_ms > 0);
}

START_TEST(another_key_value_or_address_is_somebody_else)
{
    ask_in_vain(TAKE);
    ask_in_vain("SET job2 v NX PX 30000");
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
    ask_in_vain("SET job w NX PX 30000");
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
    (void)snprintf(fake.peer, sizeof(fake.peer), "127.0.0.2:5");
    (void)fake_run(fake_open(1), TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

#define ACQUIRE "EVAL return(redis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]))"

START_TEST(a_script_that_acquires_waits_as_well)
{
    ask_in_vain(ACQUIRE " 1 job v 30000");
    ask_in_vain(ACQUIRE " 1 job v 30000");
    ck_assert_uint_eq(fake.lock.terms.wait_ms, PARK_MS);
}

START_TEST(nobody_waits_where_others_wait_for_the_reply)
{
    ask_in_vain(TAKE);
    (void)fake_send(me, TAKE, true); /* more is behind it */
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
    fake_answer(REPLY_NULL, 0, 0);
    (void)fake_run(me, "MULTI");
    (void)fake_run(me, TAKE);
    (void)fake_run(me, "EXEC");
    fake_settle();
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

START_TEST(nobody_waits_where_there_is_no_room)
{
    ask_in_vain(TAKE);
    fake.full = true;
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

START_TEST(the_next_command_ends_the_wait)
{
    ask_in_vain(TAKE);
    ask_lock(TAKE);
    ck_assert(me->awaited && !me->suspended);
    ck_assert_str_eq(fake_run(me, "PING"), "");
    ck_assert_str_eq(fake.asked, "end wait");
    fake_answer(REPLY_NULL, 0, 0);
    fake_settle();
    ck_assert_str_eq(fake_output(me), "$-1\r\n+PONG\r\n");
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(a_grant_that_comes_meanwhile_is_answered_before_the_next_command)
{
    ask_in_vain(TAKE);
    ask_lock(TAKE);
    (void)fake_run(me, "PING");
    fake_answer(REPLY_TOKEN, 5, 9);
    fake_settle();
    ck_assert_str_eq(fake_output(me), "+OK\r\n+PONG\r\n");
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 1);
}

START_TEST(a_command_that_does_not_wait_is_not_ended)
{
    ask_lock(TAKE);
    (void)fake_run(me, "PING");
    ck_assert_str_eq(fake.asked, "");
}

START_TEST(it_can_be_turned_off)
{
    struct cmd_limits off = FAKE_LIBRARY_LIMITS;

    ask_in_vain(TAKE);
    cmd_set_limits(fake.cmd, &off);
    ask_in_vain(TAKE);
    ck_assert_uint_eq(fake.lock.terms.wait_ms, 0);
}

TEST_GROUP();

START_TEST(the_one_that_came_longest_ago_is_forgotten_first)
{
    struct recent recent;
    struct recent *p = &recent;

    pollers_init(p);
    for (uint64_t i = 1; i <= POLLERS_MAX; i++) {
        pollers_remember(p, i, i, NOW_MS);
    }
    ck_assert_uint_eq(p->count, POLLERS_MAX);
    pollers_remember(p, 1, 1, NOW_MS); /* came back */
    pollers_remember(p, POLLERS_MAX + 1, 7, NOW_MS);
    ck_assert_uint_eq(p->count, POLLERS_MAX);
    ck_assert_uint_eq(pollers_since(p, 1, NOW_MS), 1);
    ck_assert_uint_eq(pollers_since(p, 2, NOW_MS), 0);
    ck_assert_uint_eq(pollers_since(p, 3, NOW_MS), 3);
    pollers_expire(p, NOW_MS + POLLER_KNOWN_MS);
    ck_assert_uint_eq(p->count, POLLERS_MAX);
    pollers_expire(p, NOW_MS + POLLER_KNOWN_MS + 1);
    ck_assert_uint_eq(p->count, 0);
    recent_fini(p);
}
