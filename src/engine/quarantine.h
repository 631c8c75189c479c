/* quarantine: a time in which names are granted to nobody, as Redis may have lost their
 * holders. What clients of other daemons held is not known: so after a failover names
 * that were not held here are in quarantine, until a grant that was lost must have
 * ended. A quarantine is of a group of names; a lock that was held here is exempt from
 * it. Private to engine/. */
#ifndef LATCHD_ENGINE_QUARANTINE_H
#define LATCHD_ENGINE_QUARANTINE_H

#include "engine/engine.h"
#include "engine/op.h"
#include "util/span.h"

#include <stdint.h>

struct lock;

/* When a claim of that kind may be granted anew; 0: now. */
uint64_t quarantine_until(const struct engine *eng, const struct lock *lock,
                          enum lock_kind lock_kind);
/* The same of a name that no client of this daemon holds or waits for. */
uint64_t quarantine_of_name(const struct engine *eng, struct span name);
/* Grants nothing new in that group before `until`. */
void quarantine_group(struct engine *eng, uint32_t group, uint64_t until);
/* The same for all groups. */
void quarantine_all(struct engine *eng, uint64_t until);
/* quarantine_all(), from now on, except for what is held here. */
void quarantine_withhold(struct engine *eng, uint64_t until);
/* Takes the last quarantine of those groups back, as nothing was lost. */
void quarantine_lift(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
/* Exempts the lock from the quarantine of its group, if it is held here so that nobody
 * else can have been granted it. */
void quarantine_exempt(struct engine *eng, struct lock *lock);

#endif
