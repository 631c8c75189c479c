/* stand_fair: what the wire tests of fair queues say. All is about the name "job". */
#ifndef LATCHD_TESTS_STAND_FAIR_H
#define LATCHD_TESTS_STAND_FAIR_H

#include "support/stand.h"

#define QUEUE "redisson_lock_queue:{job}"
#define DUE "redisson_lock_timeout:{job}"

/* LOCK job FAIR with these words over `c`; returns when it stands there in Redis. */
void fair_join(struct client *c, const char *words, long long place);
/* `c` gets it, and not `next` (NULL: nobody); then it gives it back. Its token. */
int64_t fair_served(struct client *c, struct client *next);
/* Neither the list nor the scores are left in Redis. */
void fair_expect_no_queue(void);

#endif
