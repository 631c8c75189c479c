/* Random schedules of engines on a quorum of servers.
 *
 *   sim_quorum [--schedules N] [--seed S|random] [--steps K] [--calm] [--plant]
 *              [--verbose] [--keep-going] [--met]
 *
 * --met: first those seeds that once found something.
 * --plant: no server abstains after it came back empty, and that has to be found. */
#include "sim/quorum/quorum.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A daemon that lost a re-entry's other entry, or what it released, at one server;
 * clients of one owner that take each other's entries; what a minority had renewed; and
 * releases that came to a slow server last. */
static const uint64_t MET[] = { 5039473,   4065681,   5034218,   8003365,  3034611,
                                4081960,   5026557,   3012984,   5052715,  5053608,
                                900589220, 900701929, 920003744, 70002349, 70000079,
                                70000999,  70001319,  70001791 };

struct options {
    struct quorum_options run;
    uint64_t schedules, seed;
    bool keep_going, met;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = { { .steps = 100 }, 2000, 1, false, false };

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--verbose") == 0) {
            o.run.loud = true;
        } else if (strcmp(argv[i], "--calm") == 0) {
            o.run.calm = true;
        } else if (strcmp(argv[i], "--plant") == 0) {
            o.run.no_quarantine = true;
        } else if (strcmp(argv[i], "--keep-going") == 0) {
            o.keep_going = true;
        } else if (strcmp(argv[i], "--met") == 0) {
            o.met = true;
        } else if (strcmp(argv[i], "--schedules") == 0) {
            o.schedules = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o.seed = strcmp(value, "random") == 0 ? clock_wall_us() * 1000
                                                  : strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--steps") == 0) {
            o.run.steps = (unsigned)strtoul(value, NULL, 10);
            i++;
        } else {
            (void)fprintf(stderr, "what is %s?\n", argv[i]);
            exit(2);
        }
    }
    return o;
}

struct sums {
    uint64_t failed, grants, lost, steps;
};

static void run(uint64_t seed, const struct options *o, struct sums *sums)
{
    struct quorum *q = quorum_run(seed, &o->run);

    sums->grants += q->grants;
    sums->lost += q->lost;
    sums->steps += q->happened;
    if (q->failed) {
        (void)printf("# seed %" PRIu64 ": %s\n", q->seed, q->failure);
        (void)fflush(stdout);
        sums->failed++;
    }
    quorum_free(q);
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    uint64_t started = clock_boot_ms();
    struct sums sums = { 0 };
    bool good;

    (void)printf("1..1\n");
    for (size_t i = 0; o.met && i < sizeof(MET) / sizeof(MET[0]); i++) {
        run(MET[i], &o, &sums);
    }
    for (uint64_t i = 0; i < o.schedules && (sums.failed == 0 || o.keep_going); i++) {
        run(o.seed + i, &o, &sums);
    }
    good = (sums.failed == 0) != o.run.no_quarantine;
    (void)printf("# %" PRIu64 " grants, %" PRIu64 " lost, %" PRIu64
                 " events, in %" PRIu64 " ms\n",
                 sums.grants, sums.lost, sums.steps, clock_boot_ms() - started);
    (void)printf("%s 1 - quorum schedules from seed %" PRIu64 "\n",
                 good ? "ok" : "not ok", o.seed);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
