/* LATCH: who counts, who waits, and what becomes of both when something dies. */
#include "support/redisson.h"
#include "support/runner.h"
#include "support/stand.h"

#include <stdio.h>
#include <stdlib.h>

enum { WAITERS = 20, PROMPT = 1000 };
#define R1 "11111111-1111-1111-1111-111111111111"
#define R2 "22222222-2222-2222-2222-222222222222"
#define R3 "33333333-3333-3333-3333-333333333333"

static struct test_daemon *second;
static struct client *near, *far, *other;

static void stand_up_two(const char *arg, const char *value)
{
    stand_up(arg, value, NULL);
    second = stand_second();
    near = open_client();
    far = client_open(second);
    other = open_client();
}

static void stand_down_two(void)
{
    client_close(near);
    client_close(far);
    client_close(other);
    daemon_stop(second);
    stand_down();
}

/* Returns when so many wait for the latch at the daemon of that client. */
static void await_awaits(struct client *c, int64_t count)
{
    int64_t waiting = -1;

    while (waiting != count) {
        struct value v = ask(c, "LATCH INFO gate");

        waiting = v.items[5].integer;
        value_fini(&v);
    }
}

static void expect_info(struct client *c, int64_t left, const char *state)
{
    struct value v = ask(c, "LATCH INFO gate");

    ck_assert_uint_eq(v.count, 6);
    ck_assert_str_eq(v.items[0].text, "left");
    ck_assert_int_eq(v.items[1].integer, left);
    ck_assert_str_eq(v.items[3].text, state);
    value_fini(&v);
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(all_who_wait_go_on_when_the_last_one_has_counted)
{
    struct client *c[WAITERS];
    uint64_t start;

    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 2"), 1);
    ck_assert_int_eq(ask_int(far, "LATCH SET gate 5"), 0);
    for (int i = 0; i < WAITERS; i++) {
        c[i] = i % 2 == 0 ? open_client() : client_open(second);
        client_send(c[i], "LATCH AWAIT gate");
    }
    await_awaits(near, WAITERS / 2);
    await_awaits(far, WAITERS / 2);
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate"), 1);
    expect_info(far, 1, "set");
    expect_silence(c[0]);
    start = test_now_ms();
    ck_assert_int_eq(ask_int(far, "LATCH COUNT gate"), 0);
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_int_eq(client_read_int(c[i]), 1);
    }
    expect_elapsed(start, 0, PROMPT); /* not after a recheck */
    ck_assert_int_eq(ask_int(near, "LATCH AWAIT gate"), 1);
    expect_info(near, 0, "open");
    expect_ttl_everywhere();
    close_clients(c, WAITERS);
    stand_down_two();
}

static void expect_field(const struct value *map, const char *key, const char *text)
{
    for (size_t i = 0; i + 1 < map->count; i += 2) {
        if (strcmp(map->items[i].text, key) == 0) {
            ck_assert_str_eq(map->items[i + 1].text, text);
            return;
        }
    }
    ck_abort_msg("there is no %s", key);
}

/* As many names as LOCKS lists; the first of them is the latch. */
static size_t count_listed(struct client *c)
{
    struct value v = ask(c, "LOCKS");
    size_t count = v.items[1].count;

    if (count > 0) {
        ck_assert_str_eq(v.items[1].items[0].text, "gate");
    }
    value_fini(&v);
    return count;
}

