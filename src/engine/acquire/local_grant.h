/* local_grant: which names are lent to this daemon, and grants from memory. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_ACQUIRE_LOCAL_GRANT_H
#define LATCHD_ENGINE_ACQUIRE_LOCAL_GRANT_H

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct lock;
struct waiter;

/* A LOCK that may be local came: notes whether its name was asked for shortly before.
 */
void local_grant_note(struct engine *eng, struct waiter *w);
/* The block of tokens to ask for with that waiter's grant; 0: the name is not to be
 * lent. A lent name is shut for others for a moment after its UNLOCK, and for a lease
 * if this daemon crashes: so only names that are asked for again within a window are
 * lent. */
uint32_t local_grant_block(const struct engine *eng, const struct waiter *w);
/* Grants an idle loan to the head of the queue, from memory. False: Redis has to be
 * asked, as the head is not local or the loan is in doubt or too old. */
bool local_grant_try(struct engine *eng, struct lock *lock);

#endif
