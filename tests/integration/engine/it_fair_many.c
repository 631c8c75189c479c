/* FAIR with thousands of waiters: their order, what they cost, and how they go. */
#include "support/runner.h"
#include "support/stand_fair.h"

#include <stdlib.h>
#include <sys/resource.h>

enum { CROWD = 10000, DEAD = 1000 };

static void allow_many_files(void)
{
    struct rlimit limit;

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_gt(limit.rlim_cur, CROWD + 100);
}

enum { HANDS = 10, BATCHES = 50 };

/* The work of scripts in Redis: their number, and their commands on the queue. */
static double work_done(void)
{
    static const char *const WORDS[] = { "evalsha", "lindex", "lpop",   "lrange",
                                         "lrem",    "llen",   "zscore", "zadd",
                                         "zrem",    "zcard",  "hget",   "hset",
                                         "hmget",   "hdel" };
    int64_t calls = 0;

    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        double each;

        calls += redis_calls(stand.redis, WORDS[i], &each);
    }
    return (double)calls;
}

/* Hands it on from the first who waits; Redis's work for each. */
static double hand_on(struct client *const *c)
{
    double before = work_done();

    for (int i = 0; i < HANDS; i++) {
        (void)fair_served(c[i], NULL);
    }
    return (work_done() - before) / HANDS;
}

static int compare_costs(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* A cheap one of many batches: not one with a refresh of all places in it. */
static double cheap(double *costs)
{
    qsort(costs, BATCHES, sizeof *costs, compare_costs);
    return costs[BATCHES / 10];
}

TEST_GROUP(.timeout_s = 240); /* with sanitizers, on a busy machine */

START_TEST(ten_thousand_are_served_in_order_and_those_who_die_cost_nothing)
{
    static struct client *c[CROWD], *live[CROWD];
    struct client *holder;
    int64_t token = 0;
    int count = 0;

    allow_many_files();
    stand_up("--maxclients", "12000", NULL);
    holder = open_client();
    (void)ask_int(holder, "LOCK job FAIR");
    for (int i = 0; i < CROWD; i++) {
        c[i] = open_client();
        client_send(c[i], "LOCK job FAIR");
        await_waiters(i + 1);
    }
    for (int i = 0; i < CROWD; i++) {
        if (i % 10 == 5) {
            client_close(c[i]);
        } else {
            live[count++] = c[i];
        }
    }
    await_waiters(count);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < count; i++) {
        int64_t next;

        if (i + 1 < count) {
            expect_silence(live[i + 1]);
        }
        next = fair_served(live[i], NULL);
        ck_assert_int_gt(next, token);
        token = next;
    }
    await_no_locks(0);
    close_clients(live, (size_t)count);
    client_close(holder);
    stand_down();
}

START_TEST(a_grant_costs_redis_the_same_among_10_and_among_10000)
{
    static struct client *c[CROWD];
    double few[BATCHES], batch[BATCHES];
    struct client *holder;

    allow_many_files();
    stand_up("--maxclients", "12000", NULL);
    holder = open_client();
    for (int round = 0; round < BATCHES; round++) {
        (void)ask_int(holder, "LOCK job FAIR");
        for (int i = 0; i < HANDS; i++) {
            c[i] = c[i] == NULL ? open_client() : c[i];
            client_send(c[i], "LOCK job FAIR");
            await_waiters(i + 1);
        }
        ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
        few[round] = hand_on(c);
    }
    (void)ask_int(holder, "LOCK job FAIR");
    for (int i = 0; i < CROWD; i++) {
        c[i] = c[i] == NULL ? open_client() : c[i];
        client_send(c[i], "LOCK job FAIR");
        await_waiters(i + 1);
    }
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    for (int i = 0; i < BATCHES; i++) {
        batch[i] = hand_on(c + (ptrdiff_t)i * HANDS);
    }
    ck_assert(cheap(few) >= 1);
    /* The time itself is measured by bench_fair. */
    ck_assert_msg(cheap(batch) <= cheap(few) * 1.2,
                  "%.1f commands among %d, %.1f among %d", few[BATCHES / 10], HANDS,
                  batch[BATCHES / 10], CROWD);
    close_clients(c, CROWD);
    client_close(holder);
    stand_down();
}

START_TEST(the_waiters_of_a_daemon_that_was_killed_are_gone_in_time)
{
    enum { FAIR_WAIT_MS = 1000, LEASE_MS = 3000 };
    static struct client *c[DEAD];
    struct test_daemon *second;
    struct client *holder, *last;
    uint64_t start;

    allow_many_files();
    stand_up("--fair-wait-timeout", "1s", NULL);
    second = daemon_start(redis_path(stand.redis), "--fair-wait-timeout", "1s", NULL);
    holder = open_client();
    last = open_client();
    (void)ask_int(holder, "LOCK job FAIR LEASE %d", LEASE_MS);
    for (int i = 0; i < DEAD; i++) {
        c[i] = client_open(second);
        client_send(c[i], "LOCK job FAIR");
    }
    await_queue("job", DEAD);
    fair_join(last, "", DEAD + 1);
    start = test_now_ms();
    daemon_kill(second);
    ck_assert_int_eq(ask_int(holder, "UNLOCK job"), 0);
    (void)fair_served(last, NULL);
    expect_elapsed(start, 0, LEASE_MS + FAIR_WAIT_MS);
    fair_expect_no_queue();
    close_clients(c, DEAD);
    client_close(holder);
    client_close(last);
    daemon_free(second);
    stand_down();
}
