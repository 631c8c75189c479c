#include "results.h"

#include <math.h>
#include <string.h>

enum { ROWS_MAX = 100, VALUES_MAX = 100 };

static struct {
    const char *workload, *way;
    struct figures median;
} rows[ROWS_MAX];
static size_t row_count;

static struct {
    const char *name;
    double value;
} values[VALUES_MAX];
static size_t value_count;

void results_row(const char *workload, const char *way, const struct figures *median)
{
    if (row_count < ROWS_MAX) {
        rows[row_count].workload = workload;
        rows[row_count].way = way;
        rows[row_count++].median = *median;
    }
}

void results_value(const char *name, double value)
{
    if (value_count < VALUES_MAX) {
        values[value_count].name = name;
        values[value_count++].value = value;
    }
}

void results_values_write(FILE *file)
{
    for (size_t i = 0; i < value_count; i++) {
        (void)fprintf(file, "%s\t%.2f\n", values[i].name, values[i].value);
    }
}

/* NAN where that was not measured, and in all that is made of it. */
static double figure(const char *workload, const char *way, enum figure which)
{
    for (size_t i = 0; i < row_count; i++) {
        if (strcmp(rows[i].workload, workload) == 0 && strcmp(rows[i].way, way) == 0) {
            return rows[i].median.of[which];
        }
    }
    return NAN;
}

double results_rate(const char *workload, const char *way)
{
    return figure(workload, way, FIGURE_RATE);
}

static double value(const char *name)
{
    for (size_t i = 0; i < value_count; i++) {
        if (strcmp(values[i].name, name) == 0) {
            return values[i].value;
        }
    }
    return NAN;
}

static double times(const char *workload, const char *way)
{
    return results_rate(workload, "latchd") / results_rate(workload, way);
}

/* The same where daemon and Redis have a core each, which they share with the load
 * here: the busier of them sets the rate. Worked out of their processor time for a
 * pair. */
static double times_with_cores(const char *workload, const char *way)
{
    return figure(workload, way, FIGURE_REDIS) /
           fmax(figure(workload, "latchd", FIGURE_DAEMON),
                figure(workload, "latchd", FIGURE_REDIS));
}

static double rate_beside(const char *workload, const char *other)
{
    return results_rate(workload, "latchd") / results_rate(other, "latchd");
}

static void judge(FILE *file, const char *what, const char *unit, double measured,
                  char than, double aim)
{
    const char *verdict = "not measured";

    if (!isnan(measured)) {
        verdict =
            (than == '<' ? measured <= aim : measured >= aim) ? "met" : "falls short";
    }
    (void)fprintf(file, "%-52s %c= %7.2f %-6s %9.2f  %s\n", what, than, aim, unit,
                  measured, verdict);
}

/* Of names that are lent to the daemon. */
static void judge_local(FILE *file)
{
    double ping = figure("PING, in turns with LOCAL", "PING", FIGURE_P50);

    judge(file, "LOCAL: own names, 64 connections, against SET NX", "x",
          times("own names, LOCAL", "SET NX"), '>', 1);
    judge(file, "LOCAL: the same, depth 16", "x",
          times("own names, LOCAL, depth 16", "SET NX"), '>', 1.2);
    judge(file, "LOCAL: a lonely pair's time, against SET NX", "x",
          1 / times("round trip, LOCAL", "SET NX"), '<', 1.3);
    judge(file, "LOCAL: 100 waiters, against Redisson's way", "x",
          times("one name, LOCAL, 100", "Redisson's"), '>', 15);
    judge(file, "LOCAL: script calls for 1,000 hand-overs, 100 waiters", "",
          1000 * figure("one name, LOCAL, 100", "latchd", FIGURE_SCRIPTS), '<', 4);
    judge(file, "LOCAL: p50 hand-over, 100 waiters, in PINGs", "",
          figure("one name, LOCAL, 100", "latchd", FIGURE_P50) / ping, '<', 1.5);
    judge(file, "LOCAL: p99 hand-over, 100 waiters, in PINGs", "",
          figure("one name, LOCAL, 100", "latchd", FIGURE_P99) / ping, '<', 3);
    judge(file, "LOCAL: p99 hand-over, 1,000 waiters, in PINGs", "",
          figure("one name, LOCAL, 1,000", "latchd", FIGURE_P99) / ping, '<', 3);
}

