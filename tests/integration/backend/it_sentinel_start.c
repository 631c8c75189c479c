/* The store behind Sentinels: how it comes to a master, and what it says of it. */
#include "sentinel_stand.h"

#include "support/runner.h"

#include <string.h>

TEST_GROUP(.setup = sentinel_stand_up, .teardown = sentinel_stand_down,
           .timeout_s = 60);

START_TEST(the_master_that_a_sentinel_names_is_used)
{
    struct store_info info;

    open_simple();
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_OK);
    ck_assert_int_eq(redis_ask_int(servers[0], "EXISTS n"), 1);
    store_info(peer->store, &info);
    ck_assert_uint_eq(info.sentinel.known, 1);
    ck_assert_uint_eq(info.sentinel.reachable, 1);
    ck_assert_uint_eq(info.sentinel.epoch, 1);
}

START_TEST(a_master_may_be_named_by_its_name)
{
    struct store_info info;

    fake_sentinel_name(fakes[0], "localhost", redis_port(servers[0]), 1);
    start(0, 0);
    open_peer(1, "", "");
    peer_await_count(peer, &peer->ups, 1);
    store_info(peer->store, &info);
    ck_assert_int_eq(strncmp(info.address, "localhost:", 10), 0);
}

START_TEST(the_newest_is_believed_at_the_start)
{
    struct store_info info = { 0 };
    uint64_t end = test_now_ms() + PEER_WAIT_MS;
    char address[64];

    name(0, 1, 0, 6);
    name(2, 2, 1, 7);
    start(0, 2);
    open_peer(3, "", "");
    /* If it is the last to answer, it is followed after the others. */
    (void)snprintf(address, sizeof address, "127.0.0.1:%d", redis_port(servers[1]));
    while (!info.up || strcmp(info.address, address) != 0) {
        ck_assert_msg(test_now_ms() < end, "it is %s", info.address);
        peer_turn(peer);
        store_info(peer->store, &info);
    }
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(redis_ask_int(servers[1], "EXISTS n"), 1);
    ck_assert_int_eq(redis_ask_int(servers[0], "EXISTS n"), 0);
}

START_TEST(a_replica_is_not_used_whoever_names_it)
{
    capture_stderr();
    redis_expect(servers[0], "OK", "REPLICAOF 127.0.0.1 %d", redis_port(servers[1]));
    name(0, 0, 0, 1);
    start(0, 0);
    open_peer(1, "", "");
    await_log("it is a replica: latchd needs its master");
    ck_assert_uint_eq(peer->ups, 0);
    redis_expect(servers[0], "OK", "REPLICAOF NO ONE");
    up_at(1, 0);
}

START_TEST(it_waits_for_a_sentinel_at_the_start)
{
    capture_stderr();
    name(0, 0, 0, 1);
    open_peer(1, "", "");
    await_log("connection refused");
    ck_assert_uint_eq(peer->ups, 0);
    peer_acquire(peer, "n", 1); /* an engine would not */
    start(0, 0);
    up_at(1, 0);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
}

START_TEST(both_passwords_are_used_and_never_shown)
{
    capture_stderr();
    redis_expect(servers[0], "OK", "ACL SETUSER u on >redis@secret ~* &* +@all");
    redis_expect(servers[0], "OK", "ACL SETUSER default off");
    name(0, 0, 0, 1);
    fake_sentinel_set_login(fakes[0], "w", "its&secret");
    start(0, 0);
    open_peer(1, "u:redis%40secret@",
              "/3?sentinel-user=w&sentinel-password=its%26secret");
    up_at(1, 0);
    ck_assert(!is_logged("secret"));
}

START_TEST(a_wrong_password_of_the_sentinels_is_told, 2)
{
    capture_stderr();
    name(0, 0, 0, 1);
    fake_sentinel_set_login(fakes[0], "default", "right");
    start(0, 0);
    open_peer(1, "", _i == 0 ? "?sentinel-password=wrong" : "");
    await_log(_i == 0 ? "WRONGPASS" : "NOAUTH");
    ck_assert(!is_logged("wrong"));
    ck_assert_uint_eq(peer->ups, 0);
}

