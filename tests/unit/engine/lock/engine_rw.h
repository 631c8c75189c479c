/* engine_rw: what the tests of read and write locks in the engine ask and are answered.
 */
#ifndef LATCHD_TESTS_ENGINE_RW_H
#define LATCHD_TESTS_ENGINE_RW_H

#include "support/engine.h"

#define READ                                                                           \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .lock_kind = KIND_READ                                                         \
    }
#define WRITE                                                                          \
    (struct lock_terms)                                                                \
    {                                                                                  \
        .lock_kind = KIND_WRITE                                                        \
    }
#define GRANTED(n)                                                                     \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK, .token = (n), .count = 1                                      \
    }
#define RELEASED                                                                       \
    (struct op_result)                                                                 \
    {                                                                                  \
        .status = OP_OK                                                                \
    }

static inline struct hold_req by_token(uint64_t token)
{
    return (struct hold_req){ .token = token };
}

#endif
