/* Fair queues: which of our waiters have a place there. */
#include "engine/fair.h"
#include "engine/engine_priv.h"

#include <stddef.h>
#include <stdint.h>

/* The places of this instance in the fair queue of a name.
 *
 * The order among this daemon's waiters is that of lock->queue; the places in Redis
 * only keep the daemon's turn among others. So only the first waiters have places
 * there, as many as fair_window allows. A waiter gets a place at the tail, by the
 * head's OP_ACQUIRE or by an OP_QUEUE, and keeps the place until the waiter is granted
 * (the script takes the place out) or leaves (OP_LEAVE). Every few seconds one OP_QUEUE
 * with all places shows that their waiters are alive.
 *
 * After a waiter was served, the next one to join waits a little, so that more can join
 * with it in one op: of a name that is handed over often, many are served meanwhile
 * without a place.
 *
 * Ops on the fair queue are sent only while no acquire and no release of the name is in
 * flight, and one at a time: so the state that they name still holds when they run. */

/* The place of a waiter that is gone. */
struct fair_leaving {
    struct list in_fair;
    struct acquire_spec *spec;
};

struct fair {
    struct lock *lock;
    struct timer timer;
    uint64_t refresh_at;
    uint64_t refreshed;
    uint64_t not_before; /* no op on the queue before this */
    uint64_t join_at;    /* if a waiter was `served`, nobody joins before this */
    struct waiter *last; /* the last waiter with a place: those behind it have none */
    size_t joined;       /* waiters with a place */
    struct inflight_op *queue; /* the OP_QUEUE in flight */
    struct inflight_op *leave;
    struct list leaves;  /* to be sent */
    struct list leaving; /* sent */
    size_t leave_count;
    unsigned leave_tries;
    bool seen;   /* the last result said that a fair queue exists */
    bool served; /* a waiter of this daemon was granted since others last joined */
    bool full;   /* more waiters than the window allows; they join many at once */
    /* a waiter that is gone had a place in Redis's queue, or may have had */
    bool stood;
    /* Redis may have such places again, or have lost others: all are to be named */
    bool sweep;
    bool swept; /* the OP_QUEUE in flight names all of them */
};

static void fair_sweep(struct engine *eng, struct lock *lock);

/* A place is stale when it was not renewed for the lease and `fair-wait-timeout`; and
 * it may have been renewed since it was left, by who lives and has others there. */
static void forget_left(struct engine *eng)
{
    recent_expire(&eng->fair_left, eng->now,
                  eng->cfg.watchdog_ms + 2 * eng->cfg.fair_wait_ms);
}

/* Notes a name whose last place has left. */
static void fair_left_note(struct engine *eng, const struct lock *lock)
{
    (void)recent_note(&eng->fair_left, lock_name(lock), eng->now);
    forget_left(eng);
}

void fair_left_again(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    const struct recent_item *left;

    forget_left(eng);
    for (left = recent_oldest(&eng->fair_left); left != NULL;
         left = recent_newer(&eng->fair_left, left)) {
        struct span name = recent_key(left);

        if (concerns == NULL || concerns(ctx, lock_group(eng, name))) {
            fair_sweep(eng, lock_get(eng, name));
        }
    }
}

enum {
    REFRESH_MS = 10000,
    REFRESH_AGAIN_MS = 1000, /* no sooner, when the queue was found missing */
    LEAVES_MAX = 2 * OP_QUEUE_MAX,
};

/* A fair queue exists, or is wanted: all waiters of the name join it. */
static void fair_start(struct engine *eng, struct lock *lock)
{
    struct fair *f;

    if (lock->fair != NULL) {
        return;
    }
    f = xcalloc(1, sizeof(*f));
    f->lock = lock;
    f->refreshed = eng->now;
    list_init(&f->leaves);
    list_init(&f->leaving);
    lock->fair = f;
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

static void fair_leaves_free(struct engine *eng, struct fair *f, struct list *leaves)
{
    struct list *it;

    while ((it = list_first(leaves)) != NULL) {
        leave_free(eng, f, it);
    }
}

bool fair_idle(const struct lock *lock)
{
    const struct fair *f = lock->fair;

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

/* How often the scores are renewed, in ms. */
static uint64_t fair_interval(const struct engine *eng)
{
    uint64_t third = eng->cfg.fair_wait_ms / 3 + 1;

    return third < REFRESH_MS ? third : REFRESH_MS;
}

/* Op `op` names the waiter for the fair queue, so the waiter has a place, or may have
 * one. */
static void fair_place_given(struct engine *eng, struct fair *f, struct waiter *w,
                             uint64_t op)
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
        f->last = before == &w->lock->queue
                      ? NULL
                      : container_of(before, struct waiter, in_queue);
    }
}

