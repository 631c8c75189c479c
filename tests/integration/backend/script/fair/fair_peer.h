/* fair_peer: the fair queue of the name `n`, for bench_fair.c: ops of a daemon on a
 * real Redis. */
#ifndef LATCHD_TESTS_FAIR_PEER_H
#define LATCHD_TESTS_FAIR_PEER_H

#include "integration/backend/script/scripts_peer.h"

#define FAIR_QUEUE "redisson_lock_queue:{n}"
#define FAIR_SCORES "redisson_lock_timeout:{n}"

enum { FAIR_WAIT = 30000 };

/* LOCK n FAIR by daemon A for that member, `latchd:<instance>:<n>`, must be granted. */
void fair_take(const char *member);
/* Releases what that member's claim holds; `next`: a member, or NULL. */
const struct op_result *fair_free(const char *member, const char *next);

#endif
