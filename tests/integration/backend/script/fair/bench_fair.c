/* By hand, or `meson test --benchmark fair_queue`: what Redis spends on a grant of a
 * fair lock, with few and with many waiters. Nothing is asserted about time. */
#include "fair_peer.h"

#include "support/runner.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 40, GRANTS = 100, MANY = 10000 };

static void member_text(char ret[static 40], unsigned i)
{
    (void)snprintf(ret, 40, "latchd:%s:%u", INSTANCE_A, i);
}

static void add_direct(unsigned i)
{
    char member[40], score[32];

    member_text(member, i);
    (void)snprintf(score, sizeof score, "%lld",
                   (long long)(redis_time_us() / 1000) + LEASE + FAIR_WAIT);
    (void)redis_ask_int(peer_redis(), "RPUSH " FAIR_QUEUE " %s", member);
    (void)redis_ask_int(peer_redis(), "ZADD " FAIR_SCORES " %s %s", score, member);
}

/* Redis's microseconds for one script call, the best of a few rounds. */
static double measure(unsigned waiters, bool handover)
{
    unsigned head = 1, tail = 1;
    char holder[40], next[40];
    double best = 1e9;

    redis_expect(peer_redis(), "OK", "FLUSHALL");
    member_text(holder, 0);
    fair_take(holder);
    while (tail <= waiters) {
        add_direct(tail++);
    }
    for (int round = 0; round < ROUNDS; round++) {

        double us = 0;

        redis_expect(peer_redis(), "OK", "CONFIG RESETSTAT");
        for (int i = 0; i < GRANTS; i++) {
            member_text(next, head++);
            if (handover) {
                ck_assert(fair_free(holder, next)->moved);
            } else {
                ck_assert(fair_free(holder, NULL)->release.freed);
                fair_take(next);
            }
            member_text(holder, head - 1);
            add_direct(tail++);
        }
        (void)redis_calls(peer_redis(), "evalsha", &us);
        best = us < best ? us : best;
    }
    return best;
}

static void compare(const char *what, bool handover)
{
    double few = measure(10, handover);
    double batch = measure(MANY, handover);

    printf("# %-28s 10 waiters: %6.2f us   %d waiters: %6.2f us   ratio %.2f\n", what,
           few, MANY, batch, batch / few);
}

TEST_GROUP(.teardown = peer_teardown, .timeout_s = 300);

START_TEST(redis_spends_the_same_on_a_grant)
{
    compare("hand-over", true);
    compare("release, then acquire", false);
}
