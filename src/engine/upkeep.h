/* upkeep: what is under way so that Redis keeps a hold. An upkeep is made when it is
 * first needed, and goes when nothing is left in it; the other holds, which are most,
 * share the constant HOLD_NO_UPKEEP, which is read only. Private to engine/. */
#ifndef LATCHD_ENGINE_UPKEEP_H
#define LATCHD_ENGINE_UPKEEP_H

#include "util/list.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct hold;
struct inflight_op;

struct upkeep {
    struct hold *hold;
    struct list in_queue; /* in a renew_queue, or on eng->restores */
    struct inflight_op *renewal;
    struct inflight_op *restoring;
    uint64_t not_before; /* no renewal before this, as Redis refused one */
    uint64_t exact_ms;   /* grace: the TTL to set exactly; 0: the TTL is only raised */
    uint8_t renewal_slot;
    /* a rest that this daemon puts back though Redis has not gone back: other names are
     * not concerned */
    bool is_put_back;
};

extern const struct upkeep HOLD_NO_UPKEEP;

void hold_upkeep_none(struct hold *h);
/* The upkeep, to be changed: made if the hold has none. It stays at least until the
 * hold's next renewal is scheduled. */
struct upkeep *hold_open_upkeep(struct engine *eng, struct hold *h);
/* Takes the hold from the queue that it is in, if it is in one. */
void hold_leave_queue(struct hold *h);
/* Frees the upkeep if nothing is under way. */
void hold_close_upkeep(struct engine *eng, struct hold *h);
void hold_free_upkeep(struct engine *eng, struct hold *h);

#endif
