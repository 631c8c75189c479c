/* Fair queues: joining, showing that we live, leaving. */
#include "core/fair.h"

#include "core/parts.h"

enum {
    LEAVE_TRIES_MAX = 50, /* that Redis refuses: then their scores end them */
    JOIN_MS = 10,         /* from one joining to the next */
};

static size_t window(const struct locks *l)
{
    return l->cfg.fair_window < OP_QUEUE_MAX ? l->cfg.fair_window : OP_QUEUE_MAX;
}

/* The first of those behind the last place that is to get one now. */
static struct waiter *next_new(const struct locks *l, struct fair *f)
{
    const struct list *end = &f->lock->desk->queue;
    struct list *it = f->last == NULL ? end->next : f->last->in_queue.next;
    size_t room = window(l);
    struct waiter *w = NULL;

    if (f->lock->rw) {
        return NULL; /* the name is of the other family now */
    }
    for (; it != end; it = it->next) {
        w = container_of(it, struct waiter, in_queue);
        if (w->probe || w->work != NULL) {
            return NULL; /* it may hold already; who came later comes later */
        }
        if (fair_stays(w)) {
            break;
        }
    }
    if (it == end) {
        f->full = false;
        return NULL;
    }
    if (f->joined >= room ||
        (f->full && f->lock->desk->waiting > room && f->joined * 4 > room * 3)) {
        f->full = true;
        return NULL;
    }
    return w;
}

/* What an OP_QUEUE names. */
struct naming {
    uint64_t op;
    struct span *members;
    uint64_t *waited_ms; /* NULL: it is not told */
    size_t count;
};

static struct naming naming_new(struct locks *l, const struct work *work, size_t room,
                                bool waited)
{
    return (struct naming){
        .op = work->op.key,
        .members = effects_alloc(&l->fx, room * sizeof(struct span)),
        .waited_ms = waited ? effects_alloc(&l->fx, room * sizeof(uint64_t)) : NULL,
    };
}

static void name_waiter(struct locks *l, struct naming *n, const struct waiter *w)
{
    if (n->waited_ms != NULL) {
        n->waited_ms[n->count] = l->now - w->began;
    }
    n->members[n->count++] = op_copy(l, want_member(w->want));
}

/* Names those with a place, as far as they have been told of it or not. */
static void name_places(struct locks *l, struct fair *f, enum fair_place place,
                        struct naming *n)
{
    struct list *it;

    LIST_FOREACH(it, &f->lock->desk->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->place == place) {
            name_waiter(l, n, w);
            w->place_op = n->op;
        }
        if (w == f->last) {
            break;
        }
    }
}

static void send_queue(struct locks *l, struct fair *f, bool whole)
{
    size_t room = window(l) > f->joined ? window(l) - f->joined : 0;
    size_t left = f->lock->desk->waiting - f->joined;
    struct work *work = work_new(l, WORK_QUEUE, f->lock);
    struct op *op = work_op(l, work, OP_QUEUE);
    struct naming n;
    struct waiter *w;

    room = room < left ? room : left;
    n = naming_new(l, work, room + (whole ? f->joined : 0) + 1, whole && f->sweep);
    if (whole) {
        name_places(l, f, PLACE_TOLD, &n);
        op->known = n.count;
        name_places(l, f, PLACE_ASKED, &n);
        f->refreshed = l->now;
        f->refresh_at = l->now + fair_interval(l);
        f->swept = f->sweep;
        f->sweep = false;
    }
    f->join_at = l->now + JOIN_MS;
    f->served = false;
    f->full = false; /* up to the brim, now that one is sent */
    while ((w = next_new(l, f)) != NULL) {
        name_waiter(l, &n, w);
        fair_place_given(l, f, w, n.op);
        f->last = w;
    }
    op->whole = whole;
    op->members = n.members;
    op->waited_ms = n.waited_ms;
    op->member_count = n.count;
    f->queue = work;
}

static void send_leaves(struct locks *l, struct fair *f)
{
    struct work *work = work_new(l, WORK_LEAVE, f->lock);
    struct op *op = work_op(l, work, OP_LEAVE);
    size_t room = f->leave_count < OP_QUEUE_MAX ? f->leave_count : OP_QUEUE_MAX;
    struct span *members = effects_alloc(&l->fx, room * sizeof(*members));
    size_t count = 0;
    struct list *it;

    while (count < room && (it = list_first(&f->leaves)) != NULL) {
        struct leave *leave = container_of(it, struct leave, in_fair);

        members[count++] = op_copy(l, want_member(leave->want));
        list_del(&leave->in_fair);
        list_append(&f->leaving, &leave->in_fair);
    }
    op->members = members;
    op->member_count = count;
    f->leave = work;
}

static bool joins_later(const struct locks *l, const struct fair *f)
{
    return f->served && l->now < f->join_at;
}

