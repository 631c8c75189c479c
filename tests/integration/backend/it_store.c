/* The links of the store on a real Redis: what is lost, what comes back, what is said.
 */
#include "store_peer.h"

#include "support/daemon.h"
#include "support/runner.h"
#include "support/scratch.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT = 3000, SHORT = 1000, GIVE_UP_MS = 200 };

static struct test_redis *redis;
static struct peer *peer;

static void teardown(void)
{
    if (peer != NULL) {
        peer_close(peer);
    }
    redis_stop(redis);
}

static void capture_stderr(char *path, size_t room)
{
    scratch_path("stderr", ".log", path, room);
    ck_assert_ptr_nonnull(freopen(path, "we", stderr));
}

static void captured(const char *path, char *ret, size_t room)
{
    FILE *f;

    (void)fflush(stderr);
    f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    ret[fread(ret, 1, room - 1, f)] = '\0';
    (void)fclose(f);
    (void)unlink(path);
}

static void open_up(uint64_t timeout_ms)
{
    redis = redis_start();
    peer = peer_open_redis(redis, timeout_ms);
    peer_await_count(peer, &peer->ups, 1);
}

TEST_GROUP(.teardown = teardown, .timeout_s = 60);

START_TEST(ops_of_one_turn_leave_together_and_are_answered_in_order)
{
    char name[16], version[64];
    struct store_info info;
    redisReply *said;

    open_up(TIMEOUT);
    for (unsigned i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "n%u", i);
        peer_acquire(peer, name, 1 + i);
    }
    peer_await_results(peer, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_uint_eq(peer->result[i].id, 1 + i);
        ck_assert_int_eq(peer->result[i].status, OP_OK);
    }
    store_info(peer->store, &info);
    ck_assert(info.up);
    ck_assert_uint_eq(info.calls, 1000);
    ck_assert_uint_eq(info.in_flight, 0);
    (void)snprintf(version, sizeof version, "%s_version:%s\r\n",
                   strcmp(info.product, "Valkey") == 0 ? "valkey" : "redis",
                   info.version);
    said = redis_ask(redis, "INFO server");
    ck_assert_ptr_nonnull(strstr(said->str, version));
    freeReplyObject(said);
    ck_assert_uint_gt(info.round_trip_us, 0);
    ck_assert_uint_eq(info.round_trips->count, 1000);
    ck_assert_uint_gt(info.round_trips->max_us, 0);
    ck_assert_int_eq(redis_ask_int(redis, "DBSIZE"), 2000);
}

START_TEST(a_port_works_as_well_and_a_database)
{
    char url[64];

    redis = redis_start_with(true, NULL);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d/3", redis_port(redis));
    peer = peer_open(url, TIMEOUT);
    peer_await_count(peer, &peer->ups, 1);
    peer_acquire(peer, "n", 1);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_OK);
    redis_expect(redis, "OK", "SELECT 3");
    ck_assert_int_eq(redis_ask_int(redis, "EXISTS n"), 1);
}

START_TEST(a_name_is_resolved)
{
    char url[64];

    redis = redis_start_with(true, NULL);
    (void)snprintf(url, sizeof url, "redis://localhost:%d", redis_port(redis));
    peer = peer_open(url, TIMEOUT);
    peer_await_count(peer, &peer->ups, 1);
}

START_TEST(a_password_lets_in_and_a_wrong_one_is_tried_again)
{
    char url[256];

    redis = redis_start();
    redis_expect(redis, "OK", "ACL SETUSER u on >p@ss ~* &* +@all");
    redis_expect(redis, "OK", "ACL SETUSER default off");
    (void)snprintf(url, sizeof url, "unix://%s", redis_path(redis));
    peer = peer_open(url, TIMEOUT);
    peer_run_ms(peer, 300);
    ck_assert_uint_eq(peer->ups, 0);
    redis_expect(redis, "OK", "ACL SETUSER default on");
    peer_await_count(peer, &peer->ups, 1);
}

START_TEST(user_and_password_of_the_address_are_used)
{
    char url[256];

    redis = redis_start_with(true, NULL);
    redis_expect(redis, "OK", "ACL SETUSER u on >p@ss ~* &* +@all");
    redis_expect(redis, "OK", "ACL SETUSER default off");
    (void)snprintf(url, sizeof url, "redis://u:p%%40ss@127.0.0.1:%d",
                   redis_port(redis));
    peer = peer_open(url, TIMEOUT);
    peer_await_count(peer, &peer->ups, 1);
    peer_subscribe(peer, "n");
    peer_await_count(peer, &peer->subscribed, 1);
}

