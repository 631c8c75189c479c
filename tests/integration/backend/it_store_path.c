/* A path to Redis that holds bytes back, loses one end, and heals: the store's links
 * through a small relay that the test turns by hand. */
#include "store_peer.h"

#include "support/daemon.h"
#include "support/runner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { TIMEOUT = 5000, PAIRS_MAX = 8, HELD_ROOM = 64 * 1024 };

struct pair {
    int client, server; /* -1: closed */
    bool hold;          /* keep what the client says */
    size_t held_len;
    char held[HELD_ROOM];
};

static struct test_redis *redis;
static struct peer *peer;
static int listener = -1;
static struct pair pairs[PAIRS_MAX];
static int pair_count;

static void teardown(void)
{
    if (peer != NULL) {
        peer_close(peer);
    }
    redis_stop(redis);
}

static void open_all(void)
{
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof in;
    char url[64];

    redis = redis_start();
    listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&in, sizeof in), 0);
    ck_assert_int_eq(listen(listener, PAIRS_MAX), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&in, &len), 0);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%d", ntohs(in.sin_port));
    peer = peer_open(url, TIMEOUT);
}

static void accept_one(void)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct pair *p;

    if (fd < 0) {
        return;
    }
    ck_assert_int_lt(pair_count, PAIRS_MAX);
    p = &pairs[pair_count++];
    p->client = fd;
    p->server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", redis_path(redis));
    ck_assert_int_eq(connect(p->server, (struct sockaddr *)&un, sizeof un), 0);
}

/* False: that end is closed. */
static bool move_bytes(int from, int to)
{
    char data[16 * 1024];
    ssize_t len = recv(from, data, sizeof data, MSG_DONTWAIT);

    if (len > 0 && to >= 0) {
        ck_assert_int_eq(send(to, data, (size_t)len, MSG_NOSIGNAL), len);
    }
    return len > 0 || (len < 0 && errno == EAGAIN);
}

static void hold_bytes(struct pair *p)
{
    ssize_t len =
        recv(p->client, p->held + p->held_len, HELD_ROOM - p->held_len, MSG_DONTWAIT);

    p->held_len += len > 0 ? (size_t)len : 0;
}

static void turn(void)
{
    peer_turn(peer);
    accept_one();
    for (int i = 0; i < pair_count; i++) {
        struct pair *p = &pairs[i];

        if (p->hold && p->client >= 0) {
            hold_bytes(p);
        } else if (p->client >= 0 && !move_bytes(p->client, p->server)) {
            (void)close(p->client);
            p->client = -1;
        }
        if (p->server >= 0 && !move_bytes(p->server, p->client)) {
            (void)close(p->server);
            p->server = -1;
        }
    }
}

static struct pair *holding(const char *word)
{
    for (int i = 0; i < pair_count; i++) {
        if (memmem(pairs[i].held, pairs[i].held_len, word, strlen(word)) != NULL) {
            return &pairs[i];
        }
    }
    return NULL;
}

#define TURN_UNTIL(condition)                                                          \
    do {                                                                               \
        uint64_t turn_end_ = test_now_ms() + PEER_WAIT_MS;                             \
        while (!(condition)) {                                                         \
            ck_assert_msg(test_now_ms() < turn_end_, #condition);                      \
            turn();                                                                    \
        }                                                                              \
    } while (0)

TEST_GROUP(.teardown = teardown, .timeout_s = 60);

START_TEST(a_copy_that_a_healed_path_delivers_does_not_run_H2)
{
    struct pair *old;

    open_all();
    TURN_UNTIL(peer->ups == 1);
    for (int i = 0; i < pair_count; i++) {
        pairs[i].hold = true;
    }
    peer_acquire(peer, "n", 1);
    TURN_UNTIL(holding("EVALSHA") != NULL);
    old = holding("EVALSHA");
    (void)close(old->client); /* to the store the link is gone, Redis knows nothing */
    old->client = -1;
    TURN_UNTIL(peer->results == 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
    ck_assert_uint_eq(peer->same_ups, 1);
    if (old->server >= 0) {
        (void)send(old->server, old->held, old->held_len, MSG_NOSIGNAL);
    }
    TURN_UNTIL(old->server < 0);
    ck_assert_int_eq(redis_ask_int(redis, "EXISTS n"), 0);
}

START_TEST(a_path_that_swallows_everything_is_given_up)
{
    open_all();
    TURN_UNTIL(peer->ups == 1);
    store_configure(peer->store, &(struct store_options){ .timeout_ms = 200 });
    for (int i = 0; i < pair_count; i++) {
        pairs[i].hold = true;
    }
    peer_acquire(peer, "n", 1);
    TURN_UNTIL(peer->downs == 1 && peer->results == 1);
    ck_assert_int_eq(peer->result[0].status, OP_UNKNOWN);
}
