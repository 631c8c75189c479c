/* process: what the kernel says of this process, and lets others see of it. */
#ifndef LATCHD_DAEMON_PROCESS_H
#define LATCHD_DAEMON_PROCESS_H

#include <stdint.h>

struct process {
    uint64_t cpu_us; /* user and system */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t max_fds;
    uint64_t open_fds; /* 0: not known; to count very many would take too long */
};

/* `about`: how many open files are expected. What cannot be found out is 0. */
void process_look(struct process *ret, uint64_t about);
/* From now on nobody but root can look into its memory, where passwords are: there is
 * no core dump, and others of the same user cannot trace it. */
void process_hide(void);

#endif
