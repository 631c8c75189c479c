/* load: a closed-loop load generator on epoll. A peer is one connection; each of its
 * lanes has at most one request under way, so as many lanes, as many are pipelined.
 * What lanes send while a peer's replies are looked at leaves in one write.
 *
 * Replies are one line each; a listening peer hears messages of one known length.
 * Whatever goes wrong ends the program. Times in us of a clock that only moves forward.
 */
#ifndef LATCHD_BENCH_LOAD_H
#define LATCHD_BENCH_LOAD_H

#include "util/buf.h"
#include "util/histogram.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LANE_NAME_MAX = 32, PEER_IN_MAX = 8192 };

struct load;
struct peer;

struct lane {
    struct peer *peer;
    unsigned number; /* of all lanes of the load */
    int step;
    bool again; /* woken while a request was under way */
    bool idle;  /* has stopped */
    uint64_t began_us;
    char name[LANE_NAME_MAX];
};

typedef void lane_reply_fn(struct lane *lane, const char *line);
typedef void peer_message_fn(struct peer *listener);

struct peer {
    struct load *load;
    int fd, port;
    lane_reply_fn *on_reply;
    struct lane *lanes;
    unsigned depth;        /* how many lanes */
    struct lane **waiting; /* a ring of them: whose replies are to come, in order */
    unsigned first, count;
    /* Of a listening peer: */
    peer_message_fn *on_message;
    size_t message_len;
    struct lane *wakes;

    struct buf out;
    char in[PEER_IN_MAX];
    size_t in_len;
};

struct load {
    int epoll_fd;
    struct peer **peers;
    size_t peer_count, room;
    unsigned lane_count;
    uint64_t done; /* what on_reply() counts */
    bool stopping; /* lanes must not begin anything new */
    bool one_name; /* then `times` are of hand-overs: from `freed_us` to the grant */
    uint64_t freed_us;
    struct histogram times;
    const void *ctx; /* of its driver */
};

void load_init(struct load *l);
/* Connects to 127.0.0.1; depth 0: a peer that only listens, or does nothing. */
struct peer *load_connect(struct load *l, int port, unsigned depth, lane_reply_fn *fn);

/* Closes, and connects anew. */
void peer_again(struct peer *p);

/* Asks for one reply. */
void lane_send(struct lane *lane, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* It was granted what it asked for since began_us. */
void lane_granted(struct lane *lane);
/* A pair is done. True: it is to begin the next one. */
bool lane_done(struct lane *lane);

/* Sends this and waits for a reply that begins with `start`: for what comes before the
 * loop. */
void peer_ask(struct peer *p, const char *command, const char *start);
void peer_flush(struct peer *p);

/* Runs for that long and returns `done` per second of it; then lets all lanes end. */
double load_run(struct load *l, double seconds);
/* Runs until `done` is as high as that. */
void load_until(struct load *l, uint64_t done);
void load_fini(struct load *l);

uint64_t bench_now_us(void);
_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
