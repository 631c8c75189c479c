/* table: latchd beside the same load straight at the same Redis, in turns, as a table:
 *
 *   meson test --benchmark --verbose table
 *
 * Beside each way that is not latchd's stands how many times its rate latchd has.
 * Times are from LOCK to its grant; of one name from UNLOCK to the next grant.
 * Processor time is in us for a pair, of the load generator, the daemon and Redis.
 *
 * Clients use TCP; Redis keeps nothing on disk. The generator shares the machine with
 * what it measures. BENCH_SECONDS (1), BENCH_ROUNDS (3); BENCH_ONLY: only workloads
 * whose name has that in it; BENCH_FILE: the table with tabs (bench.tsv). */
#include "figures.h"
#include "footprint.h"
#include "support/runner.h"
#include "support/stand.h"
#include "ways.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS_MAX = 2 };

static const struct {
    struct workload load;
    const struct way *beside; /* NULL: nobody else does that */
} ROWS[] = {
    { { .name = "own names", .peers = 64, .depth = 1 }, &WAY_DIRECT },
    { { .name = "own names, depth 16", .peers = 64, .depth = 16 }, &WAY_DIRECT },
    { { .name = "own names, depth 64", .peers = 64, .depth = 64 }, &WAY_DIRECT },
    { { .name = "one name, 1 waiter", .names = NAMES_ONE, .peers = 2, .depth = 1 },
      &WAY_REDISSON },
    { { .name = "one name, 10 waiters", .names = NAMES_ONE, .peers = 11, .depth = 1 },
      &WAY_REDISSON },
    { { .name = "one name, 100 waiters", .names = NAMES_ONE, .peers = 101, .depth = 1 },
      &WAY_REDISSON },
    { { .name = "one name, 1,000", .names = NAMES_ONE, .peers = 1001, .depth = 1 },
      NULL },
    { { .name = "one name, 10,000", .names = NAMES_ONE, .peers = 10001, .depth = 1 },
      NULL },
    { { .name = "fair, 10 waiters",
        .names = NAMES_ONE,
        .peers = 11,
        .depth = 1,
        .words = "FAIR" },
      NULL },
    { { .name = "fair, 1,000 waiters",
        .names = NAMES_ONE,
        .peers = 1001,
        .depth = 1,
        .words = "FAIR" },
      NULL },
    { { .name = "Zipf, 10,000 names", .names = NAMES_ZIPF, .peers = 64, .depth = 1 },
      NULL },
    { { .name = "one name, 95 % readers",
        .names = NAMES_ONE,
        .peers = 64,
        .depth = 1,
        .read_share = 95 },
      NULL },
};

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

static void write_row(FILE *file, const struct workload *w, const struct way *beside,
                      const struct figures median[WAYS_MAX])
{
    double ours = median[0].of[FIGURE_RATE];

    figures_write(file, w->name, WAY_LATCHD.name, &median[0], ours);
    if (beside != NULL) {
        figures_write(file, w->name, beside->name, &median[1], ours);
    }
}

static void compare(FILE *file, const struct workload *w, const struct way *beside,
                    size_t rounds, double seconds)
{
    struct figures runs[WAYS_MAX][ROUNDS_MAX] = { 0 }, median[WAYS_MAX] = { 0 };

    for (size_t i = 0; i < rounds; i++) {
        runs[0][i] = run(w, &WAY_LATCHD, seconds);
        if (beside != NULL) {
            runs[1][i] = run(w, beside, seconds);
        }
    }
    median[0] = figures_median(runs[0], rounds);
    if (beside != NULL) {
        median[1] = figures_median(runs[1], rounds);
    }
    write_row(stdout, w, beside, median);
    write_row(file, w, beside, median);
}

START_TEST(latchd_beside_the_same_load_straight_at_redis)
{
    double seconds = number_from("BENCH_SECONDS", 1);
    size_t rounds = (size_t)number_from("BENCH_ROUNDS", 3);
    const char *only = getenv("BENCH_ONLY"), *path = getenv("BENCH_FILE");
    FILE *file = fopen(path == NULL ? "bench.tsv" : path, "we");

    if (file == NULL || rounds < 1 || rounds > ROUNDS_MAX) {
        bench_die("BENCH_FILE cannot be written, or BENCH_ROUNDS is not 1 to %d",
                  ROUNDS_MAX);
    }
    stand.redis = redis_start_with(true, NULL);
    stand_up("--maxclients", "15000", "--max-waiters", "20000", NULL);
    ways_init();
    printf("medians of %zu rounds of %.1f s each, in turns\n", rounds, seconds);
    figures_header(stdout);
    figures_header(file);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        if (only == NULL || strstr(ROWS[i].load.name, only) != NULL) {
            compare(file, &ROWS[i].load, ROWS[i].beside, rounds, seconds);
        }
    }
    (void)fclose(file);
    stand_down();
}
END_TEST

START_TEST(what_connections_waiters_and_holds_cost)
{
    stand.redis = redis_start_with(true, NULL);
    stand_up("--maxclients", "15000", "--max-waiters", "20000", "--watchdog-timeout",
             "3s", NULL);
    footprint_print(stdout);
    stand_down();
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("table");
    TCase *tc = tcase_create("table");

    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, latchd_beside_the_same_load_straight_at_redis);
    tcase_add_test(tc, what_connections_waiters_and_holds_cost);
    suite_add_tcase(s, tc);
    return s;
}