START_TEST(who_waits_for_a_latch_is_shown_to_operators_and_the_latch_with_them)
{
    struct value v;

    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    ck_assert_uint_eq(count_listed(other), 0); /* nobody holds a latch */
    client_send(near, "LATCH AWAIT gate WAIT 60000");
    await_awaits(other, 1);
    ck_assert_uint_eq(count_listed(other), 1);
    v = ask(other, "WAITERS gate");
    ck_assert_uint_eq(v.count, 1);
    expect_field(&v.items[0], "kind", "latch");
    expect_field(&v.items[0], "owner", "");
    value_fini(&v);
    v = ask(other, "LOCKS TOP 5");
    ck_assert_uint_eq(v.count, 1);
    expect_field(&v.items[0], "name", "gate");
    ck_assert_str_eq(v.items[0].items[10].text, "latch");
    ck_assert_int_eq(v.items[0].items[11].integer, 1);
    value_fini(&v);
    ask_error(other, "WRONGTYPE", "LOCKINFO gate");
    ck_assert_int_eq(ask_int(other, "LATCH COUNT gate"), 0);
    ck_assert_int_eq(client_read_int(near), 1);
    ck_assert_uint_eq(count_listed(other), 0);
    v = ask(other, "WAITERS gate");
    ck_assert_uint_eq(v.count, 0);
    value_fini(&v);
    stand_down_two();
}

/* As for locks: the names of others are not for everybody, except in LOCKS, which is
 * Redis's SCAN. */
START_TEST(waiters_of_a_latch_are_shown_to_those_who_may_read_its_name)
{
    stand_up_two(NULL, NULL);
    ask_ok(other, "ACL SETUSER ann on >secret ~ann:* +@all");
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    ask_ok(near, "AUTH ann secret");
    ask_error(near, "NOPERM", "WAITERS gate");
    ask_error(near, "NOPERM", "LATCH INFO gate");
    ask_error(near, "NOPERM", "LATCH AWAIT gate");
    stand_down_two();
}

START_TEST(an_id_counts_once_through_whichever_daemon)
{
    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 3 ID " R3), 1);
    ck_assert_int_eq(ask_int(far, "LATCH SET gate 3 ID " R3), 1);
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate ID " R1), 2);
    ck_assert_int_eq(ask_int(far, "LATCH COUNT gate ID " R1), 2);
    ck_assert_int_eq(ask_int(far, "LATCH COUNT gate ID " R2), 1);
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate"), 0);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    ck_assert_int_eq(ask_int(far, "LATCH COUNT gate ID " R1), 0);
    expect_info(near, 1, "set");
    stand_down_two();
}

START_TEST(what_is_not_there_is_said_so)
{
    stand_up_two(NULL, NULL);
    ask_error(near, "ERR no such latch", "LATCH AWAIT gate");
    ask_error(near, "ERR no such latch", "LATCH COUNT gate");
    expect_info(near, 0, "none");
    ck_assert_int_eq(ask_int(near, "LATCH DELETE gate"), 0);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 2"), 1);
    client_send(far, "LATCH AWAIT gate");
    client_send(near, "LATCH AWAIT gate WAIT 60000");
    await_awaits(other, 1);
    ck_assert_int_eq(ask_int(other, "LATCH DELETE gate"), 1);
    expect_error(far, "ERR gone");
    expect_error(near, "ERR gone");
    ask_error(near, "ERR gone", "LATCH COUNT gate");
    ask_error(near, "ERR gone", "LATCH AWAIT gate");
    expect_info(near, 0, "gone");
    stand_down_two();
}

/* An operator's DEL, an eviction: nobody tells, and the next look finds out. */
START_TEST(a_latch_that_vanished_is_noticed_within_recheck)
{
    stand_up_two("--recheck", "200ms");
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 2"), 1);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    ck_assert_int_eq(peek_int("DEL gate"), 1);
    expect_error(near, "ERR gone");
    expect_info(other, 0, "lost");
    stand_down_two();
}

START_TEST(waits_end_in_time_and_by_close_and_unblock)
{
    char id[32];
    uint64_t start;

    stand_up_two(NULL, NULL);
    (void)snprintf(id, sizeof id, "%lld", (long long)ask_int(near, "CLIENT ID"));
    ck_assert_int_eq(ask_int(other, "LATCH SET gate 1"), 1);
    ask_nil(near, "LATCH AWAIT gate WAIT 0");
    start = test_now_ms();
    ask_nil(near, "LATCH AWAIT gate WAIT 300");
    expect_elapsed(start, 300, 300);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    ck_assert_int_eq(ask_int(other, "CLIENT UNBLOCK %s", id), 1);
    expect_nil(near);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    ck_assert_int_eq(ask_int(other, "CLIENT UNBLOCK %s ERROR", id), 1);
    expect_error(near, "UNBLOCKED");
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    client_close(near);
    await_awaits(other, 0);
    near = open_client();
    stand_down_two();
}

