/* watch: what the renewals of many holds cost, and whether they come in time. */
#ifndef LATCHD_BENCH_WATCH_H
#define LATCHD_BENCH_WATCH_H

#include <stdio.h>

/* Rows for 1,000 holds and ten times as many again up to `most`, to standard output;
 * what they come to also to the results. */
void watch_print(unsigned most);

#endif
