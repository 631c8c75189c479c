/* memory_trim: gives back to the system what a storm of clients has left of memory, at
 * a quiet moment.
 *
 * malloc() keeps what is freed for the next one who asks. Giving it back takes some 10
 * ms for 40 MB, and holds up the loop meanwhile: so it waits until nothing has gone on
 * for a while, and until there is enough to be given back. */
#ifndef LATCHD_DAEMON_MEMORY_TRIM_H
#define LATCHD_DAEMON_MEMORY_TRIM_H

#include <stdint.h>

struct engine;

enum {
    TRIM_TURNS_MAX = 100, /* turns of the loop in a quiet second */
    TRIM_QUIET_S = 5,     /* so many quiet seconds in a row come before */
    /* as much more memory is resident than after the last time, or at the start */
    TRIM_GROWN_BYTES = 8 * 1024 * 1024,
};

/* Owned by the caller. A zeroed struct is valid. */
struct memory_trim {
    uint64_t
        turns; /* of the loop, since the last memory_trim_second(); the loop counts */
    uint64_t resident_bytes; /* after the last time; 0: not known yet */
    unsigned quiet_s;
};

/* Once a second. */
void memory_trim_second(struct memory_trim *t, struct engine *eng);

#endif
