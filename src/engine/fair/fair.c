/* Fair queues: which of our waiters have a place there. */
#include "engine/fair/fair.h"
#include "engine/acquire_spec.h"
#include "engine/engine_state.h"
#include "engine/fair/fair_left.h"
#include "engine/fair/fair_priv.h"
#include "engine/inflight_op.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/wait/waiter.h"
#include "util/alloc.h"

#include <stdlib.h>

enum {
    REFRESH_MS = 10000,
    REFRESH_AGAIN_MS = 1000, /* no sooner, when the queue was found missing */
    LEAVES_MAX = 2 * OP_QUEUE_MAX,
};

void fair_start(struct engine *eng, struct lock *lock)
{
    struct fair *f;

    if (lock->activity->fair != NULL) {
        return;
    }
    f = xcalloc(1, sizeof(*f));
    f->lock = lock;
    f->refreshed = eng->now;
    list_init(&f->leaves);
    list_init(&f->leaving);
    lock_open_activity(eng, lock)->fair = f;
    lock_touch(eng, lock);
}

static void leave_free(struct engine *eng, struct fair *f, struct list *it)
{
    struct fair_leaving *leave = container_of(it, struct fair_leaving, in_fair);

    list_del(&leave->in_fair);
    spec_unref(eng, leave->spec);
    free(leave);
    f->leave_count--;
    eng->leave_count--;
}

void fair_leaves_free(struct engine *eng, struct fair *f, struct list *leaves)
{
    struct list *it;

    while ((it = list_first(leaves)) != NULL) {
        leave_free(eng, f, it);
    }
}

bool fair_idle(const struct lock *lock)
{
    const struct fair *f = lock->activity->fair;

    return f == NULL ||
           (f->leave_count == 0 && f->queue == NULL && f->leave == NULL && !f->sweep);
}

/* --- who has a place -------------------------------------------------------------- */

static void add_leave(struct engine *eng, struct fair *f, struct acquire_spec *spec)
{
    struct fair_leaving *leave;

    if (f->leave_count >= LEAVES_MAX) {
        return; /* its score ends it */
    }
    f->stood = true;
    leave = xcalloc(1, sizeof(*leave));
    leave->spec = spec_ref(spec);
    list_append(&f->leaves, &leave->in_fair);
    f->leave_count++;
    eng->leave_count++;
}

uint64_t fair_interval(const struct engine *eng)
{
    uint64_t third = eng->cfg.fair_wait_ms / 3 + 1;

    return third < REFRESH_MS ? third : REFRESH_MS;
}

void fair_place_given(struct engine *eng, struct fair *f, struct waiter *w, uint64_t op)
{
    if (w->place == PLACE_NONE) {
        w->place = PLACE_ASKED;
        if (f->joined++ == 0) {
            f->refresh_at = eng->now + fair_interval(eng);
        }
    }
    w->place_op = op;
}

static void place_gone(struct engine *eng, struct fair *f, struct waiter *w)
{
    w->place = PLACE_NONE;
    f->joined--;
    if (eng->group_of != NULL) {
        struct effect_channel channel = {
            .name = effects_copy(&eng->fx, lock_name(w->lock)),
            .member = spec_copy_member(eng, w->spec),
        };

        effects_add(&eng->fx, EFFECT_UNSUBSCRIBE)->channel = channel;
    }
}

/* If it was the last one with a place, who is before it is that now. */
static void last_goes(struct fair *f, const struct waiter *w)
{
    struct list *before = w->in_queue.prev;

    if (f->last == w) {
        f->last = before == &w->lock->activity->queue
                      ? NULL
                      : container_of(before, struct waiter, in_queue);
    }
}

/* The OP_QUEUE in flight names it. */
static bool being_named(const struct fair *f, const struct waiter *w)
{
    return f->queue != NULL && f->queue->op.key == w->place_op;
}

bool fair_stays(const struct waiter *w)
{
    return w->has_place;
}

void fair_on_enqueue(struct engine *eng, struct waiter *w)
{
    if (w->spec->lock_kind == KIND_FAIR) {
        fair_start(eng, w->lock);
    }
}

