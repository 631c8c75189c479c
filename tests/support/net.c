#include "support/net.h"

#include "resp/writer.h"
#include "support/scratch.h"
#include "util/clock.h"
#include "util/text.h"

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct test_loop loop;
struct net *net;
uv_prepare_t net_prepare;
static uv_check_t check;
char path[96];
static char name[128];
int port;

struct net_seen seen;

const struct net_limits LIMITS = { .max_clients = 100,
                                   .query_buffer = 100000,
                                   .output_buffer = 1 << 20 };

static void on_event(void *ctx)
{
    seen.events++;
}

static bool on_open(void *ctx, struct conn *c)
{
    seen.opened++;
    seen.last = conn_id(c);
    conn_set_trusted(c, !seen.strange);
    if (seen.refuse) {
        resp_error(conn_out(c), "ERR", SPAN("not you"));
    }
    return !seen.refuse;
}

static void write_big(struct buf *out, struct span size)
{
    uint64_t len = 0;

    ck_assert(parse_u64(size, 1 << 30, &len));
    memset(buf_reserve(out, len), 'x', len);
    buf_grew(out, len);
}

static void spin(struct buf *out, struct span us)
{
    uint64_t end = 0;

    ck_assert(parse_u64(us, 1000000, &end));
    end += clock_boot_us();
    while (clock_boot_us() < end) {
    }
    resp_simple(out, "SPUN");
}

uint64_t again_times;

static void on_again(void *ctx, struct conn *c)
{
    seen.again++;
    ck_assert(!conn_suspended(c));
    resp_simple(conn_out(c), "AGAIN");
    if (--again_times > 0) {
        conn_again(c);
    }
}

static void on_request(void *ctx, struct conn *c, const struct resp_request *req)
{
    struct span word = req->argv[0];

    seen.requests++;
    ck_assert(!conn_suspended(c));
    if (span_eq(word, SPAN("PING"))) {
        resp_simple(conn_out(c), "PONG");
    } else if (span_eq(word, SPAN("ECHO"))) {
        resp_bulk(conn_out(c), req->argv[1]);
    } else if (span_eq(word, SPAN("WAIT"))) {
        conn_suspend(c);
    } else if (span_eq(word, SPAN("BIG"))) {
        write_big(conn_out(c), req->argv[1]);
    } else if (span_eq(word, SPAN("SPIN"))) {
        spin(conn_out(c), req->argv[1]);
    } else if (span_eq(word, SPAN("QUIT"))) {
        resp_simple(conn_out(c), "OK");
        conn_drain(c);
    } else if (span_eq(word, SPAN("KILL"))) {
        conn_close(c);
    } else if (span_eq(word, SPAN("TIMES"))) {
        ck_assert(parse_u64(req->argv[1], 1000, &again_times));
        conn_again(c);
    } else if (span_eq(word, SPAN("UNTRUST"))) {
        conn_set_trusted(c, false);
    } else if (span_eq(word, SPAN("STAY"))) {
        conn_set_exempt(c, true);
    } else if (span_eq(word, SPAN("TRUST"))) {
        conn_set_trusted(c, true);
        resp_simple(conn_out(c), "WELCOME");
    } else {
        resp_error(conn_out(c), "ERR", SPAN("what?"));
    }
}

static void on_close(void *ctx, struct conn *c, bool unread)
{
    seen.closed++;
    seen.unread += unread;
    ck_assert_ptr_null(net_find(net, conn_id(c)));
}

static bool is_busy(void *ctx, struct conn *c)
{
    return seen.busy;
}

static uint32_t heartbeat(void *ctx, struct conn *c)
{
    return seen.heartbeat;
}

static bool is_unauthenticated(void *ctx, struct conn *c)
{
    return seen.strange;
}

static size_t keeps(void *ctx, struct conn *c)
{
    return conn_id(c) == seen.keeper ? seen.kept : 0;
}

static const struct conn_handler HANDLER = { .on_event = on_event,
                                             .on_open = on_open,
                                             .on_request = on_request,
                                             .on_again = on_again,
                                             .on_close = on_close,
                                             .is_busy = is_busy,
                                             .heartbeat = heartbeat,
                                             .is_unauthenticated = is_unauthenticated,
                                             .keeps = keeps };

void net_turn_end(uv_prepare_t *handle)
{
    net_end_turn(net);
    seen.turns++;
}

static void on_check(uv_check_t *handle)
{
    net_end_turn(net);
}

void net_fixture_open(void)
{
    seen = (struct net_seen){ 0 };
    loop_open(&loop);
    scratch_path("net", ".sock", path, sizeof(path));
    net = net_new(&loop.io, &LIMITS);
    net_set_handler(net, &HANDLER);
    ck_assert_int_eq(uv_prepare_init(&loop.uv, &net_prepare), 0);
    ck_assert_int_eq(uv_prepare_start(&net_prepare, net_turn_end), 0);
    ck_assert_int_eq(uv_check_init(&loop.uv, &check), 0);
    ck_assert_int_eq(uv_check_start(&check, on_check), 0);
    ck_assert_int_eq(listeners_add_tcp(net_listeners(net), "127.0.0.1", 0, 16, false,
                                       name, sizeof(name)),
                     0);
    ck_assert(strncmp(name, "127.0.0.1:", 10) == 0);
    port = atoi(name + 10);
    ck_assert_int_eq(
        listeners_add_unix(net_listeners(net), path, 0700, 16, name, sizeof(name)), 0);
}

void net_fixture_close(void)
{
    net_close(net);
    uv_close((uv_handle_t *)&net_prepare, NULL);
    uv_close((uv_handle_t *)&check, NULL);
    loop_close(&loop);
    net_free(net);
    ck_assert_int_eq(seen.closed, seen.opened);
}

static bool count_is_reached(const void *arg)
{
    const int *const *pair = arg;

    return *pair[0] >= *pair[1];
}

void wait_count(const int *counter, int wanted)
{
    const int *pair[] = { counter, &wanted };

    loop_until(&loop, count_is_reached, pair);
}

int client(int row)
{
    int before = seen.opened;
    int fd = row == 0 ? raw_connect_tcp(AF_INET, port) : raw_connect_unix(path);

    wait_count(&seen.opened, before + 1);
    return fd;
}

bool is_readable(const void *arg)
{
    struct pollfd p = { .fd = *(const int *)arg, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

void expect(int fd, const char *text)
{
    char got[1024] = "";
    size_t have = 0;

    ck_assert_uint_lt(strlen(text), sizeof(got));
    while (have < strlen(text)) {
        ssize_t n;

        loop_until(&loop, is_readable, &fd);
        n = recv(fd, got + have, strlen(text) - have, MSG_DONTWAIT);
        ck_assert_msg(n > 0, "expected \"%s\", got \"%s\" and the end", text, got);
        have += (size_t)n;
    }
    ck_assert_str_eq(got, text);
}

void expect_end(int fd)
{
    char c;

    loop_until(&loop, is_readable, &fd);
    ck_assert_int_eq(recv(fd, &c, 1, MSG_DONTWAIT), 0);
    (void)close(fd);
}

void go(uint64_t id)
{
    struct conn *c = net_find(net, id);

    ck_assert_ptr_nonnull(c);
    resp_simple(conn_out(c), "GO");
    conn_resume(c);
}