/* The OP_QUEUE in flight names it. */
static bool being_named(const struct fair *f, const struct waiter *w)
{
    return f->queue != NULL && f->queue->op.key == w->place_op;
}

/* Whether the waiter stays in the queue, and does not try once only. */
static bool fair_stays(const struct waiter *w)
{
    return w->has_place;
}

void fair_on_enqueue(struct engine *eng, struct waiter *w)
{
    if (w->spec->terms.lock_kind == KIND_FAIR) {
        fair_start(eng, w->lock);
    }
}

void fair_on_dequeue(struct engine *eng, struct waiter *w)
{
    struct fair *f = w->lock->fair;

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
    struct fair *f = w->lock->fair;
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
    if (lock->fair != NULL || spec->terms.lock_kind == KIND_FAIR) {
        fair_start(eng, lock);
        add_leave(eng, lock->fair, spec);
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
    struct fair *f = w->lock->fair;

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
    struct fair *f = w->lock->fair;

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
    if (r->fair && lock->waiting > 0) {
        fair_start(eng, lock);
    }
    f = lock->fair;
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

void fair_on_own_head(struct engine *eng, struct lock *lock)
{
    if (lock->fair == NULL || (lock->fair->joined == 0 && fair_idle(lock))) {
        fair_sweep(eng, lock);
    }
}

void fair_refresh_soon(struct engine *eng, struct lock *lock)
{
    if (lock->fair != NULL) {
        lock->fair->refresh_at = eng->now;
        lock_touch(eng, lock);
    }
}

void fair_lost(struct engine *eng, struct lock *lock)
{
    struct fair *f = lock->fair;

    fair_refresh_soon(eng, lock);
    if (f != NULL) {
        f->sweep = f->sweep || f->stood || f->joined > 0;
    }
}

/* Places of this instance in the fair queue may be those of waiters that are gone:
 * names all places anew, so that the others leave. */
static void fair_sweep(struct engine *eng, struct lock *lock)
{
    fair_start(eng, lock);
    lock->fair->sweep = true;
    lock_touch(eng, lock);
}

/* Fair queues: joining, showing that we live, leaving. */

enum {
    LEAVE_TRIES_MAX = 50, /* that Redis refuses: then their scores end them */
    JOIN_MS = 10,         /* from one joining to the next */
};

static size_t places_max(const struct engine *eng)
{
    return eng->cfg.fair_window < OP_QUEUE_MAX ? eng->cfg.fair_window : OP_QUEUE_MAX;
}

/* The first of those behind the last place that is to get one now. */
static struct waiter *next_new(const struct engine *eng, struct fair *f)
{
    const struct list *end = &f->lock->queue;
    struct list *it = f->last == NULL ? end->next : f->last->in_queue.next;
    size_t room = places_max(eng);
    struct waiter *w = NULL;

    if (f->lock->lock_class != CLASS_PLAIN) {
        return NULL; /* the name is of the other class now */
    }
    for (; it != end; it = it->next) {
        w = container_of(it, struct waiter, in_queue);
        if (w->probe != PROBE_NONE || w->in_flight != NULL) {
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
        (f->full && f->lock->waiting > room && f->joined * 4 > room * 3)) {
        f->full = true;
        return NULL;
    }
    return w;
}

/* The members that an OP_QUEUE names. */
struct naming {
    uint64_t op;
    struct span *members;
    uint64_t *waited_ms; /* NULL: it is not told */
    size_t count;
};

static struct naming naming_new(struct engine *eng, const struct inflight_op *in_flight,
                                size_t room, bool waited)
{
    return (struct naming){
        .op = in_flight->op.key,
        .members = effects_alloc(&eng->fx, room * sizeof(struct span)),
        .waited_ms = waited ? effects_alloc(&eng->fx, room * sizeof(uint64_t)) : NULL,
    };
}

static void name_waiter(struct engine *eng, struct naming *naming,
                        const struct waiter *w)
{
    if (naming->waited_ms != NULL) {
        naming->waited_ms[naming->count] = eng->now - w->began;
    }
    naming->members[naming->count++] = spec_copy_member(eng, w->spec);
}

/* Names those with a place, as far as they have been told of it or not. */
static void name_places(struct engine *eng, struct fair *f, enum fair_place place,
                        struct naming *naming)
{
    struct waiter *w;

    LIST_EACH(w, &f->lock->queue, in_queue) {
        if (w->place == place) {
            name_waiter(eng, naming, w);
            w->place_op = naming->op;
        }
        if (w == f->last) {
            break;
        }
    }
}

static void send_queue(struct engine *eng, struct fair *f, bool whole)
{
    size_t room = places_max(eng) > f->joined ? places_max(eng) - f->joined : 0;
    size_t left = f->lock->waiting - f->joined;
    struct inflight_op *in_flight = inflight_new(eng, INFLIGHT_QUEUE, f->lock);
    struct op *op = inflight_op(eng, in_flight, OP_QUEUE);
    struct naming n;
    struct waiter *w;

    room = room < left ? room : left;
    n = naming_new(eng, in_flight, room + (whole ? f->joined : 0) + 1,
                   whole && f->sweep);
    if (whole) {
        name_places(eng, f, PLACE_TOLD, &n);
        op->queue.known = n.count;
        name_places(eng, f, PLACE_ASKED, &n);
        f->refreshed = eng->now;
        f->refresh_at = eng->now + fair_interval(eng);
        f->swept = f->sweep;
        f->sweep = false;
    }
    f->join_at = eng->now + JOIN_MS;
    f->served = false;
    f->full = false; /* up to the brim, now that one is sent */
    while ((w = next_new(eng, f)) != NULL) {
        name_waiter(eng, &n, w);
        fair_place_given(eng, f, w, n.op);
        f->last = w;
    }
    op->queue.whole = whole;
    op->queue.members = n.members;
    op->queue.waited_ms = n.waited_ms;
    op->queue.count = n.count;
    f->queue = in_flight;
}

static void send_leaves(struct engine *eng, struct fair *f)
{
    struct inflight_op *in_flight = inflight_new(eng, INFLIGHT_LEAVE, f->lock);
    struct op *op = inflight_op(eng, in_flight, OP_LEAVE);
    size_t room = f->leave_count < OP_QUEUE_MAX ? f->leave_count : OP_QUEUE_MAX;
    struct span *members = effects_alloc(&eng->fx, room * sizeof(*members));
    size_t count = 0;
    struct fair_leaving *leave;

    while (count < room && LIST_FIRST(leave, &f->leaves, in_fair)) {
        members[count++] = spec_copy_member(eng, leave->spec);
        list_del(&leave->in_fair);
        list_append(&f->leaving, &leave->in_fair);
    }
    op->queue.members = members;
    op->queue.count = count;
    f->leave = in_flight;
}

static bool joins_later(const struct engine *eng, const struct fair *f)
{
    return f->served && eng->now < f->join_at;
}

static void send_due(struct engine *eng, struct fair *f, bool join)
{
    bool whole = f->sweep || (f->joined > 0 && eng->now >= f->refresh_at);

    if (!list_empty(&f->leaves) && f->leave == NULL) {
        send_leaves(eng, f);
    }
    join = join && !joins_later(eng, f) && next_new(eng, f) != NULL;
    if (f->queue == NULL && (whole || join)) {
        send_queue(eng, f, whole);
    }
}

static void arm_timer(struct engine *eng, struct fair *f, uint64_t ready_at)
{
    uint64_t at = UINT64_MAX;

    if (eng->now < ready_at) {
        at = ready_at;
    } else if (f->queue == NULL) {
        at = f->joined > 0 ? f->refresh_at : at;
        if (f->joined < f->lock->waiting && joins_later(eng, f) && f->join_at < at) {
            at = f->join_at;
        }
    }
    if (at == UINT64_MAX) {
        timer_stop(eng, &f->timer);
    } else {
        timer_set(eng, &f->timer, TIMER_FAIR, at);
    }
}

void fair_step(struct engine *eng, struct lock *lock, bool head_sleeps)
{
    struct fair *f = lock->fair;
    uint64_t ready_at;

    if (f == NULL) {
        return;
    }
    if (lock->waiting == 0 && !f->seen && fair_idle(lock)) {
        fair_free(eng, lock);
        return;
    }
    if (!eng->up || (lock->waiting == 0 && f->leave_count == 0 && !f->sweep)) {
        timer_stop(eng, &f->timer);
        return;
    }
    if (f->refresh_at > eng->now + fair_interval(eng)) {
        f->refresh_at =
            eng->now + fair_interval(eng); /* the configuration has changed */
    }
    ready_at = lock_paused_until(lock, PAUSE_ALL);
    ready_at = ready_at < f->not_before ? f->not_before : ready_at;
    if (eng->now >= ready_at) {
        send_due(eng, f, head_sleeps || f->joined > 0);
    }
    arm_timer(eng, f, ready_at);
}

void fair_on_timer(struct engine *eng, struct timer *t)
{
    lock_touch(eng, container_of(t, struct fair, timer)->lock);
}

/* --- answers ---------------------------------------------------------------------- */

/* Notes that Redis has the places of all waiters that the op named. */
static void mark_told(struct fair *f, uint64_t op)
{
    struct waiter *w;

    LIST_EACH(w, &f->lock->queue, in_queue) {
        if (w->place == PLACE_ASKED && w->place_op == op) {
            w->place = PLACE_TOLD;
        }
        if (w == f->last) {
            break;
        }
    }
}

static void on_queued(struct engine *eng, struct fair *f, uint64_t op,
                      const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        mark_told(f, op);
        f->seen = r->fair;
        if (r->ttl_ms == TTL_ABSENT && f->lock->waiting > 0) {
            lock_ask(eng, f->lock); /* it is free: perhaps our turn */
        }
        break;
    case OP_WRONGTYPE:
        if (f->lock->waiting > 0) {
            lock_ask(eng, f->lock); /* and hears so itself */
        }
        break;
    default:
        f->refresh_at = eng->now;
        /* If Redis refuses, their scores end them. */
        f->sweep = f->sweep || (f->swept && r->status != OP_ERROR);
        break;
    }
}

static void on_left(struct engine *eng, struct fair *f, const struct op_result *r)
{
    bool done = r->status == OP_OK || r->status == OP_WRONGTYPE;

    f->leave_tries = r->status == OP_ERROR ? f->leave_tries + 1 : 0;
    if (done || f->leave_tries >= LEAVE_TRIES_MAX) {
        f->seen = r->fair;
        fair_leaves_free(eng, f, &f->leaving);
        return;
    }
    list_splice(&f->leaving, &f->leaves);
    list_splice(&f->leaves, &f->leaving);
}

void on_fair_reply(struct engine *eng, struct inflight_op *o, const struct op_result *r)
{
    struct fair *f = o->lock->fair;
    bool leave = o->kind == INFLIGHT_LEAVE;
    uint64_t retry_in = inflight_retry_in(o->kind, r->status);

    inflight_free(eng, o);
    if (retry_in != RETRY_NEVER && retry_in > 0) {
        f->not_before = eng->now + retry_in;
    }
    if (leave) {
        f->leave = NULL;
        on_left(eng, f, r);
    } else {
        f->queue = NULL;
        on_queued(eng, f, r->id, r);
        f->swept = false;
    }
}

void fair_free(struct engine *eng, struct lock *lock)
{
    struct fair *f = lock->fair;

    if (f != NULL) {
        fair_leaves_free(eng, f, &f->leaves);
        fair_leaves_free(eng, f, &f->leaving);
        timer_stop(eng, &f->timer);
        if (f->stood) {
            fair_left_note(eng, lock);
        }
        lock->fair = NULL;
        free(f);
    }
}