START_TEST(a_generation_that_was_opened_before_anybody_looked_is_open)
{
    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(other, "LATCH SET gate 1"), 1);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    daemon_pause(stand.daemon);
    ck_assert_int_eq(ask_int(far, "LATCH COUNT gate"), 0);
    ck_assert_int_eq(ask_int(far, "LATCH SET gate 1"), 1);
    daemon_resume(stand.daemon);
    ck_assert_int_eq(client_read_int(near), 1);
    ask_nil(near, "LATCH AWAIT gate WAIT 0");
    stand_down_two();
}

/* --- beside Redisson ----------------------------------------------------------------
 */

START_TEST(redissons_counts_open_it_for_latchds_clients_and_the_other_way_round)
{
    struct redisson theirs;
    redisContext *channel;

    stand_up_two(NULL, NULL);
    theirs = (struct redisson){ .redis = stand.redis, .owner = "r" };
    channel = redisson_listen(&theirs, redisson_latch_channel("gate"));
    ck_assert_int_eq(redisson_latch_set(&theirs, "gate", 2), 1);
    redisson_hear(channel, "1");
    client_send(near, "LATCH AWAIT gate");
    client_send(far, "LATCH AWAIT gate");
    await_awaits(other, 1);
    ck_assert_int_eq(ask_int(other, "LATCH COUNT gate"), 1);
    redisson_latch_count(&theirs, "gate");
    redisson_hear(channel, "0");
    ck_assert_int_eq(client_read_int(near), 1);
    ck_assert_int_eq(client_read_int(far), 1);
    ck_assert_int_eq(ask_int(near, "LATCH AWAIT gate"), 1);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    redisson_hear(channel, "1");
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate"), 0);
    redisson_hear(channel, "0");
    redisFree(channel);
    stand_down_two();
}

/* Redisson leaves no sign of it, so nobody can know. */
START_TEST(what_redisson_opened_while_nobody_listened_is_gone)
{
    struct redisson theirs;

    stand_up_two(NULL, NULL);
    theirs = (struct redisson){ .redis = stand.redis, .owner = "r" };
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    redisson_latch_count(&theirs, "gate");
    ask_error(near, "ERR gone", "LATCH AWAIT gate");
    ck_assert_int_eq(redisson_latch_set(&theirs, "gate", 1), 1);
    ask_nil(near, "LATCH AWAIT gate WAIT 0");
    stand_down_two();
}

/* --- what dies ----------------------------------------------------------------------
 */

START_TEST(an_await_rides_out_a_redis_that_comes_back)
{
    static const char *const KEEPS[] = { "--appendonly", "yes", "--appendfsync",
                                         "always", NULL };

    stand.redis = redis_start_with(false, KEEPS);
    stand_up_two("--redis-timeout", "1s");
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    redis_kill(stand.redis);
    ask_error(other, "BACKEND", "LATCH AWAIT gate WAIT 100");
    ask_error(other, "BACKEND", "LATCH COUNT gate");
    expect_silence(near);
    redis_restart(stand.redis);
    client_send(other, "LATCH COUNT gate ID " R1);
    for (struct value v = client_read(other); v.type != VALUE_INT;) {
        value_fini(&v);
        client_send(other, "LATCH COUNT gate ID " R1);
        v = client_read(other);
    }
    ck_assert_int_eq(client_read_int(near), 1);
    stand_down_two();
}

