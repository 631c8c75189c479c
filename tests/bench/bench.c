/* bench: latchd beside the same load straight at the same Redis, in turns, as ratios.
 *
 *   pairs      64 connections take and release names of their own: LOCK + UNLOCK,
 * against SET NX PX + a compare-and-delete script handovers  100 connections want one
 * name: LOCK + UNLOCK, against Redisson's steps (try by script, subscribe, sleep,
 * release publishes, everybody tries)
 *
 *   acked      the first with min-replicas 1, against the same latchd without, both
 * with a replica
 *
 * Clients use TCP; Redis keeps nothing on disk. BENCH_SECONDS and BENCH_ROUNDS change
 * how long it takes. The generator shares the machine with what it measures. */
#include "load.h"
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAIR_PEERS = 64, WAITERS = 100, ROUNDS_MAX = 101 };

#define CHANNEL "redisson_lock__channel:{one}"

static const char DELETE_IF_MINE[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                     "return redis.call('del', KEYS[1]) end "
                                     "return 0";
static const char TAKE[] = "if redis.call('exists', KEYS[1]) == 0 or "
                           "redis.call('hexists', KEYS[1], ARGV[1]) == 1 then "
                           "redis.call('hincrby', KEYS[1], ARGV[1], 1) "
                           "redis.call('pexpire', KEYS[1], 30000) return nil end "
                           "return redis.call('pttl', KEYS[1])";
static const char GIVE[] =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return nil end "
    "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end "
    "redis.call('del', KEYS[1]) redis.call('publish', KEYS[2], '0') "
    "return 1";

static char delete_sha[41], take_sha[41], give_sha[41];

/* --- through latchd: both loads --------------------------------------------------- */

static void send_lock_command(struct peer *p)
{
    p->step = 0;
    peer_send(p, "*2\r\n$4\r\nLOCK\r\n$%zu\r\n%s\r\n", strlen(p->name), p->name);
}

static void latchd_on_reply(struct peer *p, const char *line)
{
    if (line[0] != ':') {
        bench_die("latchd: %s", line);
    }
    if (p->step == 0) {
        int digits = (int)strcspn(line + 1, "\r");

        p->step = 1;
        peer_send(p,
                  "*4\r\n$6\r\nUNLOCK\r\n$%zu\r\n%s\r\n$5\r\nTOKEN\r\n$%d\r\n%.*s\r\n",
                  strlen(p->name), p->name, digits, digits, line + 1);
        return;
    }
    p->load->done++;
    if (p->load->stopping) {
        p->idle = true;
    } else {
        send_lock_command(p);
    }
}

static double run_latchd(size_t peers, bool own_names, double seconds)
{
    struct load l;
    double rate;

    load_init(&l, peers);
    for (size_t i = 0; i < peers; i++) {
        struct peer *p =
            load_connect(&l, i, daemon_port(stand.daemon), latchd_on_reply);

        (void)snprintf(p->name, sizeof p->name, "lock:%u", own_names ? p->number : 0);
        send_lock_command(p);
    }
    rate = load_run(&l, seconds);
    load_fini(&l);
    return rate;
}

/* --- straight at Redis: SET NX PX, compare and delete ----------------------------- */

static void send_set(struct peer *p)
{
    p->step = 0;
    peer_send(p,
              "*6\r\n$3\r\nSET\r\n$%zu\r\n%s\r\n$10\r\nowner-%04u\r\n"
              "$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
              strlen(p->name), p->name, p->number);
}

static void direct_on_reply(struct peer *p, const char *line)
{
    if (p->step == 0) {
        if (line[0] != '+') {
            bench_die("SET: %s", line);
        }
        p->step = 1;
        peer_send(p,
                  "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$%zu\r\n%s\r\n"
                  "$10\r\nowner-%04u\r\n",
                  delete_sha, strlen(p->name), p->name, p->number);
        return;
    }
    if (line[0] != ':' || line[1] != '1') {
        bench_die("compare and delete: %s", line);
    }
    p->load->done++;
    if (p->load->stopping) {
        p->idle = true;
    } else {
        send_set(p);
    }
}

static double run_direct(double seconds)
{
    struct load l;
    double rate;

    load_init(&l, PAIR_PEERS);
    for (size_t i = 0; i < PAIR_PEERS; i++) {
        struct peer *p = load_connect(&l, i, redis_port(stand.redis), direct_on_reply);

        (void)snprintf(p->name, sizeof p->name, "direct:%u", p->number);
        send_set(p);
    }
    rate = load_run(&l, seconds);
    load_fini(&l);
    return rate;
}

/* --- straight at Redis, Redisson's way -------------------------------------------- */

enum { TRYING, SLEEPING, GIVING };

static void send_take(struct peer *p)
{
    p->step = TRYING;
    p->again = false;
    peer_send(p,
              "*5\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n$3\r\none\r\n"
              "$10\r\nowner-%04u\r\n",
              take_sha, p->number);
}

static void send_give(struct peer *p)
{
    p->step = GIVING;
    peer_send(
        p,
        "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n2\r\n$3\r\none\r\n$%zu\r\n%s\r\n"
        "$10\r\nowner-%04u\r\n",
        give_sha, strlen(CHANNEL), CHANNEL, p->number);
}

static void redisson_on_reply(struct peer *p, const char *line)
{
    if (line[0] == '-') {
        bench_die("script: %s", line);
    }
    if (p->step == TRYING && line[0] == '$') {
        send_give(p);
    } else if (p->step == TRYING) {
        if (p->again) {
            send_take(p);
        } else {
            p->step = SLEEPING;
        }
    } else {
        p->load->done++;
        if (p->load->stopping) {
            p->idle = true;
        } else {
            send_take(p);
        }
    }
}

static void redisson_on_message(struct peer *listener, const char *line)
{
    struct peer *p = listener->mate;

    p->again = true;
    if (p->step == SLEEPING && !p->idle) {
        send_take(p);
    }
}

static double run_redisson(double seconds)
{
    static const char MESSAGE[] =
        "*3\r\n$7\r\nmessage\r\n$28\r\n" CHANNEL "\r\n$1\r\n0\r\n";
    struct load l;
    double rate;

    load_init(&l, 2 * (size_t)WAITERS);
    for (size_t i = 0; i < WAITERS; i++) {
        int port = redis_port(stand.redis);
        struct peer *p = load_connect(&l, 2 * i, port, redisson_on_reply);
        struct peer *listener = load_connect(&l, 2 * i + 1, port, redisson_on_message);

        listener->mate = p;
        listener->message_len = sizeof MESSAGE - 1;
        peer_send(listener, "SUBSCRIBE %s\r\n", CHANNEL);
        peer_expect(listener, "*3\r\n$9\r\nsubscribe\r\n$28\r\n" CHANNEL "\r\n:1\r\n");
    }
    for (size_t i = 0; i < WAITERS; i++) {
        send_take(&l.peers[2 * i]);
    }
    rate = load_run(&l, seconds);
    load_fini(&l);
    return rate;
}

/* --- the whole -------------------------------------------------------------------- */

static void load_script(const char *text, char *ret_sha)
{
    redisReply *r = redis_ask(stand.redis, "SCRIPT LOAD %s", text);

    (void)snprintf(ret_sha, 41, "%s", r->str);
    freeReplyObject(r);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static double number_from(const char *variable, double otherwise)
{
    const char *text = getenv(variable);

    return text == NULL ? otherwise : atof(text);
}

static void bench_pairs(size_t rounds, double seconds)
{
    double ours[ROUNDS_MAX], direct[ROUNDS_MAX], a, b;

    for (size_t i = 0; i < rounds; i++) {
        ours[i] = run_latchd(PAIR_PEERS, true, seconds);
        direct[i] = run_direct(seconds);
    }
    a = median(ours, rounds);
    b = median(direct, rounds);
    printf(
        "pairs/s, %d connections, own names:   latchd %8.0f   straight at Redis %8.0f"
        "   ratio %.2f\n",
        PAIR_PEERS, a, b, a / b);
}

static void bench_handovers(size_t rounds, double seconds)
{
    double ours[ROUNDS_MAX], theirs[ROUNDS_MAX], a, b;
    double our_calls[ROUNDS_MAX], their_calls[ROUNDS_MAX];

    for (size_t i = 0; i < rounds; i++) {
        long long before = peek_script_calls(), between;

        ours[i] = run_latchd(WAITERS, false, seconds);
        between = peek_script_calls();
        theirs[i] = run_redisson(seconds);
        our_calls[i] = (double)(between - before) / (ours[i] * seconds + WAITERS);
        their_calls[i] =
            (double)(peek_script_calls() - between) / (theirs[i] * seconds + WAITERS);
    }
    a = median(ours, rounds);
    b = median(theirs, rounds);
    printf(
        "hand-overs/s of one name, %d waiters: latchd %8.0f   Redisson's way    %8.0f"
        "   ratio %.2f\n",
        WAITERS, a, b, a / b);
    printf("script calls for one hand-over:        latchd %8.2f   Redisson's way    "
           "%8.2f\n",
           median(our_calls, rounds), median(their_calls, rounds));
}

START_TEST(latchd_beside_the_same_load_straight_at_redis)
{
    double seconds = number_from("BENCH_SECONDS", 2);
    size_t rounds = (size_t)number_from("BENCH_ROUNDS", 5);

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        bench_die("BENCH_ROUNDS: 1 to %d", ROUNDS_MAX);
    }
    stand.redis = redis_start_with(true, NULL);
    stand_up(NULL);
    load_script(DELETE_IF_MINE, delete_sha);
    load_script(TAKE, take_sha);
    load_script(GIVE, give_sha);
    printf("medians of %zu rounds of %.1f s each, in turns\n", rounds, seconds);
    bench_pairs(rounds, seconds);
    bench_handovers(rounds, seconds);
    (void)fflush(stdout);
    stand_down();
}
END_TEST

static double run_with(const char *replicas, size_t peers, bool own_names,
                       double seconds)
{
    ask_ok(stand.admin, "CONFIG SET min-replicas %s", replicas);
    return run_latchd(peers, own_names, seconds);
}

static void bench_acked(size_t peers, bool own_names, size_t rounds, double seconds)
{
    double with[ROUNDS_MAX], without[ROUNDS_MAX], a, b;

    for (size_t i = 0; i < rounds; i++) {
        with[i] = run_with("1", peers, own_names, seconds);
        without[i] = run_with("0", peers, own_names, seconds);
    }
    a = median(with, rounds);
    b = median(without, rounds);
    printf("%s, %3zu connections: min-replicas 1 %8.0f   0 %8.0f   ratio %.2f\n",
           own_names ? "pairs/s, own names     " : "hand-overs/s, one name ", peers, a,
           b, a / b);
}

START_TEST(grants_that_a_replica_has_beside_those_that_it_may_not)
{
    double seconds = number_from("BENCH_SECONDS", 2);
    size_t rounds = (size_t)number_from("BENCH_ROUNDS", 5);
    char port[16];
    const char *follow[] = { "--replicaof", "127.0.0.1", port, NULL };
    struct test_redis *replica;

    if (rounds < 1 || rounds > ROUNDS_MAX) {
        bench_die("BENCH_ROUNDS: 1 to %d", ROUNDS_MAX);
    }
    stand.redis = redis_start_with(true, NULL);
    (void)snprintf(port, sizeof port, "%d", redis_port(stand.redis));
    replica = redis_start_with(false, follow);
    do {
        redis_expect(stand.redis, "OK", "SET warm 1 PX 1");
    } while (redis_ask_int(stand.redis, "WAIT 1 100") < 1);
    stand_up(NULL);
    bench_acked(1, true, rounds, seconds);
    bench_acked(PAIR_PEERS, true, rounds, seconds);
    bench_acked(WAITERS, false, rounds, seconds);
    (void)fflush(stdout);
    stand_down();
    redis_stop(replica);
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("bench");
    TCase *tc = tcase_create("bench");

    tcase_set_timeout(tc, 0);
    tcase_add_test(tc, latchd_beside_the_same_load_straight_at_redis);
    tcase_add_test(tc, grants_that_a_replica_has_beside_those_that_it_may_not);
    suite_add_tcase(s, tc);
    return s;
}
