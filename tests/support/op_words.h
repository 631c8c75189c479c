/* op_words: how ops and their results are written, in scenarios and in the simulator's
 * trace. By the enums of engine/op.h; NULL where a number has no meaning. */
#ifndef LATCHD_TESTS_OP_WORDS_H
#define LATCHD_TESTS_OP_WORDS_H

#include "engine/op.h"

extern const char *const OP_WORDS[];        /* by enum op_kind */
extern const char *const OP_STATUS_WORDS[]; /* by enum op_status */
extern const char *const RENEW_WORDS[];     /* by enum renew_result */
extern const size_t OP_STATUS_WORD_COUNT, RENEW_WORD_COUNT;

#endif
