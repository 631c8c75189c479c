/* fair_peer: the fair queue of the name `n`, for tests of backend/script/lua/ on a real
 * Redis: ops of daemon A and B, a Redisson client, and what stands in the queue then.
 */
#ifndef LATCHD_TESTS_FAIR_PEER_H
#define LATCHD_TESTS_FAIR_PEER_H

#include "integration/backend/script/scripts_peer.h"
#include "support/redisson.h"

#define FAIR_QUEUE "redisson_lock_queue:{n}"
#define FAIR_SCORES "redisson_lock_timeout:{n}"
#define FAIR_MARKS "latchd:fair:{n}"
#define FAIR_CHANNEL "redisson_lock__channel:{n}"

/* Members. */
#define A1 "latchd:" INSTANCE_A ":1"
#define A2 "latchd:" INSTANCE_A ":2"
#define A3 "latchd:" INSTANCE_A ":3"
#define A4 "latchd:" INSTANCE_A ":4"
#define B1 "latchd:" INSTANCE_B ":1"
#define B2 "latchd:" INSTANCE_B ":2"
#define R1 "cccccccc-0000-0000-0000-000000000003:1"
#define R2 "dddddddd-0000-0000-0000-000000000004:1"

enum { FAIR_WAIT = 30000 };

/* The daemon that a member belongs to. */
const char *fair_instance(const char *member);

/* A claim of an anonymous request of its own for each member. */
struct claim fair_claim(const char *member);
/* LOCK n FAIR by the daemon of that member; `enqueue`: and wait. */
struct op fair_acquire(const char *member, bool enqueue);
const struct op_result *fair_ask(const char *member, bool enqueue);
/* It must be granted, or must not. */
void fair_take(const char *member);
void fair_wait(const char *member);

/* Releases what that member's claim holds; `next`: a member, or NULL. */
struct op fair_release(const char *member, const char *next);
const struct op_result *fair_free(const char *member, const char *next);

/* Members in order, ended by NULL, all of one daemon. */
const struct op_result *fair_queue(const char *instance, bool whole, size_t known, ...);
const struct op_result *fair_leave(const char *instance, ...);

/* A Redisson client with that owner. */
struct redisson fair_redisson(const char *owner);
/* R1, who holds the lock for LEASE. */
struct redisson fair_held_by_redisson(void);

/* The list is just this (members with a space between), and each has a score. */
void fair_expect(const char *members);
/* Nobody, and no key of the queue is left. */
void fair_expect_gone(void);
/* How far the score is ahead of Redis's clock, ms. */
int64_t fair_due_in(const char *member);
/* It is that, but for what the test itself took. */
void fair_expect_due(const char *member, int64_t want);
void fair_set_due(const char *member, int64_t in_ms);
/* That much time passes for the scores: as if the queue had been made so long ago. */
void fair_pass(int64_t ms);
/* A listener to the channel of the lock (NULL) or of a member. */
redisContext *fair_listen(const char *member);

#endif
