/* loan_return: a hold that ends in memory, and a loan that goes back to Redis. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_LOAN_RETURN_H
#define LATCHD_ENGINE_LOAN_RETURN_H

#include <stdbool.h>

struct engine;
struct entry;
struct hold_req;
struct lock;

/* Answers an UNLOCK of that entry, or of a token without one, if Redis is not needed:
 * the hold ends in memory, or ended there before. */
bool unlock_in_memory(struct engine *eng, struct entry *e, const struct hold_req *req);
/* Releases an idle loan in Redis, for the head of the queue if there is one. */
void loan_return(struct engine *eng, struct lock *lock);
/* Redis may have lost the loan, if there is one: its holder is about to be put back
 * into a field of its own. */
void loan_on_restore(struct engine *eng, struct lock *lock);

#endif
