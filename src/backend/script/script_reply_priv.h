/* script_reply_priv: what the files of script_reply share. A part of script_call, for
 * nobody else. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_REPLY_PRIV_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_REPLY_PRIV_H

#include "backend/script/script_call.h"

#define SCRIPT_TOKEN_MAX (UINT64_C(1) << 53)

/* Reads a reply's elements in order; after the first that does not fit, `bad` stays. */
struct reply_reader {
    const redisReply *array;
    size_t at;
    bool bad;
};
struct span reply_text(struct reply_reader *r);

/* What inspect.lua told after its OK. */

#endif
