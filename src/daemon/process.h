/* process: resource usage of this process, and what other processes may see of it. */
#ifndef LATCHD_DAEMON_PROCESS_H
#define LATCHD_DAEMON_PROCESS_H

#include <stddef.h>
#include <stdint.h>

struct engine;

struct process {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t max_fds;
    uint64_t open_fds; /* 0: not known, as counting very many would take too long */
};

/* Reads the resource usage; what cannot be read is 0. `about`: the expected number of
 * open files. */
void process_look(struct process *ret, uint64_t about);
/* Protects the memory, which holds passwords: from now on there is no core dump, and
 * only root can trace the process. */
void process_hide(void);
/* Raises the limit of open files for `clients` connections; returns for how many it
 * suffices. */
uint64_t process_raise_limit(uint64_t clients);

/* memory_trim: gives back to the system what a storm of clients has left of memory, at
 * a quiet moment.
 *
 * malloc() keeps what is freed for the next one who asks. Giving it back takes some 10
 * ms for 40 MB, and holds up the loop meanwhile: so it waits until nothing has gone on
 * for a while, and until there is enough to be given back. That is so twice after a
 * storm: when it is over, and when its answers have been remembered for long enough.
 * (What is free could be asked of mallinfo2(), which takes 0.1 s for 300,000 free
 * pieces.) */

enum {
    TRIM_TURNS_MAX = 100, /* turns of the loop in a quiet second */
    TRIM_QUIET_S = 5,     /* so many quiet seconds in a row come before */
    /* as much more memory is resident than after the last time, or at the start */
    TRIM_GROWN_BYTES = 8 * 1024 * 1024,
    /* or so many fewer objects are there, of 0.5 to 1 KiB each */
    TRIM_FREED_OBJECTS = 16384,
};

/* Owned by the caller. A zeroed struct is valid. */
struct memory_trim {
    uint64_t
        turns; /* of the loop, since the last memory_trim_second(); the loop counts */
    uint64_t resident_bytes; /* after the last time; 0: not known yet */
    size_t objects;          /* engine_object_count(), at the most since then */
    unsigned quiet_s;
};

/* Once a second. */
void memory_trim_second(struct memory_trim *t, struct engine *eng);

#endif
