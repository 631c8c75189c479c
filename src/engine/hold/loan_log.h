/* loan_log: the tokens that were given from loans lately, and whose holds ended in
 * memory: Redis knows nothing of them, and their UNLOCK may be sent again. Private to
 * engine/. */
#ifndef LATCHD_ENGINE_HOLD_LOAN_LOG_H
#define LATCHD_ENGINE_HOLD_LOAN_LOG_H

#include "util/span.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;
struct loan;

/* The loan is about to end. */
void loan_log_add(struct engine *eng, const struct loan *loan);
/* Whether a hold of that name with that token ended in memory, less than OP_ENDED_MS
 * before its loan ended, or since. */
bool loan_log_has(const struct engine *eng, struct span name, uint64_t token);
void loan_log_free(struct engine *eng);

#endif
