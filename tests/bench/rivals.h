/* rivals: others that give locks, as far as the machine has them: Redisson itself, etcd
 * and ZooKeeper. rivals/rivals.py starts and drives them, one after the other. */
#ifndef LATCHD_BENCH_RIVALS_H
#define LATCHD_BENCH_RIVALS_H

#include <stdio.h>

/* Writes their rows to standard output and to `file`, and gives them to the results.
 * Redisson uses the stand's Redis. */
void rivals_run(FILE *file, double seconds);

#endif
