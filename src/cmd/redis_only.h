/* redis_only: commands that Redis has and latchd has not. */
#ifndef LATCHD_CMD_REDIS_ONLY_H
#define LATCHD_CMD_REDIS_ONLY_H

#include "util/span.h"

/* What a user of this Redis command should do instead, in any case of letters. NULL:
 * Redis 7.0 has no such command either. */
const char *redis_only_advice(struct span name);

#endif
