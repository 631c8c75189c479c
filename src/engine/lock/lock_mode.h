/* lock_mode: which modes of locking are compatible: plain, fair, read, write. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_LOCK_LOCK_MODE_H
#define LATCHD_ENGINE_LOCK_LOCK_MODE_H

#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct acquire_spec;
struct engine;
struct hold;
struct lock;

/* The mode of the hold that a LOCK of this mode gets: PLAIN for FAIR. */
enum lock_kind lock_mode_of_hold(enum lock_kind kind);
/* Whether a client of this daemon holds or waits, so that the name keeps its lock
 * class. */
bool lock_in_use(const struct lock *lock);
/* The class that a request means which does not say one, as far as is known here. */
enum lock_class lock_class_guess(const struct lock *lock);
void lock_set_class(struct engine *eng, struct lock *lock, enum lock_class lock_class);
/* Whether a hold that is certain prevents a grant of `spec`, so that asking Redis is
 * of no use. */
bool lock_blocks(const struct engine *eng, const struct lock *lock,
                 const struct acquire_spec *spec);
/* Whether another owner certainly holds the name alone, so that `spec` cannot hold it
 * already. */
bool lock_excludes(const struct engine *eng, const struct lock *lock,
                   const struct acquire_spec *spec);
/* Whether a reader of this daemon certainly holds the name. */
bool lock_is_read_here(const struct engine *eng, const struct lock *lock);
/* The holds known here that cannot be true beside the given one, at most `max` (at
 * least 1). Returns how many. An empty field is an anonymous owner's. */
size_t lock_contradicted_holds(const struct lock *lock, enum lock_kind kind,
                               struct span field, uint64_t token, struct hold **ret,
                               size_t max);
/* The token of the hold here that excludes everybody else; 0: there is none. */
uint64_t lock_leader_token(const struct lock *lock);
/* Whether a hold of this daemon on that name is not certain now. */
bool lock_is_uncertain(const struct engine *eng, const struct lock *lock);

#endif
