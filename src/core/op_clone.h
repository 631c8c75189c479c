/* op_clone: an op that outlives what its spans point to. */
#ifndef LATCHD_CORE_OP_CLONE_H
#define LATCHD_CORE_OP_CLONE_H

#include "core/op.h"

/* With all that it points to in one piece of memory, for free(). */
struct op *op_clone(const struct op *op);

#endif
