#include "figures.h"

#include <stdlib.h>

static const char *const HEADS[FIGURE_COUNT] = {
    "pairs/s", "p50 us", "p99 us", "p99.9",  "max us",
    "client",  "daemon", "redis",  "cmds/p", "scripts",
};

struct figures figures_of(const struct load *l, double rate, struct meter spent)
{
    double pairs = l->done == 0 ? 1 : (double)l->done;

    return (
        struct figures){ .of = {
                             [FIGURE_RATE] = rate,
                             [FIGURE_P50] = (double)histogram_quantile(&l->times, 500),
                             [FIGURE_P99] = (double)histogram_quantile(&l->times, 990),
                             [FIGURE_P999] = (double)histogram_quantile(&l->times, 999),
                             [FIGURE_MAX] = (double)l->times.max_us,
                             [FIGURE_CLIENT] = spent.client_us / pairs,
                             [FIGURE_DAEMON] = spent.daemon_us / pairs,
                             [FIGURE_REDIS] = spent.redis_us / pairs,
                             [FIGURE_COMMANDS] = (double)spent.commands / pairs,
                             [FIGURE_SCRIPTS] = (double)spent.scripts / pairs,
                         } };
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

struct figures figures_median(const struct figures *runs, size_t count)
{
    struct figures median;
    double values[ROUNDS_MAX];

    for (int f = 0; f < FIGURE_COUNT; f++) {
        for (size_t i = 0; i < count; i++) {
            values[i] = runs[i].of[f];
        }
        qsort(values, count, sizeof *values, compare);
        median.of[f] = values[count / 2];
    }
    return median;
}

void figures_header(FILE *file)
{
    (void)fprintf(file, "%-22s\t%-10s", "workload", "way");
    for (int f = 0; f < FIGURE_COUNT; f++) {
        (void)fprintf(file, "\t%8s", HEADS[f]);
    }
    (void)fprintf(file, "\t%8s\n", "latchd x");
}

void figures_write(FILE *file, const char *workload, const char *way,
                   const struct figures *f, double base)
{
    (void)fprintf(file, "%-22s\t%-10s", workload, way);
    for (int i = 0; i < FIGURE_COUNT; i++) {
        (void)fprintf(file, i >= FIGURE_CLIENT ? "\t%8.2f" : "\t%8.0f", f->of[i]);
    }
    (void)fprintf(file, "\t%8.2f\n",
                  f->of[FIGURE_RATE] > 0 ? base / f->of[FIGURE_RATE] : 0);
    (void)fflush(file);
}