void fair_on_dequeue(struct engine *eng, struct waiter *w)
{
    struct fair *f = w->lock->activity->fair;

    if (f == NULL) {
        return;
    }
    if (w->place != PLACE_NONE) {
        place_gone(eng, f, w);
        add_leave(eng, f, w->spec);
    }
    last_goes(f, w);
}

void fair_granted(struct engine *eng, struct waiter *w, const struct op_result *r)
{
    struct fair *f = w->lock->activity->fair;
    /* A release has found that it holds already, through another daemon. */
    bool found = r->moved && r->attached;

    if (f == NULL) {
        return;
    }
    f->served = true;
    f->stood = f->stood || w->place == PLACE_TOLD || w->place_op != r->id;
    if (w->place != PLACE_NONE) {
        if (found || w->place_op > r->id || being_named(f, w)) {
            add_leave(eng, f, w->spec); /* it may have been put back since */
        }
        place_gone(eng, f, w);
    }
}

void fair_leave_again(struct engine *eng, struct lock *lock, struct acquire_spec *spec)
{
    if (lock->activity->fair != NULL || spec->lock_kind == KIND_FAIR) {
        fair_start(eng, lock);
        add_leave(eng, lock->activity->fair, spec);
    }
}

/* Whether the op that was to queue the waiter found that its owner holds the lock, and
 * let it enter again instead. */
static bool never_queued(const struct waiter *w, const struct op_result *r)
{
    return w->place == PLACE_ASKED && w->place_op == r->id && r->count > 1;
}

void fair_put_back(struct engine *eng, struct waiter *w, const struct op_result *r)
{
    struct fair *f = w->lock->activity->fair;

    if (f == NULL || w->place == PLACE_NONE) {
        return;
    }
    if (never_queued(w, r)) {
        last_goes(f, w);
        place_gone(eng, f, w);
    } else {
        w->place = PLACE_TOLD;
        f->refresh_at = eng->now;
    }
    lock_touch(eng, w->lock);
}

void fair_fill_claim(struct engine *eng, struct op *op, struct waiter *w)
{
    struct fair *f = w->lock->activity->fair;

    if (f == NULL || w->lock->lock_class != CLASS_PLAIN) {
        return;
    }
    op->acquire.fair = true;
    if (w->place == PLACE_TOLD && waiter_is_head(w)) {
        op->acquire.was_queued = true; /* if it was thrown out, it goes back first */
    }
    if (op->acquire.reenter_only || !fair_stays(w) || w->place == PLACE_TOLD ||
        (w->place == PLACE_ASKED && being_named(f, w))) {
        return;
    }
    op->acquire.enqueue = true;
    fair_place_given(eng, f, w, op->id);
    if (f->last == NULL) {
        f->last = w;
    }
}

void fair_on_result(struct engine *eng, struct lock *lock, struct waiter *w,
                    const struct op_result *r)
{
    struct fair *f;

    if (r->status != OP_OK && r->status != OP_BUSY) {
        return;
    }
    if (r->fair && lock->activity->waiting > 0) {
        fair_start(eng, lock);
    }
    f = lock->activity->fair;
    if (f == NULL) {
        return;
    }
    f->seen = r->fair;
    if (w == NULL || r->status != OP_BUSY) {
        return;
    }
    if (w->place == PLACE_ASKED && w->place_op == r->id) {
        w->place = PLACE_TOLD;
    } else if (!r->fair && w->place == PLACE_TOLD &&
               eng->now >= f->refreshed + REFRESH_AGAIN_MS) {
        f->sweep = true; /* somebody has thrown the whole queue away */
    }
}

void fair_refresh_soon(struct engine *eng, struct lock *lock)
{
    if (lock->activity->fair != NULL) {
        lock->activity->fair->refresh_at = eng->now;
        lock_touch(eng, lock);
    }
}

void fair_lost(struct engine *eng, struct lock *lock)
{
    struct fair *f = lock->activity->fair;

    fair_refresh_soon(eng, lock);
    if (f != NULL) {
        f->sweep = f->sweep || f->stood || f->joined > 0;
    }
}

void fair_sweep(struct engine *eng, struct lock *lock)
{
    fair_start(eng, lock);
    lock->activity->fair->sweep = true;
    lock_touch(eng, lock);
}
