/* results: what the rows of this run came to, and how that stands to what is aimed at.
 * Medians by workload and way, and single values by name. Everything is kept until the
 * program ends. */
#ifndef LATCHD_BENCH_RESULTS_H
#define LATCHD_BENCH_RESULTS_H

#include "figures.h"

void results_row(const char *workload, const char *way, const struct figures *median);
/* Pairs a second of a row that was; NAN: there was none. */
double results_rate(const char *workload, const char *way);
void results_value(const char *name, double value);

/* The single values, for a plot: a name, a tab, a value. */
void results_values_write(FILE *file);
/* The aim, the measured value, and "met" or "falls short". */
void results_judge(FILE *file);

#endif
