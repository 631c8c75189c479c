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

const redisReply *reply_next(struct reply_reader *r, int type);
int64_t reply_int(struct reply_reader *r);
bool reply_flag(struct reply_reader *r);
/* What only some scripts tell stands at the end. */
bool reply_last_flag(struct reply_reader *r);
struct span reply_text(struct reply_reader *r);
/* 0 is a token that is not known. */
uint64_t reply_token(struct reply_reader *r);
uint64_t reply_known_token(struct reply_reader *r);
/* How many permits a semaphore has. */
uint32_t reply_limit(struct reply_reader *r);

/* What the scripts of latches tell after their OK. */
void reply_latch(struct reply_reader *r, struct latch_told *ret);

/* What inspect.lua told after its OK. */
/* Reads a list of texts, which *ret owns. */
void reply_names(struct reply_reader *r, struct script_result *ret,
                 const struct span **ret_names, size_t *ret_count);
void reply_inspected(struct reply_reader *r, struct script_result *ret);

#endif
