/* op_clone: an op that outlives what its spans point to. */
#ifndef LATCHD_ENGINE_OP_CLONE_H
#define LATCHD_ENGINE_OP_CLONE_H

#include "engine/op.h"

/* Copies an op with all that it points to into one block of memory, for free(). */
struct op *op_clone(const struct op *op);

#endif
