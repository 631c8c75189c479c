/* Acquires several names by one op: in order, until one of them is not granted.
 *
 * Each name has an inflight_op of its own, as if it had been asked for alone, under an
 * op ID that is never sent. The op's result is dealt out to these. */
#include "engine/acquire/acquire_batch.h"
#include "engine/acquire/acquire.h"
#include "engine/acquire/local_grant.h"
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_release.h"
#include "engine/inflight_op.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/probe.h"
#include "engine/op.h"
#include "engine/renew/loss_check.h"
#include "engine/wait/waiter.h"
#include "util/alloc.h"

void acquire_ask_batch(struct engine *eng, struct waiter *const *waiters, size_t count,
                       bool all_or_none)
{
    struct inflight_op *all = inflight_new(eng, INFLIGHT_BATCH, NULL);

    all->all_or_none = all_or_none;
    all->parts = xcalloc(count, sizeof(struct inflight_op *));
    all->part_count = count;
    for (size_t i = 0; i < count; i++) {
        struct waiter *w = waiters[i];
        struct inflight_op *part = inflight_new(eng, INFLIGHT_ASK, w->lock);

        part->waiter = w;
        part->spec = spec_ref(w->spec);
        part->lease_ms = waiter_lease(eng, w);
        w->in_flight = part;
        lock_open_activity(eng, w->lock)->asking = part;
        w->lock->ask = false;
        all->parts[i] = part;
    }
    list_append(&eng->unsent, &all->in_sent);
}

void acquire_send_batch(struct engine *eng, struct inflight_op *all)
{
    struct batch_item *items =
        effects_alloc(&eng->fx, all->part_count * sizeof(*items));
    struct op *op;

    for (size_t i = 0; i < all->part_count; i++) {
        const struct inflight_op *part = all->parts[i];

        items[i] = (struct batch_item){
            .name = op_copy(eng, lock_name(part->lock)),
            .claim = op_make_claim(eng, part->spec, part->lease_ms),
        };
        if (part->waiter != NULL) {
            items[i].claim.block_us = local_grant_block(eng, part->waiter);
        }
    }
    op = inflight_op(eng, all, OP_ACQUIRE_BATCH);
    op->group = all->parts[0]->lock->group;
    op->batch.items = items;
    op->batch.count = all->part_count;
    op->batch.all_or_none = all->all_or_none;
}

/* Whether a waiter was asked for by a later request, which was not behind others: the
 * waiter goes on by itself. */
static bool stands_alone(const struct waiter *w)
{
    return w->member == NULL && !w->in_run && w->session != NULL;
}

/* A name before this one was not granted, so this name was not to be asked for: ends
 * the wait as if it had never begun. `maybe_granted`: Redis may have granted it even
 * so. */
static void end_unreached(struct engine *eng, struct inflight_op *part,
                          bool maybe_granted)
{
    struct lock *lock = part->lock;
    struct waiter *w = part->waiter;
    struct acquire_spec *spec = spec_ref(part->spec);

    inflight_free(eng, part);
    if (w != NULL) {
        w->maybe_granted = w->maybe_granted || maybe_granted;
        if (stands_alone(w)) {
            waiter_ask_again(eng, w);
        } else {
            if (w->in_run && w->session != NULL) {
                emit_unreached(eng, waiter_call(w));
            }
            waiter_remove(eng, w);
        }
    } else if (maybe_granted) {
        (void)pending_release_undo(eng, lock, spec);
    }
    spec_unref(eng, spec);
}

void on_acquire_batch_reply(struct engine *eng, struct inflight_op *all,
                            const struct op_result *r)
{
    bool acked = r->status != OP_NOREPLICAS;
    bool ran = (r->status == OP_OK || !acked) && r->batch.count > 0;
    bool maybe_granted = !ran && r->status != OP_LATE;
    bool open = true; /* all before this one were granted, and in time */

    for (size_t i = 0; i < all->part_count; i++) {
        struct inflight_op *part = all->parts[i];
        struct op_result one = ran && i < r->batch.count ? r->batch.results[i] : *r;

        if (ran && one.status == OP_UNTRIED) {
            end_unreached(eng, part, false);
            continue;
        }
        if (!open || (ran && i >= r->batch.count)) {
            end_unreached(eng, part, maybe_granted || (ran && i < r->batch.count));
            continue;
        }
        if (!ran && r->status == OP_OK) {
            one.status = OP_ERROR; /* an answer that says nothing */
        }
        if (!acked && one.status == OP_OK) {
            one.status = OP_NOREPLICAS;
        }
        one.id = part->op.key;
        open = one.status == OP_OK &&
               asked_leaves_time(eng, part->lock, inflight_asked(part));
        inflight_saw_token(eng, one.token);
        if (!loss_check_begin(eng, part, &one)) {
            on_acquire_reply(eng, part, &one);
        }
    }
    inflight_free(eng, all);
}