START_TEST(a_killed_redis_comes_back_as_another_server)
{
    open_up(TIMEOUT);
    redis_pause(redis);
    for (uint64_t id = 1; id <= 100; id++) {
        peer_acquire(peer, "n", id);
    }
    peer_turn(peer);
    redis_kill(redis);
    peer_await_count(peer, &peer->downs, 1);
    peer_run_ms(peer, 300);
    ck_assert_uint_eq(peer->results, 0);
    peer_acquire(peer, "m", 101); /* a race that the engine may lose */
    redis_restart(redis);
    peer_await_results(peer, 101);
    ck_assert_uint_eq(peer->ups, 2);
    ck_assert_uint_eq(peer->same_ups, 0);
    for (size_t i = 0; i < 101; i++) {
        ck_assert_uint_eq(peer->result[i].id, i + 1);
        ck_assert_int_eq(peer->result[i].status, OP_UNKNOWN);
        ck_assert_uint_eq(peer->result[i].ups, 2);
    }
    peer_acquire(peer, "n", 102);
    peer_await_results(peer, 102);
    ck_assert_int_eq(peer->result[101].status, OP_OK);
}

START_TEST(what_a_lost_link_left_open_never_runs_late_H2)
{
    open_up(SHORT);
    redis_pause(redis);
    peer_acquire(peer, "n", 1);
    peer_turn(peer);
    peer_await_count(peer, &peer->downs, 1); /* silence */
    peer_run_ms(peer, SHORT);
    ck_assert_uint_eq(peer->results, 0);
    redis_resume(redis);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_uint_eq(peer->same_ups, 1);
    ck_assert_uint_eq(peer->result[0].ups, 2);
    /* It ran too late, or never. */
    ck_assert_int_eq(redis_ask_int(redis, "EXISTS n latchd:fence:{n}"), 0);
}

START_TEST(an_op_that_redis_reads_too_late_is_late)
{
    struct store_info info;

    open_up(SHORT);
    /* Redis is busy beyond the deadline, while the link is not silent long enough. */
    store_configure(peer->store, &(struct store_options){ .timeout_ms = 100 });
    peer_acquire(peer, "n", 1);
    redis_pause(redis);
    peer_turn(peer);
    store_configure(peer->store, &(struct store_options){ .timeout_ms = TIMEOUT });
    peer_run_ms(peer, SHORT);
    redis_resume(redis);
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_LATE);
    ck_assert_uint_eq(peer->downs, 0);
    ck_assert_int_eq(redis_ask_int(redis, "DBSIZE"), 0);
    store_info(peer->store, &info);
    ck_assert_uint_eq(info.late, 1);
}

/* Breaks our own connections to that port, as if the network had. */
static void break_connections(int port)
{
    for (int fd = 3; fd < 64; fd++) {
        struct sockaddr_in in = { 0 };
        socklen_t len = sizeof in;

        if (getpeername(fd, (struct sockaddr *)&in, &len) == 0 &&
            in.sin_family == AF_INET && ntohs(in.sin_port) == port) {
            (void)shutdown(fd, SHUT_RDWR);
        }
    }
}

/* Row 0: it may kill the link before; 1: it may not, and waits until what was open on
 * it is late. */
START_TEST(a_broken_link_is_killed_or_outlived_H2, 2)
{
    static const char *const RIGHTS[] = { "+@all", "-client|kill" };
    static const uint64_t LATE_MS[] = { 9000, 2000 };
    char url[256];
    uint64_t sent, took;

    redis = redis_start_with(true, NULL);
    redis_expect(redis, "OK", "ACL SETUSER u on >p ~* &* +@all %s", RIGHTS[_i]);
    (void)snprintf(url, sizeof url, "redis://u:p@127.0.0.1:%d", redis_port(redis));
    peer = peer_open(url, LATE_MS[_i]);
    peer_await_count(peer, &peer->ups, 1);
    redis_pause(redis);
    sent = test_now_ms();
    peer_acquire(peer, "n", 1);
    peer_turn(peer);
    break_connections(redis_port(redis));
    peer_await_count(peer, &peer->downs, 1);
    redis_resume(redis);
    peer_await_results(peer, 1);
    took = test_now_ms() - sent;
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_uint_eq(peer->same_ups, 1);
    if (_i == 0) {
        ck_assert_uint_lt(took, LATE_MS[_i]);
    } else {
        ck_assert_uint_ge(took, LATE_MS[_i] - 10);
    }
}

START_TEST(a_refused_connection_is_tried_until_it_works)
{
    redis = redis_start();
    redis_kill(redis);
    peer = peer_open_redis(redis, TIMEOUT);
    peer_run_ms(peer, 300);
    ck_assert_uint_eq(peer->ups + peer->downs, 0);
    redis_restart(redis);
    peer_await_count(peer, &peer->ups, 1);
}

