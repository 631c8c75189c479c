/* The store behind Sentinels that say what the test wants, and real servers. */
#include "store_peer.h"

#include "support/daemon.h"
#include "support/fake_sentinel.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TIMEOUT = 3000, SERVERS = 2, FAKES = 3, SOON_MS = 1500 };

static struct test_redis *servers[SERVERS];
static struct fake_sentinel *fakes[FAKES];
static struct peer *peer;
static char log_path[160];

static void setup(void)
{
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = redis_start_with(true, NULL);
    }
    for (int i = 0; i < FAKES; i++) {
        fakes[i] = fake_sentinel_new();
    }
}

static void teardown(void)
{
    if (peer != NULL) {
        peer_close(peer);
    }
    for (int i = 0; i < SERVERS; i++) {
        redis_stop(servers[i]);
    }
    for (int i = 0; i < FAKES; i++) {
        fake_sentinel_free(fakes[i]);
    }
}

/* Fakes from `first` to `last` name that server from now on. */
static void name(int first, int last, int server, uint64_t epoch)
{
    for (int i = first; i <= last; i++) {
        fake_sentinel_name(fakes[i], "127.0.0.1", redis_port(servers[server]), epoch);
    }
}

static void start(int first, int last)
{
    for (int i = first; i <= last; i++) {
        fake_sentinel_start(fakes[i]);
    }
}

/* Opens a store with the first `count` fakes. */
static void open_peer(int count, const char *login, const char *options)
{
    char url[256];
    int len = snprintf(url, sizeof url, "sentinel://%s", login);

    for (int i = 0; i < count; i++) {
        len += snprintf(url + len, sizeof url - (size_t)len, "%s127.0.0.1:%d",
                        i == 0 ? "" : ",", fake_sentinel_port(fakes[i]));
    }
    (void)snprintf(url + len, sizeof url - (size_t)len, "/mymaster%s", options);
    peer = peer_open(url, TIMEOUT);
}

static void up_at(unsigned ups, int server)
{
    struct store_info info;
    char address[64];

    peer_await_count(peer, &peer->ups, ups);
    store_info(peer->store, &info);
    (void)snprintf(address, sizeof address, "127.0.0.1:%d",
                   redis_port(servers[server]));
    ck_assert(info.up);
    ck_assert_str_eq(info.address, address);
    ck_assert_str_eq(info.topology, "sentinel");
    ck_assert_str_eq(info.sentinel.master, "mymaster");
    ck_assert_uint_eq(info.sentinel.switches, peer->ups == 1 ? 0 : 1);
}

/* One fake names server 0 with epoch 1, and it is used. */
static void open_simple(void)
{
    name(0, 0, 0, 1);
    start(0, 0);
    open_peer(1, "", "");
    up_at(1, 0);
}

static void capture_stderr(void)
{
    scratch_path("stderr", ".log", log_path, sizeof log_path);
    ck_assert_ptr_nonnull(freopen(log_path, "we", stderr));
}

static bool is_logged(const char *what)
{
    static char text[16384];
    FILE *f;

    (void)fflush(stderr);
    f = fopen(log_path, "re");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    return strstr(text, what) != NULL;
}

static void await_log(const char *what)
{
    uint64_t end = test_now_ms() + PEER_WAIT_MS;

    while (!is_logged(what)) {
        ck_assert_msg(test_now_ms() < end, "not logged: %s", what);
        peer_turn(peer);
    }
}

/* Of clients, but for our own look into it. */
static int64_t connections(int server)
{
    redisReply *reply = redis_ask(servers[server], "INFO stats");
    const char *at = strstr(reply->str, "total_connections_received:");
    int64_t count = strtoll(strchr(at, ':') + 1, NULL, 10);

    freeReplyObject(reply);
    return count;
}

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
END_TEST

/* Row 0: it is told of it; 1: nobody tells, it asks now and then. */
START_TEST(a_switch_is_followed_and_what_was_open_is_unknown)
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
END_TEST

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
END_TEST

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
END_TEST

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
END_TEST

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
END_TEST

START_TEST(the_newest_is_believed_at_the_start)
{
    name(0, 1, 0, 6);
    name(2, 2, 1, 7);
    start(0, 2);
    open_peer(3, "", "");
    /* Unless it was the last to answer: then it is followed at once. */
    while (peer->ups == 0 || connections(1) < 3) {
        peer_turn(peer);
    }
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(redis_ask_int(servers[1], "EXISTS n"), 1);
    ck_assert_int_eq(redis_ask_int(servers[0], "EXISTS n"), 0);
}
END_TEST

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
END_TEST

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
END_TEST

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
END_TEST

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
END_TEST

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
END_TEST

START_TEST(a_wrong_password_of_the_sentinels_is_told)
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
END_TEST

START_TEST(a_master_that_the_sentinels_do_not_know_is_told)
{
    capture_stderr();
    start(0, 0);
    open_peer(1, "", "");
    await_log("No such master with that name");
    name(0, 0, 0, 1);
    up_at(1, 0);
}
END_TEST

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
END_TEST

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
END_TEST

START_TEST(a_master_that_does_not_guard_its_writes_is_told)
{
    capture_stderr();
    if (_i == 1) {
        redis_expect(servers[0], "OK", "CONFIG SET min-replicas-to-write 1");
    }
    open_simple();
    peer_run_ms(peer, 50);
    ck_assert_int_eq(is_logged("min-replicas-to-write is 0"), _i == 0);
}
END_TEST

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
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("sentinel");
    TCase *tc = tcase_create("sentinel");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_master_that_a_sentinel_names_is_used);
    tcase_add_loop_test(tc, a_switch_is_followed_and_what_was_open_is_unknown, 0, 2);
    tcase_add_test(tc, a_master_that_was_restarted_is_no_other_one);
    tcase_add_test(tc, a_master_may_be_named_by_its_name);
    tcase_add_test(tc, an_old_master_that_runs_on_is_left_alone);
    tcase_add_test(tc, a_sentinel_that_is_behind_leads_nowhere);
    tcase_add_test(tc, the_newest_is_believed_at_the_start);
    tcase_add_test(tc, a_replica_is_not_used_whoever_names_it);
    tcase_add_test(tc, a_master_that_became_a_replica_makes_it_ask_at_once);
    tcase_add_test(tc, it_waits_for_a_sentinel_at_the_start);
    tcase_add_test(tc, without_a_sentinel_only_the_same_process_is_used_on);
    tcase_add_test(tc, both_passwords_are_used_and_never_shown);
    tcase_add_loop_test(tc, a_wrong_password_of_the_sentinels_is_told, 0, 2);
    tcase_add_test(tc, a_master_that_the_sentinels_do_not_know_is_told);
    tcase_add_test(tc, other_sentinels_are_found_and_heard);
    tcase_add_test(tc, one_sentinel_under_two_names_is_one);
    tcase_add_loop_test(tc, a_master_that_does_not_guard_its_writes_is_told, 0, 2);
    tcase_add_test(tc, a_close_in_any_state_leaves_nothing);
    suite_add_tcase(s, tc);
    return s;
}
