/* Pending requests: an attach or a look at Redis each. */
#include "engine/schedule/pending_send.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/lease_shortening.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/introspect/inspect.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/op.h"
#include "engine/timer.h"
#include "engine/trouble.h"
#include "engine/watch/name_watch.h"
#include "util/list.h"
#include <stdbool.h>

static void send_limit(struct engine *eng, struct pending_request *c)
{
    struct inflight_op *w = inflight_new(eng, INFLIGHT_LIMIT, c->lock);
    struct op *op;

    w->call = c;
    c->in_flight = w;
    op = inflight_op(eng, w, OP_LIMIT);
    op->lock_class = CLASS_SEMAPHORE;
    op->limit.limit = c->limit;
}

static void send_latch(struct engine *eng, struct pending_request *c)
{
    struct inflight_op *w = inflight_new(eng, INFLIGHT_LATCH, c->lock);
    struct op *op;

    w->call = c;
    c->in_flight = w;
    op = inflight_op(eng, w, OP_LATCH);
    op->lock_class = CLASS_LATCH;
    op->latch = c->latch;
    op->latch.request = op_copy(eng, c->latch.request);
}

static void send_request(struct engine *eng, struct pending_request *c)
{
    bool look = c->kind == PENDING_INFO;
    struct entry *e = pending_request_entry(c);
    struct inflight_op *w;
    struct op *op;

    list_del(&c->in_waiting);
    /* LOCKINFO changes nothing, and is told who stands in the field of the loan. */
    if (!eng->up || c->lock->needs_restore > 0 ||
        (!look && c->lock->activity->loan != NULL)) {
        list_append(eng->up ? &lock_open_activity(eng, c->lock)->waiting_for_restore
                            : &eng->waiting_for_store,
                    &c->in_waiting);
        lock_touch(eng, c->lock);
        return;
    }
    if (c->kind == PENDING_LIMIT || c->kind == PENDING_LATCH) {
        (c->kind == PENDING_LIMIT ? send_limit : send_latch)(eng, c);
        return;
    }
    w = inflight_new(eng, look ? INFLIGHT_INSPECT : INFLIGHT_ATTACH, c->lock);
    w->call = c;
    w->lease_ms = c->lease_ms != 0 ? c->lease_ms : eng->cfg.watchdog_ms;
    c->in_flight = w;
    op = inflight_op(eng, w, look ? OP_INSPECT : OP_ATTACH);
    if (look) {
        return;
    }
    op->attach.target = op_make_target(eng, &c->target);
    op->attach.lease_ms = w->lease_ms;
    op->attach.asked_ago_ms =
        eng->now > c->asked + ASKED_AGAIN_MS ? eng->now - c->asked - ASKED_AGAIN_MS : 0;
    op->lock_class = c->lock_class;
    op->attach.exact = w->exact = c->kind == PENDING_RENEW && c->lease_ms != 0;
    if (op->attach.exact && e != NULL && hold_has_one_entry(e->hold)) {
        hold_shorten_lease(eng, e->hold, inflight_asked(w), false);
    }
}

void pending_requests_send(struct engine *eng)
{
    struct list *it;

    while ((it = list_first(&eng->to_send)) != NULL) {
        send_request(eng, container_of(it, struct pending_request, in_waiting));
    }
}

void pending_request_on_timer(struct engine *eng, struct pending_request *c)
{
    if (c->kind == PENDING_FOLLOWER) {
        name_watch_request_on_timer(eng, c);
        return;
    }
    if (c->retry) {
        c->retry = false;
        pending_request_arm(eng, c);
        pending_request_queue(eng, c);
        return;
    }
    if (eng->now < pending_request_deadline(eng, c)) {
        pending_request_arm(eng, c); /* the outage is over */
        return;
    }
    if (tick_is_too_late(eng, c->deadline)) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + 1);
        return;
    }
    if (c->kind == PENDING_INFO && lock_is_uncertain(eng, c->lock)) {
        inspect_answer_uncertain(eng, c);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND, trouble_text(eng));
    }
    pending_request_free(eng, c);
}

void pending_requests_resume(struct engine *eng, struct lock *lock)
{
    struct list *it;

    while (lock->needs_restore == 0 && lock->activity->loan == NULL &&
           (it = list_first(&lock->activity->waiting_for_restore)) != NULL) {
        send_request(eng, container_of(it, struct pending_request, in_waiting));
    }
}
