/* figures: what one run of a load showed, the medians of several, and how they are
 * written: a line of a table, and of a file with tabs that a plot is made of. */
#ifndef LATCHD_BENCH_FIGURES_H
#define LATCHD_BENCH_FIGURES_H

#include "load.h"
#include "meter.h"

#include <stdio.h>

enum { ROUNDS_MAX = 101 };

enum figure {
    /* pairs of LOCK and UNLOCK, hand-overs, or a latch's counts or openings, per second
     */
    FIGURE_RATE,
    FIGURE_P50, /* us from LOCK to its grant; one name: from UNLOCK to the next grant */
    FIGURE_P99,
    FIGURE_P999,
    FIGURE_MAX,
    FIGURE_CLIENT, /* us of processor time for a pair */
    FIGURE_DAEMON,
    FIGURE_REDIS,
    FIGURE_COMMANDS, /* of Redis for a pair, with those inside scripts */
    FIGURE_SCRIPTS,
    FIGURE_COUNT,
};

struct figures {
    double of[FIGURE_COUNT];
};

struct figures figures_of(const struct load *l, double rate, struct meter spent);
struct figures figures_median(const struct figures *runs, size_t count);

void figures_header(FILE *file);
/* `base`: the rate that this is compared to. */
void figures_write(FILE *file, const char *workload, const char *way,
                   const struct figures *f, double base);

#endif
