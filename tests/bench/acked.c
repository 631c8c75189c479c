/* acked: grants that a replica has beside those that it may not, both with a replica:
 * min-replicas 1 and 0 of the same latchd, in turns. */
#include "figures.h"
#include "support/runner.h"
#include "support/stand.h"
#include "ways.h"

#include <stdio.h>

enum { ROUNDS = 5, SECONDS = 2 };

static double run_with(const char *replicas, const struct workload *w)
{
    struct load l;
    double rate;

    ask_ok(stand.admin, "CONFIG SET min-replicas %s", replicas);
    ways_start(&l, w, &WAY_LATCHD);
    rate = load_run(&l, SECONDS);
    load_fini(&l);
    return rate;
}

static void compare(const struct workload *w)
{
    struct figures with[ROUNDS] = { 0 }, without[ROUNDS] = { 0 };
    double a, b;

    for (size_t i = 0; i < ROUNDS; i++) {
        with[i].of[FIGURE_RATE] = run_with("1", w);
        without[i].of[FIGURE_RATE] = run_with("0", w);
    }
    a = figures_median(with, ROUNDS).of[FIGURE_RATE];
    b = figures_median(without, ROUNDS).of[FIGURE_RATE];
    printf("%s, %3u connections: min-replicas 1 %8.0f   0 %8.0f   ratio %.2f\n",
           w->name, w->peers, a, b, a / b);
}

TEST_GROUP(.timeout_s = TEST_NO_TIMEOUT);

START_TEST(grants_that_a_replica_has_beside_those_that_it_may_not)
{
    static const struct workload LOADS[] = {
        { .name = "pairs/s, own names     ", .peers = 1, .depth = 1 },
        { .name = "pairs/s, own names     ", .peers = 64, .depth = 1 },
        { .name = "hand-overs/s, one name ",
          .names = NAMES_ONE,
          .peers = 100,
          .depth = 1 },
    };
    char port[16];
    const char *follow[] = { "--replicaof", "127.0.0.1", port, NULL };
    struct test_redis *replica;

    stand.redis = redis_start_with(true, NULL);
    (void)snprintf(port, sizeof port, "%d", redis_port(stand.redis));
    replica = redis_start_with(false, follow);
    do {
        redis_expect(stand.redis, "OK", "SET warm 1 PX 1");
    } while (redis_ask_int(stand.redis, "WAIT 1 100") < 1);
    stand_up(NULL);
    for (size_t i = 0; i < sizeof LOADS / sizeof *LOADS; i++) {
        compare(&LOADS[i]);
    }
    (void)fflush(stdout);
    stand_down();
    redis_stop(replica);
}
