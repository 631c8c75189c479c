/* restore: after Redis became another one that may have lost what it knew.
 *
 * Every hold here is unsure then, and is put back by an OP_RESTORE of its own before
 * anything else is asked of its name. What others held is not known: so names that were
 * not held here are in quarantine after a failover, until a grant that was lost has
 * ended. Private to core/. */
#ifndef LATCHD_CORE_RESTORE_H
#define LATCHD_CORE_RESTORE_H

#include "core/parts.h"

/* Redis may have lost the holds of that name: they are to be put back. */
void restore_lock(struct locks *l, struct lock *lock);
/* An unsure hold whose op told nothing is to be put back by another one. */
void restore_again(struct locks *l, struct hold *h);
/* It is neither about to be asked for nor being asked for. */
bool restore_rests(const struct hold *h);
/* The hold is gone. */
void restore_forget(struct locks *l, struct hold *h);
void restore_flush(struct locks *l);
void restore_done(struct locks *l, struct work *w, const struct op_result *r);
/* Calls that waited until all holds were put back. */
void restore_let_calls_go(struct locks *l, struct lock *lock);

/* When a claim of that kind may be granted anew; 0: now. */
uint64_t quarantine_until(const struct locks *l, const struct lock *lock,
                          enum lock_kind kind);
/* The same of a name that nobody here has to do with. */
uint64_t quarantine_of_name(const struct locks *l, struct span name);
/* No new grants in any of the groups before this. */
void quarantine_all(struct locks *l, uint64_t until);
/* The same from now on, but for what is held here. */
void quarantine_withhold(struct locks *l, uint64_t until);

#endif
