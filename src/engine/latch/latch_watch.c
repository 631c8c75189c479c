#include "engine/latch/latch_watch.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "util/pool.h"

static struct latch_watch *latch_watch_of(const struct name_watch *w)
{
    return container_of(w, struct latch_watch, watch);
}

/* --- what became of a generation -------------------------------------------------- */

/* What became of a generation that is not the latest one any more: all were opened but
 * those that the mark names. If one before the last of these is asked for, several have
 * ended since somebody looked, and nobody knows which way this one did. */
static enum latch_state state_of_past(const struct latch_told *told,
                                      uint64_t generation)
{
    if (generation == told->last_gone) {
        return LATCH_GONE;
    }
    return generation > told->last_gone && generation > told->last_lost ? LATCH_OPEN
                                                                        : LATCH_LOST;
}

/* What became of the latch that the request waits for. */
static enum latch_state state_for(const struct latch_told *told,
                                  const struct pending_request *c)
{
    if (c->generation == 0 || c->generation == told->generation) {
        return told->state;
    }
    if (c->is_doubted || told->generation < c->generation) {
        return LATCH_LOST;
    }
    return state_of_past(told, c->generation);
}

/* --- answers ---------------------------------------------------------------------- */

static void answer_await(struct engine *eng, struct pending_request *c,
                         enum latch_state state)
{
    if (state == LATCH_OPEN) {
        emit_int(eng, c->ref, 1);
    } else {
        emit_error(eng, c->ref, LOCK_ERR,
                   state == LATCH_NONE ? TEXT_NO_LATCH : TEXT_LATCH_GONE);
    }
    pending_request_free(eng, c);
}

static void answer_awaits(struct engine *eng, struct latch_watch *w)
{
    struct list *it, *tmp;

    LIST_FOREACH_SAFE(it, tmp, &w->watch.followers)
    {
        struct pending_request *c =
            container_of(it, struct pending_request, in_waiting);
        enum latch_state state = state_for(&w->told, c);

        if (!name_watch_is_known_to(&w->watch, c)) {
            continue;
        }
        if (state != LATCH_SET) {
            answer_await(eng, c, state);
        } else if (eng->now >= c->wait_until) {
            emit_null(eng, c->ref);
            pending_request_free(eng, c);
        } else {
            c->generation = w->told.generation;
            c->is_doubted = false;
        }
    }
}

static void answer_over(struct engine *eng, const struct name_watch *w,
                        const struct pending_request *c)
{
    (void)w;
    emit_null(eng, c->ref);
}

static uint64_t take_latch(struct engine *eng, struct name_watch *watch, uint64_t op_id,
                           const struct op_result *r)
{
    struct latch_watch *w = latch_watch_of(watch);

    if (!watch->is_known || op_id > watch->known_op) {
        if (r->latch.state == LATCH_SET && op_id > w->heard_after) {
            w->heard_open = 0; /* it was a message from before the latch was set */
        }
        w->told = r->latch;
        watch->is_known = true;
        watch->known_op = op_id;
        answer_awaits(eng, w);
    }
    return name_watch_next_look_in(watch, eng->cfg.recheck_ms);
}

static bool finds_no_latch(const struct op_result *r)
{
    return r->status == OP_WRONGTYPE;
}

static bool is_older(const struct name_watch *w, const struct pending_request *c)
{
    (void)w;
    (void)c;
    return false; /* a client of a latch knows nothing */
}

static const struct watch_kind LATCH_WATCH = { finds_no_latch, take_latch, is_older,
                                               answer_over };

void latch_watch_learn(struct engine *eng, struct lock *lock, uint64_t op_id,
                       const struct latch_told *told)
{
    struct latch_watch *w = lock->activity->latch_watch;
    const struct op_result r = { .status = OP_OK, .latch = *told };

    if (w != NULL && !asked_before(eng, lock, op_id)) {
        (void)take_latch(eng, &w->watch, op_id, &r);
        lock_touch(eng, lock);
    }
}

