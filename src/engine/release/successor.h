/* successor: the waiter to whom a release hands the lock. Private to engine/. */
#ifndef LATCHD_ENGINE_RELEASE_SUCCESSOR_H
#define LATCHD_ENGINE_RELEASE_SUCCESSOR_H

#include <stdbool.h>

struct engine;
struct entry;
struct hold_req;
struct lock;
struct pending_release;
struct waiter;

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
/* The waiter that the lock may move to in the same script: the one that the release
 * names, or the first. NULL: the lock is only freed. */
struct waiter *successor_find(const struct engine *eng, const struct lock *lock,
                              const struct pending_release *d);
/* Whether the release names that waiter. `next` may be NULL. */
bool successor_is_named(const struct engine *eng, const struct lock *lock,
                        const struct pending_release *d, const struct waiter *next);

#endif
