/* script_codec: an op as the EVALSHA that does it, and the reply as the op's result.
 *
 * Pure functions: no link, no clock. What a result points to belongs to the reply or to
 * the struct script_result, and is valid as long as both are. A reply of another shape
 * than the script gives is OP_ERROR. */
#ifndef LATCHD_BACKEND_SCRIPT_SCRIPT_CODEC_H
#define LATCHD_BACKEND_SCRIPT_SCRIPT_CODEC_H

#include "backend/script/scripts.h"
#include "engine/op.h"
#include "util/buf.h"

#include <hiredis/hiredis.h>
#include <stdint.h>

enum {
    SCRIPT_FIELDS_MAX = 1000, /* owners in an OP_INSPECT at most */
    /* ops of one call: less than 1 ms of Redis, however slow it is */
    SCRIPT_BATCH_MAX = 32,
};

/* What is known of the server, in its time, as far as we know that. */
struct op_times {
    uint64_t asked_us;    /* when the op is sent */
    uint64_t deadline_us; /* after this the script does nothing */
    enum publish_way publish;
};

/* One call for an op, or for several simple ops (script_batch.h) of one kind, each of
 * another name. */
void script_call(struct buf *out, const struct op *ops, size_t count,
                 const char *instance, struct op_times times);

/* The part of the reply to such a call that is about one op, for script_reply(). NULL:
 * none, as the whole call was refused. */
const redisReply *script_reply_part(const redisReply *reply, size_t i, size_t count);
/* Whether it is the error of a node of a cluster that does not have the slot, or not
 * for now. */
bool script_reply_is_redirected(struct span text);

/* The token in the field of an anonymous hold; 0: the field is no such one. */
uint64_t script_field_token(struct span field);

struct script_result {
    struct op_result result;
    enum renew_result items[OP_RENEW_MAX];
    /* Freed by script_result_fini(). */
    struct op_field *fields;
    struct span *queue;
    struct op_result *batch;
};

/* `item_count`: op_item_count() of the op. Sets everything but the result's id. */
void script_reply(const redisReply *reply, enum op_kind kind, size_t item_count,
                  struct script_result *ret);
void script_result_fini(struct script_result *r);

#endif
