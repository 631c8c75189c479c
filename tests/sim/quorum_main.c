/* Random schedules of engines on a quorum of servers.
 *
 *   sim_quorum [--schedules N] [--seed S] [--steps K] [--calm] [--plant]
 *              [--verbose] [--keep-going]
 *
 * --plant: no server abstains after it came back empty, and that has to be found. */
#include "sim/quorum.h"
#include "util/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    struct quorum_options run;
    uint64_t schedules, seed;
    bool keep_going;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = { { .steps = 100 }, 2000, 1, false };

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
        } else if (strcmp(argv[i], "--schedules") == 0) {
            o.schedules = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o.seed = strtoull(value, NULL, 10);
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

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    uint64_t started = clock_boot_ms();
    uint64_t failed = 0, grants = 0, lost = 0;
    bool good;

    (void)printf("1..1\n");
    for (uint64_t i = 0; i < o.schedules && (failed == 0 || o.keep_going); i++) {
        struct quorum *q = quorum_run(o.seed + i, &o.run);

        grants += q->grants;
        lost += q->lost;
        if (q->failed) {
            (void)printf("# seed %" PRIu64 ": %s\n", q->seed, q->failure);
            failed++;
        }
        quorum_free(q);
    }
    good = (failed == 0) != o.run.no_quarantine;
    (void)printf("# %" PRIu64 " grants, %" PRIu64 " lost, in %" PRIu64 " ms\n", grants,
                 lost, clock_boot_ms() - started);
    (void)printf("%s 1 - quorum schedules from seed %" PRIu64 "\n",
                 good ? "ok" : "not ok", o.seed);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
