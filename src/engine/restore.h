/* restore: puts holds back into a Redis that may have lost them.
 *
 * When another Redis answers than before, every hold of this daemon is uncertain, and
 * an OP_RESTORE of its own puts it back before anything else is asked of its name.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_RESTORE_H
#define LATCHD_ENGINE_RESTORE_H

#include "engine/objects.h"
#include "engine/op.h"

#include <stdbool.h>

/* Marks the holds of a lock to be put back, as Redis may have lost them. */
void restore_lock(struct engine *eng, struct lock *lock);
/* Sends the RESTOREs that are waiting, as many as may be in flight. */
void restore_flush(struct engine *eng);
void on_restore_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);

#endif
