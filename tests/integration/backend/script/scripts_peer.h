/* scripts_peer: for tests of backend/script/lua/ against a real Redis: ops run one at a
 * time over a blocking connection, as any of several daemons. Where a scenario of the
 * stage `script` says it as well, tests/scenarios/script/ is the place.
 *
 * One Redis for a test, in a checked fixture. */
#ifndef LATCHD_TESTS_SCRIPTS_PEER_H
#define LATCHD_TESTS_SCRIPTS_PEER_H

#include "backend/script/script_codec.h"
#include "support/redis.h"

#define INSTANCE_A "aaaaaaaaaaaaaaaa"
#define INSTANCE_B "bbbbbbbbbbbbbbbb"

enum { LEASE = 30000 };

/* The Redis of this test; started when first needed. */
struct test_redis *peer_redis(void);
void peer_teardown(void);

/* Runs an op as that daemon; the result is valid until the next call. */
const struct op_result *run_as(const char *instance, const struct op *op);
/* The same as if asked then, or with a deadline of its own; Redis's microseconds. */
const struct op_result *run_times(const char *instance, const struct op *op,
                                  struct op_times times);
const struct op_result *run_until(const char *instance, const struct op *op,
                                  uint64_t deadline_us);
/* Simple ops (backend/script/script_codec.h) of one kind, by one call; `i`: the result
 * of which. */
void run_some(const char *instance, const struct op *ops, size_t count,
              struct op_times times);
const struct op_result *some_result(size_t i);
uint64_t redis_time_us(void);

/* The claims of a test. `request`, `id` and `entry` in the words of op.h. */
struct claim claim_anonymous(const char *request);

struct op op_acquire(const char *name, struct claim claim);
struct op op_release(const char *name, enum target_kind kind, const char *field,
                     const char *entry);

/* Shorthands, as daemon A. The token of a grant that must succeed. */
uint64_t take(const char *name, struct claim claim);

#endif
