/* The store behind Sentinels: switches, and who is not believed. */
#include "sentinel_stand.h"

#include "support/runner.h"

#include <string.h>

TEST_GROUP(.setup = sentinel_stand_up, .teardown = sentinel_stand_down,
           .timeout_s = 60);

/* Row 0: it is told of it; 1: nobody tells, it asks now and then. */
START_TEST(a_switch_is_followed_and_what_was_open_is_unknown, 2)
{
    uint64_t began;

    open_simple();
    peer_subscribe(peer, "n");
    peer_await_count(peer, &peer->subscribed, 1);
    redis_pause(servers[0]);
    for (uint64_t id = 1; id <= 50; id++) {
        peer_acquire(peer, "n", id);
    }
    peer_turn(peer);
    name(0, 0, 1, 2);
    began = test_now_ms();
    if (_i == 0) {
        fake_sentinel_announce(fakes[0]);
    }
    up_at(2, 1);
    ck_assert_uint_lt(test_now_ms() - began, _i == 0 ? 800 : SOON_MS + 800);
    peer_await_results(peer, 50);
    for (size_t i = 0; i < 50; i++) {
        ck_assert_uint_eq(peer->result[i].id, i + 1);
        ck_assert_int_eq(peer->result[i].status, OP_UNKNOWN);
        ck_assert_uint_eq(peer->result[i].ups, 2);
    }
    ck_assert_uint_eq(peer->downs, 1);
    ck_assert_uint_eq(peer->same_ups, 0);
    ck_assert_uint_eq(peer->failed_overs, 1);
    ck_assert_uint_eq(peer->failed_over_ups, 1); /* before the second */
    ck_assert_uint_eq(peer->unsubscribed, 1);
    peer_await_count(peer, &peer->subscribed, 2);
    ck_assert_int_eq(redis_ask_int(servers[1], "PUBLISH redisson_lock__channel:{n} 0"),
                     1);
    peer_await_count(peer, &peer->messages, 1);
}

START_TEST(a_master_that_was_restarted_is_no_other_one)
{
    open_simple();
    redis_kill(servers[0]);
    redis_restart(servers[0]);
    peer_await_count(peer, &peer->ups, 2);
    ck_assert_uint_eq(peer->same_ups, 0);
    ck_assert_uint_eq(peer->failed_overs, 0);
    /* But one that was a replica meanwhile is. */
    redis_expect(servers[0], "OK", "REPLICAOF 127.0.0.1 1");
    redis_expect(servers[0], "OK", "REPLICAOF NO ONE");
    name(0, 0, 0, 3);
    peer_await_count(peer, &peer->ups, 3);
    ck_assert_uint_eq(peer->same_ups, 0);
    ck_assert_uint_eq(peer->failed_overs, 1);
}

/* The Sentinel never says so: it names the same one all the time. */
START_TEST(a_master_that_was_demoted_for_a_moment_is_another_one)
{
    open_simple();
    redis_expect(servers[0], "OK", "REPLICAOF 127.0.0.1 1");
    peer_await_count(peer, &peer->downs, 1); /* although nothing is asked of it */
    redis_expect(servers[0], "OK", "REPLICAOF NO ONE");
    peer_await_count(peer, &peer->ups, 2);
    ck_assert_uint_eq(peer->same_ups, 0);
    ck_assert_uint_eq(peer->failed_overs, 1);
    ck_assert_uint_eq(peer->failed_over_ups, 1);
}

START_TEST(an_old_master_that_runs_on_is_left_alone)
{
    int64_t before;

    open_simple();
    redis_pause(servers[0]);
    name(0, 0, 1, 2);
    fake_sentinel_announce(fakes[0]);
    up_at(2, 1);
    redis_resume(servers[0]);
    before = connections(0);
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    redis_kill(servers[1]); /* nor when there is no other one */
    peer_await_count(peer, &peer->downs, 2);
    peer_run_ms(peer, SOON_MS);
    ck_assert_int_eq(connections(0), before);
    ck_assert_int_eq(redis_ask_int(servers[0], "DBSIZE"), 0);
    ck_assert_uint_eq(peer->ups, 2);
}

START_TEST(a_sentinel_that_is_behind_leads_nowhere)
{
    int64_t before;

    name(0, 1, 1, 7);
    name(2, 2, 0, 6);
    start(0, 2);
    open_peer(3, "", "");
    peer_await_count(peer, &peer->ups, 1);
    before = connections(0);
    fake_sentinel_announce(fakes[2]);
    fake_sentinel_stop(fakes[0]);
    fake_sentinel_stop(fakes[1]);
    redis_kill(servers[1]);
    peer_await_count(peer, &peer->downs, 1);
    fake_sentinel_announce(fakes[2]);
    peer_run_ms(peer, SOON_MS);
    ck_assert_int_eq(connections(0), before);
    ck_assert_uint_eq(peer->ups, 1);
    name(2, 2, 0, 8);
    up_at(2, 0);
}

START_TEST(a_master_that_became_a_replica_makes_it_ask_at_once)
{
    uint64_t began, asked;

    open_simple();
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    redis_expect(servers[0], "OK", "REPLICAOF 127.0.0.1 %d", redis_port(servers[1]));
    asked = fake_sentinel_asked(fakes[0]);
    while (fake_sentinel_asked(fakes[0]) == asked) {
        peer_turn(peer); /* a whole second is left until the next asking */
    }
    name(0, 0, 1, 2);
    began = test_now_ms();
    peer_acquire(peer, "m", 2);
    up_at(2, 1);
    ck_assert_uint_lt(test_now_ms() - began, 800);
    peer_await_results(peer, 2);
    ck_assert_int_eq(peer->result[1].status, OP_UNKNOWN);
}

START_TEST(without_a_sentinel_only_the_same_process_is_used_on)
{
    struct store_info info;

    capture_stderr();
    open_simple();
    fake_sentinel_stop(fakes[0]);
    await_log("no Sentinel answers");
    store_info(peer->store, &info);
    ck_assert_uint_eq(info.sentinel.known, 1);
    ck_assert_uint_eq(info.sentinel.reachable, 0);
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_OK);
    (void)redis_ask_int(servers[0], "CLIENT KILL TYPE normal SKIPME yes");
    peer_await_count(peer, &peer->ups, 2);
    ck_assert_uint_eq(peer->same_ups, 1);
    redis_kill(servers[0]);
    redis_restart(servers[0]);
    await_log("it was restarted, and no Sentinel says that it is still the master");
    ck_assert_uint_eq(peer->ups, 2);
    start(0, 0);
    peer_await_count(peer, &peer->ups, 3);
    await_log("a Sentinel answers again");
}
