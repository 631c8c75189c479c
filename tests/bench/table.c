/* table: latchd beside the same load straight at the same Redis, in turns, as a table:
 *
 *   meson test --benchmark --verbose table
 *
 * Beside each way that is not latchd's stands how many times its rate latchd has.
 * Times are from LOCK to its grant; of one name from UNLOCK to the next grant; of a
 * latch from COUNT to its answer, or from the last COUNT until all who wait are told.
 * Processor time is in us for a pair, of the load generator, the daemon and Redis.
 * In the end: what is aimed at, and whether it was met.
 *
 * Clients use TCP; Redis keeps nothing on disk. The generator shares the machine with
 * what it measures. BENCH_SECONDS (0.5) and BENCH_ROUNDS (3) for each row; BENCH_ONLY:
 * only workloads whose name has that in it, or `rivals`, `holds`, `bytes`, several of
 * them with `|` between; BENCH_FILE: the table with tabs (bench.tsv); BENCH_FULL: for
 * minutes, and a million holds. */
#include "figures.h"
#include "footprint.h"
#include "results.h"
#include "rivals.h"
#include "rows.h"
#include "support/runner.h"
#include "support/stand.h"
#include "watch.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS_MAX = 2, HOLDS = 100000, HOLDS_FULL = 1000000 };

static double number_from(const char *variable, double otherwise)
{
    const char *text = getenv(variable);

    return text == NULL ? otherwise : atof(text);
}

static struct figures run(const struct workload *w, const struct way *way,
                          double seconds)
{
    struct load l;
    struct meter before;
    struct figures f;
    double rate;

    ways_start(&l, w, way);
    before = meter_read();
    rate = load_run(&l, seconds);
    f = figures_of(&l, rate, meter_since(meter_read(), before));
    load_fini(&l);
    meter_settle();
    return f;
}

static void write_row(FILE *file, const struct workload *w, const struct way *way,
                      const struct figures *median, double base)
{
    figures_write(stdout, w->name, way->name, median, base);
    figures_write(file, w->name, way->name, median, base);
    results_row(w->name, way->name, median);
}

static void compare(FILE *file, const struct row *row, size_t rounds, double seconds)
{
    struct figures runs[WAYS_MAX][ROUNDS_MAX] = { 0 }, median[WAYS_MAX] = { 0 };
    const struct workload *w = &row->load, *other = row->other;

    other = other == NULL ? w : other;

    for (size_t i = 0; i < rounds; i++) {
        runs[0][i] = run(w, &WAY_LATCHD, seconds);
        if (row->beside != NULL) {
            runs[1][i] = run(other, row->beside, seconds);
        }
    }
    median[0] = figures_median(runs[0], rounds);
    write_row(file, w, &WAY_LATCHD, &median[0], median[0].of[FIGURE_RATE]);
    if (row->beside != NULL) {
        median[1] = figures_median(runs[1], rounds);
        write_row(file, other, row->beside, &median[1],
                  other == w ? median[0].of[FIGURE_RATE] : 0);
    }
}

static bool is_wanted(const char *name)
{
    const char *only = getenv("BENCH_ONLY");
    char parts[256], *rest = parts, *part;
    bool wanted = only == NULL;

    (void)snprintf(parts, sizeof parts, "%s", wanted ? "" : only);
    while (!wanted && (part = strsep(&rest, "|")) != NULL) {
        wanted = strstr(name, part) != NULL;
    }
    return wanted;
}

static void all_rows(FILE *file, size_t rounds, double seconds)
{
    printf("medians of %zu rounds of %.1f s each, in turns\n", rounds, seconds);
    figures_header(stdout);
    figures_header(file);
    ways_init();
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (is_wanted(ROWS[i].load.name)) {
            compare(file, &ROWS[i], rounds, seconds);
        }
    }
}

/* A daemon of its own for each: memory that another left would be used again. */
static void on_its_own(const char *name, void (*measure)(void))
{
    if (!is_wanted(name)) {
        return;
    }
    stand.redis = redis_start_with(true, NULL);
    stand_up("--maxclients", "19000", "--max-waiters", "20000", "--max-holds",
             "1100000", NULL);
    measure();
    stand_down();
    stand.redis = NULL;
}

static void holds(void)
{
    watch_print(getenv("BENCH_FULL") == NULL ? HOLDS : HOLDS_FULL);
}

TEST_GROUP(.timeout_s = TEST_NO_TIMEOUT);

START_TEST(latchd_beside_the_same_load_straight_at_redis)
{
    bool full = getenv("BENCH_FULL") != NULL;
    double seconds = number_from("BENCH_SECONDS", full ? 2 : 0.5);
    size_t rounds = (size_t)number_from("BENCH_ROUNDS", full ? 5 : 3);
    const char *path = getenv("BENCH_FILE");
    FILE *file = fopen(path == NULL ? "bench.tsv" : path, "we");

    if (file == NULL || rounds < 1 || rounds > ROUNDS_MAX) {
        bench_die("BENCH_FILE cannot be written, or BENCH_ROUNDS is not 1 to %d",
                  ROUNDS_MAX);
    }
    stand.redis = redis_start_with(true, NULL);
    stand_up("--maxclients", "19000", "--max-waiters", "20000", NULL);
    all_rows(file, rounds, seconds);
    if (is_wanted("rivals")) {
        rivals_run(file, seconds);
    }
    stand_down();
    stand.redis = NULL;
    on_its_own("bytes", footprint_of_connections);
    on_its_own("holds", holds);
    (void)fputc('\n', file);
    results_values_write(file);
    (void)fclose(file);
    results_judge(stdout);
}
