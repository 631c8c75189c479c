/* op_latch: what the engine asks of Redis about a latch; part of op.h. */
#ifndef LATCHD_ENGINE_OP_LATCH_H
#define LATCHD_ENGINE_OP_LATCH_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

/* What a LATCH op does. The counter of a latch is Redisson's: without one, the latch is
 * open, or there is none. Beside it is a mark of latchd's, which has the generation of
 * the latch, a number that grows each time that one is set.
 *   SET     sets a latch to `count`, if none is set. -> value 1; 0: one is there
 *   COUNT   counts down by one, once for each `request`, in whatever generation the
 *           request came first. The last one opens the latch, and `0` is published.
 *           -> value: what is left of that generation; -1: there is no latch, and the
 *           request has not counted
 *   DELETE  -> value 1; 0: there is none. `0` is published, so that Redisson's clients
 *           wait no more
 *   LOOK    changes no latch. -> value: what is left
 *
 * SET, COUNT and DELETE of a `request` that has run before give the answer of then, as
 * far as that is still true.
 * -> OK latch, FULL (SET, COUNT: the latch remembers too many requests), WRONGTYPE */
enum latch_verb { LATCH_TO_SET, LATCH_TO_COUNT, LATCH_TO_DELETE, LATCH_TO_LOOK };

struct op_latch {
    enum latch_verb verb;
    struct span request;   /* `id:<r>`, or `<instance>:<n>`; not LOOK */
    int64_t count;         /* SET: from 1 */
    uint32_t most_counted; /* SET, COUNT: requests that the latch may remember */
    /* COUNT: counts in this generation only; LOOK: this one was heard to be opened, and
     * is noted as open if its counter is gone. 0: not said. */
    uint64_t generation;
    bool only_tells; /* LOOK: nobody awaits it: nothing is changed, not even a mark */
};

#endif
