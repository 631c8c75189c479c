/* restore: puts holds back into a Redis that may have lost them.
 *
 * When another Redis answers than before, every hold of this daemon is uncertain, and
 * an OP_RESTORE of its own puts it back before anything else is asked of its name.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_RECOVERY_RESTORE_H
#define LATCHD_ENGINE_RECOVERY_RESTORE_H

#include "engine/op_result.h"

#include <stdbool.h>

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

#endif
