/* op_cost: how long an op keeps Redis from everybody else, about, in us of a busy
 * machine. What leaves together in one script call is bounded by that, not by its
 * number: one hold may have a thousand permits, or entries, or a long value. Pure. */
#ifndef LATCHD_ENGINE_OP_COST_H
#define LATCHD_ENGINE_OP_COST_H

#include <stddef.h>
#include <stdint.h>

enum {
    /* One script call takes no more holds than cost this much. A hold that costs more
     * has a call of its own, which LATCHD_PERMITS_MAX and OP_RESTORE_ENTRIES_MAX
     * bound. */
    OP_COST_MAX = 1000,
    OP_COST_HOLD = 20,
    OP_COST_PERMIT = 3,
    OP_COST_ENTRY = 2,
    OP_COST_BYTES = 64, /* so many bytes of names and texts cost 1 */
};

/* Of one hold of an op. `permits`: 0 of a lock; `entries`: of a named owner. */
static inline uint64_t op_cost(size_t permits, size_t entries, size_t bytes)
{
    return OP_COST_HOLD + (uint64_t)OP_COST_PERMIT * permits +
           (uint64_t)OP_COST_ENTRY * entries + bytes / OP_COST_BYTES;
}

#endif
