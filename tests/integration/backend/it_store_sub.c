/* The pub/sub link of the store on a real Redis. */
#include "store_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { TIMEOUT = 3000, SHORT = 1000 };

static struct test_redis *redis;
static struct peer *peer;

static void teardown(void)
{
    if (peer != NULL) {
        peer_close(peer);
    }
    redis_stop(redis);
}

static void open_up(uint64_t timeout_ms)
{
    redis = redis_start();
    peer = peer_open_redis(redis, timeout_ms);
    peer_await_count(peer, &peer->ups, 1);
}

TEST_GROUP(.teardown = teardown, .timeout_s = 60);

START_TEST(messages_come_under_the_name)
{
    open_up(TIMEOUT);
    peer_subscribe(peer, "n");
    peer_subscribe(peer, "my:{t}:x");
    peer_await_count(peer, &peer->subscribed, 2);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 1);
    peer_await_count(peer, &peer->messages, 1);
    ck_assert_str_eq(peer->last_name, "n");
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:my:{t}:x 0"),
                     1);
    peer_await_count(peer, &peer->messages, 2);
    ck_assert_str_eq(peer->last_name, "my:{t}:x");

    peer_acquire(peer, "n", 1);
    peer_release(peer, "n", 2);
    peer_await_count(peer, &peer->messages, 3);
}

START_TEST(the_last_wish_counts_however_fast_it_changes)
{
    open_up(TIMEOUT);
    for (int i = 0; i < 50; i++) {
        unsigned before = peer->subscribed;

        peer_subscribe(peer, "n");
        if (i % 2 == 0) {
            store_end_turn(peer->store);
        }
        peer_unsubscribe(peer, "n");
        if (i % 3 == 0) {
            store_end_turn(peer->store);
        }
        peer_subscribe(peer, "n");
        peer_await_count(peer, &peer->subscribed, before + 1);
        ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"),
                         1);
        peer_unsubscribe(peer, "n");
    }
    peer_run_ms(peer, 50);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 0);
}

START_TEST(names_that_share_a_channel_are_told_apart)
{
    open_up(TIMEOUT);
    peer_subscribe(peer, "n");
    peer_subscribe(peer, "{n}");
    peer_await_count(peer, &peer->subscribed, 2);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 1);
    peer_await_count(peer, &peer->messages, 2);
    peer_unsubscribe(peer, "{n}");
    peer_run_ms(peer, 20);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 1);
    peer_await_count(peer, &peer->messages, 3);
    ck_assert_str_eq(peer->last_name, "n");
}

START_TEST(the_families_of_a_name_are_told_apart)
{
    open_up(TIMEOUT);
    peer_subscribe(peer, "n");
    peer_subscribe_rw(peer, "n");
    peer_await_count(peer, &peer->subscribed, 2);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_rwlock:{n} 1"), 1);
    peer_await_count(peer, &peer->messages, 1);
    ck_assert_str_eq(peer->last_name, "n");
    ck_assert_int_eq(peer->last_class, CLASS_RW);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 1);
    peer_await_count(peer, &peer->messages, 2);
    ck_assert_int_eq(peer->last_class, CLASS_PLAIN);
    peer_unsubscribe(peer, "n");
    peer_run_ms(peer, 20);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 0);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_rwlock:{n} 1"), 1);
    peer_await_count(peer, &peer->messages, 3);
}

#define MEMBER ":latchd:" PEER_INSTANCE ":7"

/* A member's channel was not asked for: the pattern covers it, and a confirmed
 * SUBSCRIBE implies the pattern. */
START_TEST(messages_for_members_come_under_the_name)
{
    open_up(TIMEOUT);
    peer_subscribe(peer, "other");
    peer_await_count(peer, &peer->subscribed, 1);
    ck_assert_int_eq(
        redis_ask_int(redis, "PUBLISH redisson_lock__channel:my:{t}:x%s 0", MEMBER), 1);
    peer_await_count(peer, &peer->messages, 1);
    ck_assert_str_eq(peer->last_name, "my:{t}:x");
    ck_assert_int_eq(peer->last_class, CLASS_PLAIN);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n}%s 0",
                                   ":latchd:dddddddddddddddd:7"),
                     0);
    ck_assert_int_eq(
        redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n}%s 0", MEMBER), 1);
    peer_await_count(peer, &peer->messages, 3); /* {n} and n */
    ck_assert_str_eq(peer->last_name, "n");

    ck_assert_int_eq(redis_ask_int(redis, "CLIENT KILL TYPE pubsub"), 1);
    peer_await_count(peer, &peer->subscribed, 2);
    ck_assert_int_eq(
        redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n}%s 0", MEMBER), 1);
    peer_await_count(peer, &peer->messages, 5);
}

/* The link works on without the pattern; only the members' messages do not come. */
START_TEST(a_refused_pattern_costs_the_members_messages_only)
{
    char url[300];

    redis = redis_start_with(true, NULL);
    redis_expect(redis, "OK",
                 "ACL SETUSER u on >p ~* resetchannels &redisson_lock__channel:{n} "
                 "&redisson_lock__channel:{latchd:probe} +@all");
    (void)snprintf(url, sizeof url, "redis://u:p@127.0.0.1:%d", redis_port(redis));
    peer = peer_open(url, TIMEOUT);
    peer_await_count(peer, &peer->ups, 1);
    peer_subscribe(peer, "n");
    peer_await_count(peer, &peer->subscribed, 1);
    ck_assert_int_eq(
        redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n}%s 0", MEMBER), 0);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n} 0"), 1);
    peer_await_count(peer, &peer->messages, 1);
    ck_assert_uint_eq(peer->unsubscribed, 0);
}

START_TEST(all_channels_come_back_after_a_loss)
{
    char name[16];

    open_up(TIMEOUT);
    for (unsigned i = 0; i < 10000; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        peer_subscribe(peer, name);
    }
    peer_await_count(peer, &peer->subscribed, 10000);
    ck_assert_int_eq(redis_ask_int(redis, "CLIENT KILL TYPE pubsub"), 1);
    peer_await_count(peer, &peer->unsubscribed, 1);
    peer_await_count(peer, &peer->subscribed, 20000);
    ck_assert_int_eq(redis_ask_int(redis, "PUBLISH redisson_lock__channel:{n9999} 0"),
                     1);
    peer_await_count(peer, &peer->messages, 1);
}

START_TEST(a_silent_pubsub_link_is_dropped)
{
    open_up(SHORT);
    peer_subscribe(peer, "n");
    peer_await_count(peer, &peer->subscribed, 1);
    redis_pause(redis);
    peer_await_count(peer, &peer->unsubscribed, 1);
    redis_resume(redis);
    peer_await_count(peer, &peer->subscribed, 2);
}
