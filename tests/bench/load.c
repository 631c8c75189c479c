#include "load.h"

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

enum { EVENTS = 256, DRAIN_S = 20 };

double bench_now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
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

void load_init(struct load *l, size_t count)
{
    memset(l, 0, sizeof *l);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->peers = calloc(count, sizeof *l->peers);
    l->count = count;
    if (l->epoll_fd < 0 || l->peers == NULL) {
        bench_die("no room for %zu peers", count);
    }
}

struct peer *load_connect(struct load *l, size_t number, int port, peer_reply_fn *fn)
{
    struct peer *p = &l->peers[number];
    struct sockaddr_in in = { .sin_family = AF_INET,
                              .sin_port = htons((uint16_t)port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct epoll_event ev = { .events = EPOLLIN, .data.ptr = p };
    int one = 1;

    p->load = l;
    p->number = (unsigned)number;
    p->on_reply = fn;
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->fd < 0 || connect(p->fd, (struct sockaddr *)&in, sizeof in) != 0 ||
        setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) != 0 ||
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, p->fd, &ev) != 0) {
        bench_die("connect to port %d: %s", port, strerror(errno));
    }
    return p;
}

void peer_send(struct peer *p, const char *fmt, ...)
{
    char out[1024];
    va_list ap;
    int len;

    va_start(ap, fmt);
    len = vsnprintf(out, sizeof out, fmt, ap);
    va_end(ap);
    if (len >= (int)sizeof out || write(p->fd, out, (size_t)len) != len) {
        bench_die("peer %u cannot send", p->number);
    }
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
        if (p->message_len == 0) {
            *next++ = '\0';
        }
        p->on_reply(p, at);
        at = next;
    }
    p->in_len = (size_t)(end - at);
    memmove(p->in, at, p->in_len);
}

static void receive(struct peer *p)
{
    ssize_t n = read(p->fd, p->in + p->in_len, sizeof p->in - p->in_len);

    if (n <= 0) {
        bench_die("peer %u: %s", p->number, n == 0 ? "closed" : strerror(errno));
    }
    p->in_len += (size_t)n;
    take_replies(p);
}

void peer_expect(struct peer *p, const char *start)
{
    size_t len = strlen(start);

    while (p->in_len < len || memcmp(p->in, start, len) != 0) {
        ssize_t n = read(p->fd, p->in + p->in_len, sizeof p->in - p->in_len);

        if (n <= 0 || p->in[0] == '-') {
            bench_die("peer %u: wanted %s", p->number, start);
        }
        p->in_len += (size_t)n;
    }
    p->in_len = 0;
}

static void turn(struct load *l)
{
    struct epoll_event events[EVENTS];
    int n = epoll_wait(l->epoll_fd, events, EVENTS, 10);

    for (int i = 0; i < n; i++) {
        receive(events[i].data.ptr);
    }
}

static bool all_idle(const struct load *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (!l->peers[i].idle && l->peers[i].message_len == 0) {
            return false;
        }
    }
    return true;
}

double load_run(struct load *l, double seconds)
{
    double start = bench_now(), took;
    uint64_t done;

    l->done = 0;
    while (bench_now() < start + seconds) {
        turn(l);
    }
    took = bench_now() - start;
    done = l->done;
    l->stopping = true;
    for (double end = bench_now() + DRAIN_S; !all_idle(l);) {
        turn(l);
        if (bench_now() > end) {
            bench_die("the load does not come to an end");
        }
    }
    return (double)done / took;
}

void load_fini(struct load *l)
{
    for (size_t i = 0; i < l->count; i++) {
        (void)close(l->peers[i].fd);
    }
    (void)close(l->epoll_fd);
    free(l->peers);
}
