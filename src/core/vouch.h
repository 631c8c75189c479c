/* vouch: which ops, and which of their results, tell that somebody holds. With
 * `min-replicas` only those have to be acknowledged by replicas, and only those can be
 * OP_NOREPLICAS. Pure functions. */
#ifndef LATCHD_CORE_VOUCH_H
#define LATCHD_CORE_VOUCH_H

#include "core/op.h"

/* It may vouch. */
bool op_vouches(const struct op *op);
/* It ran, and its OK does. */
bool op_result_vouches(enum op_kind kind, const struct op_result *r);

#endif
