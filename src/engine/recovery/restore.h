/* restore: puts holds back into a Redis that may have lost them.
 *
 * When another Redis answers than before, every hold of this daemon is uncertain, and
 * an OP_RESTORE of its own puts it back before anything else is asked of its name. What
 * clients of other daemons held is not known: so after a failover names that were not
 * held here are in quarantine, until a grant that was lost must have ended. Private to
 * engine/. */
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

/* Marks the holds of a lock to be put back, as Redis may have lost them. */
void restore_lock(struct engine *eng, struct lock *lock);
/* Puts a hold back by another op, as the result of the last one said nothing. */
void restore_again(struct engine *eng, struct hold *h);
/* Whether no RESTORE of the hold is waiting or in flight. */
bool restore_is_idle(const struct hold *h);
/* Drops the restore of a hold that is gone. */
void restore_forget(struct engine *eng, struct hold *h);
/* Sends the RESTOREs that are waiting, as many as may be in flight. */
void restore_flush(struct engine *eng);
void on_restore_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);
/* Sends the pending requests that waited until all holds of the lock were put back. */
void restore_resume_requests(struct engine *eng, struct lock *lock);

/* When a claim of that mode may be granted anew; 0: now. */
uint64_t quarantine_until(const struct engine *eng, const struct lock *lock,
                          enum lock_kind kind);
/* The same of a name that no client of this daemon holds or waits for. */
uint64_t quarantine_of_name(const struct engine *eng, struct span name);
/* Grants nothing new in any group before `until`. */
void quarantine_all(struct engine *eng, uint64_t until);
/* quarantine_all(), from now on, except for what is held here. */
void quarantine_withhold(struct engine *eng, uint64_t until);

#endif
