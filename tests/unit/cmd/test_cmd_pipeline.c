/* Commands that are in flight together, over a fake connection and a fake engine. */
#include "cmd/pipeline.h"
#include "support/runner.h"
#include "unit/cmd/cmd_fake.h"

#include <stdio.h>

static const char *sends(const char *line)
{
    return fake_send(me, line, true);
}

/* The last of a read. */
static const char *sends_last(const char *line)
{
    return fake_send(me, line, false);
}

static const char *answers(struct call_ref to, struct effect_reply reply)
{
    return fake_hear(me, to, reply);
}

static struct call_ref unlocks(const char *line)
{
    expect_text(sends(line), "");
    ck_assert_str_eq(fake.asked, "unlock");
    return fake.hold.from;
}

TEST_GROUP(.setup = fake_setup, .teardown = fake_teardown);

START_TEST(unlocks_of_other_names_begin_together_and_answer_in_order)
{
    struct call_ref a = unlocks("UNLOCK a"), b = unlocks("UNLOCK b"), c;

    ck_assert(!me->suspended);
    c = unlocks("UNLOCK c");
    expect_text(sends_last("PING"), "");
    ck_assert(me->suspended);
    expect_text(answers(c, INT(3)), "");
    expect_text(answers(b, INT(2)), "");
    ck_assert(me->suspended);
    expect_text(answers(a, INT(1)), ":1\r\n:2\r\n:3\r\n+PONG\r\n");
    ck_assert(!me->suspended);
}

START_TEST(the_same_name_waits, 2)
{
    struct call_ref a = unlocks("UNLOCK a OWNER me");

    expect_text(sends_last(_i == 0 ? "UNLOCK a OWNER me" : "LOCK a"), "");
    ck_assert_str_eq(fake.asked, "");
    ck_assert(me->suspended);
    expect_text(answers(a, INT(1)), ":1\r\n");
    ck_assert_str_eq(fake.asked, _i == 0 ? "unlock" : "lock");
    ck_assert(_i == 0 ? me->suspended : me->awaited);
}

START_TEST(a_command_without_others_is_as_ever)
{
    expect_text(sends_last("LOCK a"), "");
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert(me->awaited && !me->suspended);
    fake_answer(REPLY_TOKEN, 5, 6);
    expect_text(fake_output(me), ":5\r\n");
    ck_assert(!me->awaited && !me->suspended);
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 1);
}

START_TEST(locks_are_gathered_into_a_run)
{
    expect_text(sends("LOCK a WAIT 0"), "");
    expect_text(sends("LOCK b OWNER me ID 0123456789abcdef DATA here"), "");
    ck_assert_str_eq(fake.asked, "");
    expect_text(sends_last("LOCK c LEASE 5000"), "");
    ck_assert_str_eq(fake.asked, "run");
    ck_assert_uint_eq(fake.run_asked, 3);
    ck_assert(span_eq(fake.run[0].name, SPAN("a")));
    ck_assert(span_eq(fake.run[1].terms.owner, SPAN("me")));
    ck_assert(span_eq(fake.run[1].terms.id, SPAN("0123456789abcdef")));
    ck_assert(span_eq(fake.run[1].terms.data, SPAN("here")));
    /* The input is gone by now: both stand in one copy of it. */
    ck_assert_uint_lt((uintptr_t)fake.run[1].terms.data.ptr -
                          (uintptr_t)fake.run[1].terms.id.ptr,
                      sizeof("0123456789abcdef DATA "));
    ck_assert_uint_eq(fake.run[2].terms.lease_ms, 5000);
    ck_assert(me->awaited && !me->suspended);
    expect_text(answers(fake.run[0].from, TOKEN(1)), ":1\r\n");
    expect_text(answers(fake.run[1].from, TOKEN(2)), ":2\r\n");
    expect_text(answers(fake.run[2].from, TOKEN(3)), ":3\r\n");
    ck_assert(!me->suspended);
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 3);
}

