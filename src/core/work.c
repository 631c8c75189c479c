/* Ops in flight: what was asked of Redis, for whom, and where the answer goes. */
#include "core/parts.h"
#include "core/restore.h"
#include "core/verdict.h"
#include "util/alloc.h"

#include <stdlib.h>

struct work *work_new(struct locks *l, enum work_kind kind, struct lock *lock)
{
    struct work *w = pool_alloc(&l->pool, sizeof(*w));

    w->op.key = ++l->next_op;
    w->kind = kind;
    w->sent = l->now;
    w->lock = lock;
    list_init(&w->in_sent);
    if (lock != NULL) {
        lock->refs++;
    }
    table_add(&l->works, &w->op);
    return w;
}

struct work *work_find(const struct locks *l, uint64_t op_id)
{
    struct table_node *slot = table_find(&l->works, op_id);

    return slot == NULL ? NULL : container_of(slot, struct work, op);
}

void work_free(struct locks *l, struct work *w)
{
    if (w->waiter != NULL) {
        w->waiter->work = NULL;
    }
    if (w->lock != NULL) {
        w->lock->refs--;
        if (w->lock->desk->busy == w) {
            w->lock->desk->busy = NULL;
        }
        fair_work_gone(w);
        lock_touch(l, w->lock);
    }
    verdict_work_gone(w);
    if (w->call != NULL) {
        w->call->work = NULL;
    }
    if (w->kind == WORK_RESTORE) {
        l->restores_in_flight--;
    }
    if (w->hold != NULL) {
        w->hold->restoring = NULL;
    }
    for (size_t i = 0; i < w->hold_count; i++) {
        if (w->renewing[i].hold != NULL) {
            w->renewing[i].hold->renewal = NULL;
        }
    }
    want_unref(l, w->want);
    list_del(&w->in_sent);
    table_remove(&l->works, &w->op);
    free(w->renewing);
    free(w->parts);
    pool_free(&l->pool, w);
}

struct asked work_asked(const struct work *w)
{
    return (struct asked){ .op = w->op.key, .at = w->sent, .lease_ms = w->lease_ms };
}

bool asked_before(const struct locks *l, const struct lock *lock, uint64_t op_id)
{
    return op_id <= l->doubt_op || op_id <= l->doubt_ops[lock->group];
}

bool asked_in_time(const struct locks *l, const struct lock *lock, struct asked asked)
{
    return !asked_before(l, lock, asked.op) &&
           (l->now - asked.at) * 2 <= asked.lease_ms;
}

struct span op_copy(struct locks *l, struct span s)
{
    return effects_copy(&l->fx, s);
}

struct op *work_op(struct locks *l, struct work *w, enum op_kind kind)
{
    struct span name = w->lock == NULL ? SPAN_NONE : op_copy(l, lock_name(w->lock));
    struct op *op = &effects_add(&l->fx, EFFECT_OP)->op;

    op->kind = kind;
    op->id = w->op.key;
    op->name = name;
    op->grouped = l->group_of != NULL;
    op->group = w->lock == NULL ? 0 : w->lock->group;
    op->seen_token = l->seen_token;
    op->fair_wait_ms = l->cfg.fair_wait_ms;
    return op;
}

struct target op_target(struct locks *l, const struct target *t)
{
    return (struct target){ .kind = t->kind,
                            .lock_kind = t->lock_kind,
                            .field = op_copy(l, t->field),
                            .entry = op_copy(l, t->entry),
                            .token = t->token };
}

void op_claim(struct locks *l, struct op *op, const struct want *want,
              uint64_t lease_ms)
{
    op->claim = (struct claim){
        .lock_kind = want->lock_kind,
        .kind = want->kind,
        .field = op_copy(l, want_field(want)),
        .entry = op_copy(l, want->kind == OWNER_ID ? SPAN_NONE : want_entry(want)),
        .member = op_copy(l, want_member(want)),
        .lease_ms = lease_ms,
    };
}

void work_saw_token(struct locks *l, uint64_t token)
{
    if (token > l->seen_token && token <= (uint64_t)LATCHD_TOKEN_MAX) {
        l->seen_token = token;
    }
}

void work_done(struct locks *l, const struct op_result *r)
{
    struct work *w = work_find(l, r->id);

    if (w == NULL) {
        return;
    }
    work_saw_token(l, r->token);
    if (verdict_first(l, w, r)) {
        return;
    }
    switch (w->kind) {
    case WORK_ASK:
    case WORK_PROBE:
        take_done(l, w, r);
        break;
    case WORK_MANY:
        many_done(l, w, r);
        break;
    case WORK_RELEASE:
        release_done(l, w, r);
        break;
    case WORK_RENEW:
        renew_done(l, w, r);
        break;
    case WORK_ATTACH:
        attach_done(l, w, r);
        break;
    case WORK_INSPECT:
        inspect_done(l, w, r);
        break;
    case WORK_RESTORE:
        restore_done(l, w, r);
        break;
    case WORK_QUEUE:
    case WORK_LEAVE:
        fair_done(l, w, r);
        break;
    case WORK_CHECK:
        verdict_done(l, w, r);
        break;
    }
}

void locks_op_done(struct locks *l, const struct op_result *result)
{
    work_done(l, result);
    locks_settle(l);
}
