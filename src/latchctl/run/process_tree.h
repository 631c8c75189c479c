/* process_tree: all descendants of this process, found in /proc. */
#ifndef LATCHD_LATCHCTL_RUN_PROCESS_TREE_H
#define LATCHD_LATCHCTL_RUN_PROCESS_TREE_H

#include <stddef.h>
#include <sys/types.h>

/* Sends `sig` (0: none) to every descendant of this process but `spare`, whose own
 * descendants are not spared. Returns how many of them live (the spared one and zombies
 * not counted); *ret_denied, if not NULL, is one that may not be signalled, or 0. */
size_t tree_signal(pid_t spare, int sig, pid_t *ret_denied);

#endif
