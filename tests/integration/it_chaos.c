/* Everything at once: clients that insist, on two daemons and a Redis that are killed,
 * stopped and started under them. One at a time holds, tokens grow, nobody starves, and
 * nothing is left behind. */
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
    RUN_MS = 9000,
    LEASE_MS = 20000, /* longer than any trouble here: a hold ends by UNLOCK only */
    PATIENCE_MS = 700,
    END_MS = 15000,
};

/* Shared by the test and its clients. */
struct ring {
    int inside;         /* 0, or the client that holds */
    int64_t last_token; /* of all grants */
    unsigned grants[CLIENTS];
    bool over;
    char fault[200]; /* what went wrong, said once */
};

struct insistent {
    struct ring *ring;
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
        if (ret->type == VALUE_INT ||
            (ret->type == VALUE_ERROR && strncmp(ret->text, "NOTHELD", 7) == 0)) {
            return true;
        }
        value_fini(ret); /* nil, BACKEND, GOAWAY: again */
    }
    return false;
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

static void be_a_client(struct insistent *me)
{
    char lock[200], unlock[200];
    struct value v;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    srand((unsigned)me->number);
    for (int i = 0; !me->ring->over; i++) {
        (void)snprintf(lock, sizeof lock,
                       "LOCK job WAIT 500 LEASE %d ID client-%d-request-%08d\r\n",
                       LEASE_MS, me->number, i);
        (void)snprintf(unlock, sizeof unlock,
                       "UNLOCK job ID client-%d-request-%08d\r\n", me->number, i);
        if (!insist(me, lock, &v) || v.type != VALUE_INT) {
            say_fault(me->ring, "no token: client, request", me->number, i);
            break;
        }
        hold(me, v.integer);
        if (!insist(me, unlock, &v)) {
            say_fault(me->ring, "no unlock: client, request", me->number, i);
            break;
        }
        value_fini(&v);
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

static void start_clients(struct ring *r, struct test_daemon *const *daemons,
                          pid_t *pids)
{
    for (int i = 0; i < CLIENTS; i++) {
        struct insistent me = {
            .ring = r, .daemons = daemons, .number = i + 1, .turn = i
        };

        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            be_a_client(&me);
        }
    }
}

static void await_clients(struct ring *r, const pid_t *pids)
{
    for (int i = 0; i < CLIENTS; i++) {
        int status;

        ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
        ck_assert_msg(status == 0, "client %d ended with 0x%x", i + 1, status);
    }
    ck_assert_msg(r->fault[0] == '\0', "%s", r->fault);
    for (int i = 0; i < CLIENTS; i++) {
        ck_assert_msg(r->grants[i] >= 5, "client %d got it %u times only", i + 1,
                      r->grants[i]);
    }
}

START_TEST(one_at_a_time_whatever_is_killed)
{
    static const char *const ARGS[] = { "--appendonly", "yes", "--appendfsync",
                                        "always", NULL };
    struct ring *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct test_daemon *daemons[2];
    pid_t pids[CLIENTS];
    uint64_t end;

    ck_assert_ptr_ne(r, MAP_FAILED);
    stand.redis = redis_start_with(false, ARGS);
    stand_up("--redis-timeout", "400ms", NULL);
    daemons[0] = stand.daemon;
    daemons[1] =
        daemon_start(redis_path(stand.redis), "--redis-timeout", "400ms", NULL);
    srand((unsigned)_i + 1);
    start_clients(r, daemons, pids);
    for (end = test_now_ms() + RUN_MS; test_now_ms() < end && !r->over;) {
        test_sleep_ms((uint64_t)(rand() % 400));
        make_trouble(daemons);
    }
    r->over = true;
    await_clients(r, pids);
    await_no_locks(2000);
    daemon_stop(daemons[1]);
    stand_down();
}
END_TEST

Suite *test_suite(void)
{
    Suite *s = suite_create("chaos");
    TCase *tc = tcase_create("chaos");

    tcase_set_timeout(tc, INTEGRATION_S);
    tcase_add_loop_test(tc, one_at_a_time_whatever_is_killed, 0, 2);
    suite_add_tcase(s, tc);
    return s;
}
