/* The simulator: random schedules against the lock engine.
 *
 *   sim [--schedules N] [--seed S|random] [--steps K] [--faults MASK]
 *       [--kinds MASK] [--verbose] [--keep-going] [--met]
 *
 * --met: first those seeds that once found something.
 * A schedule that fails is run again with its trace: what was violated, the last
 * events, and how to replay it. Schedule i has the seed S + i. */
#include "sim/schedule/sim_schedule.h"

#include "sim/world/sim_faults.h"
#include "util/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Released through one daemon, and told lost by another; a hand-over to the very
 * request that ended; a daemon that was started after a failover; a grant that was
 * undone and came back. */
static const uint64_t MET[] = {
    900016415,     900040694,     900051025,     900264589,     900274700,
    900347854,     900352338,     900371724,     900411567,     900588511,
    900623556,     900633284,     900709807,     900710043,     900717464,
    900726676,     900739758,     920019982,     920057639,     910004632,
    910089114,     911095631,     900290422,     911116433,     900021095,
    950009888,     945036430,     777220532,     777314726,     777516615,
    777761037,     777779407,     4100328133,    4100387106,    4100469793,
    4100660596,    4200281511,    4200364487,    4200485979,    4300077882,
    4300092574,    4300413013,    4300959938,    4301059066,    4500010935,
    4500035529,    4500277415,    4500408821,    6043606,       5094034,
    1795358115907, 1795358305995, 1795358500612, 1795358785993, 1795358877237,
    1795358749556, 1795357556445, 1795357865728, 8400161638,    8400018549,
    9700439003,    12010909519,   9700276517,    12005277363,   12100384816,
    12301290751,   12301521196,   12301793029,   62000186748,   62000212482,
    62000021061,   63001625643,   65001355656,   65001396528,   80000239546,
    51000406316,   51002244845,   63002044461,   51005757386,   51001494613,
    31068522,      900043567,     1001141562,    1795462993124, 1795480989197,
    1795491337931, 1795482500962, 1795492322833, 1795621032117, 1795640266690,
    1795660181434, 1795680119693, 6101491838,    8100099421,    8100489046,
    11300084627,   21300488918,   420000637171,  420001910556,  430002659541,
    430003398271,  430003873553,  480001804518,  534001074806,  534001456135,
    542002065436,  77111124,      77105254,      77107337,      77155189,
    78008629,      1700035577,    1700076527,
};

enum { MANY = 1000 };

static uint64_t running; /* the seed, for the report of a crash */
static uint64_t events, grants, grants_from_loans, loans_renewed, rests;

static void on_crash(int sig)
{
    char text[80];
    int len = snprintf(text, sizeof(text), "crash with --seed %" PRIu64 "\n", running);

    (void)!write(STDERR_FILENO, text, (size_t)len);
    (void)signal(sig, SIG_DFL);
    (void)raise(sig);
}

struct options {
    uint64_t schedules, seed;
    unsigned steps, faults, kinds;
    bool verbose, keep_going, met;
};

static struct options read_options(int argc, char **argv)
{
    struct options o = { 20000, 1, 200, FAULT_ALL, KINDS_USUAL, false, false, false };

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--verbose") == 0) {
            o.verbose = true;
            continue;
        }
        if (strcmp(argv[i], "--keep-going") == 0) {
            o.keep_going = true;
            continue;
        }
        if (strcmp(argv[i], "--met") == 0) {
            o.met = true;
            continue;
        }
        if (strcmp(argv[i], "--schedules") == 0) {
            o.schedules = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--seed") == 0) {
            o.seed = strcmp(value, "random") == 0 ? clock_wall_us() * 1000
                                                  : strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--steps") == 0) {
            o.steps = (unsigned)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--faults") == 0) {
            o.faults = (unsigned)strtoul(value, NULL, 0);
        } else if (strcmp(argv[i], "--kinds") == 0) {
            o.kinds = (unsigned)strtoul(value, NULL, 0);
        } else {
            (void)fprintf(stderr, "what is %s?\n", argv[i]);
            exit(2);
        }
        i++;
    }
    return o;
}

