/* inspect: answers LOCKINFO and CLIENT LIST from what is known here. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_INSPECT_H
#define LATCHD_ENGINE_INSPECT_H

#include "engine/engine.h"
#include "engine/objects.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Answers a LOCKINFO from what is known here, as Redis does not answer. */
void inspect_answer_uncertain(struct engine *eng, const struct pending_request *c);
enum leader_knowledge {
    LEADER_KNOWN,
    LEADER_WITHHELD, /* another daemon may have a hold to put back */
    LEADER_LENT,     /* another daemon has the name on loan, and may have a holder */
};

/* The sole holder of the name, as Redis says. The texts live as long as the effects. */
enum leader_knowledge inspect_leader(struct engine *eng, const struct lock *lock,
                                     const struct op_result *r, struct leader *ret);
void on_inspect_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);

/* Spans of it live until the next call that changes the engine. */
struct hold_view hold_view_of(const struct engine *eng, const struct hold *h);
struct waiter_info waiter_info_of(const struct engine *eng, const struct waiter *w);
/* The same of a LATCH AWAIT. */
struct waiter_info await_info_of(const struct engine *eng,
                                 const struct pending_request *c);
/* Whether clients of this daemon hold the name, or wait for it. */
bool lock_is_listed(const struct lock *lock);
/* A connection that the hold is attached to; 0: none. */
uint64_t hold_client(const struct hold *h);
/* engine_scan() for callers in the engine, which see the whole lock. */
typedef void lock_fn(void *ctx, const struct lock *lock);
uint64_t lock_scan(const struct engine *eng, uint64_t cursor, size_t count, lock_fn *fn,
                   void *ctx);

#endif
