/* stats: the numbers of stats.def, all read at one moment, and their lines of INFO. */
#ifndef LATCHD_CMD_STATS_H
#define LATCHD_CMD_STATS_H

#include "util/buf.h"
#include "util/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct cmd;

enum stat_id {
#define STAT(name, ...) STAT_##name,
#define TIMES(name, ...) STAT_##name,
#include "cmd/stats.def"
    STAT_COUNT
};

enum stat_type {
    STAT_GAUGE,
    STAT_COUNTER,
    STAT_MS,     /* a gauge in milliseconds */
    STAT_SIGNED, /* a gauge that can be negative */
    STAT_TIMES,  /* a histogram of microseconds */
};

struct stat_row {
    const char *name, *section; /* of INFO; "": it is in no section */
    enum stat_type type;
    unsigned first, last; /* STAT_TIMES: buckets in /metrics, as powers of two */
    const char *metric;   /* of /metrics; "": none */
    const char *json;     /* object.key of /status.json; "": none */
    const char *help;
};

extern const struct stat_row STATS[STAT_COUNT];

struct stat_value {
    bool known; /* false: it does not apply here, or was not read */
    uint64_t number;
    const struct histogram *times; /* STAT_TIMES */
};

struct stats {
    struct stat_value of[STAT_COUNT];
};

/* How a reader sets what it has read. */
#define STAT_SET(stats, id, value)                                                     \
    ((stats)->of[id] =                                                                 \
         (struct stat_value){ .known = true, .number = (uint64_t)(value) })
#define STAT_SET_TIMES(stats, id, value)                                               \
    ((stats)->of[id] = (struct stat_value){ .known = true, .times = (value) })

/* Reads all. `clients`: also what a walk over all connections tells. */
void stats_read(struct cmd *c, bool clients, struct stats *ret);

/* Called about once a second: updates INFO's rates per second. */
void cmd_second(struct cmd *c, uint64_t now_ms);

#endif
