/* op_lease: which ops, and which of their results, tell that somebody holds. With
 * `min-replicas` only those have to be acknowledged by replicas, and only those can be
 * OP_NOREPLICAS. Pure functions. */
#ifndef LATCHD_ENGINE_OP_LEASE_H
#define LATCHD_ENGINE_OP_LEASE_H

#include "engine/op.h"

#include <stdbool.h>

/* It may vouch. */
bool op_extends_lease(const struct op *op);
/* It ran, and its OK does. */
bool op_result_extends_lease(enum op_kind kind, const struct op_result *r);

#endif
