/* restore: after Redis became another one that may have lost what it knew.
 *
 * Every hold here is unsure then, and is put back by an OP_RESTORE of its own before
 * anything else is asked of its name. What others held is not known: so names that were
 * not held here are in quarantine after a failover, until a grant that was lost has
 * ended. Private to engine/. */
#ifndef LATCHD_ENGINE_RECOVERY_RESTORE_H
#define LATCHD_ENGINE_RECOVERY_RESTORE_H

#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct hold;
struct inflight_op;
struct lock;

/* Redis may have lost the holds of that name: they are to be put back. */
void restore_lock(struct engine *eng, struct lock *lock);
/* An unsure hold whose op told nothing is to be put back by another one. */
void restore_again(struct engine *eng, struct hold *h);
/* It is neither about to be asked for nor being asked for. */
bool restore_is_idle(const struct hold *h);
/* The hold is gone. */
void restore_forget(struct engine *eng, struct hold *h);
void restore_flush(struct engine *eng);
void on_restore_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);
/* Calls that waited until all holds were put back. */
void restore_resume_requests(struct engine *eng, struct lock *lock);

/* When a claim of that kind may be granted anew; 0: now. */
uint64_t quarantine_until(const struct engine *eng, const struct lock *lock,
                          enum lock_kind kind);
/* The same of a name that nobody here has to do with. */
uint64_t quarantine_of_name(const struct engine *eng, struct span name);
/* No new grants in any of the groups before this. */
void quarantine_all(struct engine *eng, uint64_t until);
/* The same from now on, but for what is held here. */
void quarantine_withhold(struct engine *eng, uint64_t until);

#endif
