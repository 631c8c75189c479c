/* Fair queues: which of our waiters have a place there. */
#include "core/fair.h"
#include "core/fair_left.h"

#include "core/parts.h"
#include "util/alloc.h"

#include <stdlib.h>

enum {
    REFRESH_MS = 10000,
    REFRESH_AGAIN_MS = 1000, /* no sooner, when the queue was found missing */
    LEAVES_MAX = 2 * OP_QUEUE_MAX,
};

void fair_start(struct locks *l, struct lock *lock)
{
    struct fair *f;

    if (lock->desk->fair != NULL) {
        return;
    }
    f = xcalloc(1, sizeof(*f));
    f->lock = lock;
    f->refreshed = l->now;
    list_init(&f->leaves);
    list_init(&f->leaving);
    lock_desk(l, lock)->fair = f;
    lock_touch(l, lock);
}

static void leave_free(struct locks *l, struct fair *f, struct list *it)
{
    struct leave *leave = container_of(it, struct leave, in_fair);

    list_del(&leave->in_fair);
    want_unref(l, leave->want);
    free(leave);
    f->leave_count--;
    l->leave_count--;
}

void fair_leaves_free(struct locks *l, struct fair *f, struct list *leaves)
{
    struct list *it;

    while ((it = list_first(leaves)) != NULL) {
        leave_free(l, f, it);
    }
}

void fair_free(struct locks *l, struct lock *lock)
{
    struct fair *f = lock->desk->fair;

    if (f != NULL) {
        fair_leaves_free(l, f, &f->leaves);
        fair_leaves_free(l, f, &f->leaving);
        timer_stop(l, &f->timer);
        if (f->stood) {
            fair_left_note(l, lock);
        }
        lock->desk->fair = NULL;
        free(f);
    }
}

bool fair_idle(const struct lock *lock)
{
    const struct fair *f = lock->desk->fair;

    return f == NULL ||
           (f->leave_count == 0 && f->queue == NULL && f->leave == NULL && !f->sweep);
}

/* --- who has a place -------------------------------------------------------------- */

static void add_leave(struct locks *l, struct fair *f, struct want *want)
{
    struct leave *leave;

    if (f->leave_count >= LEAVES_MAX) {
        return; /* its score ends it */
    }
    f->stood = true;
    leave = xcalloc(1, sizeof(*leave));
    leave->want = want_ref(want);
    list_append(&f->leaves, &leave->in_fair);
    f->leave_count++;
    l->leave_count++;
}

uint64_t fair_interval(const struct locks *l)
{
    uint64_t third = l->cfg.fair_wait_ms / 3 + 1;

    return third < REFRESH_MS ? third : REFRESH_MS;
}

void fair_place_given(struct locks *l, struct fair *f, struct waiter *w, uint64_t op)
{
    if (w->place == PLACE_NONE) {
        w->place = PLACE_ASKED;
        if (f->joined++ == 0) {
            f->refresh_at = l->now + fair_interval(l);
        }
    }
    w->place_op = op;
}

static void place_gone(struct locks *l, struct fair *f, struct waiter *w)
{
    w->place = PLACE_NONE;
    f->joined--;
    if (l->group_of != NULL) {
        struct effect_channel channel = {
            .name = effects_copy(&l->fx, lock_name(w->lock)),
            .member = effects_copy(&l->fx, want_member(w->want)),
        };

        effects_add(&l->fx, EFFECT_UNSUBSCRIBE)->channel = channel;
    }
}

/* If it was the last one with a place, who is before it is that now. */
static void last_goes(struct fair *f, const struct waiter *w)
{
    struct list *before = w->in_queue.prev;

    if (f->last == w) {
        f->last = before == &w->lock->desk->queue
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
    return !w->once || (w->want->keep_ms > 0 && !w->no_room);
}

void fair_came(struct locks *l, struct waiter *w)
{
    if (w->want->lock_kind == KIND_FAIR) {
        fair_start(l, w->lock);
    }
}

void fair_gone(struct locks *l, struct waiter *w)
{
    struct fair *f = w->lock->desk->fair;

    if (f == NULL) {
        return;
    }
    if (w->place != PLACE_NONE) {
        place_gone(l, f, w);
        add_leave(l, f, w->want);
    }
    last_goes(f, w);
}

void fair_granted(struct locks *l, struct waiter *w, const struct op_result *r)
{
    struct fair *f = w->lock->desk->fair;
    /* A release has found that it holds already, through another daemon. */
    bool found = r->moved && r->attached;

    if (f == NULL) {
        return;
    }
    f->served = true;
    f->stood = f->stood || w->place == PLACE_TOLD || w->place_op != r->id;
    if (w->place != PLACE_NONE) {
        if (found || w->place_op > r->id || being_named(f, w)) {
            add_leave(l, f, w->want); /* it may have been put back since */
        }
        place_gone(l, f, w);
    }
}

void fair_leave_again(struct locks *l, struct lock *lock, struct want *want)
{
    if (lock->desk->fair != NULL || want->lock_kind == KIND_FAIR) {
        fair_start(l, lock);
        add_leave(l, lock->desk->fair, want);
    }
}

/* That op would have put it into the queue, but it held already, and entered again. */
static bool never_queued(const struct waiter *w, const struct op_result *r)
{
    return w->place == PLACE_ASKED && w->place_op == r->id && r->count > 1;
}

void fair_put_back(struct locks *l, struct waiter *w, const struct op_result *r)
{
    struct fair *f = w->lock->desk->fair;

    if (f == NULL || w->place == PLACE_NONE) {
        return;
    }
    if (never_queued(w, r)) {
        last_goes(f, w);
        place_gone(l, f, w);
    } else {
        w->place = PLACE_TOLD;
        f->refresh_at = l->now;
    }
    lock_touch(l, w->lock);
}

void fair_claim(struct locks *l, struct op *op, struct waiter *w)
{
    struct fair *f = w->lock->desk->fair;

    if (f == NULL || w->lock->rw) {
        return;
    }
    op->fair = true;
    if (w->place == PLACE_TOLD && waiter_is_head(w)) {
        op->known = 1; /* if it was thrown out, it goes back first */
    }
    if (op->reenter_only || !fair_stays(w) || w->place == PLACE_TOLD ||
        (w->place == PLACE_ASKED && being_named(f, w))) {
        return;
    }
    op->enqueue = true;
    fair_place_given(l, f, w, op->id);
    if (f->last == NULL) {
        f->last = w;
    }
}

void fair_heard(struct locks *l, struct lock *lock, struct waiter *w,
                const struct op_result *r)
{
    struct fair *f;

    if (r->status != OP_OK && r->status != OP_BUSY) {
        return;
    }
    if (r->fair && lock->desk->waiting > 0) {
        fair_start(l, lock);
    }
    f = lock->desk->fair;
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
               l->now >= f->refreshed + REFRESH_AGAIN_MS) {
        f->sweep = true; /* somebody has thrown the whole queue away */
    }
}

void fair_refresh_soon(struct locks *l, struct lock *lock)
{
    if (lock->desk->fair != NULL) {
        lock->desk->fair->refresh_at = l->now;
        lock_touch(l, lock);
    }
}

void fair_lost(struct locks *l, struct lock *lock)
{
    struct fair *f = lock->desk->fair;

    fair_refresh_soon(l, lock);
    if (f != NULL) {
        f->sweep = f->sweep || f->stood || f->joined > 0;
    }
}

void fair_sweep(struct locks *l, struct lock *lock)
{
    fair_start(l, lock);
    lock->desk->fair->sweep = true;
    lock_touch(l, lock);
}
