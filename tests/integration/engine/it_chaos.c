/* Everything at once: clients that insist, on two daemons and a Redis that are killed,
 * stopped and started under them. One at a time holds, or only readers; tokens grow,
 * nobody starves, and nothing is left behind. For each kind of lock. */
#include "support/runner.h"
#include "support/stand.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CLIENTS = 6,
    SEEDS = 2, /* of each play */
    RUN_MS = 9000,
    PATIENCE_MS = 700,
    END_MS = 15000,
};

/* How they lock. Most leases are longer than any trouble here, so that a hold ends by
 * UNLOCK only. A fair queue waits as long for those of a daemon that was killed, so
 * that leases are shorter there, and trouble is rarer. */
struct play {
    const char *lock[2]; /* one of them each time */
    const char *others;  /* UNLOCK of the names but `job` */
    int lease_ms;
    int calm_ms; /* at most so long between troubles */
    unsigned least;
    bool shared; /* lock[0] is for reading */
    bool may_be_over;
};

static const struct play PLAYS[] = {
    { { "LOCK job", "LOCK job" }, NULL, 20000, 400, 5, false, false },
    { { "LOCK job FAIR", "LOCK job FAIR" }, NULL, 2000, 1500, 1, false, true },
    { { "LOCK job READ", "LOCK job WRITE" }, NULL, 20000, 400, 3, true, true },
    { { "MLOCK 2 job other", "MLOCK 2 other job" },
      "other",
      20000,
      600,
      3,
      false,
      true },
};

/* Shared by the test and its clients. */
struct ring {
    int inside; /* 0, or the client that holds alone */
    int readers;
    int64_t last_token; /* of all grants */
    unsigned grants[CLIENTS];
    bool over;
    char fault[200]; /* what went wrong, said once */
};

struct insistent {
    struct ring *ring;
    const struct play *play;
    struct test_daemon *const *daemons;
    int number; /* from 1 */
    int turn;   /* whose turn it is among the daemons */
    struct client *c;
};

static void say_fault(struct ring *r, const char *what, int64_t a, int64_t b)
{
    if (r->fault[0] == '\0') {
        (void)snprintf(r->fault, sizeof r->fault, "%s (%" PRId64 ", %" PRId64 ")", what,
                       a, b);
    }
    r->over = true;
}

/* One attempt: the reply, or false when the connection ended or nothing came in time;
 * then it goes on with another connection, to the other daemon. */
static bool attempt(struct insistent *me, const char *command, struct value *ret)
{
    if (me->c == NULL) {
        me->c = client_open(me->daemons[me->turn++ % 2]);
    }
    if (client_try_send_raw(me->c, command, strlen(command)) &&
        client_try_read(me->c, PATIENCE_MS, ret)) {
        return true;
    }
    client_close(me->c);
    me->c = NULL;
    return false;
}

static bool insist(struct insistent *me, const char *command, struct value *ret)
{
    uint64_t deadline = test_now_ms() + END_MS;

    while (test_now_ms() < deadline) {
        if (!attempt(me, command, ret)) {
            continue;
        }
        if (ret->type == VALUE_INT || ret->type == VALUE_LIST ||
            (ret->type == VALUE_ERROR && strncmp(ret->text, "NOTHELD", 7) == 0)) {
            return true;
        }
        value_fini(ret); /* nil, BACKEND, GOAWAY: again */
    }
    return false;
}

static void hold_shared(struct insistent *me)
{
    struct ring *r = me->ring;

    (void)__atomic_add_fetch(&r->readers, 1, __ATOMIC_SEQ_CST);
    test_sleep_ms((uint64_t)(rand() % 4));
    if (__atomic_load_n(&r->inside, __ATOMIC_SEQ_CST) != 0) {
        say_fault(r, "one reads and one writes: client and other", me->number,
                  r->inside);
    }
    (void)__atomic_sub_fetch(&r->readers, 1, __ATOMIC_SEQ_CST);
    r->grants[me->number - 1]++;
}

