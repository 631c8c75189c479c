/* lock_mode: which modes of locking are compatible: plain, fair, read, write.
 * Private to engine/. */
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

bool lock_mode_is_rw(enum lock_kind kind);
/* PLAIN for FAIR. */
enum lock_kind lock_mode_of_hold(enum lock_kind kind);
/* The owner that a hash field names: a writer's without its `:write`. */
struct span field_owner(struct span field);
/* Somebody here holds or waits: the name keeps its family. */
bool lock_in_use(const struct lock *lock);
void lock_set_class(struct engine *eng, struct lock *lock, bool rw);
/* A hold that is certain keeps `want` from being granted now; asking Redis is of no
 * use. */
bool lock_blocks(const struct engine *eng, const struct lock *lock,
                 const struct acquire_spec *spec);
/* Somebody else surely holds it alone, so that `want` cannot hold it already. */
bool lock_excludes(const struct engine *eng, const struct lock *lock,
                   const struct acquire_spec *spec);
/* By one of our readers, for certain. */
bool lock_is_read_here(const struct engine *eng, const struct lock *lock);
/* The holds here that cannot be true beside that one, at most `max` (at least 1). An
 * empty field: an anonymous owner's. */
size_t lock_contradicted_holds(const struct lock *lock, enum lock_kind kind,
                               struct span field, uint64_t token, struct hold **ret,
                               size_t max);
/* Redis says that this holds: what cannot be true beside it is lost. Gives the hold, if
 * it is known already. `token` 0: not known. */
struct hold *lock_accept_holder(struct engine *eng, struct lock *lock,
                                enum lock_kind kind, struct span field, uint64_t token);
void lock_let_readers_in(struct engine *eng, struct lock *lock);

#endif