START_TEST(a_redis_that_comes_back_empty_has_no_latch)
{
    stand_up_two("--redis-timeout", "1s");
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    redis_kill(stand.redis);
    redis_restart(stand.redis);
    expect_error(near, "ERR gone");
    stand_down_two();
}

START_TEST(a_count_goes_on_through_another_daemon)
{
    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 2"), 1);
    client_send(far, "LATCH AWAIT gate");
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate ID " R1), 1);
    daemon_kill(stand.daemon);
    client_close(near);
    near = client_open(second);
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate ID " R1), 1);
    ck_assert_int_eq(ask_int(near, "LATCH COUNT gate ID " R2), 0);
    ck_assert_int_eq(client_read_int(far), 1);
    daemon_restart(stand.daemon);
    client_close(other);
    other = open_client();
    client_close(stand.admin);
    stand.admin = open_client();
    stand_down_two();
}

START_TEST(a_stop_ends_waits_with_goaway)
{
    struct client *probe;

    stand_up_two(NULL, NULL);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 2"), 1);
    client_send(far, "LATCH AWAIT gate");
    probe = client_open(second);
    await_awaits(probe, 1);
    daemon_terminate(second);
    expect_error(far, "GOAWAY");
    daemon_await_end(second);
    client_close(probe);
    daemon_restart(second);
    stand_down_two();
}

/* --- bounds -------------------------------------------------------------------------
 */

START_TEST(what_is_out_of_bounds_is_an_error_and_costs_nothing_else)
{
    static const char *const BAD[] = {
        "LATCH",
        "LATCH SET gate",
        "LATCH SET gate 0",
        "LATCH SET gate -1",
        "LATCH SET gate 9223372036854775808",
        "LATCH SET gate 1 ID short",
        "LATCH SET gate 1 WAIT 5",
        "LATCH SET latchd:gate 1",
        "LATCH SET gate:rwlock_timeout:1 1",
        "LATCH COUNT gate ID",
        "LATCH COUNT gate 5",
        "LATCH AWAIT gate WAIT -1",
        "LATCH AWAIT gate ID " R1,
        "LATCH DELETE gate now",
        "LATCH OPEN gate",
    };

    stand_up_two(NULL, NULL);
    for (size_t i = 0; i < sizeof(BAD) / sizeof(BAD[0]); i++) {
        ask_error(near, "ERR", "%s", BAD[i]);
    }
    ck_assert_int_eq(peek_int("DBSIZE"), 0);
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 9223372036854775807"), 1);
    stand_down_two();
}

START_TEST(the_await_too_many_is_refused)
{
    stand_up_two("--max-waiters", "1");
    ck_assert_int_eq(ask_int(near, "LATCH SET gate 1"), 1);
    client_send(near, "LATCH AWAIT gate");
    await_awaits(other, 1);
    ask_error(other, "LIMIT", "LATCH AWAIT gate");
    ck_assert_int_eq(ask_int(other, "LATCH COUNT gate"), 0);
    ck_assert_int_eq(client_read_int(near), 1);
    stand_down_two();
}

START_TEST(a_transaction_may_count_but_not_wait)
{
    struct value v;

    stand_up_two(NULL, NULL);
    ask_ok(near, "MULTI");
    ask_error(near, "ERR", "LATCH AWAIT gate");
    ask_error(near, "EXECABORT", "EXEC");
    ask_ok(near, "MULTI");
    client_send(near, "LATCH SET gate 1");
    expect_status(near, "QUEUED");
    client_send(near, "LATCH COUNT gate");
    expect_status(near, "QUEUED");
    client_send(near, "LATCH AWAIT gate WAIT 0");
    expect_status(near, "QUEUED");
    v = ask(near, "EXEC");
    ck_assert_uint_eq(v.count, 3);
    ck_assert_int_eq(v.items[0].integer, 1);
    ck_assert_int_eq(v.items[1].integer, 0);
    ck_assert_int_eq(v.items[2].integer, 1);
    value_fini(&v);
    stand_down_two();
}
