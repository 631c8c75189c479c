/* min-replicas, with a real master and real replicas: what they do not have is not
 * granted, and nobody else waits for them. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MS = 300, CLIENTS = 100, EACH = 10 };

#define R1 "11111111-aaaa-bbbb"

static struct test_redis *replica;

static bool is_followed(void)
{
    redis_expect(stand.redis, "OK", "SET warm 1 PX 1");
    return redis_ask_int(stand.redis, "WAIT 1 100") == 1;
}

static void start_servers(void)
{
    static const char *const ARGS[] = { "--repl-diskless-sync-delay", "0", NULL };
    char port[16];
    const char *follow[] = { "--replicaof", "127.0.0.1", port, NULL };

    stand.redis = redis_start_with(true, ARGS);
    (void)snprintf(port, sizeof port, "%d", redis_port(stand.redis));
    replica = redis_start_with(false, follow);
    AWAIT(is_followed());
}

static void up(const char *watchdog)
{
    start_servers();
    stand_up("--redis-timeout", "1s", "--min-replicas", "1", "--replica-timeout",
             "300ms", "--watchdog-timeout", watchdog, NULL);
}

static void down(void)
{
    stand_down();
    redis_stop(replica);
    replica = NULL;
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(what_the_replica_has_is_granted)
{
    struct client *c;

    up("30s");
    c = open_client();
    (void)ask_int(c, "LOCK job");
    ck_assert_int_eq(redis_ask_int(replica, "HLEN job"), 1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert_int_ge(info_number("redis_replica_waits"), 1);
    ck_assert_int_eq(info_number("redis_replicas_acknowledging"), 1);
    client_close(c);
    down();
}

START_TEST(what_it_has_not_is_undone_and_refused_in_time)
{
    struct client *c;
    uint64_t start;

    up("30s");
    c = open_client();
    redis_pause(replica);
    start = test_now_ms();
    ask_error(c, "NOREPLICAS", "LOCK job WAIT 0");
    expect_not_before(start, WAIT_MS - 20);
    start = test_now_ms();
    ask_error(c, "NOREPLICAS", "LOCK job WAIT 1500 ID " R1);
    expect_not_before(start, 1500 - 20);
    await_no_locks(0);
    ck_assert(daemon_logged(stand.daemon, "of min-replicas 1 acknowledged"));
    redis_resume(replica);
    (void)ask_int(c, "LOCK job WAIT 10000 ID " R1);
    ck_assert_int_eq(ask_int(c, "UNLOCK job ID " R1), 0);
    daemon_await_log(stand.daemon, "replicas acknowledge again");
    client_close(c);
    down();
}

START_TEST(a_wait_ends_when_the_replica_is_back)
{
    struct client *c;

    up("30s");
    c = open_client();
    redis_pause(replica);
    client_send(c, "LOCK job WAIT 20000");
    await_waiting(stand.admin, "job", 1);
    redis_resume(replica);
    (void)client_read_int(c);
    client_close(c);
    down();
}

START_TEST(renewals_that_it_has_not_do_not_count)
{
    struct client *c, *told;

    up("6s");
    c = open_client();
    told = open_client();
    subscribe(told, "uncertain:job");
    subscribe(told, "lost:job");
    (void)ask_int(c, "LOCK job");
    redis_pause(replica);
    expect_message(told, "uncertain:job", "latchd:");
    expect_message(told, "lost:job", "latchd:");
    ck_assert_int_eq(redis_ask_int(stand.redis, "HLEN job"), 1); /* as Redis has it */
    ask_error(c, "NOREPLICAS", "LOCK other WAIT 0");
    redis_resume(replica);
    client_close(told);
    client_close(c);
    down();
}

START_TEST(an_unlock_does_not_wait_for_replicas)
{
    struct client *c, *other;

    up("30s");
    ask_ok(stand.admin, "CONFIG SET replica-timeout 3s");
    c = open_client();
    other = open_client();
    (void)ask_int(c, "LOCK job");
    redis_pause(replica);
    client_send(other, "LOCK tap WAIT 0"); /* and with it the second link */
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert(!client_has_reply(other));
    expect_error(other, "NOREPLICAS");
    ck_assert_int_eq(info_number("redis_unacknowledged_grants"), 1);
    redis_resume(replica);
    client_close(c);
    client_close(other);
    down();
}

START_TEST(an_unlock_with_a_waiter_is_one_though_the_waiter_is_not_granted)
{
    struct client *c, *other;

    up("30s");
    c = open_client();
    other = open_client();
    (void)ask_int(c, "LOCK job");
    send_lock(other, "job", "WAIT 20000", 1);
    redis_pause(replica);
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    ck_assert(!client_has_reply(other));
    redis_resume(replica);
    (void)client_read_int(other);
    client_close(c);
    client_close(other);
    down();
}

