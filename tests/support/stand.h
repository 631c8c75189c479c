/* stand: one Redis and one latchd on it, for one test, and looks into that Redis.
 *
 * A test begins with stand_up() and ends with stand_down(); when it fails in between,
 * both die with it. */
#ifndef LATCHD_TESTS_STAND_H
#define LATCHD_TESTS_STAND_H

#include "support/client.h"
#include "support/daemon.h"
#include "support/redis.h"

#include <check.h>
#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

struct stand {
    struct test_redis *redis;
    struct test_daemon *daemon;
    struct client *admin; /* asks LOCKINFO and so on */
};

extern struct stand stand;

/* For stand_up(): a waiter that nobody wakes does not ask Redis before a test is over,
 * so that the message alone can have woken who is served. */
#define NO_RECHECK "--recheck", "1h"
/* Leases are renewed every second, and outlast a machine that stands still for two. */
#define SHORT_LEASES "--watchdog-timeout", "3s", "--redis-timeout", "1s"
enum { SHORT_LEASE_MS = 3000 };

enum {
    SLACK_MS = 500,     /* what a busy machine may add to "at once" */
    INTEGRATION_S = 60, /* time for one test */
};

/* Further arguments of the daemon, ended by NULL. A Redis that the test has put into
 * stand.redis before is used, else there will be a fresh one that keeps nothing. */
void stand_up(const char *arg, ...);
void stand_down(void);
/* From start_pulse() on, which stand_up() calls, it is noted when the machine stands
 * still: for so many ms since `start`. */
void start_pulse(void);
uint64_t stood_still_since(uint64_t start);
/* Another daemon on the same Redis, with default settings. */
struct test_daemon *stand_second(void);

/* Clients of the stand's daemon. */
struct client *open_client(void);
void close_clients(struct client *const *clients, size_t count);
/* Sends LOCK with these words and returns when it stands in the queue as number
 * `place`. */
void send_lock(struct client *c, const char *name, const char *words, int64_t place);
void subscribe(struct client *c, const char *channel);

/* That field of the daemon's INFO; the text goes with the next call. */
const char *info_text(const char *field);
int64_t info_number(const char *field);
/* Returns when the daemon counts so many waiters, of all names. */
void await_waiters(int64_t count);
/* Returns when Redis's fair queue of that name has so many. */
void await_queue(const char *name, long long count);

/* So long has it been since `start`, which was before the time began to count: for
 * leases and waits, which never end early. What ends them late is a hang, of which the
 * clients' deadline tells. */
void expect_not_before(uint64_t start, uint64_t ms);
/* The time since `start` is within these bounds, the upper one with slack, and with the
 * time for which the whole machine stood still: a thread notices how late it wakes. */
void expect_elapsed(uint64_t start, uint64_t at_least, uint64_t at_most);

/* The answer of Redis, asked straight: an integer, or a text (to be freed; NULL: nil).
 */
long long peek_int(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *peek_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Script calls that Redis has counted since it started. */
long long peek_script_calls(void);
/* The key's lease in Redis is renewed so many times from now on, and never ends. */
void await_renewals(const char *key, int count);
/* Redis knows no key of locks: no hash but ours of helpers. The waiting one: they may
 * take so long by themselves, and a busy machine's time on top. */
void expect_no_locks(void);
void await_no_locks(uint64_t own_ms);
/* Every key in Redis has a TTL. */
void expect_ttl_everywhere(void);

#endif
