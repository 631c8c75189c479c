/* hold_index: finds the holds of a name by field, token or owner. The functions return
 * NULL if no such hold is known here. Private to engine/. */
#ifndef LATCHD_ENGINE_LOCK_HOLD_INDEX_H
#define LATCHD_ENGINE_LOCK_HOLD_INDEX_H

#include "engine/op.h"
#include "util/span.h"

#include <stdint.h>

struct engine;
struct hold;
struct lock;

void index_add(struct engine *eng, struct hold *h);
void index_remove(struct hold *h);
struct hold *lock_hold_of(const struct lock *lock, struct span field);
struct hold *lock_hold_with(const struct lock *lock, uint64_t token);
/* The owner's hold of that kind; with PLAIN its write hold or, without one, its read
 * or plain hold. */
struct hold *lock_held_by(const struct lock *lock, struct span owner,
                          enum lock_kind kind);

#endif