static void send_due(struct locks *l, struct fair *f, bool join)
{
    bool whole = f->sweep || (f->joined > 0 && l->now >= f->refresh_at);

    if (!list_empty(&f->leaves) && f->leave == NULL) {
        send_leaves(l, f);
    }
    join = join && !joins_later(l, f) && next_new(l, f) != NULL;
    if (f->queue == NULL && (whole || join)) {
        send_queue(l, f, whole);
    }
}

static void arm(struct locks *l, struct fair *f, uint64_t ready_at)
{
    uint64_t at = UINT64_MAX;

    if (l->now < ready_at) {
        at = ready_at;
    } else if (f->queue == NULL) {
        at = f->joined > 0 ? f->refresh_at : at;
        if (f->joined < f->lock->desk->waiting && joins_later(l, f) &&
            f->join_at < at) {
            at = f->join_at;
        }
    }
    if (at == UINT64_MAX) {
        timer_stop(l, &f->timer);
    } else {
        timer_set(l, &f->timer, TIMER_FAIR, at);
    }
}

void fair_step(struct locks *l, struct lock *lock, bool head_asked)
{
    struct fair *f = lock->desk->fair;
    uint64_t ready_at;

    if (f == NULL) {
        return;
    }
    if (lock->desk->waiting == 0 && !f->seen && fair_idle(lock)) {
        fair_free(l, lock);
        return;
    }
    if (!l->up || (lock->desk->waiting == 0 && f->leave_count == 0 && !f->sweep)) {
        timer_stop(l, &f->timer);
        return;
    }
    if (f->refresh_at > l->now + fair_interval(l)) {
        f->refresh_at = l->now + fair_interval(l); /* the configuration has changed */
    }
    ready_at = f->not_before > lock->desk->stand_back_until
                   ? f->not_before
                   : lock->desk->stand_back_until;
    if (l->now >= ready_at) {
        send_due(l, f, head_asked || f->joined > 0);
    }
    arm(l, f, ready_at);
}

void fair_on_timer(struct locks *l, struct timer *t)
{
    lock_touch(l, container_of(t, struct fair, timer)->lock);
}

/* --- answers ---------------------------------------------------------------------- */

void fair_work_gone(struct work *w)
{
    struct fair *f = w->lock == NULL ? NULL : w->lock->desk->fair;

    if (f != NULL && f->queue == w) {
        f->queue = NULL;
    }
    if (f != NULL && f->leave == w) {
        f->leave = NULL;
    }
}

/* Those named by that op know now that they have their place. */
static void tell(struct fair *f, uint64_t op)
{
    struct list *it;

    LIST_FOREACH(it, &f->lock->desk->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        if (w->place == PLACE_ASKED && w->place_op == op) {
            w->place = PLACE_TOLD;
        }
        if (w == f->last) {
            break;
        }
    }
}

/* It has told nothing: once more, after a pause where haste would not help. */
static void again(struct locks *l, struct fair *f, enum op_status status)
{
    if (status == OP_LATE) {
        f->not_before = l->now + RETRY_PAUSE_MS;
    } else if (status == OP_ERROR) {
        f->not_before = l->now + ERROR_PAUSE_MS;
    }
}

static void queued(struct locks *l, struct fair *f, uint64_t op,
                   const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        tell(f, op);
        f->seen = r->fair;
        if (r->ttl_ms == -2 && f->lock->desk->waiting > 0) {
            lock_ask(l, f->lock); /* it is free: perhaps our turn */
        }
        break;
    case OP_WRONGTYPE:
        if (f->lock->desk->waiting > 0) {
            lock_ask(l, f->lock); /* and hears so itself */
        }
        break;
    default:
        again(l, f, r->status);
        f->refresh_at = l->now;
        /* If Redis refuses, their scores end them. */
        f->sweep = f->sweep || (f->swept && r->status != OP_ERROR);
        break;
    }
}

static void left(struct locks *l, struct fair *f, const struct op_result *r)
{
    bool done = r->status == OP_OK || r->status == OP_WRONGTYPE;

    f->leave_tries = r->status == OP_ERROR ? f->leave_tries + 1 : 0;
    if (done || f->leave_tries >= LEAVE_TRIES_MAX) {
        f->seen = r->fair;
        fair_leaves_free(l, f, &f->leaving);
        return;
    }
    again(l, f, r->status);
    list_splice(&f->leaving, &f->leaves);
    list_splice(&f->leaves, &f->leaving);
}

void fair_done(struct locks *l, struct work *w, const struct op_result *r)
{
    struct fair *f = w->lock->desk->fair;
    bool leave = w->kind == WORK_LEAVE;

    work_free(l, w);
    if (leave) {
        left(l, f, r);
    } else {
        queued(l, f, r->id, r);
        f->swept = false;
    }
}