START_TEST(one_wait_ends_a_turn)
{
    struct client *c[CLIENTS];
    int64_t waits;

    up("30s");
    for (int i = 0; i < CLIENTS; i++) {
        c[i] = open_client();
    }
    waits = redis_calls(stand.redis, "wait", NULL);
    for (int i = 0; i < CLIENTS * EACH; i++) {
        client_send(c[i % CLIENTS], "LOCK job:%d", i);
    }
    for (int i = 0; i < CLIENTS * EACH; i++) {
        (void)client_read_int(c[i % CLIENTS]);
    }
    waits = redis_calls(stand.redis, "wait", NULL) - waits;
    ck_assert_int_ge(waits, 1);
    ck_assert_msg(waits * 4 < CLIENTS * EACH, "%lld WAITs for %d grants",
                  (long long)waits, CLIENTS * EACH);
    close_clients(c, CLIENTS);
    down();
}

START_TEST(it_can_be_switched_on_and_off_while_locks_are_held)
{
    struct client *c;
    int64_t waits;

    start_servers();
    stand_up("--redis-timeout", "1s", "--replica-timeout", "300ms", NULL);
    c = open_client();
    for (int i = 0; i < 5; i++) {
        (void)ask_int(c, "LOCK job");
        ask_ok(stand.admin, "CONFIG SET min-replicas 1");
        (void)ask_int(c, "LOCK tap WAIT 5000");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        waits = redis_calls(stand.redis, "wait", NULL);
        ck_assert_int_ge(waits, i + 1);
        ask_ok(stand.admin, "CONFIG SET min-replicas 0");
        ck_assert_int_eq(ask_int(c, "UNLOCK tap"), 0);
        (void)ask_int(c, "LOCK job");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
        ck_assert_int_eq(redis_calls(stand.redis, "wait", NULL), waits);
    }
    client_close(c);
    down();
}

START_TEST(an_outage_of_the_master_is_one_as_ever)
{
    struct client *c;
    int64_t token;

    up("30s");
    c = open_client();
    token = ask_int(c, "LOCK job");
    redis_pause(stand.redis);
    ask_error(c, "BACKEND", "LOCK other WAIT 0");
    redis_resume(stand.redis);
    (void)ask_int(c, "LOCK other WAIT 10000");
    ck_assert_int_eq(ask_int(c, "UNLOCK job TOKEN %" PRId64, token), 0);
    client_close(c);
    down();
}

START_TEST(a_master_without_replicas_is_told_of_at_the_start)
{
    struct client *c;

    stand_up("--redis-timeout", "1s", "--min-replicas", "2", "--replica-timeout",
             "300ms", NULL);
    ck_assert(daemon_logged(stand.daemon, "0 replicas are connected, and min-replicas "
                                          "is 2"));
    c = open_client();
    ask_error(c, "NOREPLICAS", "LOCK job WAIT 0");
    client_close(c);
    stand_down();
}

/* The daemon's first or second link, as long as none of them was lost. */
static void kill_link(int which)
{
    redisReply *list = redis_ask(stand.redis, "CLIENT LIST TYPE normal");
    const char *at = list->str;
    long long ids[2] = { 0 };

    for (size_t count = 0; (at = strstr(at, "id=")) != NULL; at += 3) {
        const char *end = strchr(at, '\n');
        const char *name = strstr(at, " name=latchd ");

        if (name != NULL && name < end) {
            ck_assert_uint_lt(count, 2);
            ids[count++] = strtoll(at + 3, NULL, 10);
        }
    }
    freeReplyObject(list);
    ck_assert_int_gt(ids[1], 0);
    if (ids[0] > ids[1]) { /* Redis lists them in no order */
        long long newer = ids[0];

        ids[0] = ids[1];
        ids[1] = newer;
    }
    (void)redis_ask_int(stand.redis, "CLIENT KILL ID %lld", ids[which]);
}

/* Each link is killed by the one that follows it, and by no other. */
START_TEST(either_link_may_be_lost)
{
    struct client *c;

    up("30s");
    c = open_client();
    for (int i = 0; i < 6; i++) {
        kill_link(i % 2);
        (void)ask_int(c, "LOCK job WAIT 10000");
        ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    }
    client_close(c);
    down();
}

START_TEST(a_link_that_is_not_wanted_any_more_is_not_missed)
{
    struct client *c;

    up("30s");
    c = open_client();
    (void)ask_int(c, "LOCK job");
    redis_expect(stand.redis, "OK", "CONFIG SET maxclients 1");
    kill_link(1);
    AWAIT(strcmp(info_text("redis_link"), "down") == 0);
    ask_ok(stand.admin, "CONFIG SET min-replicas 0");
    (void)ask_int(c, "LOCK tap WAIT 5000");
    ck_assert_int_eq(ask_int(c, "UNLOCK job"), 0);
    redis_expect(stand.redis, "OK", "CONFIG SET maxclients 1000");
    client_close(c);
    down();
}
