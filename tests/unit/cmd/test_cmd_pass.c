/* Commands that pass a LOCK which waits ahead on their connection, over a fake one
 * and a fake engine. */
#include "cmd/pipeline.h"
#include "support/runner.h"
#include "unit/cmd/cmd_fake.h"

#include <stdio.h>

#define ONE "1111111111111111"
#define TWO "2222222222222222"
#define THREE "3333333333333333"

static struct call_ref ahead; /* the LOCK that waits */

/* Each is a read of its own. */
static const char *sends(const char *line)
{
    return fake_send(me, line, false);
}

static const char *answers(struct call_ref to, struct effect_reply reply)
{
    return fake_hear(me, to, reply);
}

static void setup(void)
{
    fake_setup();
    expect_text(sends("LOCK job WAIT 4000 OWNER ann ID " ONE), "");
    ck_assert_str_eq(fake.asked, "lock");
    ahead = fake.hold.from;
}

static struct call_ref passes(const char *line, const char *as)
{
    expect_text(sends(line), "");
    ck_assert_msg(strcmp(fake.asked, as) == 0, "%s: asked '%s'", line, fake.asked);
    ck_assert(me->awaited && !me->suspended);
    return fake.hold.from;
}

TEST_GROUP(.setup = setup, .teardown = fake_teardown);