START_TEST(what_a_run_did_not_reach_begins_anew_in_its_turn)
{
    struct call_ref first, second;

    (void)sends("LOCK a WAIT 0");
    (void)sends("LOCK b WAIT 0");
    (void)sends("LOCK c WAIT 0");
    expect_text(sends_last("UNLOCK b"), "");
    first = fake.run[0].from;
    second = fake.run[1].from;
    expect_text(answers(fake.run[2].from, UNREACHED), "");
    expect_text(answers(second, UNREACHED), "");
    fake.asked[0] = '\0';
    expect_text(answers(first, NIL), "$-1\r\n");
    ck_assert_str_eq(fake.asked, "run");
    ck_assert_uint_eq(fake.run_asked, 2);
    ck_assert(span_eq(fake.run[0].name, SPAN("b")));
    ck_assert(fake.run[0].from.call != second.call);
    expect_text(answers(fake.run[0].from, TOKEN(7)), ":7\r\n");
    fake.asked[0] = '\0';
    expect_text(answers(fake.run[1].from, TOKEN(8)), ":8\r\n");
    ck_assert_str_eq(fake.asked, "unlock");
}

START_TEST(those_that_do_not_fit_a_run_begin_when_it_is_answered)
{
    fake.run_max = 1;
    (void)sends("LOCK a");
    (void)sends("LOCK b");
    (void)sends_last("LOCK c");
    for (int i = 0; i < 3; i++) {
        struct call_ref to = fake.run[0].from;

        ck_assert_uint_eq(fake.run_asked, (size_t)(3 - i));
        expect_text(answers(to, TOKEN(7)), ":7\r\n");
    }
    ck_assert(!me->suspended);
    ck_assert(has(fake_run(me, "INFO commandstats"), "cmdstat_lock:calls=3,"));
}

START_TEST(a_local_lock_joins_a_run)
{
    struct call_ref a, b;

    (void)sends("LOCK a LOCAL");
    expect_text(sends_last("LOCK b LOCAL"), "");
    ck_assert_str_eq(fake.asked, "run");
    ck_assert_uint_eq(fake.run_asked, 2);
    a = fake.run[0].from;
    b = fake.run[1].from;
    expect_text(answers(a, TOKEN(1)), ":1\r\n");
    expect_text(answers(b, TOKEN(2)), ":2\r\n");
}

START_TEST(a_lock_begins_beside_unlocks_and_its_token_waits_for_them, 3)
{
    struct call_ref a = unlocks("UNLOCK a"), b;

    expect_text(sends_last("LOCK b"), "");
    b = fake.run[0].from;
    expect_text(answers(b, TOKEN(5)), "");
    fake.grant_state = _i == 0 ? GRANT_FRESH : _i == 1 ? GRANT_STALE : GRANT_OVER;
    if (_i == 0) {
        expect_text(answers(a, INT(0)), ":0\r\n:5\r\n");
        ck_assert_uint_eq(fake.undelivered_count, 0);
    } else {
        ck_assert(starts(answers(a, INT(0)), ":0\r\n-BACKEND the replies"));
        ck_assert_uint_eq(fake.undelivered_count, 1);
    }
    ck_assert(!me->suspended);
}

START_TEST(a_token_that_had_to_wait_is_given_back_when_its_client_leaves)
{
    (void)unlocks("UNLOCK a");
    expect_text(sends("LOCK b"), "");
    expect_text(sends_last("LOCK c"), "");
    expect_text(answers(fake.run[0].from, TOKEN(5)), "");
    fake_close(me, false);
    ck_assert_uint_eq(fake.undelivered_count, 1);
    ck_assert_uint_eq(fake.undelivered[0], 105);
    ck_assert_uint_eq(fake.closed_conn, 1);
}