START_TEST(a_master_that_the_sentinels_do_not_know_is_told)
{
    capture_stderr();
    start(0, 0);
    open_peer(1, "", "");
    await_log("No such master with that name");
    name(0, 0, 0, 1);
    up_at(1, 0);
}

START_TEST(other_sentinels_are_found_and_heard)
{
    struct store_info info = { 0 };

    name(0, 1, 0, 1);
    fake_sentinel_knows(fakes[0], fakes[1]);
    start(0, 1);
    open_peer(1, "", "");
    up_at(1, 0);
    while (info.sentinel.reachable != 2) {
        peer_turn(peer);
        store_info(peer->store, &info);
    }
    fake_sentinel_stop(fakes[0]);
    name(1, 1, 1, 2);
    fake_sentinel_announce(fakes[1]);
    up_at(2, 1);
}

START_TEST(one_sentinel_under_two_names_is_one)
{
    struct store_info info = { 0 };
    char url[160];

    name(0, 0, 0, 1);
    start(0, 0);
    (void)snprintf(url, sizeof url, "sentinel://localhost:%d,127.0.0.1:%d/mymaster",
                   fake_sentinel_port(fakes[0]), fake_sentinel_port(fakes[0]));
    peer = peer_open(url, TIMEOUT);
    up_at(1, 0);
    do {
        peer_turn(peer);
        store_info(peer->store, &info);
    } while (info.sentinel.known != 1);
    peer_run_ms(peer, 300);
    ck_assert_uint_eq(info.sentinel.reachable, 1);
}

/* Server 1 follows server 0, which refuses to write without it. */
static void guard(void)
{
    redis_expect(servers[0], "OK", "CONFIG SET repl-diskless-sync-delay 0");
    redis_expect(servers[0], "OK", "CONFIG SET min-replicas-to-write 1");
    redis_expect(servers[1], "OK", "REPLICAOF 127.0.0.1 %d", redis_port(servers[0]));
}

/* The replica is told to leave, and the master knows. */
static void lose_replica(void)
{
    bool refused;

    redis_expect(servers[1], "OK", "REPLICAOF NO ONE");
    do {
        redisReply *r = redis_ask(servers[0], "SET probe 1");

        refused = r->type == REDIS_REPLY_ERROR;
        freeReplyObject(r);
    } while (!refused);
}

START_TEST(a_master_that_may_not_write_is_waited_for)
{
    capture_stderr();
    guard();
    open_simple();
    lose_replica();
    peer_acquire(peer, "n", 1);
    peer_await_count(peer, &peer->downs, 1);
    await_log("NOREPLICAS");
    await_log("too few replicas follow it");
    ck_assert_uint_eq(peer->ups, 1);
    guard();
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_uint_eq(peer->same_ups, 1);
    ck_assert_int_eq(redis_ask_int(servers[0], "EXISTS n"), 0);
    peer_acquire(peer, "n", 2);
    peer_await_results(peer, 2);
    ck_assert_int_eq(peer->result[1].status, OP_OK);
}

START_TEST(a_master_that_does_not_guard_its_writes_is_told, 2)
{
    capture_stderr();
    if (_i == 1) {
        guard();
    }
    open_simple();
    peer_run_ms(peer, 50);
    ck_assert_int_eq(is_logged("min-replicas-to-write is 0"), _i == 0);
}

START_TEST(a_close_in_any_state_leaves_nothing)
{
    name(0, 2, 0, 1);
    start(0, 2);
    for (int rounds = 0; rounds < 20; rounds++) {
        open_peer(3, "", "");
        for (int i = 0; i < rounds; i++) {
            peer_turn(peer);
        }
        peer_close(peer);
    }
    peer = NULL;
}