/* Somebody connects while the loop runs. */
static bool is_called(int fd, int *ret)
{
    peer_run_ms(peer, 10);
    *ret = accept(fd, NULL, NULL);
    return *ret >= 0;
}

START_TEST(a_server_that_never_answers_is_given_up)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int calls[3]; /* one for each link, and another try */
    char url[64];

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(in.sin_port));
    peer = peer_open(url, GIVE_UP_MS);
    for (int i = 0; i < 3; i++) {
        AWAIT(is_called(fd, &calls[i]));
    }
    ck_assert_uint_eq(peer->ups, 0);
    for (int i = 0; i < 3; i++) {
        (void)close(calls[i]);
    }
    (void)close(fd);
}

/* A port whose queue of connections is full answers no SYN any more. */
START_TEST(a_connection_that_is_never_made_is_given_up)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fill[4];
    char url[64], path[160], text[4096];

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(fd, 0), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fill[i], (struct sockaddr *)&in, sizeof in);
    }
    capture_stderr(path, sizeof path);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(in.sin_port));
    peer = peer_open(url, GIVE_UP_MS);
    peer_run_ms(peer, 5 * GIVE_UP_MS);
    captured(path, text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "no connection within 200 ms"));
    for (size_t i = 0; i < sizeof fill / sizeof fill[0]; i++) {
        (void)close(fill[i]);
    }
    (void)close(fd);
}

START_TEST(flushed_scripts_are_loaded_again)
{
    open_up(TIMEOUT);
    redis_expect(redis, "OK", "SCRIPT FLUSH");
    peer_acquire(peer, "n", 1);
    peer_acquire(peer, "m", 2);
    peer_await_results(peer, 2);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_int_eq(peer->result[1].status, OP_UNKNOWN);
    peer_acquire(peer, "n", 3);
    peer_await_results(peer, 3);
    ck_assert_int_eq(peer->result[2].status, OP_OK);
    ck_assert_uint_eq(peer->downs, 0);
}

START_TEST(what_redis_refuses_is_told_in_its_words)
{
    open_up(TIMEOUT);
    redis_expect(redis, "OK", "SET n x");
    peer_acquire(peer, "n", 1);
    redis_expect(redis, "OK", "CONFIG SET maxmemory 1");
    peer_acquire(peer, "m", 2);
    peer_await_results(peer, 2);
    ck_assert_int_eq(peer->result[0].status, OP_WRONGTYPE);
    ck_assert_int_eq(peer->result[1].status, OP_ERROR);
    ck_assert_ptr_nonnull(strstr(peer->result[1].text, "OOM"));
}

START_TEST(a_master_that_became_a_replica_is_left_until_it_is_one_again)
{
    open_up(TIMEOUT);
    redis_expect(redis, "OK", "REPLICAOF 127.0.0.1 1");
    peer_acquire(peer, "n", 1);
    peer_await_count(peer, &peer->downs, 1);
    peer_run_ms(peer, 300);
    ck_assert_uint_eq(peer->ups, 1);
    redis_expect(redis, "OK", "REPLICAOF NO ONE");
    peer_await_results(peer, 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_uint_eq(peer->same_ups, 0); /* it may have missed something */
}

START_TEST(a_close_in_any_state_leaves_nothing, 12)
{
    redis = redis_start();
    peer = peer_open_redis(redis, TIMEOUT);
    for (int i = 0; i < _i; i++) {
        peer_turn(peer);
        peer_acquire(peer, "n", (uint64_t)i + 1);
        peer_subscribe(peer, "n");
    }
}

static const struct {
    const char *args[3];
    const char *says;
} AUDITS[] = {
    { { "--maxmemory-policy", "allkeys-lru", NULL },
      "maxmemory-policy is allkeys-lru" },
    { { "--appendonly", "no", NULL }, "a restart of Redis loses all locks" },
    { { "--appendonly", "yes", NULL }, NULL },
};

START_TEST(a_server_is_audited_once, 3)
{
    char path[160], text[4096];

    redis = redis_start_with(false, AUDITS[_i].args);
    capture_stderr(path, sizeof path);
    peer = peer_open_redis(redis, TIMEOUT);
    peer_await_count(peer, &peer->ups, 1);
    (void)redis_ask_int(redis, "CLIENT KILL TYPE normal SKIPME yes");
    peer_await_count(peer, &peer->ups, 2);
    peer_acquire(peer, "n", 1); /* behind the audit */
    peer_await_results(peer, 1);
    captured(path, text, sizeof text);
    if (AUDITS[_i].says == NULL) {
        ck_assert_ptr_null(strstr(text, "loses all"));
    } else {
        const char *first = strstr(text, AUDITS[_i].says);

        ck_assert_ptr_nonnull(first);
        ck_assert_ptr_null(strstr(first + 1, AUDITS[_i].says));
    }
}
