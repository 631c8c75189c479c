/* Simple ops leave as one call for a loop turn, and each op has its own result. */
#include "store_peer.h"

#include "backend/script/script_codec.h"
#include "support/runner.h"

#include <stdio.h>

enum { LONG = 30000, MANY = 4 * SCRIPT_BATCH_MAX };

static struct test_redis *redis;
static struct peer *peer;
static char names[MANY][16];

static void setup(void)
{
    redis = redis_start();
    for (int i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "n%d", i);
    }
}

static void teardown(void)
{
    if (peer != NULL) {
        peer_close(peer);
    }
    redis_stop(redis);
}

static void open_url(const char *url)
{
    peer = peer_open(url, LONG);
    peer_await_count(peer, &peer->ups, 1);
}

static void open_up(void)
{
    char url[256];

    (void)snprintf(url, sizeof url, "unix://%s", redis_path(redis));
    open_url(url);
}

static int64_t calls(void)
{
    return redis_calls(redis, "evalsha", NULL);
}

/* Ids from `id` on. */
static void acquire_all(uint64_t id)
{
    for (uint64_t i = 0; i < MANY; i++) {
        peer_acquire(peer, names[i], id + i);
    }
}

static void expect_all(enum op_status status, uint64_t id)
{
    size_t from = peer->results - MANY;

    for (uint64_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(peer->result[from + i].id, id + i);
        ck_assert_msg(peer->result[from + i].status == status, "%d: %s",
                      (int)peer->result[from + i].status, peer->result[from + i].text);
    }
}

TEST_GROUP(.setup = setup, .teardown = teardown, .timeout_s = 60);

START_TEST(a_turn_takes_few_calls)
{
    int64_t before;

    open_up();
    before = calls();
    acquire_all(1);
    peer_await_results(peer, MANY);
    expect_all(OP_OK, 1);
    ck_assert_int_eq(calls() - before, MANY / SCRIPT_BATCH_MAX);
    acquire_all(1001); /* found again, by the same calls */
    peer_await_results(peer, 2 * (size_t)MANY);
    expect_all(OP_OK, 1001);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(peer->result[i].token, peer->result[MANY + i].token);
    }
    ck_assert_int_eq(calls() - before, 2 * (MANY / SCRIPT_BATCH_MAX));
}

START_TEST(one_alone_is_asked_as_ever)
{
    open_up();
    redis_expect(redis, "OK", "CONFIG RESETSTAT");
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_OK);
    ck_assert_int_eq(calls(), 1);
    ck_assert_int_eq(redis_calls(redis, "mget", NULL), 0);
}

START_TEST(what_is_asked_of_one_name_is_done_in_that_order)
{
    open_up();
    peer_acquire(peer, "n", 1);
    peer_acquire(peer, "m", 2);
    peer_release(peer, "n", 3); /* by its request: not a simple one */
    peer_acquire(peer, "n", 4);
    peer_acquire(peer, "n", 5);
    peer_await_results(peer, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(peer->result[i].status, OP_OK);
    }
    ck_assert_uint_eq(peer->result[2].id, 3);
    ck_assert_uint_gt(peer->result[3].token, peer->result[0].token);
    ck_assert_uint_eq(peer->result[4].token, peer->result[3].token);
}

START_TEST(one_that_is_refused_is_told_so_alone)
{
    open_up();
    redis_expect(redis, "OK", "SET n7 text");
    (void)redis_ask_int(redis, "HSET n9 somebody 1");
    acquire_all(1);
    peer_await_results(peer, MANY);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_uint_eq(peer->result[i].id, 1 + i);
        ck_assert_int_eq(peer->result[i].status, i == 7   ? OP_WRONGTYPE
                                                 : i == 9 ? OP_BUSY
                                                          : OP_OK);
    }
}

