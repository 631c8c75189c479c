/* scripts_sem: the words of tests of semaphores, for use with scripts_peer. All of them
 * are about the semaphore `s`.
 *
 * Texts that a function returns, and those that claims point to, are each one of a few
 * that are used in turn. */
#ifndef LATCHD_TESTS_SCRIPTS_SEM_H
#define LATCHD_TESTS_SCRIPTS_SEM_H

#include "integration/backend/script/scripts_peer.h"

#define SEM_CHANNEL "redisson_sc:{s}"
#define SEM_FIELD_1 "latchd:" INSTANCE_A ":1"
#define SEM_FIELD_2 "latchd:" INSTANCE_A ":2"
#define SEM_FIELD_3 "latchd:" INSTANCE_A ":3"
#define SEM_ID "latchd:id:11111111-1111-4111-8111-111111111111"
#define SEM_ID_2 "latchd:id:22222222-2222-4222-8222-222222222222"

/* By how much the score of a member of latchd is later than its end. */
enum { SEM_MARGIN = 2000 };

/* A claim with that field: an ID's, or that of an anonymous request. */
struct claim sem_claim(const char *field, uint32_t permits, uint32_t limit);

struct op sem_acquire(struct claim claim);
struct op sem_release(enum target_kind kind, const char *field, const char *entry);
struct op sem_attach(enum target_kind kind, const char *field, const char *entry);
/* The op that releases exactly the hold of that claim. */
struct op sem_release_of(struct claim claim);

/* As daemon A. Results are valid until the next op; none is an error. */
const struct op_result *sem_run(struct op op);
const struct op_result *sem_try(struct claim claim);
uint64_t sem_take(struct claim claim); /* the token of a grant that must succeed */
const struct op_result *sem_leave(struct claim claim);

/* One renewal of the claim's hold, and its restoring. `token`: 0: not known. */
enum renew_result sem_renew(const char *instance, struct claim claim, uint64_t token,
                            bool exact);
const struct op_result *sem_restore(const char *instance, struct claim claim,
                                    uint64_t token);

/* --- Permits in Redis ----------------------------------------------------- */

/* How many permits are free, and how many are out. */
void sem_expect(const char *free, int64_t out);
/* The 16 bytes of the i-th permit (from 1) of a token. */
const char *sem_member(uint64_t token, int i);
/* When that permit ends by its score, in ms from now; -1: it is not there. */
int64_t sem_ends_in(uint64_t token, int i);
/* `ms` is `want`, less what passed during a test. */
void sem_about(int64_t ms, int64_t want);
/* The row of a hold, but for the time in it, is `<token> <permits> <instance>`. NULL:
 * there is no row. */
void sem_expect_row(const char *field, uint64_t token, int permits,
                    const char *instance);

/* A connection that listens to the channel, and the next message there; NULL: none has
 * come. */
redisContext *sem_listen(void);
void sem_hear(redisContext *c, const char *payload);

/* --- Redisson's RPermitExpirableSemaphore --------------------------------- */

/* Takes a permit, `id` being its 16 bytes, that ends so many ms from now. */
void sem_redisson_take(const char *id, int64_t ends_in_ms);
/* The score of a permit without an end. */
#define SEM_NEVER "922337203685477"
/* Gives a permit back, and publishes what is free then; 1, or 0: it is not there. */
int64_t sem_redisson_release(const char *id);
/* Takes for dead what is over by a clock that is so much ahead. */
int64_t sem_redisson_reclaim(int64_t skew_ms);

#endif
