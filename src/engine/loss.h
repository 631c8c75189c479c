/* loss: reports a hold that was lost, with the cause as far as it is known here, or
 * that has expired; forgets the hold, and asks Redis who has the name. */
#ifndef LATCHD_ENGINE_LOSS_H
#define LATCHD_ENGINE_LOSS_H

#include "engine/op.h"
#include "util/span.h"

#include <stdint.h>

struct hold;
struct engine;
struct lock;

/* The hold is not in Redis any more, and Redis does not say why. */
void hold_lost(struct engine *eng, struct hold *h);
/* The lease of the hold is over. That is no loss if nobody was to renew it, as its
 * client gave it a LEASE or has left, and Redis is not known to have lost it before. */
void hold_expired(struct engine *eng, struct hold *h);
/* Another owner has the name: `taker`; empty: not known, or anonymous. */
void hold_lost_to(struct engine *eng, struct hold *h, struct span taker);
/* The client of connection `conn` freed the hold by force; 0: the client is gone. */
void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn);
/* Redis says that the given hold exists: reports what cannot be true beside it as
 * lost. Returns the hold if it is known already, else NULL. `token` 0: not known. */
struct hold *lock_accept_holder(struct engine *eng, struct lock *lock,
                                enum lock_kind kind, struct span field, uint64_t token);

#endif