static void judge_latches(FILE *file)
{
    double ping = figure("PING, in turns with latches", "PING", FIGURE_P50);
    double opening = figure("latch opens, 100", "latchd", FIGURE_P50);

    judge(file, "latch: counts, against Redisson's, which know no ID", "x",
          times("latch counts", "Redisson's"), '>', 0.5);
    judge(file, "latch: p50 opening, 100 waiters, against Redisson's", "x",
          figure("latch opens, 100", "Redisson's", FIGURE_P50) / opening, '>', 2);
    judge(file, "latch: p50 opening, 100 waiters, in PINGs", "", opening / ping, '<',
          100);
}

void results_judge(FILE *file)
{
    double trip = figure("round trip, in turns with 1,000", "SET NX", FIGURE_P50);

    (void)fprintf(file, "\n%-52s %10s %-6s %9s\n", "medians of this run", "aim", "",
                  "measured");
    judge(file, "own names, 64 connections, against SET NX", "x",
          times("own names", "SET NX"), '>', 1);
    judge(file, "the same, as the second aim", "x", times("own names", "SET NX"), '>',
          1.5);
    judge(file, "own names, depth 16, against SET NX", "x",
          times("own names, depth 16", "SET NX"), '>', 1);
    judge(file, "own names, by the busier of latchd and Redis", "x",
          times_with_cores("own names", "SET NX"), '>', 1);
    judge(file, "the same, depth 16", "x",
          times_with_cores("own names, depth 16", "SET NX"), '>', 1);
    judge(file, "one name, 100 waiters, against Redisson's way", "x",
          times("one name, 100", "Redisson's"), '>', 4);
    judge(file, "the same, as was hoped of telling ahead of Redis", "x",
          times("one name, 100", "Redisson's"), '>', 15);
    judge(file, "script calls for a hand-over, 100 waiters", "",
          figure("one name, 100", "latchd", FIGURE_SCRIPTS), '<', 1.05);
    judge(file, "script calls for a fair hand-over, 10 waiters", "",
          figure("fair, 10 waiters", "latchd", FIGURE_SCRIPTS), '<', 1.05);
    judge(file, "script calls for a fair hand-over, 10,000 waiters", "",
          figure("fair, 10,000", "latchd", FIGURE_SCRIPTS), '<', 1.05);
    judge(file, "one name, 10,000 waiters against 10", "x",
          rate_beside("one name, 10,000", "one name, 10"), '>', 0.8);
    judge(file, "fair, 10,000 waiters against 10", "x",
          rate_beside("fair, 10,000", "fair, 10 waiters"), '>', 0.8);
    judge(file, "p99 hand-over at 1,000 waiters, in Redis round trips", "",
          figure("one name, 1,000", "latchd", FIGURE_P99) / trip, '<', 3);
    judge(file, "a million holds: renewals that came late", "",
          value("late renewals of 1000000 holds"), '<', 0);
    judge(file, "a million holds: a core in latchd", "%",
          value("latchd % for 1000000 holds"), '<', 25);
    judge(file, "a million holds: a core in Redis", "%",
          value("Redis % for 1000000 holds"), '<', 25);
    judge(file, "an idle connection", "bytes", value("bytes of an idle connection"),
          '<', 512);
    judge(file, "a waiting connection", "bytes", value("bytes of a waiting connection"),
          '<', 1024);
    judge(file, "a hold", "bytes", value("bytes of a hold"), '<', 300);
    judge(file, "own names, against Redisson itself", "x",
          times("own names", "Redisson"), '>', 3);
    judge(file, "one name, 100 waiters, against Redisson itself", "x",
          times("one name, 100", "Redisson"), '>', 10);
    judge(file, "semaphore of 10, 100 waiters, against Redisson itself", "x",
          times("semaphore of 10, 100", "Redisson"), '>', 10);
    judge(file, "script calls for a hand-over of permits", "",
          figure("semaphore of 10, 100", "latchd", FIGURE_SCRIPTS), '<', 1.05);
    judge_latches(file);
    judge_local(file);
    (void)fflush(file);
}
