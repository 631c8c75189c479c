/* release: sends pending releases, with the hand-over to a waiter of this daemon, and
 * takes the answers. Private to engine/. */
#ifndef LATCHD_ENGINE_RELEASE_H
#define LATCHD_ENGINE_RELEASE_H

#include "engine/objects.h"

#include <stdbool.h>

/* Successor: the waiter that a release hands the lock. */

/* Finds the waiter that an UNLOCK names. True with *ret NULL: the first waiter will do,
 * or the UNLOCK is sent again, and the one that it named holds by now. False: the
 * request has been answered. `e`: the entry that the UNLOCK ends, NULL: not known here.
 */
bool successor_choose(struct engine *eng, const struct lock *lock,
                      const struct entry *e, const struct hold_req *req,
                      struct waiter **ret);
/* Whether the waiter that the release names has an op in flight, and can be handed the
 * lock only after the answer to that. */
bool successor_is_busy(const struct engine *eng, const struct lock *lock,
                       const struct pending_release *d);

/* Gives a release up that it is too late to send, or to send again. */
void pending_release_give_up(struct engine *eng, struct lock *lock,
                             struct pending_release *d);
void release_send(struct engine *eng, struct lock *lock, struct pending_release *d);
void on_release_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);

#endif
