#include "sentinel_stand.h"

#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct test_redis *servers[SERVERS];
struct fake_sentinel *fakes[FAKES];
struct peer *peer;
static char log_path[160];

void sentinel_stand_up(void)
{
    for (int i = 0; i < SERVERS; i++) {
        servers[i] = redis_start_with(true, NULL);
    }
    for (int i = 0; i < FAKES; i++) {
        fakes[i] = fake_sentinel_new();
    }
}

void sentinel_stand_down(void)
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
void name(int first, int last, int server, uint64_t epoch)
{
    for (int i = first; i <= last; i++) {
        fake_sentinel_name(fakes[i], "127.0.0.1", redis_port(servers[server]), epoch);
    }
}

void start(int first, int last)
{
    for (int i = first; i <= last; i++) {
        fake_sentinel_start(fakes[i]);
    }
}

/* Opens a store with the first `count` fakes. */
void open_peer(int count, const char *login, const char *options)
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

void up_at(unsigned ups, int server)
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
void open_simple(void)
{
    name(0, 0, 0, 1);
    start(0, 0);
    open_peer(1, "", "");
    up_at(1, 0);
}

void capture_stderr(void)
{
    scratch_path("stderr", ".log", log_path, sizeof log_path);
    ck_assert_ptr_nonnull(freopen(log_path, "we", stderr));
}

bool is_logged(const char *what)
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

void await_log(const char *what)
{
    uint64_t end = test_now_ms() + PEER_WAIT_MS;

    while (!is_logged(what)) {
        ck_assert_msg(test_now_ms() < end, "not logged: %s", what);
        peer_turn(peer);
    }
}

/* Of clients, but for our own look into it. */
int64_t connections(int server)
{
    redisReply *reply = redis_ask(servers[server], "INFO stats");
    const char *at = strstr(reply->str, "total_connections_received:");
    int64_t count = strtoll(strchr(at, ':') + 1, NULL, 10);

    freeReplyObject(reply);
    return count;
}
