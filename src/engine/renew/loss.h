/* loss: a hold that is lost is told of, with the cause as far as it is known here, and
 * forgotten; and Redis is asked who has the name. */
#ifndef LATCHD_ENGINE_RENEW_LOSS_H
#define LATCHD_ENGINE_RENEW_LOSS_H

#include "engine/effect.h"
#include "util/span.h"

#include <stdint.h>

struct hold;
struct engine;

/* Redis has it no more, or nothing that says why. */
void hold_lost(struct engine *eng, struct hold *h);
/* Its lease is over. */
void hold_expired(struct engine *eng, struct hold *h);
/* Another has the name: `taker`, an owner; empty: not known, or anonymous. */
void hold_lost_to(struct engine *eng, struct hold *h, struct span taker);
/* The client of connection `conn` freed it by force; 0: one that has gone. */
void hold_lost_by_force(struct engine *eng, struct hold *h, uint64_t conn);

#endif
