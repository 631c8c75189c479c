/* op_lease: which ops, and which of their results, grant or extend a lease, or change
 * a latch. With
 * `min-replicas` only those must be acknowledged by replicas, and only those can be
 * OP_NOREPLICAS. Pure functions. */
#ifndef LATCHD_ENGINE_OP_LEASE_H
#define LATCHD_ENGINE_OP_LEASE_H

#include "engine/op_result.h"

#include <stdbool.h>

/* Whether the op may grant or extend a lease. */
bool op_extends_lease(const struct op *op);
/* Whether the op ran and its OK granted or extended a lease. */
bool op_result_extends_lease(enum op_kind kind, const struct op_result *r);

#endif
