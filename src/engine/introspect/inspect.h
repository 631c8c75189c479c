/* inspect: answers of LOCKINFO and CLIENT LIST from what is known here.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_INTROSPECT_INSPECT_H
#define LATCHD_ENGINE_INTROSPECT_INSPECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct hold;
struct lock;
struct pending_request;

/* A hold here is not vouched for now. */
bool lock_is_uncertain(const struct engine *eng, const struct lock *lock);
/* Answers that LOCKINFO by what is known here, as Redis does not. */
void inspect_answer_uncertain(struct engine *eng, const struct pending_request *c);

/* A connection that keeps it; 0: none. */
uint64_t hold_client(const struct hold *h);
/* What engine_scan() does, for those who want to see more than the name. */
typedef void lock_fn(void *ctx, const struct lock *lock);
uint64_t lock_scan(const struct engine *eng, uint64_t cursor, size_t count, lock_fn *fn,
                   void *ctx);

#endif
