/* sample: what `latchctl top` shows, as of one moment: numbers from INFO, and the names
 * of LOCKS TOP. */
#ifndef LATCHD_LATCHCTL_SAMPLE_H
#define LATCHD_LATCHCTL_SAMPLE_H

#include "latchctl/link.h"
#include "util/buf.h"

#include <stdint.h>

enum sample_number {
    SAMPLE_NAMES,
    SAMPLE_HOLDS,
    SAMPLE_WAITERS,
    SAMPLE_CLIENTS,
    SAMPLE_UPTIME,
    SAMPLE_ROUND_TRIP_US,
    SAMPLE_RECONNECTS,
    SAMPLE_LOST,
    /* from here on what has happened since the start: rates are made of it */
    SAMPLE_GRANTS,
    SAMPLE_RELEASES,
    SAMPLE_HANDOVERS,
    SAMPLE_TIMEOUTS,
    SAMPLE_RENEWALS,
    SAMPLE_NUMBERS,
};

enum { SAMPLE_WORD_MAX = 64 };

struct sample {
    uint64_t at_ms; /* 0: there is none */
    uint64_t numbers[SAMPLE_NUMBERS];
    char version[SAMPLE_WORD_MAX];
    char redis[SAMPLE_WORD_MAX]; /* its address */
    bool redis_up;
    redisReply *top; /* an array, the sample's own */
};

void sample_fini(struct sample *s);
/* `info` is INFO's answer, `top` that of LOCKS TOP, which the sample takes over. */
void sample_read(struct sample *s, uint64_t now_ms, const redisReply *info,
                 redisReply *top);

/* All of it as lines, for `columns`; at most `rows` of them, if that is not 0. `before`
 * is an older one, or empty: then there are sums instead of rates. `sort` as in
 * options. */
void sample_write(const struct sample *s, const struct sample *before, const char *sort,
                  size_t columns, size_t rows, struct buf *out);

#endif