/* --- watches ---------------------------------------------------------------------- */

/* The watch of the lock, made if there is none. */
static struct latch_watch *latch_watch_get(struct engine *eng, struct lock *lock)
{
    struct lock_activity *activity = lock_open_activity(eng, lock);
    struct latch_watch *w = activity->latch_watch;

    if (w == NULL) {
        w = pool_alloc(&eng->pool, sizeof(*w));
        name_watch_init(eng, &w->watch, &LATCH_WATCH, &eng->latch_watches, lock);
        activity->latch_watch = w;
    }
    lock_touch(eng, lock);
    return w;
}

void latch_watch_free(struct engine *eng, struct lock *lock)
{
    struct latch_watch *w = lock->activity->latch_watch;

    if (w == NULL) {
        return;
    }
    name_watch_fini(eng, &w->watch);
    lock->activity->latch_watch = NULL;
    pool_free_sized(&eng->pool, w, sizeof(*w));
}

void latch_watch_on_message(struct engine *eng, struct lock *lock, struct span payload)
{
    struct latch_watch *w = lock->activity->latch_watch;

    if (w == NULL) {
        return;
    }
    /* The message may be one from before the latch was set, so it opens nothing by
     * itself: the next look notes the latch as open if it is not there any more. */
    if (span_eq(payload, SPAN("0")) && w->told.state == LATCH_SET) {
        w->heard_open = w->told.generation;
        w->heard_after = eng->next_op;
    }
    name_watch_note(eng, &w->watch);
}

void latch_watch_note(struct engine *eng, struct lock *lock)
{
    if (lock->activity->latch_watch != NULL) {
        name_watch_note(eng, &lock->activity->latch_watch->watch);
    }
}

void latch_watches_distrust(struct engine *eng)
{
    struct list *it, *follower;

    LIST_FOREACH(it, &eng->latch_watches.list)
    {
        struct name_watch *w = container_of(it, struct name_watch, in_set);

        latch_watch_of(w)->heard_open = 0;
        LIST_FOREACH(follower, &w->followers)
        {
            container_of(follower, struct pending_request, in_waiting)->is_doubted =
                true;
        }
    }
}

size_t latch_watch_waiting(const struct lock *lock)
{
    const struct latch_watch *w = lock->activity->latch_watch;

    return w == NULL ? 0 : w->watch.follower_count;
}

void latch_watch_step(struct engine *eng, struct lock *lock)
{
    struct latch_watch *w = lock->activity->latch_watch;
    struct op *op;

    if (w == NULL) {
        return;
    }
    if (list_empty(&w->watch.followers)) {
        latch_watch_free(eng, lock);
        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, CLASS_PLAIN);
        }
        return;
    }
    if (!lock_in_use(lock)) {
        lock_set_class(eng, lock, CLASS_LATCH); /* a latch has a channel of its own */
    }
    if (name_watch_may_look(eng, &w->watch)) {
        op = inflight_op(eng, name_watch_begin_look(eng, &w->watch), OP_LATCH);
        op->lock_class = CLASS_LATCH;
        op->latch =
            (struct op_latch){ .verb = LATCH_TO_LOOK, .generation = w->heard_open };
    }
}

/* --- requests --------------------------------------------------------------------- */

void request_await(struct engine *eng, const struct latch_req *req)
{
    struct hold_req as = { .from = req->from, .name = req->name };
    struct lock *lock = lock_get(eng, req->name);
    struct pending_request *c;
    struct latch_watch *w;

    if (name_watch_refuses(eng, req->from)) {
        return;
    }
    if (lock_in_use(lock)) {
        emit_error(eng, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return;
    }
    w = latch_watch_get(eng, lock);
    c = pending_request_new(eng, PENDING_FOLLOWER, lock, &as);
    c->waits_for_change = true;
    name_watch_follow(eng, &w->watch, c, req->wait_ms, req->has_wait);
}
