/* load: a closed-loop load generator on epoll. Each peer is one connection that sends a
 * request, waits for the reply, and decides in on_reply() what to send next. Replies
 * are one line each, or, for a listening peer, messages of one known length. */
#ifndef LATCHD_BENCH_LOAD_H
#define LATCHD_BENCH_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct load;
struct peer;

typedef void peer_reply_fn(struct peer *p, const char *line);

struct peer {
    struct load *load;
    int fd;
    peer_reply_fn *on_reply;
    size_t message_len; /* 0: replies are lines */
    struct peer *mate;  /* whom a listening peer wakes */
    unsigned number;
    int step;
    bool again; /* woken while a request was under way */
    bool idle;  /* has stopped */
    char name[32];
    char in[4096];
    size_t in_len;
};

struct load {
    int epoll_fd;
    struct peer *peers;
    size_t count;
    uint64_t done; /* what on_reply() counts */
    bool stopping; /* peers must not begin anything new */
};

void load_init(struct load *l, size_t count);
/* Connects to 127.0.0.1 and gives the peer its number. */
struct peer *load_connect(struct load *l, size_t number, int port, peer_reply_fn *fn);
void peer_send(struct peer *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Reads one reply line, blocking; for what comes before the loop. */
void peer_expect(struct peer *p, const char *start);

/* Runs for that long and returns `done` per second of it; then lets all peers end. */
double load_run(struct load *l, double seconds);
void load_fini(struct load *l);

double bench_now(void);
_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