START_TEST(other_kinds_and_unlocks_do_not_begin_beside_a_lock, 10)
{
    static const char *const LINES[] = { "LOCK b FAIR", "LOCK b READ", "UNLOCK b",
                                         "MLOCK 2 b c", "RENEW b",     "CLIENT ID",
                                         "MULTI",       "RESET",       "nonsense",
                                         "LOCK" };

    (void)sends("LOCK a");
    expect_text(sends_last(LINES[_i]), "");
    ck_assert_str_eq(fake.asked, "run");
    ck_assert_uint_eq(fake.run_asked, 1);
    fake.asked[0] = '\0';
    ck_assert(starts(answers(fake.run[0].from, TOKEN(1)), ":1\r\n"));
    ck_assert(fake.asked[0] != '\0' || buf_len(&me->out) > 4);
}

START_TEST(a_mistake_in_between_is_told_in_its_turn)
{
    (void)sends("LOCK a");
    expect_text(sends("LOCK b WAIT soon"), "");
    (void)sends_last("LOCK c");
    ck_assert_uint_eq(fake.run_asked, 2);
    ck_assert(starts(answers(fake.run[0].from, TOKEN(1)), ":1\r\n-ERR "));
    expect_text(answers(fake.run[1].from, TOKEN(2)), ":2\r\n");
}

START_TEST(no_more_than_so_many_are_in_flight)
{
    char line[32];

    for (int i = 0; i < PIPELINE_MAX; i++) {
        (void)snprintf(line, sizeof(line), "UNLOCK n%d", i);
        (void)unlocks(line);
        ck_assert(!me->suspended);
    }
    expect_text(sends("UNLOCK another"), "");
    ck_assert_str_eq(fake.asked, "");
    ck_assert(me->suspended);
}

START_TEST(without_room_a_lock_waits_for_the_unlocks_before_it)
{
    struct call_ref a = unlocks("UNLOCK a");

    fake.full = true;
    expect_text(sends_last("LOCK b"), "");
    ck_assert_str_eq(fake.asked, "");
    expect_text(answers(a, INT(0)), ":0\r\n");
    ck_assert_str_eq(fake.asked, "lock");
}

START_TEST(replies_that_nobody_wants_are_not_written)
{
    struct call_ref a, b;

    (void)fake_run(me, "CLIENT REPLY SKIP");
    a = unlocks("UNLOCK a");
    b = unlocks("UNLOCK b");
    expect_text(sends_last("PING"), "");
    expect_text(answers(b, INT(2)), "");
    expect_text(answers(a, INT(1)), ":2\r\n+PONG\r\n");
}

START_TEST(a_pause_puts_off_what_begins_anew)
{
    struct conn *other = fake_open(1);
    struct call_ref first;

    (void)sends("LOCK a");
    (void)sends("LOCK b");
    expect_text(sends_last("PING"), "");
    first = fake.run[0].from;
    (void)fake_run(other, "CLIENT PAUSE 500 WRITE");
    expect_text(answers(fake.run[1].from, UNREACHED), "");
    fake.asked[0] = '\0';
    expect_text(answers(first, TOKEN(1)), ":1\r\n");
    ck_assert_str_eq(fake.asked, "");
    ck_assert(me->awaited);
    cmd_tick(fake.cmd, 1500);
    fake_settle();
    cmd_on_ran(fake.cmd, me);
    ck_assert_str_eq(fake.asked, "run");
    expect_text(answers(fake.run[0].from, TOKEN(2)), ":2\r\n+PONG\r\n");
}

START_TEST(a_right_that_is_gone_meanwhile_is_not_used)
{
    struct conn *other = fake_open(1);
    struct call_ref first;

    (void)sends("LOCK a");
    (void)sends_last("LOCK b");
    first = fake.run[0].from;
    (void)fake_run(other, "ACL SETUSER default resetkeys ~a");
    expect_text(answers(fake.run[1].from, UNREACHED), "");
    ck_assert(starts(answers(first, TOKEN(1)), ":1\r\n-NOPERM "));
    ck_assert(!me->suspended);
}
