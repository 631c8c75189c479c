/* store_peer: a store on a loop, for tests of the links: it records what the store
 * says, and runs the loop until something is so. One for a test, in a checked fixture.
 */
#ifndef LATCHD_TESTS_STORE_PEER_H
#define LATCHD_TESTS_STORE_PEER_H

#include "backend/store.h"
#include "support/redis.h"

#include <stdbool.h>

#define PEER_INSTANCE "cccccccccccccccc"

enum { PEER_RESULTS_MAX = 4096, PEER_WAIT_MS = 10000, PEER_LEASE = 30000 };

struct peer {
    uv_loop_t loop;
    struct io io;
    uv_timer_t clock; /* wakes the loop so that waits can end */
    struct store *store;
    /* The events of the store. */
    unsigned failed_overs, failed_over_ups; /* how often it was up before the last */
    unsigned ups, same_ups, downs, jumps, subscribed, unsubscribed, messages;
    size_t results;
    bool in_call; /* inside a call of the store: no event may come */
    struct {
        uint64_t id;
        enum op_status status;
        uint64_t token;
        unsigned ups; /* when it came */
        char text[160];
    } result[PEER_RESULTS_MAX];
    char last_name[64];
    enum lock_class last_class;
};

/* Opens a store at that address; it is not up yet. */
struct peer *peer_open(const char *url, uint64_t timeout_ms);
struct peer *peer_open_redis(struct test_redis *r, uint64_t timeout_ms);
/* Closes, runs the loop out, checks that nothing is left. */
void peer_close(struct peer *p);

/* One round of the loop and the end of the turn. */
void peer_turn(struct peer *p);
void peer_run_ms(struct peer *p, uint64_t ms);
void peer_await_count(struct peer *p, const unsigned *counter, unsigned value);
void peer_await_results(struct peer *p, size_t count);

/* Submits an anonymous acquire of `name` under that op id. */
void peer_acquire(struct peer *p, const char *name, uint64_t id);
void peer_release(struct peer *p, const char *name, uint64_t id);
void peer_subscribe(struct peer *p, const char *name);
void peer_subscribe_rw(struct peer *p, const char *name);
void peer_unsubscribe(struct peer *p, const char *name);

#endif
