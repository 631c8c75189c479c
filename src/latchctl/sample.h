/* sample: what `latchctl top` displays for one moment: numbers from INFO, and the
 * names of LOCKS TOP. */
#ifndef LATCHD_LATCHCTL_SAMPLE_H
#define LATCHD_LATCHCTL_SAMPLE_H

#include "latchctl/link.h"
#include "util/buf.h"

#include <stdint.h>

enum sample_number {
    SAMPLE_NAMES,
    SAMPLE_HOLDS,
    SAMPLE_WAITERS,
    SAMPLE_AWAITS,
    SAMPLE_CLIENTS,
    SAMPLE_UPTIME,
    SAMPLE_ROUND_TRIP_US,
    SAMPLE_RECONNECTS,
    SAMPLE_LOST,
    /* counters since the start, from here on: displayed as rates */
    SAMPLE_GRANTS,
    SAMPLE_LOCAL_GRANTS,
    SAMPLE_RELEASES,
    SAMPLE_HANDOVERS,
    SAMPLE_TIMEOUTS,
    SAMPLE_RENEWALS,
    SAMPLE_NUMBERS,
};

enum { SAMPLE_WORD_MAX = 64 };

struct sample {
    uint64_t at_ms; /* 0: an empty sample */
    uint64_t numbers[SAMPLE_NUMBERS];
    char version[SAMPLE_WORD_MAX];
    char redis[SAMPLE_WORD_MAX]; /* the address of Redis */
    bool redis_up;
    redisReply *top; /* an array, owned by the sample */
};

void sample_fini(struct sample *s);
/* Fills a sample from the answers to INFO and LOCKS TOP; takes `top`. */
void sample_read(struct sample *s, uint64_t now_ms, const redisReply *info,
                 redisReply *top);

/* Writes a sample as lines of `columns`, at most `rows` of them unless that is 0.
 * `before` is an older sample; if it is empty, there are sums instead of rates. `sort`
 * is as in options. */
void sample_write(const struct sample *s, const struct sample *before, const char *sort,
                  size_t columns, size_t rows, struct buf *out);

#endif
