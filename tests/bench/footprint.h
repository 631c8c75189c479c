/* footprint: what latchd keeps for connections that are merely there. */
#ifndef LATCHD_BENCH_FOOTPRINT_H
#define LATCHD_BENCH_FOOTPRINT_H

/* Bytes of the daemon for an idle connection and for one that waits, to the results. */
void footprint_of_connections(void);

#endif
