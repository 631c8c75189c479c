/* stand_local: names that are lent to the stand's daemon (LOCK ... LOCAL), and a look
 * at how a hold from memory stands in Redis. */
#ifndef LATCHD_TESTS_STAND_LOCAL_H
#define LATCHD_TESTS_STAND_LOCAL_H

#include "support/client.h"

#include <stdbool.h>
#include <stdint.h>

/* For stand_up(): the longest window there is, so that a busy machine fits in. */
#define LOCAL_WINDOW "--local-window", "100ms"

enum { LOCAL_WINDOW_MS = 100 };

/* The token in whose field the lock stands in Redis; 0: there is no such lock. */
int64_t token_in_redis(const char *name);
/* The token that the fence key tells; 0: none. */
int64_t token_of_fence(const char *name);

/* Takes the name with LOCAL until the hold is one from a loan, and stands in the loan's
 * field. Returns its token. The window may be over by the time that the test does
 * something: is_lent() tells afterwards whether it was. */
int64_t take_lent(struct client *c, const char *name);
/* No name is lent when the daemon has just connected: returns when one is. */
void await_lending(struct client *c, const char *name);
/* The lock stands in Redis in another field than that of `token`. */
bool is_lent(const char *name, int64_t token);
/* Returns when the hold has the field of its own token. */
void await_settled(const char *name, int64_t token);

#endif
