/* sentinel_stand: two servers, Sentinels that say what the test wants, and a store, for
 * tests in a checked fixture. */
#ifndef LATCHD_TESTS_SENTINEL_STAND_H
#define LATCHD_TESTS_SENTINEL_STAND_H

#include "store_peer.h"
#include "support/daemon.h"
#include "support/fake_sentinel.h"

#include <check.h>

enum { TIMEOUT = 3000, SERVERS = 2, FAKES = 3, SOON_MS = 1500 };

extern struct test_redis *servers[SERVERS];
extern struct fake_sentinel *fakes[FAKES]; /* not started */
extern struct peer *peer;                  /* NULL: none */

void sentinel_stand_up(void);
void sentinel_stand_down(void);

/* Fakes from `first` to `last` name that server from now on, and are started. */
void name(int first, int last, int server, uint64_t epoch);
void start(int first, int last);
/* Opens a store with the first `count` fakes; `login` and `options` are of its URL. */
void open_peer(int count, const char *login, const char *options);
/* The same, with one fake that names server 0 with epoch 1; returns when it is used. */
void open_simple(void);
/* Returns when it was up so often, and is at that server. */
void up_at(unsigned ups, int server);

void capture_stderr(void);
bool is_logged(const char *what);
void await_log(const char *what);
/* Connections that a server has ever accepted. */
int64_t connections(int server);

#endif
