/* footprint: what latchd keeps and spends for what is merely there. */
#ifndef LATCHD_BENCH_FOOTPRINT_H
#define LATCHD_BENCH_FOOTPRINT_H

#include <stdio.h>

/* Bytes of the daemon for an idle connection, for one that waits and for a hold; and
 * processor time for the renewals of many holds. */
void footprint_print(FILE *file);

#endif
