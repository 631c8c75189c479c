#include "load.h"

#include "util/alloc.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    EVENTS = 256,
    DRAIN_S = 60,
    COMMAND_MAX = 512,
    LOCAL_PORTS = 10000,
    LOCAL_HOSTS = 200
};

uint64_t bench_now_us(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void bench_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vfprintf(stderr, fmt, ap);
    va_end(ap);
    (void)fputc('\n', stderr);
    exit(EXIT_FAILURE);
}

void load_init(struct load *l)
{
    memset(l, 0, sizeof *l);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0) {
        bench_die("epoll: %s", strerror(errno));
    }
}

/* The kernel looks long for a free port behind the first ten thousand of an address. */
static struct sockaddr_in next_source(void)
{
    static uint32_t opened;
    uint32_t host = INADDR_LOOPBACK + opened++ / LOCAL_PORTS % LOCAL_HOSTS;

    return (struct sockaddr_in){ .sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(host) };
}

static void peer_open(struct peer *p)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)p->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct sockaddr_in from = next_source();
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;

    if (fd < 0 ||
        setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof one) != 0 ||
        bind(fd, (struct sockaddr *)&from, sizeof from) != 0 ||
        connect(fd, (struct sockaddr *)&to, sizeof to) != 0 ||
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        epoll_ctl(p->load->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
        bench_die("connect to port %d: %s", p->port, strerror(errno));
    }
    p->fd = fd;
}

void peer_again(struct peer *p)
{
    (void)close(p->fd);
    peer_open(p);
}

struct peer *load_connect(struct load *l, int port, unsigned depth, lane_reply_fn *fn)
{
    struct peer *p = xcalloc(1, sizeof *p);

    p->load = l;
    p->port = port;
    p->on_reply = fn;
    p->depth = depth;
    p->lanes = xcalloc(depth, sizeof *p->lanes);
    p->waiting = xcalloc(depth, sizeof *p->waiting);
    for (unsigned i = 0; i < depth; i++) {
        p->lanes[i].peer = p;
        p->lanes[i].number = l->lane_count++;
    }
    peer_open(p);
    if (l->peer_count == l->room) {
        l->room = l->room == 0 ? 64 : 2 * l->room;
        l->peers = xrealloc(l->peers, l->room * sizeof(struct peer *));
    }
    l->peers[l->peer_count++] = p;
    return p;
}

void lane_send(struct lane *lane, const char *fmt, ...)
{
    struct peer *p = lane->peer;
    char *at = buf_reserve(&p->out, COMMAND_MAX);
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(at, COMMAND_MAX, fmt, ap);
    va_end(ap);
    if (len >= COMMAND_MAX || p->count == p->depth) {
        bench_die("lane %u asks too much", lane->number);
    }
    buf_grew(&p->out, (size_t)len);
    p->waiting[(p->first + p->count++) % p->depth] = lane;
}

void lane_granted(struct lane *lane)
{
    struct load *l = lane->peer->load;
    uint64_t since = l->one_name ? l->freed_us : lane->began_us;

    if (since != 0 && !l->stopping) {
        histogram_add(&l->times, bench_now_us() - since);
    }
}

bool lane_done(struct lane *lane)
{
    struct load *l = lane->peer->load;

    l->done++;
    lane->idle = l->stopping;
    lane->began_us = lane->idle || l->one_name ? 0 : bench_now_us();
    return !lane->idle;
}

void peer_flush(struct peer *p)
{
    size_t len = buf_len(&p->out);

    if (len != 0 && write(p->fd, buf_ptr(&p->out), len) != (ssize_t)len) {
        bench_die("a peer cannot send");
    }
    buf_clear(&p->out);
}

static void take_line(struct peer *p, const char *line)
{
    struct lane *lane = p->waiting[p->first];

    if (p->count == 0) {
        bench_die("not asked for: %s", line);
    }
    p->first = (p->first + 1) % p->depth;
    p->count--;
    p->on_reply(lane, line);
}

/* Complete replies of what was read; the rest moves to the front. */
static void take_replies(struct peer *p)
{
    char *at = p->in, *end = p->in + p->in_len;

    while (at < end) {
        char *next = p->message_len > 0 ? at + p->message_len
                                        : memchr(at, '\n', (size_t)(end - at));

        if (next == NULL || next > end) {
            break;
        }
        if (p->message_len > 0) {
            p->on_message(p);
        } else {
            *next++ = '\0';
            take_line(p, at);
        }
        at = next;
    }
    p->in_len = (size_t)(end - at);
    memmove(p->in, at, p->in_len);
}

static void receive(struct peer *p)
{
    ssize_t n = read(p->fd, p->in + p->in_len, sizeof p->in - p->in_len);

    if (n <= 0) {
        bench_die("a peer: %s", n == 0 ? "closed" : strerror(errno));
    }
    p->in_len += (size_t)n;
}

void peer_ask(struct peer *p, const char *command, const char *start)
{
    size_t len = strlen(start);

    buf_add_str(&p->out, command);
    peer_flush(p);
    while (p->in_len < len) {
        receive(p);
    }
    if (memcmp(p->in, start, len) != 0) {
        bench_die("wanted %s", start);
    }
    p->in_len = 0;
}

static void turn(struct load *l)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(l->epoll_fd, events, EVENTS, 10);

    for (int i = 0; i < n; i++) {
        struct peer *p = events[i].data.ptr;

        receive(p);
        take_replies(p);
        peer_flush(p);
        if (p->wakes != NULL) {
            peer_flush(p->wakes->peer);
        }
    }
}

static bool all_idle(const struct load *l)
{
    for (size_t i = 0; i < l->peer_count; i++) {
        for (unsigned j = 0; j < l->peers[i]->depth; j++) {
            if (!l->peers[i]->lanes[j].idle) {
                return false;
            }
        }
    }
    return true;
}

double load_run(struct load *l, double seconds)
{
    uint64_t start = bench_now_us(), took;
    uint64_t end = start + (uint64_t)(seconds * 1e6);
    uint64_t done;

    l->done = 0;
    while (bench_now_us() < end) {
        turn(l);
    }
    took = bench_now_us() - start;
    done = l->done;
    l->stopping = true;
    for (end = bench_now_us() + (uint64_t)DRAIN_S * 1000000; !all_idle(l);) {
        turn(l);
        if (bench_now_us() > end) {
            bench_die("the load does not come to an end");
        }
    }
    return (double)done * 1e6 / (double)took;
}

void load_until(struct load *l, uint64_t done)
{
    uint64_t last = l->done, since = bench_now_us();

    while (l->done < done) {
        turn(l);
        if (l->done != last) {
            last = l->done;
            since = bench_now_us();
        } else if (bench_now_us() > since + (uint64_t)DRAIN_S * 1000000) {
            bench_die("%llu of %llu only", (unsigned long long)l->done,
                      (unsigned long long)done);
        }
    }
}

void load_fini(struct load *l)
{
    for (size_t i = 0; i < l->peer_count; i++) {
        struct peer *p = l->peers[i];

        (void)close(p->fd);
        buf_reset(&p->out);
        free(p->lanes);
        free(p->waiting);
        free(p);
    }
    (void)close(l->epoll_fd);
    free(l->peers);
}
