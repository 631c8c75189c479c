/* ATLEAST: at most once in a time, whatever ends the hold, and through whichever
 * daemon.
 */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID "11111111-1111-1111-1111-111111111111"
#define LONG "600000" /* ms: longer than a test */

enum { SOON_MS = 10000, SHORT_MS = 1000 };

static struct test_daemon *second;
static struct client *holder, *far;

static void stand_up_two(void)
{
    stand_up(NULL);
    second = stand_second();
    holder = open_client();
    far = client_open(second);
}

static void stand_down_two(void)
{
    client_close(holder);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

/* Redis's own view, which Redisson goes by: one field, of nobody who could enter. */
static void await_rest(const char *name, int64_t token)
{
    uint64_t end = test_now_ms() + SOON_MS;

    while (peek_int("HEXISTS %s latchd:rest:%" PRId64, name, token) == 0) {
        ck_assert_uint_lt(test_now_ms(), end);
        test_sleep_ms(5);
    }
    ck_assert_int_eq(peek_int("EXISTS %s", name), 1);
    ck_assert_int_eq(peek_int("HLEN %s", name), 1);
    ck_assert_int_gt(peek_int("PTTL %s", name), 500000);
    ck_assert_int_le(peek_int("PTTL %s", name), 600000);
}

static void expect_resting(struct client *c, int64_t token)
{
    struct value info = ask(c, "LOCKINFO job");
    const struct value *holds = value_get(&info, "holds");

    ck_assert_str_eq(value_get(&info, "state")->text, "resting");
    ck_assert_int_gt(value_get(&info, "ttl")->integer, 500000);
    ck_assert_uint_eq(holds->count, 1);
    ck_assert_int_eq(value_get(&holds->items[0], "token")->integer, token);
    ck_assert_int_gt(value_get(&holds->items[0], "atleast")->integer, 500000);
    value_fini(&info);
    ask_nil(c, "LOCK job WAIT 0");
    ask_nil(c, "LOCK job WAIT 0 ATLEAST 1000 ID 22222222222222222222");
    ask_nil(c, "MLOCK 2 job b WAIT 0");
    ask_nil(c, "LOCK job FAIR WAIT 0");
}

static int64_t take(const char *more)
{
    int64_t token = ask_int(holder, "LOCK job WAIT 0 ATLEAST " LONG "%s", more);

    ck_assert_int_gt(token, 0);
    return token;
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

/* With ID and without, with DATA, a LEASE and HEARTBEAT. */
static const char *const FORMS[] = { "", " ID " ID, " DATA x ID " ID,
                                     " LEASE 60000 DATA x", " HEARTBEAT 30000" };
enum { FORM_COUNT = sizeof(FORMS) / sizeof(FORMS[0]) };

START_TEST(the_name_rests_after_an_unlock, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = take(FORMS[_i]);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_rest("job", token);
    expect_resting(stand.admin, token);
    expect_resting(far, token);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    ask_error(far, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    stand_down_two();
}

START_TEST(the_name_rests_after_an_unlock_through_another_daemon_H38, FORM_COUNT)
{
    struct client *ear;
    int64_t token;

    stand_up_two();
    ear = open_client();
    subscribe(ear, "lost:job");
    token = take(FORMS[_i]);
    ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_rest("job", token);
    expect_resting(stand.admin, token);
    ask_error(holder, "NOTHELD", "RENEW job TOKEN %" PRId64, token);
    expect_silence(ear);
    client_close(ear);
    stand_down_two();
}

START_TEST(a_waiter_gets_the_name_when_the_rest_is_over, 2)
{
    uint64_t start;
    int64_t token;

    stand_up_two();
    start = test_now_ms();
    token = ask_int(holder, "LOCK job WAIT 0 ATLEAST %d", SHORT_MS);
    client_send(_i == 0 ? far : stand.admin, "LOCK job");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job TOKEN %" PRId64, token), 0);
    ck_assert_int_gt(client_read_int(_i == 0 ? far : stand.admin), token);
    ck_assert_uint_ge(test_now_ms() - start, SHORT_MS - 1);
    stand_down_two();
}

START_TEST(a_hold_beyond_that_time_is_handed_over)
{
    int64_t token;

    stand_up_two();
    token = ask_int(holder, "LOCK job WAIT 0 ATLEAST 100");
    client_send(far, "LOCK job WAIT 200"); /* which is over when it is answered */
    expect_nil(far);
    client_send(stand.admin, "LOCK job");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    ck_assert_int_gt(client_read_int(stand.admin), token);
    stand_down_two();
}

START_TEST(a_close_with_grace_0_leaves_the_rest)
{
    int64_t token;

    stand_up_two();
    token = take(" GRACE 0");
    client_close(holder);
    holder = open_client();
    await_rest("job", token);
    expect_resting(far, token);
    stand_down_two();
}

START_TEST(a_daemon_that_is_killed_leaves_the_name_taken, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = take(FORMS[_i]);
    daemon_kill(stand.daemon);
    ck_assert_int_gt(peek_int("PTTL job"), 500000);
    ask_nil(far, "LOCK job WAIT 0");
    ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_rest("job", token);
    expect_resting(far, token);
    daemon_restart(stand.daemon);
    stand_down_two();
}

START_TEST(what_redis_loses_rests_again, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = take(FORMS[_i]);
    ck_assert_int_eq(
        ask_int(_i % 2 == 0 ? holder : far, "UNLOCK job TOKEN %" PRId64, token), 0);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_rest("job", token);
    stand_down_two();
}

START_TEST(a_hold_that_redis_loses_has_its_rest_still, FORM_COUNT)
{
    int64_t token;

    stand_up_two();
    token = take(FORMS[_i]);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_state(stand.admin, "job", "held");
    ck_assert_int_gt(peek_int("PTTL job"), 500000);
    ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_rest("job", token);
    stand_down_two();
}

/* Also through the daemon that was told of it only by Redis. */
START_TEST(who_comes_back_elsewhere_brings_the_rest, FORM_COUNT)
{
    int64_t token, left;

    stand_up_two();
    token = take(FORMS[_i]);
    left = ask_int(far, "RENEW job TOKEN %" PRId64 " LEASE 2000", token);
    ck_assert_int_gt(left, 0);
    ck_assert_int_le(left, 2000);
    ck_assert_int_gt(peek_int("PTTL job"), 500000);
    daemon_kill(stand.daemon);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_rest("job", token); /* when its lease is over */
    daemon_restart(stand.daemon);
    stand_down_two();
}

START_TEST(the_same_id_again_gets_the_same_token_and_no_longer_rest)
{
    const char *lock = "LOCK job WAIT 0 ATLEAST " LONG " ID " ID;
    long long before;
    int64_t token;

    stand_up_two();
    token = ask_int(holder, "%s", lock);
    before = peek_int("PTTL job");
    ck_assert_int_eq(ask_int(holder, "%s", lock), token);
    ck_assert_int_eq(ask_int(far, "%s", lock), token);
    ck_assert_int_le(peek_int("PTTL job"), before);
    ck_assert_int_eq(ask_int(far, "UNLOCK job ID " ID), 0);
    ck_assert_int_eq(ask_int(far, "UNLOCK job ID " ID), 0);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job ID " ID), 0);
    await_rest("job", token);
    ask_error(holder, "NOTHELD request is over", "%s", lock);
    ask_error(far, "NOTHELD request is over", "%s", lock);
    stand_down_two();
}

START_TEST(force_ends_hold_and_rest, 4)
{
    int64_t token;

    stand_up_two();
    token = take("");
    if (_i < 2) {
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        await_rest("job", token);
    }
    client_send(stand.admin, "LOCK job");
    if (_i % 2 == 0) {
        ck_assert_int_eq(ask_int(far, "FORCEUNLOCK job TOKEN %" PRId64, token), 1);
    } else {
        ck_assert_int_eq(ask_int(far, "FORCEUNLOCK job ANY"), 1);
    }
    ck_assert_int_gt(client_read_int(stand.admin), token);
    ck_assert_int_eq(ask_int(stand.admin, "UNLOCK job"), 0);
    ck_assert_int_gt(ask_int(far, "LOCK job WAIT 0"), token);
    stand_down_two();
}

START_TEST(nobody_leads_while_a_name_rests)
{
    struct value leader;

    stand_up_two();
    (void)take(" DATA x");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    leader = ask(far, "LEADER job");
    ck_assert_int_eq(leader.items[0].integer, 0);
    ck_assert_str_eq(leader.items[2].text, "");
    value_fini(&leader);
    stand_down_two();
}

START_TEST(a_local_name_is_not_lent_while_it_rests)
{
    int64_t token;

    stand_up_two();
    for (int i = 0; i < 4; i++) {
        (void)ask_int(holder, "LOCK job LOCAL");
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    }
    token = take("");
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    await_rest("job", token);
    ask_nil(holder, "LOCK job LOCAL WAIT 0");
    ask_nil(holder, "LOCK job LOCAL WAIT 10");
    ask_nil(far, "LOCK job LOCAL WAIT 0");
    stand_down_two();
}

START_TEST(what_does_not_go_with_it_is_refused)
{
    stand_up_two();
    ask_error(far, "ERR ATLEAST needs WAIT 0", "LOCK job ATLEAST 1000");
    ask_error(far, "ERR ATLEAST needs WAIT 0", "LOCK job ATLEAST 1000 WAIT 1");
    ask_error(far, "ERR ATLEAST must be 100..86400000", "LOCK job WAIT 0 ATLEAST 99");
    ask_error(far, "ERR ATLEAST must be 100..86400000",
              "LOCK job WAIT 0 ATLEAST 86400001");
    ask_error(far, "ERR ATLEAST does not go with FAIR",
              "LOCK job FAIR WAIT 0 ATLEAST 100");
    ask_error(far, "ERR ATLEAST does not go with READ",
              "LOCK job READ WAIT 0 ATLEAST 100");
    ask_error(far, "ERR ATLEAST does not go with WRITE",
              "LOCK job WRITE WAIT 0 ATLEAST 100");
    ask_error(far, "ERR ATLEAST does not go with PERMITS",
              "LOCK job PERMITS 1 OF 2 WAIT 0 ATLEAST 100");
    ask_error(far, "ERR ATLEAST does not go with OWNER",
              "LOCK job OWNER ann WAIT 0 ATLEAST 100");
    ask_error(far, "ERR LOCAL does not go with ATLEAST",
              "LOCK job LOCAL WAIT 0 ATLEAST 100");
    ask_error(far, "ERR unknown option 'ATLEAST' for MLOCK", "MLOCK 1 job ATLEAST 100");
    ck_assert_int_gt(ask_int(far, "LOCK job WAIT 0 ATLEAST 86400000"), 0);
    ck_assert_int_gt(ask_int(far, "LOCK b WAIT 0 ATLEAST 100"), 0);
    stand_down_two();
}

/* By the scripts that Redisson calls. */
START_TEST(redisson_is_told_for_how_long_a_name_rests)
{
    struct redisson redisson;
    int64_t token;

    stand_up_two();
    redisson = (struct redisson){ .redis = stand.redis, .owner = "f00:1" };
    token = take("");
    ck_assert_int_gt(redisson_lock(&redisson, "job", 30000), 500000);
    ck_assert_int_eq(ask_int(far, "UNLOCK job TOKEN %" PRId64, token), 0);
    await_rest("job", token);
    ck_assert_int_gt(redisson_lock(&redisson, "job", 30000), 500000);
    ck_assert_int_eq(ask_int(far, "FORCEUNLOCK job ANY"), 1);
    ck_assert_int_eq(redisson_lock(&redisson, "job", 30000), REDISSON_NIL);
    ask_nil(holder, "LOCK job WAIT 0 ATLEAST 1000");
    ck_assert_int_eq(redisson_unlock(&redisson, "job", NULL), 1);
    stand_down_two();
}

START_TEST(a_transaction_takes_it_and_gives_it_back)
{
    struct value replies;
    int64_t token;

    stand_up_two();
    ask_ok(holder, "MULTI");
    client_send(holder, "LOCK job WAIT 0 ATLEAST " LONG);
    expect_status(holder, "QUEUED");
    client_send(holder, "UNLOCK job");
    expect_status(holder, "QUEUED");
    replies = ask(holder, "EXEC");
    token = replies.items[0].integer;
    ck_assert_int_gt(token, 0);
    ck_assert_int_eq(replies.items[1].integer, 0);
    value_fini(&replies);
    await_rest("job", token);
    stand_down_two();
}

/* What is sent together is granted together, but not without its rest. */
START_TEST(locks_in_one_pipeline_rest)
{
    static const char SEND[] =
        "LOCK a\r\nLOCK job WAIT 0 ATLEAST " LONG "\r\nLOCK b\r\n";
    int64_t tokens[3];

    stand_up_two();
    client_send_raw(holder, SEND, strlen(SEND));
    for (int i = 0; i < 3; i++) {
        tokens[i] = client_read_int(holder);
        ck_assert_int_gt(tokens[i], 0);
    }
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    await_rest("job", tokens[1]);
    stand_down_two();
}