static void hold(struct insistent *me, int64_t token)
{
    struct ring *r = me->ring;
    int nobody = 0, myself = me->number;

    if (!__atomic_compare_exchange_n(&r->inside, &nobody, me->number, false,
                                     __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        say_fault(r, "two hold: client and other", me->number, nobody);
        return;
    }
    if (__atomic_load_n(&r->readers, __ATOMIC_SEQ_CST) != 0) {
        say_fault(r, "one writes and others read: client, readers", me->number,
                  r->readers);
    }
    if (token <= r->last_token) {
        say_fault(r, "tokens do not grow: token, last", token, r->last_token);
    }
    r->last_token = token;
    test_sleep_ms((uint64_t)(rand() % 4));
    if (!__atomic_compare_exchange_n(&r->inside, &myself, 0, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
        say_fault(r, "somebody came in: client and other", me->number, myself);
    }
    r->grants[me->number - 1]++;
}

static bool give_back(struct insistent *me, const char *name, int i)
{
    char unlock[200];
    struct value v;

    (void)snprintf(unlock, sizeof unlock, "UNLOCK %s ID client-%d-request-%08d\r\n",
                   name, me->number, i);
    if (!insist(me, unlock, &v)) {
        say_fault(me->ring, "no unlock: client, request", me->number, i);
        return false;
    }
    value_fini(&v);
    return true;
}

/* One lock, held and given back. */
static bool play_once(struct insistent *me, int i)
{
    const struct play *p = me->play;
    bool granted;
    int way = rand() % 2;
    char lock[200];
    struct value v;

    (void)snprintf(lock, sizeof lock,
                   "%s WAIT 500 LEASE %d ID client-%d-request-%08d\r\n", p->lock[way],
                   p->lease_ms, me->number, i);
    granted = insist(me, lock, &v);
    if (!granted || (v.type == VALUE_ERROR && !p->may_be_over)) {
        say_fault(me->ring, "no token: client, request", me->number, i);
        return false;
    }
    granted = v.type != VALUE_ERROR;
    if (granted && p->shared && way == 0) {
        hold_shared(me);
    } else if (granted) {
        hold(me, v.type == VALUE_INT
                     ? v.integer
                     : v.items[strncmp(p->lock[way], "MLOCK 2 job", 11) != 0].integer);
    }
    value_fini(&v);
    return give_back(me, "job", i) &&
           (p->others == NULL || give_back(me, p->others, i));
}

static void be_a_client(struct insistent *me)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    srand((unsigned)me->number);
    for (int i = 0; !me->ring->over && play_once(me, i); i++) {
    }
    client_close(me->c);
    _exit(EXIT_SUCCESS);
}

static void make_trouble(struct test_daemon *const *daemons)
{
    struct test_daemon *d = daemons[rand() % 2];

    switch (rand() % 5) {
    case 0:
    case 1:
        daemon_kill(d);
        test_sleep_ms((uint64_t)(rand() % 100));
        daemon_restart(d);
        break;
    case 2:
        daemon_pause(d);
        test_sleep_ms((uint64_t)(rand() % 1500));
        daemon_resume(d);
        break;
    case 3:
        redis_pause(stand.redis);
        test_sleep_ms((uint64_t)(rand() % 600));
        redis_resume(stand.redis);
        break;
    default:
        redis_kill(stand.redis);
        test_sleep_ms((uint64_t)(rand() % 100));
        redis_restart(stand.redis);
        break;
    }
}

static void start_clients(struct ring *r, const struct play *play,
                          struct test_daemon *const *daemons, pid_t *pids)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct insistent me = {
            .ring = r, .play = play, .daemons = daemons, .number = i + 1, .turn = i
        };

        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            be_a_client(&me);
        }
    }
}

static void await_clients(struct ring *r, unsigned least, const pid_t *pids)
{
    for (int i = 0; i < CLIENTS; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "client %d ended with 0x%x", i + 1, status);
    }
    ck_assert_msg(r->fault[0] == '\0', "%s", r->fault);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_msg(r->grants[i] >= least, "client %d got it %u times only", i + 1,
                      r->grants[i]);
    }
}

TEST_GROUP(.timeout_s = INTEGRATION_S);

START_TEST(one_at_a_time_whatever_is_killed, SEEDS *TEST_ROWS(PLAYS))
{
    static const char *const ARGS[] = { "--appendonly", "yes", "--appendfsync",
                                        "always", NULL };
    struct ring *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct play *play = &PLAYS[_i / SEEDS];
    struct test_daemon *daemons[2];
    pid_t pids[CLIENTS];
    uint64_t end;

    ck_assert_ptr_ne(r, MAP_FAILED);
    stand.redis = redis_start_with(false, ARGS);
    stand_up("--redis-timeout", "400ms", "--fair-wait-timeout", "1s", NULL);
    daemons[0] = stand.daemon;
    daemons[1] = daemon_start(redis_path(stand.redis), "--redis-timeout", "400ms",
                              "--fair-wait-timeout", "1s", NULL);
    srand((unsigned)_i + 1);
    start_clients(r, play, daemons, pids);
    for (end = test_now_ms() + RUN_MS; test_now_ms() < end && !r->over;) {
        test_sleep_ms((uint64_t)(rand() % play->calm_ms));
        make_trouble(daemons);
    }
    r->over = true;
    await_clients(r, play->least, pids);
    await_no_locks(play->may_be_over ? (uint64_t)play->lease_ms + 3000 : 2000);
    daemon_stop(daemons[1]);
    stand_down();
}
