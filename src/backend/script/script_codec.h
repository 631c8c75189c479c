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
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCRIPT_FIELDS_MAX = 1000, /* owners in an OP_INSPECT at most */
    /* ops of one call: less than 1 ms of Redis, however slow it is */
    SCRIPT_BATCH_MAX = 32,
};

/* The server's time, as far as it is known, and its way to publish. */
struct op_times {
    uint64_t asked_us;    /* when the op is sent */
    uint64_t deadline_us; /* after this the script does nothing */
    enum publish_way publish;
};

/* One call for an op, or for several simple ops (script_batch) of one kind, each of
 * another name. */
void script_call(struct buf *out, const struct op *ops, size_t count,
                 const char *instance, struct op_times times);

/* The part of the reply to such a call that is about one op, for script_reply(). NULL:
 * none, as the whole call was refused. */
const redisReply *script_reply_part(const redisReply *reply, size_t i, size_t count);
/* Whether it is the error of a node of a cluster that does not have the slot, or not
 * for now. */
bool script_reply_is_redirected(struct span text);

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

/* script_batch: simple ops of a loop turn, kept until they leave together as one script
 * call.
 *
 * Simple is what happens most: an anonymous request, or one with an ID, asks for a
 * plain lock, or ends its hold where nobody here is next. What is kept is a copy. No
 * two that are kept are of one name, so that their order says nothing. Pure: no link,
 * no clock.
 *
 * The caller owns the struct. A zeroed one is empty and valid. */

enum { SCRIPT_BATCH_TEXT_MAX = 8192 };

struct script_batch_list {
    struct op ops[SCRIPT_BATCH_MAX]; /* of one kind */
    uint64_t ends[SCRIPT_BATCH_MAX]; /* the ends of their names */
    size_t count;
};

struct script_batch {
    struct script_batch_list releases, acquires;
    size_t text_len;
    char text[SCRIPT_BATCH_TEXT_MAX];
};

/* Whether the op may be kept. */
bool script_batch_is_simple(const struct op *op);
/* Whether the kept ops must leave before this one is sent, or kept: it is about one of
 * their names, or about several names; or, if it is simple, there is no room. */
bool script_batch_is_in_the_way(const struct script_batch *g, const struct op *op,
                                bool simple);
/* Keeps a copy of the op, which is simple and has nothing in its way. */
void script_batch_add(struct script_batch *g, const struct op *op);
/* The kept ops have left. */
void script_batch_clear(struct script_batch *g);

#endif
