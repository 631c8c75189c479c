/* Each kind of lock when something goes: Redis, the daemon, its link for messages, a
 * client that is thrown out. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "redisson_lock_queue:{job}"

enum { FEW = 4, PROMPT = 1500 };

/* The hold of `job`, and the wait for it; in the same words, `what` is asked for. */
static const struct {
    const char *held;
    const char *wanted;
} WAYS[] = {
    { "LOCK job", "LOCK job FAIR" },       { "LOCK job FAIR", "LOCK job" },
    { "LOCK job READ", "LOCK job WRITE" }, { "LOCK job WRITE", "LOCK job READ" },
    { "LOCK job", "MLOCK 3 a job z" },     { "MLOCK 2 job z", "LOCK job FAIR" },
};
enum { WAY_COUNT = sizeof WAYS / sizeof *WAYS };

static void ask_granted(struct client *c, const char *what)
{
    struct value v = ask(c, "%s", what);

    ck_assert_msg(v.type == VALUE_INT || v.type == VALUE_LIST, "%s: %s", what, v.text);
    value_fini(&v);
}

static void expect_granted(struct client *c)
{
    struct value v = client_read(c);

    ck_assert_msg(v.type == VALUE_INT || v.type == VALUE_LIST, "%s", v.text);
    value_fini(&v);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(a_wait_rides_out_a_redis_that_forgot_everything, WAY_COUNT)
{
    struct client *holder, *c;

    stand_up("--redis-timeout", "500ms", "--grace", "0", NULL);
    holder = open_client();
    c = open_client();
    ask_granted(holder, WAYS[_i].held);
    client_send(c, "%s", WAYS[_i].wanted);
    await_waiting(stand.admin, "job", 1);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    client_close(holder); /* it has its lock again, and is gone */
    expect_granted(c);
    client_close(c);
    stand_down();
}

START_TEST(a_wait_ends_with_its_daemon_and_leaves_nothing, WAY_COUNT)
{
    struct client *holder, *c;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    ask_granted(holder, WAYS[_i].held);
    client_send(c, "%s", WAYS[_i].wanted);
    await_waiting(stand.admin, "job", 1);
    daemon_terminate(stand.daemon);
    expect_error(c, "GOAWAY");
    daemon_await_end(stand.daemon);
    ck_assert_int_eq(peek_int("EXISTS " QUEUE " redisson_lock_timeout:{job}"), 0);
    ck_assert_int_eq(peek_int("EXISTS a"), 0);
    ck_assert_int_eq(peek_int("EXISTS job"), 1);
    client_close(holder);
    client_close(c);
    client_close(stand.admin);
    daemon_free(stand.daemon);
    redis_stop(stand.redis);
}

START_TEST(client_unblock_and_kill_end_waits_and_leave_nothing, WAY_COUNT)
{
    struct client *holder, *c;
    int64_t id;

    stand_up(NULL);
    holder = open_client();
    c = open_client();
    id = ask_int(c, "CLIENT ID");
    ask_granted(holder, WAYS[_i].held);
    client_send(c, "%s", WAYS[_i].wanted);
    await_waiting(stand.admin, "job", 1);
    ck_assert_int_eq(ask_int(stand.admin, "CLIENT UNBLOCK %" PRId64, id), 1);
    expect_nil(c);
    await_waiting(stand.admin, "job", 0);
    client_send(c, "%s", WAYS[_i].wanted);
    await_waiting(stand.admin, "job", 1);
    ck_assert_int_eq(ask_int(stand.admin, "CLIENT KILL ID %" PRId64, id), 1);
    await_waiting(stand.admin, "job", 0);
    await_queue("job", 0);
    for (uint64_t start = test_now_ms(); peek_int("EXISTS a") == 1;) {
        ck_assert_uint_lt(test_now_ms(), start + PROMPT);
        test_sleep_ms(5);
    }
    client_close(holder);
    client_close(c);
    stand_down();
}

START_TEST(a_wait_is_woken_though_the_link_for_messages_was_cut, WAY_COUNT)
{
    struct test_daemon *second;
    struct client *holder, *c;
    uint64_t start;

    stand_up("--recheck", "30s", NULL);
    second = stand_second();
    holder = client_open(second);
    c = open_client();
    ask_granted(holder, WAYS[_i].held);
    client_send(c, "%s", WAYS[_i].wanted);
    await_waiting(stand.admin, "job", 1);
    free(peek_text("CLIENT KILL TYPE pubsub"));
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    start = test_now_ms();
    expect_granted(c);
    expect_elapsed(start, 0, PROMPT);
    client_close(holder);
    client_close(c);
    daemon_stop(second);
    stand_down();
}

START_TEST(the_fair_queue_is_there_again_after_redis_forgot_it)
{
    struct client *holder, *c[FEW];

    stand_up("--redis-timeout", "500ms", "--fair-wait-timeout", "1s", NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job FAIR");
    for (int i = 0; i < FEW; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job FAIR");
        await_queue("job", i + 1);
    }
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    await_queue("job", FEW);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < FEW; i++) {
        (void)client_read_int(c[i]);
        if (i + 1 < FEW) {
            expect_silence(c[i + 1]);
        }
        ck_assert_int_eq(ask_int(c[i], "UNLOCK job"), 0);
    }
    await_no_locks(0);
    client_close(holder);
    close_clients(c, FEW);
    stand_down();
}

/* It stands still for longer than others wait for it: they go on, and it comes back to
 * its places. */
START_TEST(a_daemon_that_stood_still_has_its_places_again)
{
    struct test_daemon *second;
    struct client *holder, *behind, *c[FEW];

    stand_up("--fair-wait-timeout", "1s", NULL);
    second = daemon_start(redis_path(stand.redis), "--fair-wait-timeout", "1s", NULL);
    holder = open_client();
    behind = open_client();
    (void)ask_int(holder, "LOCK job FAIR LEASE 1000");
    for (int i = 0; i < FEW; i++) {
        c[i] = client_open(second);
        client_send(c[i], "LOCK job FAIR");
        await_queue("job", i + 1);
    }
    client_send(behind, "LOCK job FAIR LEASE 60000");
    await_queue("job", FEW + 1);
    daemon_pause(second);
    (void)client_read_int(behind); /* nobody waits for the others for ever */
    ck_assert_int_eq(peek_int("LLEN " QUEUE), 0);
    daemon_resume(second);
    await_queue("job", FEW);
    ck_assert_int_eq(ask_int(behind, "UNLOCK job"), 0);
    for (int i = 0; i < FEW; i++) {
        (void)client_read_int(c[i]);
        if (i + 1 < FEW) {
            expect_silence(c[i + 1]);
        }
        ck_assert_int_eq(ask_int(c[i], "UNLOCK job"), 0);
    }
    client_close(holder);
    client_close(behind);
    close_clients(c, FEW);
    daemon_stop(second);
    stand_down();
}

START_TEST(the_limit_of_waiters_counts_every_kind)
{
    struct client *holder, *c;

    stand_up("--max-waiters", "1", NULL);
    holder = open_client();
    c = open_client();
    (void)ask_int(holder, "LOCK job");
    (void)ask_int(holder, "LOCK doc WRITE");
    client_send(c, "LOCK job FAIR");
    await_waiting(stand.admin, "job", 1);
    ask_error(stand.admin, "LIMIT", "LOCK job FAIR");
    ask_error(stand.admin, "LIMIT", "LOCK doc READ");
    ask_error(stand.admin, "LIMIT", "MLOCK 2 a job");
    ck_assert_int_eq(peek_int("EXISTS a"), 0);
    client_close(holder);
    client_close(c);
    stand_down();
}
