#include "engine/latch/request_latch.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/latch/count_log.h"
#include "engine/latch/latch_watch.h"
#include "engine/lock/lock.h"
#include "latchd/protocol.h"

void request_latch(struct engine *eng, const struct latch_req *req)
{
    static const enum latch_verb VERBS[] = {
        [LATCH_SETS] = LATCH_TO_SET,
        [LATCH_COUNTS] = LATCH_TO_COUNT,
        [LATCH_DELETES] = LATCH_TO_DELETE,
        [LATCH_INFO] = LATCH_TO_LOOK,
    };
    struct hold_req as = { .from = req->from, .name = req->name, .id = req->id };
    struct pending_request *c =
        pending_request_new(eng, PENDING_LATCH, lock_get(eng, req->name), &as);

    c->tells_all = req->word == LATCH_INFO;
    c->latch = (struct op_latch){ .verb = VERBS[req->word],
                                  .count = req->count,
                                  .most_counted = LATCHD_COUNTED_MAX,
                                  .only_tells = c->tells_all };
    /* A request without ID has one of its own, as Redis may have to be asked again. */
    c->latch.request = req->id.len != 0
                           ? c->target.entry
                           : make_serial(eng, c->serial, sizeof(c->serial));
    pending_request_queue(eng, c);
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_told(struct engine *eng, const struct pending_request *c,
                        const struct latch_told *told)
{
    if (c->tells_all) {
        emit_latch(eng, c->ref, told, latch_watch_waiting(c->lock));
    } else if (c->latch.verb == LATCH_TO_COUNT && told->value < 0) {
        emit_error(eng, c->ref, LOCK_ERR,
                   told->state == LATCH_NONE ? TEXT_NO_LATCH : TEXT_LATCH_GONE);
    } else {
        emit_int(eng, c->ref, told->value);
    }
}

static void answer_latch(struct engine *eng, const struct pending_request *c,
                         const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        answer_told(eng, c, &r->latch);
        break;
    case OP_FULL:
        emit_error(eng, c->ref, LOCK_LIMIT, TEXT_LATCH_FULL);
        break;
    default:
        emit_op_error(eng, c->ref, r);
        break;
    }
}

/* What the op has done is known before its client is told, so that whoever waits here
 * hears of it at once. */
static void learn_outcome(struct engine *eng, struct lock *lock, uint64_t op_id,
                          const struct pending_request *c, const struct op_result *r)
{
    if (r->status != OP_OK || c == NULL || c->tells_all) {
        return; /* what only tells gives no generation */
    }
    if (c->latch.verb == LATCH_TO_COUNT && r->latch.value >= 0) {
        eng->stats.latch_counts++;
        count_log_add(eng, lock, c->latch.request, r->latch.generation);
    }
    latch_watch_learn(eng, lock, op_id, &r->latch);
}

void on_latch_reply(struct engine *eng, struct inflight_op *w,
                    const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct lock *lock = w->lock;

    learn_outcome(eng, lock, w->op.key, c, r);
    inflight_free(eng, w);
    if (c == NULL) {
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE) {
        pending_request_retry(eng, c, r->status);
        return;
    }
    answer_latch(eng, c, r);
    pending_request_free(eng, c);
}
