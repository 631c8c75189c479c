#include "engine/acquire/limit.h"
#include "engine/emit.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"

/* The op ran: whoever waits may be served now. */
static void take_limit(struct engine *eng, struct lock *lock, uint32_t limit)
{
    lock_open_sharing(eng, lock)->limit = limit;
    last_answer_over(eng, lock);
    if (lock_head(lock) != NULL) {
        lock_ask(eng, lock);
    }
}

static void answer_limit(struct engine *eng, const struct pending_request *c,
                         const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        emit_int(eng, c->ref, 1);
        break;
    case OP_NOSEMAPHORE:
        emit_int(eng, c->ref, 0);
        break;
    case OP_BUSY:
        emit_error(eng, c->ref, LOCK_ERR, TEXT_PERMITS_OUT);
        break;
    default:
        emit_op_error(eng, c->ref, r);
        break;
    }
}

void on_limit_reply(struct engine *eng, struct inflight_op *w,
                    const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct lock *lock = w->lock;

    if (r->status == OP_OK && lock->lock_class == CLASS_SEMAPHORE) {
        take_limit(eng, lock, r->permits.limit);
    }
    inflight_free(eng, w);
    if (c == NULL) {
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE) {
        pending_request_retry(eng, c, r->status);
        return;
    }
    answer_limit(eng, c, r);
    pending_request_free(eng, c);
}