START_TEST(what_names_its_own_hold_passes_and_is_answered_in_its_turn, 6)
{
    static const struct {
        const char *line, *as;
    } CASES[] = {
        { "UNLOCK job TOKEN 7", "unlock" },
        { "UNLOCK job ID " TWO, "unlock" },
        { "UNLOCK job OWNER bob", "unlock" },
        { "UNLOCK other READ ID " TWO, "unlock" },
        { "FORCEUNLOCK job TOKEN 7", "forceunlock" },
        { "FORCEUNLOCK job OWNER bob", "forceunlock" },
    };
    struct call_ref own = passes(CASES[_i].line, CASES[_i].as);

    expect_text(answers(own, INT(0)), "");
    expect_text(answers(ahead, NIL), "$-1\r\n:0\r\n");
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(what_means_something_else_until_the_lock_is_answered_does_not_pass, 15)
{
    static const struct {
        const char *line, *as;
    } CASES[] = {
        { "UNLOCK job", "unlock" },
        { "UNLOCK other", "unlock" },
        { "RENEW other", "renew" },
        { "UNLOCK job ID " ONE, "unlock" },
        { "RENEW job ID " ONE, "renew" },
        { "UNLOCK job OWNER ann", "unlock" },
        { "UNLOCK other OWNER ann", "unlock" },
        { "FORCEUNLOCK job ANY", "forceunlock" },
        { "FORCEUNLOCK job OWNER ann", "forceunlock" },
        { "LOCK other", "run" },
        { "LOCK other ID " TWO " KEEP 0", "run" },
        { "LOCK job ID " ONE, "run" },
        { "LOCK other OWNER ann ID " TWO, "run" },
        { "MLOCK 2 a b ID " TWO, "mlock" },
        { "LOCKINFO job", "lockinfo" },
    };
    struct call_ref other;

    expect_text(sends(CASES[_i].line), "");
    ck_assert_str_eq(fake.asked, "");
    other = passes("UNLOCK third TOKEN 8", "unlock"); /* and holds up nobody */
    expect_text(answers(ahead, NIL), "$-1\r\n");
    ck_assert_str_eq(fake.asked, CASES[_i].as);
    expect_text(answers(other, INT(3)), "");
    expect_text(answers(fake.hold.from, INT(0)), ":0\r\n:3\r\n");
}

START_TEST(what_only_looks_is_answered_as_of_its_turn, 7)
{
    static const char *const LINES[] = {
        "PING",   "NONSENSE",       "CLIENT NONSENSE", "UNLOCK job TOKEN x",
        "UNLOCK", "CLIENT GETNAME", "ECHO a"
    };
    const char *got;

    expect_text(sends(LINES[_i]), "");
    (void)passes("UNLOCK third TOKEN 8", "unlock");
    got = answers(ahead, TOKEN(5));
    ck_assert_msg(starts(got, ":5\r\n") && strlen(got) > 6, "%s", got);
}

START_TEST(what_changes_the_connection_lets_nothing_pass, 10)
{
    static const char *const LINES[] = { "MULTI",
                                         "HELLO 3",
                                         "RESET",
                                         "QUIT",
                                         "AUTH x",
                                         "MONITOR",
                                         "CLIENT REPLY OFF",
                                         "CLIENT KILL ID 1",
                                         "SUBSCRIBE a",
                                         "CONFIG SET port 1" };

    expect_text(sends(LINES[_i]), "");
    ck_assert(me->suspended);
    ck_assert(starts(answers(ahead, TOKEN(5)), ":5\r\n"));
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(it_comes_behind_those_that_were_put_off_before_it)
{
    expect_text(sends("PING"), "");
    expect_text(sends("ECHO a"), "");
    expect_text(sends("CLIENT GETNAME"), "");
    expect_text(sends("CLIENT REPLY SKIP"), "");
    ck_assert(me->suspended);
    expect_text(answers(ahead, TOKEN(5)), ":5\r\n+PONG\r\n$1\r\na\r\n$-1\r\n");
    ck_assert(!me->awaited && !me->suspended);
    expect_text(sends("PING"), "");
    expect_text(sends("PING"), "+PONG\r\n");
}

START_TEST(cancel_ends_the_wait_ahead, 3)
{
    static const char *const LINES[] = { "CANCEL job ID " ONE, "CANCEL job OWNER ann",
                                         "CANCEL other ID " TWO };

    expect_text(sends(LINES[_i]), "");
    ck_assert_str_eq(fake.asked, "cancel");
    expect_text(answers(ahead, NIL), "$-1\r\n:3\r\n");
}

START_TEST(one_name_is_released_and_renewed_in_order)
{
    struct call_ref first = passes("UNLOCK a TOKEN 5", "unlock"), second;

    expect_text(sends("RENEW a TOKEN 5"), "");
    ck_assert_str_eq(fake.asked, "");
    expect_text(answers(first, INT(0)), "");
    ck_assert_str_eq(fake.asked, "renew");
    second = fake.hold.from;
    expect_text(answers(ahead, TOKEN(5)), ":5\r\n:0\r\n");
    expect_text(answers(second, INT(30000)), ":30000\r\n");
}

START_TEST(a_lease_that_was_told_late_is_shorter, 2)
{
    struct call_ref own = passes("RENEW a TOKEN 5", "renew");

    expect_text(answers(own, INT(30000)), "");
    fake.now_ms = _i == 0 ? 5000 : 32000;
    if (_i == 0) {
        expect_text(answers(ahead, NIL), "$-1\r\n:26000\r\n");
    } else {
        ck_assert(starts(answers(ahead, NIL), "$-1\r\n-BACKEND "));
    }
}

START_TEST(a_token_that_was_told_late_is_told_while_its_lease_lasts, 2)
{
    struct call_ref own = passes("RENEW a VALUE v", "renew");
    struct effect_reply reply = INT(30000);

    reply.token = 77;
    expect_text(answers(own, reply), "");
    fake.now_ms = _i == 0 ? 5000 : 32000;
    if (_i == 0) {
        expect_text(answers(ahead, NIL), "$-1\r\n:77\r\n");
    } else {
        ck_assert(starts(answers(ahead, NIL), "$-1\r\n-BACKEND "));
    }
}

START_TEST(a_lock_with_an_id_stands_in_its_queue)
{
    struct call_ref second = passes("LOCK job WAIT 4000 ID " TWO, "lock");
    struct call_ref third = passes("LOCK page READ WAIT 4000 ID " THREE, "lock");

    expect_text(answers(third, NIL), "");
    expect_text(answers(ahead, TOKEN(5)), ":5\r\n");
    expect_text(answers(second, TOKEN(6)), ":6\r\n$-1\r\n");
    ck_assert_uint_eq(fake.undelivered_count, 0);
}

/* KEEP holds it till it is asked for again. */
START_TEST(a_grant_that_cannot_be_told_is_kept_and_asked_for_in_its_turn)
{
    struct call_ref second = passes("LOCK free WAIT 4000 ID " TWO, "lock");

    expect_text(answers(second, TOKEN(6)), "");
    ck_assert_uint_eq(fake.undelivered_count, 1);
    ck_assert_uint_eq(fake.undelivered[0], 106);
    (void)passes("UNLOCK third TOKEN 8", "unlock");
    fake.asked[0] = '\0';
    expect_text(answers(ahead, NIL), "$-1\r\n");
    ck_assert_str_eq(fake.asked, "run");
    ck_assert(span_eq(fake.run[0].terms.id, SPAN(TWO)));
    ck_assert_uint_eq(fake.run[0].terms.wait_ms, 4000);
    expect_text(answers(fake.hold.from, TOKEN(6)), ":6\r\n");
    ck_assert(
        has(fake_run(fake_open(1), "INFO commandstats"), "cmdstat_lock:calls=2,"));
}

START_TEST(locks_that_a_run_does_not_reach_stand_as_well)
{
    struct call_ref first, second;

    (void)answers(ahead, NIL);
    fake.run_max = 1;
    (void)fake_send(me, "LOCK a ID " ONE, true);
    (void)fake_send(me, "LOCK b ID " TWO, true);
    (void)fake_send(me, "LOCK c", true);
    (void)sends("LOCK d ID " THREE);
    first = fake.run[0].from;
    ck_assert_str_eq(fake.asked, "lock");
    ck_assert(span_eq(fake.lock.terms.id, SPAN(THREE)));
    second = fake.hold.from;
    expect_text(answers(second, NIL), "");
    fake.asked[0] = '\0';
    expect_text(answers(first, NIL), "$-1\r\n");
    ck_assert_str_eq(fake.asked, "");
}

START_TEST(the_connection_ends_with_all_that_is_on_it)
{
    struct call_ref second = passes("LOCK free ID " TWO, "lock");

    (void)answers(second, TOKEN(6));
    (void)passes("UNLOCK third TOKEN 8", "unlock");
    (void)sends("PING");
    (void)sends("MULTI");
    fake_close(me, true);
    ck_assert_uint_eq(fake.undelivered_count, 1);
    ck_assert_uint_eq(fake.closed_conn, 1);
    (void)fake_open(0);
}

START_TEST(a_pause_holds_up_what_passes, 2)
{
    struct conn *other = fake_open(1);

    (void)fake_run(other, "CLIENT PAUSE 500 WRITE");
    expect_text(sends("UNLOCK a TOKEN 5"), "");
    ck_assert_str_eq(fake.asked, "");
    expect_text(sends("PING"), "");
    if (_i == 0) {
        expect_text(answers(ahead, TOKEN(1)), ":1\r\n");
        ck_assert_str_eq(fake.asked, "");
    }
    cmd_tick(fake.cmd, 1500);
    fake_settle();
    cmd_on_ran(fake.cmd, me);
    ck_assert_str_eq(fake.asked, "unlock");
    if (_i == 0) {
        expect_text(answers(fake.hold.from, INT(0)), ":0\r\n+PONG\r\n");
    } else {
        expect_text(answers(fake.hold.from, INT(0)), "");
        expect_text(answers(ahead, TOKEN(1)), ":1\r\n:0\r\n+PONG\r\n");
    }
}

START_TEST(no_more_than_so_many_are_kept)
{
    char line[32];

    for (int i = 1; i < PIPELINE_STEPS_MAX; i++) {
        (void)sends(i % 2 == 0 ? "PING" : "UNLOCK job");
        ck_assert(!me->suspended);
    }
    expect_text(sends("ECHO last"), "");
    ck_assert(me->suspended);
    expect_text(answers(ahead, TOKEN(1)), ":1\r\n");
    for (int i = 1; i < PIPELINE_STEPS_MAX; i += 2) {
        (void)snprintf(line, sizeof(line), ":%d\r\n%s", i,
                       i + 2 < PIPELINE_STEPS_MAX ? "+PONG\r\n" : "$4\r\nlast\r\n");
        expect_text(answers(fake.hold.from, INT(i)), line);
    }
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(nor_more_bytes)
{
    static char line[PIPELINE_BYTES_MAX / 4 + 32];
    struct span argv[] = { SPAN("ECHO"), SPAN_NONE };
    struct resp_request req = { argv, 2 };

    argv[1] = span_of(line, PIPELINE_BYTES_MAX / 4);
    memset(line, 'x', sizeof(line));
    for (int i = 0; i < 4; i++) {
        ck_assert(!me->suspended);
        cmd_on_request(fake.cmd, me, &req);
        cmd_on_ran(fake.cmd, me);
    }
    expect_text(sends("PING"), "");
    ck_assert(me->suspended);
    ck_assert(starts(answers(ahead, TOKEN(1)), ":1\r\n$"));
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(an_mlock_that_waits_is_passed_as_well)
{
    struct call_ref own;

    (void)answers(ahead, NIL);
    (void)sends("MLOCK 2 a b ID " ONE);
    ahead = fake.hold.from;
    own = passes("UNLOCK a TOKEN 7", "unlock");
    expect_text(sends("UNLOCK b ID " ONE), "");
    ck_assert_str_eq(fake.asked, "");
    expect_text(answers(own, INT(0)), "");
    expect_text(answers(ahead, NIL), "$-1\r\n:0\r\n");
    ck_assert_str_eq(fake.asked, "unlock");
}

START_TEST(a_set_that_is_not_answered_yet_is_passed_as_well)
{
    struct call_ref own;

    (void)answers(ahead, NIL);
    cmd_set_limits(fake.cmd, &FAKE_LIBRARY_LIMITS);
    expect_text(sends("SET a v NX PX 60000"), "");
    ahead = fake.hold.from;
    own = passes("UNLOCK b TOKEN 7", "unlock");
    expect_text(answers(own, INT(0)), "");
    expect_text(answers(ahead, NIL), "$-1\r\n:0\r\n");
}

START_TEST(a_latch_await_that_had_to_wait_for_its_turn_is_passed_as_well)
{
    struct call_ref own;

    expect_text(sends("LATCH AWAIT gate"), "");
    expect_text(answers(ahead, NIL), "$-1\r\n");
    ck_assert_str_eq(fake.asked, "latch");
    ahead = fake.hold.from;
    cmd_on_ran(fake.cmd, me);
    own = passes("UNLOCK a TOKEN 7", "unlock");
    expect_text(answers(own, INT(0)), "");
    expect_text(answers(ahead, INT(1)), ":1\r\n:0\r\n");
    ck_assert(!me->awaited && !me->suspended);
}

START_TEST(without_room_a_lock_does_not_stand)
{
    fake.full = true;
    expect_text(sends("LOCK a ID " TWO), "");
    ck_assert_str_eq(fake.asked, "");
    (void)passes("UNLOCK b TOKEN 5", "unlock");
}