/* Redis looks at the keys of a call before it runs it. */
START_TEST(where_one_key_is_forbidden_each_is_asked_alone)
{
    char url[64];
    int64_t before;

    redis_stop(redis);
    redis = redis_start_with(true, NULL);
    (void)snprintf(url, sizeof url, "redis://u:p@127.0.0.1:%d", redis_port(redis));
    redis_expect(redis, "OK", "ACL SETUSER u on >p &* +@all ~n0 ~*{n0}* ~n1 ~*{n1}*");
    open_url(url);
    acquire_all(1);
    peer_await_results(peer, MANY);
    before = calls();
    expect_all(OP_UNKNOWN, 1);
    ck_assert_int_eq(redis_ask_int(redis, "DBSIZE"), 0);
    acquire_all(1001);
    peer_await_results(peer, 2 * (size_t)MANY);
    for (size_t i = 0; i < MANY; i++) {
        ck_assert_int_eq(peer->result[MANY + i].status, i < 2 ? OP_OK : OP_ERROR);
    }
    ck_assert_int_eq(calls() - before, 2); /* what is refused at once does not count */
    ck_assert_int_eq(redis_ask_int(redis, "DBSIZE"), 4);
}

START_TEST(all_that_a_lost_link_left_open_is_unknown_once_H2)
{
    open_up();
    redis_pause(redis);
    acquire_all(1);
    peer_turn(peer);
    peer_run_ms(peer, 50);
    ck_assert_uint_eq(peer->results, 0);
    redis_kill(redis);
    peer_await_count(peer, &peer->downs, 1);
    redis_restart(redis);
    peer_await_results(peer, MANY);
    expect_all(OP_UNKNOWN, 1);
    acquire_all(1001);
    peer_await_results(peer, 2 * (size_t)MANY);
    expect_all(OP_OK, 1001);
    peer_run_ms(peer, 50);
    ck_assert_uint_eq(peer->results, 2 * (size_t)MANY);
}

START_TEST(what_is_asked_while_the_link_is_down_is_unknown)
{
    open_up();
    redis_kill(redis);
    peer_await_count(peer, &peer->downs, 1);
    acquire_all(1);
    peer_turn(peer);
    redis_restart(redis);
    peer_await_results(peer, MANY);
    expect_all(OP_UNKNOWN, 1);
    ck_assert_int_eq(redis_ask_int(redis, "DBSIZE"), 0);
}

START_TEST(flushed_scripts_are_loaded_again)
{
    open_up();
    redis_expect(redis, "OK", "SCRIPT FLUSH");
    acquire_all(1);
    peer_await_results(peer, MANY);
    acquire_all(1001);
    peer_await_results(peer, 2 * (size_t)MANY);
    expect_all(OP_OK, 1001);
    ck_assert_uint_eq(peer->downs, 0);
    ck_assert_int_eq(redis_calls(redis, "mget", NULL), MANY / SCRIPT_BATCH_MAX);
}

START_TEST(a_master_that_became_a_replica_answers_for_none_of_them)
{
    open_up();
    redis_expect(redis, "OK", "REPLICAOF 127.0.0.1 1");
    acquire_all(1);
    peer_turn(peer);
    peer_await_count(peer, &peer->downs, 1);
    redis_expect(redis, "OK", "REPLICAOF NO ONE");
    peer_await_results(peer, MANY);
    expect_all(OP_UNKNOWN, 1);
}

START_TEST(with_replicas_to_wait_for_each_goes_its_way)
{
    struct store_options options = { .timeout_ms = LONG,
                                     .min_replicas = 1,
                                     .replica_timeout_ms = 20 };
    struct store_info info;

    open_up();
    acquire_all(1);
    store_configure(peer->store, &options); /* what was asked before had no such wish */
    peer_await_results(peer, MANY);
    expect_all(OP_OK, 1);
    do { /* until the second link is there, too */
        peer_turn(peer);
        store_info(peer->store, &info);
    } while (!info.up);
    acquire_all(1001);
    peer_await_results(peer, 2 * (size_t)MANY);
    expect_all(OP_NOREPLICAS, 1001);
}