static void tell_trace(const struct sim *s)
{
    uint64_t from =
        s->trace_count > SIM_TRACE_LINES ? s->trace_count - SIM_TRACE_LINES : 0;

    for (uint64_t i = from; i < s->trace_count; i++) {
        (void)printf("# %s\n", s->trace[i % SIM_TRACE_LINES]);
    }
}

/* True when the schedule went well. */
static bool run(uint64_t seed, const struct options *o)
{
    struct schedule_options so = { o->steps, o->faults, o->kinds,
                                   o->verbose ? SCHEDULE_LOUD : SCHEDULE_QUIET };
    struct sim *s = schedule_run(seed, &so);
    bool failed = s->failed;

    events += s->event_count;
    grants += s->check.grants;
    grants_from_loans += s->check.grants_from_loans;
    loans_renewed += s->check.loans_renewed;
    rests += s->check.rest_count;
    if (failed && o->keep_going) {
        (void)printf("# seed %" PRIu64 ": %s\n", seed, s->failure);
        sim_free(s);
        return false;
    }
    if (failed && !o->verbose) {
        sim_free(s);
        so.trace = SCHEDULE_TRACED;
        s = schedule_run(seed, &so);
    }
    if (failed || o->verbose) {
        (void)printf("# seed %" PRIu64 ", faults 0x%x, %zu daemons, rtt %u\n", seed,
                     s->profile.faults, s->daemon_count, s->profile.rtt_ms);
        if (!o->verbose) {
            tell_trace(s);
        }
    }
    if (failed) {
        (void)printf("# %s\n# replay: sim --schedules 1 --steps %u --faults 0x%x "
                     "--kinds 0x%x --seed %" PRIu64 " --verbose\n",
                     s->failure, o->steps, o->faults, o->kinds, seed);
    }
    sim_free(s);
    return !failed;
}

/* So many schedules of all kinds that a check which has met nothing is broken itself.
 */
static bool has_missed_something(const struct options *o)
{
    bool missed = o->schedules >= MANY && o->faults == FAULT_ALL &&
                  o->kinds == KINDS_USUAL &&
                  (grants_from_loans == 0 || loans_renewed == 0 || rests == 0);

    if (missed) {
        (void)printf(
            "# nothing was granted from memory or with ATLEAST, or no loan renewed\n");
    }
    return missed;
}

int main(int argc, char **argv)
{
    struct options o = read_options(argc, argv);
    uint64_t started = clock_boot_ms();
    uint64_t failed = 0;
    uint64_t took;

    (void)signal(SIGABRT, on_crash);
    (void)signal(SIGSEGV, on_crash);
    (void)printf("1..1\n");
    for (size_t i = 0; o.met && i < sizeof(MET) / sizeof(MET[0]); i++) {
        running = MET[i];
        failed += run(running, &o) ? 0 : 1;
    }
    for (uint64_t i = 0; i < o.schedules; i++) {
        running = o.seed + i;
        failed += run(running, &o) ? 0 : 1;
        if (failed > 0 && !o.keep_going) {
            break;
        }
    }
    took = clock_boot_ms() - started;
    (void)printf("# %" PRIu64 " schedules of %u steps, %" PRIu64 " events, in %" PRIu64
                 " ms\n",
                 o.schedules, o.steps, events, took);
    (void)printf("# %" PRIu64 " grants, %" PRIu64 " of them from memory, %" PRIu64
                 " with ATLEAST; %" PRIu64 " loans renewed\n",
                 grants, grants_from_loans, rests, loans_renewed);
    failed += has_missed_something(&o) ? 1 : 0;
    (void)printf("%s 1 - schedules from seed %" PRIu64 "\n",
                 failed > 0 ? "not ok" : "ok", o.seed);
    return failed > 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
