/* history: the last ten minutes in numbers, so that a page that is opened shows what
 * was. A ring of fixed size; adding a point costs the same however much goes on. */
#ifndef LATCHD_DAEMON_STATUS_HISTORY_H
#define LATCHD_DAEMON_STATUS_HISTORY_H

#include "util/histogram.h"

#include <stddef.h>
#include <stdint.h>

enum { HISTORY_STEP_MS = 2000, HISTORY_POINTS = 300 };

enum history_series {
    HISTORY_GRANTS, /* in the step */
    HISTORY_HELD,   /* at its end, as all of these */
    HISTORY_WAITING,
    HISTORY_CONNECTIONS,
    HISTORY_WAIT_US,  /* 99 of 100 grants of the step had waited so long or less */
    HISTORY_REDIS_US, /* 99 of 100 answers of the step took so long or less */
    HISTORY_SERIES,
};

#define HISTORY_NONE UINT32_MAX /* nobody looked in that step */

/* What is known at the end of a step; counters since the start. */
struct history_sample {
    uint64_t grants, held, waiting, connections;
    const struct histogram *wait, *redis;
};

struct history {
    uint64_t next_ms; /* when the next point is due */
    size_t end;       /* where it goes */
    size_t count;
    uint64_t grants; /* at the last point */
    struct histogram wait, redis;
    uint32_t points[HISTORY_SERIES][HISTORY_POINTS];
};

/* A zeroed struct is empty; `now_ms` begins its first step. */
void history_start(struct history *h, uint64_t now_ms,
                   const struct history_sample *sample);
/* To be called when next_ms has come. */
void history_add(struct history *h, uint64_t now_ms,
                 const struct history_sample *sample);
/* Point `i` of `count`, oldest first. */
uint32_t history_at(const struct history *h, enum history_series series, size_t i);

#endif
