/* redis_only: commands that Redis has and latchd has not. */
#ifndef LATCHD_CMD_REDIS_ONLY_H
#define LATCHD_CMD_REDIS_ONLY_H

#include "util/span.h"

/* What to do instead of sending that command to latchd; NULL: Redis 7.0 does not have
 * it either. In any case of letters. */
const char *redis_only_advice(struct span name);

#endif
