/* process: resource usage of this process, and what other processes may see of it. */
#ifndef LATCHD_DAEMON_PROCESS_H
#define LATCHD_DAEMON_PROCESS_H

#include <stdint.h>

struct process {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t max_fds;
    uint64_t open_fds; /* 0: not known, as counting very many would take too long */
};

/* Reads the resource usage; what cannot be read is 0. `about`: the expected number of
 * open files. */
void process_look(struct process *ret, uint64_t about);
/* Only that of it, which costs less. */
uint64_t process_resident_bytes(void);
/* Protects the memory, which holds passwords: from now on there is no core dump, and
 * only root can trace the process. */
void process_hide(void);

#endif
