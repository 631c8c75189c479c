/* rows: the workloads of the table, and who else does each of them. */
#ifndef LATCHD_BENCH_ROWS_H
#define LATCHD_BENCH_ROWS_H

#include "ways.h"

struct row {
    struct workload load;
    const struct way *beside;     /* NULL: nobody else does that */
    const struct workload *other; /* what that does in its turns; NULL: the same */
};

extern const struct row ROWS[];
extern const size_t ROW_COUNT;

#endif
