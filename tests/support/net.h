/* net: a net with a small handler, and its end of turn, in a test loop, for the tests
 * of connections and listeners.
 *
 * The handler knows: PING, ECHO x, WAIT (suspends; "+GO" by go()), BIG n (n bytes),
 * SPIN us (works that long), QUIT, KILL (closes at once), STAY (is not evicted), TRUST,
 * UNTRUST, TIMES n
 * ("+AGAIN", n times, each by itself). It counts what it was told. */
#ifndef LATCHD_TESTS_NET_H
#define LATCHD_TESTS_NET_H

#include "net/conn.h"
#include "net/listener.h"
#include "support/loop.h"

struct net_seen {
    int events, opened, requests, closed, unread, turns, again;
    uint64_t last;              /* id of the conn that opened last */
    uint64_t keeper;            /* id of the conn for which the handler keeps.. */
    size_t kept;                /* ..so much */
    uint32_t heartbeat;         /* what the handler says of it */
    bool refuse, busy, strange; /* what the handler is to say */
};

/* Of the one fixture: each test is a process of its own. */
extern struct test_loop loop;
extern struct net *net;
extern uv_prepare_t net_prepare;
extern struct net_seen seen;
extern char path[96];        /* it listens here, */
extern int port;             /* and here */
extern uint64_t again_times; /* what is left of TIMES */
extern const struct net_limits LIMITS;

void net_fixture_open(void);
void net_fixture_close(void);

/* Runs the loop until a counter is at least that high. */
void wait_count(const int *counter, int wanted);
/* A raw client that was accepted. Row 0: TCP, row 1: unix. */
int client(int row);
/* A condition for loop_until(). */
bool is_readable(const void *fd);
/* Runs the loop until exactly this came. */
void expect(int fd, const char *text);
/* Expects the end, and closes. */
void expect_end(int fd);
/* Answers and resumes a conn that waits. */
void go(uint64_t id);
void net_turn_end(uv_prepare_t *handle);

#endif
