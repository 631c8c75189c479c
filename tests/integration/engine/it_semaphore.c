/* Semaphores: how many at once, who is next, and what comes back of those who die. */
#include "support/runner.h"
#include "support/stand.h"

#include "latchd/protocol.h"

#include <stdlib.h>
#include <string.h>

#define R1 "11111111-1111-1111-1111-111111111111"

enum { FEW = 4, CROWD = 30, PROMPT = 1000, LEASE = 600 };

static void expect_free(const char *want)
{
    char *value = peek_text("GET pool");

    ck_assert_ptr_nonnull(value);
    ck_assert_str_eq(value, want);
    free(value);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(as_many_hold_as_there_are_permits_at_all_daemons_together)
{
    struct test_daemon *second;
    struct client *c[FEW], *more, *far;
    int64_t last = 0;

    stand_up(NULL);
    second = stand_second();
    more = open_client();
    far = client_open(second);
    ask_error(more, "ERR", "LOCK pool PERMITS 1 WAIT 0"); /* nobody has made it */
    for (int i = 0; i < FEW; i++) {
        int64_t token;

        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        token = ask_int(c[i], "LOCK pool PERMITS 1 OF 4 WAIT 0");
        ck_assert_int_gt(token, last);
        last = token;
    }
    expect_free("0");
    ask_nil(more, "LOCK pool PERMITS 1 WAIT 0");
    ask_nil(far, "LOCK pool PERMITS 2 OF 4 WAIT 50");
    ask_error(far, "ERR", "LOCK pool PERMITS 5 WAIT 0");
    ck_assert_int_eq(ask_int(c[0], "UNLOCK pool"), 0);
    ck_assert_int_eq(ask_int(c[1], "UNLOCK pool"), 0);
    expect_free("2");
    (void)ask_int(far, "LOCK pool PERMITS 2 WAIT 0");
    ask_nil(more, "LOCK pool PERMITS 1 WAIT 0");
    ck_assert_int_eq(ask_int(far, "UNLOCK pool"), 0);
    ask_error(far, "ERR", "UNLOCK pool");
    expect_free("2");
    close_clients(c, FEW);
    client_close(more);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_release_wakes_whoever_is_first_and_as_many_as_it_serves)
{
    struct test_daemon *second;
    struct client *holder, *big, *small, *far;
    uint64_t start;

    stand_up(NULL);
    second = stand_second();
    holder = open_client();
    big = open_client();
    small = open_client();
    far = client_open(second);
    (void)ask_int(holder, "LOCK pool PERMITS 3 OF 4");
    send_lock(big, "pool", "PERMITS 3", 1);
    send_lock(small, "pool", "PERMITS 1", 2); /* one is free, but big is first */
    expect_silence(small);
    start = test_now_ms();
    ck_assert_int_eq(ask_int(holder, "UNLOCK pool"), 0);
    (void)client_read_int(big);
    (void)client_read_int(small);
    client_send(far, "LOCK pool PERMITS 1");
    expect_silence(far);
    ck_assert_int_eq(ask_int(small, "UNLOCK pool"), 0);
    (void)client_read_int(far);
    expect_elapsed(start, 0, PROMPT);
    client_close(holder);
    client_close(big);
    client_close(small);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_crowd_takes_turns_and_a_hand_over_costs_one_script)
{
    struct client *c[CROWD];
    long long before;

    stand_up(NULL);
    for (int i = 0; i < CROWD; i++) {
        c[i] = open_client();
    }
    (void)ask_int(c[0], "LOCK pool PERMITS 1 OF 2");
    (void)ask_int(c[1], "LOCK pool PERMITS 1 OF 2");
    for (int i = 2; i < CROWD; i++) {
        send_lock(c[i], "pool", "PERMITS 1", i - 1);
    }
    before = peek_script_calls();
    for (int i = 0; i < CROWD - 2; i++) {
        ck_assert_int_eq(ask_int(c[i], "UNLOCK pool"), 0);
        (void)client_read_int(c[i + 2]);
    }
    ck_assert_int_le(peek_script_calls() - before, CROWD + CROWD / 10);
    ck_assert_int_eq(ask_int(c[CROWD - 2], "UNLOCK pool"), 0);
    ck_assert_int_eq(ask_int(c[CROWD - 1], "UNLOCK pool"), 0);
    expect_free("2");
    ck_assert_int_eq(peek_int("ZCARD {pool}:timeout"), 0);
    close_clients(c, CROWD);
    stand_down();
}

START_TEST(permits_of_who_is_gone_come_back_at_once_with_grace_0)
{
    struct client *dead, *next;
    uint64_t start;

    stand_up(NULL);
    dead = open_client();
    next = open_client();
    (void)ask_int(dead, "LOCK pool PERMITS 2 OF 2 GRACE 0");
    send_lock(next, "pool", "PERMITS 2", 1);
    start = test_now_ms();
    client_close(dead);
    (void)client_read_int(next);
    expect_elapsed(start, 0, PROMPT);
    client_close(next);
    stand_down();
}

/* Nobody asks meanwhile: who waits is woken by the end of the lease. */
START_TEST(permits_of_a_daemon_that_died_come_back_when_their_lease_ends)
{
    struct test_daemon *second;
    struct client *c, *far;
    uint64_t start;

    stand_up("--watchdog-timeout", "2s", NULL);
    second = stand_second();
    c = open_client();
    far = client_open(second);
    (void)ask_int(c, "LOCK pool PERMITS 1 OF 1");
    client_send(far, "LOCK pool PERMITS 1 WAIT 20000");
    expect_silence(far);
    start = test_now_ms();
    daemon_kill(stand.daemon);
    (void)client_read_int(far);
    expect_elapsed(start, 0, 2000 + PROMPT);
    daemon_restart(stand.daemon);
    client_close(c);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(a_fixed_lease_ends_in_time_for_who_waits)
{
    struct client *c;
    uint64_t start;

    stand_up(NULL);
    c = open_client();
    start = test_now_ms();
    (void)ask_int(c, "LOCK pool PERMITS 1 OF 1 LEASE 600");
    (void)ask_int(stand.admin, "LOCK pool PERMITS 1 WAIT 5000");
    expect_elapsed(start, LEASE, LEASE);
    ask_error(c, "NOTHELD", "RENEW pool");
    client_close(c);
    stand_down();
}

START_TEST(a_request_that_is_sent_again_gets_the_same_permits)
{
    struct test_daemon *second;
    struct client *c, *far;
    int64_t token;

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    far = client_open(second);
    token = ask_int(c, "LOCK pool PERMITS 2 OF 4 ID " R1);
    ck_assert_int_eq(ask_int(c, "LOCK pool PERMITS 2 OF 4 ID " R1), token);
    ck_assert_int_eq(ask_int(far, "LOCK pool PERMITS 2 OF 4 ID " R1), token);
    expect_free("2");
    ck_assert_int_gt(ask_int(far, "RENEW pool ID " R1), 0);
    ck_assert_int_eq(ask_int(far, "UNLOCK pool ID " R1), 0);
    ck_assert_int_eq(ask_int(far, "UNLOCK pool ID " R1), 0);
    expect_free("4");
    ask_error(c, "NOTHELD", "LOCK pool PERMITS 2 OF 4 ID " R1);
    client_close(c);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(another_daemon_gives_them_back_by_their_token)
{
    struct test_daemon *second;
    struct client *c, *far;
    char line[64];

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    far = client_open(second);
    (void)snprintf(line, sizeof(line), "UNLOCK pool TOKEN %lld",
                   (long long)ask_int(c, "LOCK pool PERMITS 3 OF 4"));
    ck_assert_int_eq(ask_int(far, "%s", line), 0);
    expect_free("4");
    ck_assert_int_eq(ask_int(far, "%s", line), 0);
    expect_free("4");
    client_close(c);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

/* Only the holds beside a counter say then that the name is a semaphore. */
START_TEST(another_daemon_finds_permits_whose_counter_is_gone)
{
    struct test_daemon *second;
    struct client *c, *far;
    char renew[64], unlock[64];
    long long token;

    stand_up(NULL);
    second = stand_second();
    c = open_client();
    far = client_open(second);
    token = (long long)ask_int(c, "LOCK pool PERMITS 3 OF 4");
    (void)snprintf(renew, sizeof(renew), "RENEW pool TOKEN %lld", token);
    (void)snprintf(unlock, sizeof(unlock), "UNLOCK pool TOKEN %lld", token);
    ck_assert_int_eq(redis_ask_int(stand.redis, "DEL pool"), 1);
    ck_assert_int_gt(ask_int(far, "%s", renew), 0);
    ck_assert_int_le(redis_ask_int(stand.redis, "DEL pool"),
                     1); /* a renewal makes it */
    ck_assert_int_eq(ask_int(far, "%s", unlock), 0);
    ck_assert_int_eq(redis_ask_int(stand.redis, "EXISTS {pool}:timeout"), 0);
    ck_assert_int_gt(ask_int(c, "LOCK pool PERMITS 4 OF 4 WAIT 0"), 0);
    client_close(c);
    client_close(far);
    daemon_stop(second);
    stand_down();
}

START_TEST(by_force_all_permits_come_back)
{
    struct client *c, *next;

    stand_up(NULL);
    c = open_client();
    next = open_client();
    (void)ask_int(c, "LOCK pool PERMITS 2 OF 3");
    ck_assert_int_eq(ask_int(next, "FORCEUNLOCK pool ANY"), 1);
    expect_free("3");
    ck_assert_int_eq(peek_int("EXISTS {pool}:timeout"), 0);
    ask_error(c, "NOTHELD", "UNLOCK pool");
    expect_free("3");
    client_close(c);
    client_close(next);
    stand_down();
}

START_TEST(a_semaphore_is_no_lock_and_a_lock_no_semaphore)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    (void)ask_int(c, "LOCK pool PERMITS 1 OF 1");
    ask_error(c, "WRONGTYPE", "LOCK pool WAIT 0");
    ask_error(c, "WRONGTYPE", "LOCK pool READ WAIT 0");
    (void)ask_int(c, "LOCK job");
    ask_error(c, "WRONGTYPE", "LOCK job PERMITS 1 OF 1 WAIT 0");
    ck_assert_int_eq(peek_int("INCRBY count 100000000000"), 100000000000);
    ask_error(c, "WRONGTYPE", "LOCK count PERMITS 1 OF 1 WAIT 0");
    client_close(c);
    stand_down();
}

START_TEST(a_larger_limit_serves_waiters_and_a_smaller_one_takes_nothing_away)
{
    struct client *c, *next;

    stand_up(NULL);
    c = open_client();
    next = open_client();
    (void)ask_int(c, "LOCK pool PERMITS 2 OF 2");
    send_lock(next, "pool", "PERMITS 2", 1);
    ck_assert_int_eq(ask_int(stand.admin, "SEMAPHORE LIMIT pool 4"), 1);
    (void)client_read_int(next);
    ck_assert_int_eq(ask_int(stand.admin, "SEMAPHORE LIMIT pool 1"), 1);
    expect_free("-3");
    ck_assert_int_eq(ask_int(next, "UNLOCK pool"), 0);
    expect_free("-1");
    ask_nil(next, "LOCK pool PERMITS 1 OF 9 WAIT 0"); /* its own limit rules */
    ask_error(stand.admin, "ERR", "SEMAPHORE DELETE pool");
    ck_assert_int_eq(ask_int(c, "UNLOCK pool"), 0);
    expect_free("1");
    ask_error(c, "ERR", "LOCK pool PERMITS 2 WAIT 0");
    ck_assert_int_eq(ask_int(stand.admin, "SEMAPHORE DELETE pool"), 1);
    ck_assert_int_eq(peek_int("EXISTS pool latchd:holds:{pool} {pool}:timeout"), 0);
    ck_assert_int_eq(ask_int(stand.admin, "SEMAPHORE DELETE pool"), 0);
    ask_error(c, "ERR", "LOCK pool PERMITS 1 WAIT 0");
    ck_assert_int_eq(ask_int(stand.admin, "SEMAPHORE LIMIT pool 5"), 1); /* makes it */
    (void)ask_int(c, "LOCK pool PERMITS 5 WAIT 0");
    client_close(c);
    client_close(next);
    stand_down();
}

START_TEST(info_tells_what_a_semaphore_has)
{
    struct client *c;
    struct value v;

    stand_up(NULL);
    c = open_client();
    ask_error(c, "ERR", "SEMAPHORE INFO pool");
    (void)ask_int(c, "LOCK job");
    ask_error(c, "WRONGTYPE", "SEMAPHORE INFO job");
    ask_error(c, "WRONGTYPE", "SEMAPHORE LIMIT job 3");
    ask_error(c, "ERR", "SEMAPHORE LIMIT pool 0");
    ask_error(c, "ERR", "SEMAPHORE LIMIT pool 2147483648");
    (void)ask_int(c, "LOCK pool PERMITS 2 OF 2147483647");
    v = ask(c, "SEMAPHORE INFO pool");
    ck_assert_uint_eq(v.count, 10);
    ck_assert_int_eq(value_get(&v, "limit")->integer, 2147483647);
    ck_assert_int_eq(value_get(&v, "free")->integer, 2147483645);
    ck_assert_int_eq(value_get(&v, "held")->integer, 2);
    ck_assert_int_eq(value_get(&v, "waiting")->integer, 0);
    ck_assert_uint_eq(value_get(&v, "holds")->count, 1);
    value_fini(&v);
    client_close(c);
    stand_down();
}

/* What Redisson's trySetPermits() leaves. Nothing tells an RAtomicLong or a latch from
 * that. */
START_TEST(an_integer_without_an_end_is_a_semaphore)
{
    struct client *c;

    stand_up(NULL);
    c = open_client();
    freeReplyObject(redis_ask(stand.redis, "SET pool 5"));
    ask_error(c, "WRONGTYPE", "LOCK pool WAIT 0");
    ask_error(c, "WRONGTYPE", "LOCK pool READ WAIT 0");
    ask_error(c, "NOTHELD", "UNLOCK pool TOKEN 5");
    ck_assert_int_eq(ask_int(c, "FORCEUNLOCK pool ANY"), 0);
    expect_free("5");
    (void)ask_int(c, "LOCK pool PERMITS 2 OF 9 WAIT 0");
    expect_free("3");
    ck_assert_int_eq(ask_int(c, "UNLOCK pool"), 0);
    freeReplyObject(redis_ask(stand.redis, "SET mine 5 PX 60000"));
    ask_error(c, "WRONGTYPE", "LOCK mine PERMITS 1 OF 5 WAIT 0");
    client_close(c);
    stand_down();
}

START_TEST(lockinfo_tells_who_has_how_many)
{
    const struct value *hold;
    struct client *c;
    struct value v;
    int64_t token;

    stand_up(NULL);
    c = open_client();
    token = ask_int(c, "LOCK pool PERMITS 2 OF 5");
    v = ask(stand.admin, "LOCKINFO pool");
    ck_assert(value_is_text(value_get(&v, "kind"), "permits"));
    ck_assert(value_is_text(value_get(&v, "state"), "held"));
    ck_assert_int_eq(value_get(&v, "limit")->integer, 5);
    ck_assert_int_eq(value_get(&v, "free")->integer, 3);
    ck_assert_uint_eq(value_get(&v, "holds")->count, 1);
    hold = &value_get(&v, "holds")->items[0];
    ck_assert_int_eq(value_get(hold, "count")->integer, 2);
    ck_assert_int_eq(value_get(hold, "token")->integer, token);
    value_fini(&v);
    client_close(c);
    stand_down();
}

/* How many permits a line of MONITOR gives a new end: those of a ZADD of a script. */
static size_t permits_of(const char *line)
{
    size_t quotes = 0;

    if (strstr(line, " lua] \"ZADD\"") == NULL) {
        return 0;
    }
    for (; *line != '\0'; line++) {
        quotes += *line == '"';
        line += line[0] == '\\' && line[1] != '\0'; /* what it escapes */
    }
    return (quotes / 2 - 2) / 2; /* after command and key, each has its score */
}

/* However many permits a client holds, one script call is over soon. */
START_TEST(no_script_call_renews_more_permits_than_one_lock_may_have)
{
    enum { MANY = 30, ROUNDS = 3 };
    redisContext *monitor;
    struct client *c;
    size_t in_call = 0;
    size_t renewed = 0;

    stand_up("--watchdog-timeout=3s", NULL);
    c = open_client();
    for (int i = 0; i < MANY; i++) {
        (void)ask_int(c, "LOCK pool%d PERMITS %d OF %d WAIT 0", i, LATCHD_PERMITS_MAX,
                      LATCHD_PERMITS_MAX);
    }
    monitor = redisConnectUnix(redis_path(stand.redis));
    freeReplyObject(redisCommand(monitor, "MONITOR"));
    while (renewed < (size_t)ROUNDS * MANY) {
        redisReply *line = NULL;
        size_t permits;

        ck_assert_int_eq(redisGetReply(monitor, (void **)&line), REDIS_OK);
        in_call = strstr(line->str, " lua] ") == NULL ? 0 : in_call;
        permits = permits_of(line->str);
        in_call += permits;
        renewed += permits == LATCHD_PERMITS_MAX;
        ck_assert_uint_le(in_call, LATCHD_PERMITS_MAX);
        freeReplyObject(line);
    }
    redisFree(monitor);
    client_close(c);
    stand_down();
}
