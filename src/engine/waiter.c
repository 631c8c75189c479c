/* Waiters: a waiting LOCK's place, its time, and what happens when either ends. */
#include "engine/waiter.h"
#include "engine/engine_priv.h"
#include "engine/wait_queue.h"

enum {
    /* what may follow while a client waits */
    NEXT_OF_WAIT = INTO(WAITER_QUEUED) | INTO(WAITER_RETAINED) | INTO(WAITER_REMOVED),
};

const struct transitions WAITER_TRANSITIONS = {
    .subject = "waiter",
    .states = {
        [WAITER_QUEUED] = { "QUEUED", NEXT_OF_WAIT | INTO(WAITER_AWAITS_HEAD) | INTO(WAITER_EXPIRING) },
        [WAITER_AWAITS_HEAD] = { "AWAITS_HEAD", NEXT_OF_WAIT | INTO(WAITER_EXPIRING_AWAITS_HEAD) },
        [WAITER_EXPIRING] = { "EXPIRING", NEXT_OF_WAIT | INTO(WAITER_EXPIRING_AWAITS_HEAD) },
        [WAITER_EXPIRING_AWAITS_HEAD] = { "EXPIRING_AWAITS_HEAD", NEXT_OF_WAIT },
        [WAITER_RETAINED] = { "RETAINED", INTO(WAITER_QUEUED) | INTO(WAITER_REMOVED) },
        [WAITER_REMOVED] = { "REMOVED", 0 },
    },
};

/* The only way to change the state, and the counts of it. */
static void set_state(struct engine *eng, struct waiter *w, enum waiter_state state)
{
    bool did_await = waiter_awaits_head(w);

    transition_check(&WAITER_TRANSITIONS, w->state, state);
    eng->stats.retained_waiters +=
        (uint64_t)(state == WAITER_RETAINED) - (uint64_t)(w->state == WAITER_RETAINED);
    w->state = state;
    w->lock->last_answer.awaiting +=
        (uint32_t)waiter_awaits_head(w) - (uint32_t)did_await;
}

static void arm_timer(struct engine *eng, struct waiter *w)
{
    uint64_t at = w->deadline;

    if (w->once) { /* it is answered when Redis has been asked */
        at = answer_deadline(eng, w->since + eng->cfg.redis_timeout_ms);
    }
    if (at == UINT64_MAX) {
        timer_stop(eng, &w->timer);
    } else {
        timer_set(eng, &w->timer, TIMER_WAITER, at);
    }
}

/* Whether the place outlives the waiter's next answer. */
static bool keeps_place(const struct waiter *w)
{
    /* A grant with ATLEAST is of no use to a client that is not there. */
    return w->spec->terms.keep_ms > 0 && !w->is_surplus && !w->queue_full &&
           w->spec->terms.atleast_ms == 0;
}

/* Sets whether the waiter tries once only, and counts its place. */
static void set_once(struct waiter *w, bool once)
{
    bool had_place = w->has_place;

    w->once = once;
    w->has_place = w->state != WAITER_REMOVED &&
                   ((!once && w->outlasting != OUTLASTS_NOW) || keeps_place(w));
    w->lock->places += (uint32_t)w->has_place - (uint32_t)had_place;
}

static const struct transitions OUTLASTING_TRANSITIONS = {
    .subject = "outlasting of a loan",
    .states = {
        [OUTLASTS_NOT_YET] = { "not yet", INTO(OUTLASTS_NOW) },
        [OUTLASTS_NOW] = { "now", INTO(OUTLASTS_OVER) | INTO(OUTLASTS_NOT_YET) },
        [OUTLASTS_OVER] = { "over", INTO(OUTLASTS_NOT_YET) },
    },
};

static void set_outlasting(struct waiter *w, enum outlasting outlasting)
{
    if (w->outlasting != outlasting) {
        transition_check(&OUTLASTING_TRANSITIONS, w->outlasting, outlasting);
        w->outlasting = outlasting;
    }
}

void waiter_bind(struct engine *eng, struct waiter *w, struct session *s,
                 const struct lock_req *req)
{
    list_del(&w->in_session);
    set_state(eng, w, WAITER_QUEUED);
    w->session = s;
    list_append(&s->waiters, &w->in_session);
    w->call = req->from.call;
    w->since = eng->now;
    w->queue_full = w->queue_full && (req->terms.has & OPT_QUEUE) != 0;
    set_outlasting(w, OUTLASTS_NOT_YET);
    set_once(w, lock_tries_once(&req->terms) || w->queue_full);
    w->deadline =
        req->terms.has & OPT_WAIT ? eng->now + req->terms.wait_ms : UINT64_MAX;
    w->in_run = false;
    w->member = mlock_find_member(eng, req->from);
    if (w->member != NULL) {
        w->member->waiter = w;
    }
    arm_timer(eng, w);
}

void waiter_set_since(struct engine *eng, struct waiter *w, uint64_t since)
{
    w->since = since;
    arm_timer(eng, w);
}

struct waiter *waiter_new(struct engine *eng, struct lock *lock, struct session *s,
                          const struct lock_req *req, struct acquire_spec *spec)
{
    bool named = spec->owner_kind == OWNER_NAMED;
    bool wants_place = !lock_tries_once(&req->terms) || spec->terms.keep_ms > 0;
    struct waiter *w =
        pool_alloc(&eng->pool, sizeof(*w) + (named ? sizeof(*w->in_waits) : 0));
    struct waiter *passed;

    w->lock = lock;
    w->spec = spec;
    w->is_surplus = eng->waiter_count >= eng->cfg.max_waiters;
    w->polls = req->polls_since != 0;
    w->began = w->polls ? req->polls_since : eng->now;
    list_init(&w->in_session);
    if (lock->waiting == 0) {
        last_answer_forget(lock); /* what others heard is none of a new queue's */
    }
    w->queue_full = (req->terms.has & OPT_QUEUE) != 0 && wants_place &&
                    wait_queue_is_full(eng, lock, req->terms.queue_max);
    passed = wait_queue_add(eng, w);
    lock->waiting++;
    lock->writers += spec->terms.lock_kind == KIND_WRITE;
    eng->waiter_count++;
    fair_on_enqueue(eng, w);
    wait_graph_add(eng, w);
    waiter_bind(eng, w, s, req);
    if (passed != NULL) {
        waiter_on_passed(eng, passed);
    }
    return w;
}

void waiter_on_passed(struct engine *eng, struct waiter *w)
{
    if (lock_must_ask(w->lock) &&
        (w->request != NULL || w->spec->owner_kind == OWNER_NAMED)) {
        waiter_probe_later(eng, w, PROBE_REENTER); /* it may hold already */
    } else if (waiter_ends_next(w) && eng->up) {
        waiter_decide(eng, w);
    }
}

struct call_ref waiter_call(const struct waiter *w)
{
    return (struct call_ref){ w->session->conn.key, w->call };
}

uint64_t waiter_lease(const struct engine *eng, const struct waiter *w)
{
    uint64_t keep = w->spec->terms.keep_ms;

    return w->session != NULL ? spec_lease(eng, w->spec)
                              : keep + GRACE_SLACK_MS + keep / 50;
}

static void unlink_session(struct engine *eng, struct waiter *w)
{
    struct session *s = w->session;

    if (s != NULL) {
        list_del(&w->in_session);
        w->session = NULL;
        session_idle(eng, s);
    }
}

void waiter_remove(struct engine *eng, struct waiter *w)
{
    struct lock *lock = w->lock;
    bool head = waiter_is_head(w);
    bool undo = w->maybe_granted && w->in_flight == NULL;

    if (w->request != NULL) {
        w->request->waiter =
            NULL; /* first: an undo looks whether the request goes on */
    }
    if (w->in_flight != NULL) {
        /* A grant by this op is undone when it comes. */
        w->in_flight->claim.waiter = NULL;
        w->in_flight->claim.claimed_before =
            w->in_flight->claim.claimed_before || w->maybe_granted;
        w->in_flight = NULL;
    }
    if (w->member != NULL) {
        mlock_on_waiter_gone(eng, w);
    }
    waiter_set_probe(w, PROBE_NONE);
    wait_graph_remove(eng, w);
    unlink_session(eng, w);
    set_state(eng, w, WAITER_REMOVED);
    timer_stop(eng, &w->timer);
    fair_on_dequeue(eng, w);
    wait_queue_remove(w);
    set_once(w, w->once);
    lock->waiting--;
    if (w->spec->terms.lock_kind == KIND_WRITE) {
        lock->writers--;
        lock->readers_in = true; /* those behind it, if it was all that stopped them */
    }
    eng->waiter_count--;
    if (w->request != NULL) {
        request_idle(eng, w->request);
    }
    if (undo) {
        /* Now that its request does not wait any more. */
        (void)pending_release_undo(eng, lock, w->spec);
    }
    spec_unref(eng, w->spec);
    pool_free(&eng->pool, w);
    /* The head may have gone with a message that was meant for the next waiter. */
    if (head) {
        lock_ask(eng, lock);
    } else {
        lock_touch(eng, lock);
    }
}

/* No client waits any more, but the place stays for KEEP; or it ends so. */
static void keep_or_remove(struct engine *eng, struct waiter *w, bool keep,
                           enum wait_end end, enum lock_error error)
{
    if (!keep || !keeps_place(w) || eng->stopping) {
        emit_wait_end(eng, w, end, error, 0);
        waiter_remove(eng, w);
        return;
    }
    unlink_session(eng, w);
    set_state(eng, w, WAITER_RETAINED);
    waiter_end_outlasting(eng, w);
    set_once(w, false);
    w->deadline = eng->now + w->spec->terms.keep_ms;
    arm_timer(eng, w);
    lock_touch(eng, w->lock);
}

/* Whether another daemon that was asked for the same request is told from this one by
 * when the client sent the LOCK, and not by when the op is sent: the scripts of quorums
 * and of read/write locks note only that, and an MLOCK asks anew for what it has lost.
 */
static bool counts_from_lock(const struct engine *eng, const struct waiter *w)
{
    return !eng->quorum && w->lock->lock_class == CLASS_PLAIN && w->member == NULL &&
           spec_id(w->spec).len != 0;
}

uint64_t waiter_asked_ago_ms(const struct engine *eng, const struct waiter *w)
{
    bool retained = w->state == WAITER_RETAINED;
    uint64_t left = w->deadline - w->spec->terms.keep_ms;
    uint64_t asked = counts_from_lock(eng, w) ? w->since + ASKED_AGAIN_MS : eng->now;

    if (retained && left < asked) {
        asked = left;
    }
    return asked < eng->now ? eng->now - asked : 0;
}

void waiter_end_null(struct engine *eng, struct waiter *w, bool keep)
{
    if (w->session != NULL) {
        mlock_answer_null(eng, waiter_call(w));
        eng->stats.timeouts++;
    }
    keep_or_remove(eng, w, keep, WAIT_NULL, LOCK_ERR);
}

void waiter_end_error(struct engine *eng, struct waiter *w, enum lock_error error,
                      struct span text, bool keep)
{
    if (w->session != NULL) {
        mlock_answer_error(eng, waiter_call(w), error, text);
        eng->stats.unanswered += error == LOCK_BACKEND;
    }
    keep_or_remove(eng, w, keep, WAIT_REFUSED, error);
}

void waiter_end_queue_full(struct engine *eng, struct waiter *w)
{
    eng->stats.queue_refusals++;
    waiter_end_error(eng, w, LOCK_LIMIT, TEXT_QUEUE_FULL, false);
}

void waiter_end_unserved(struct engine *eng, struct waiter *w)
{
    enum last_answer_kind answer = last_answer_now(eng, w->lock);
    bool passed =
        answer == ANSWER_HELD || (answer == ANSWER_NONE && last_answer_decides(eng, w));

    if (answer == ANSWER_UNACKED) {
        /* Too few replicas had the grant, which is given back: nobody holds the lock.
         */
        waiter_end_error(eng, w, LOCK_NOREPLICAS, TEXT_NO_REPLICAS, !w->maybe_granted);
    } else if (!passed) {
        waiter_end_error(eng, w, LOCK_BACKEND, last_answer_text(eng, w->lock), true);
    } else if (w->queue_full) {
        waiter_end_queue_full(eng, w);
    } else if (w->is_surplus && w->spec->terms.keep_ms > 0) {
        waiter_end_error(eng, w, LOCK_LIMIT, TEXT_NO_ROOM, false);
    } else {
        waiter_end_null(eng, w, true);
    }
}

/* A lock library's try is over at once, as at Redis. A fair one would join the queue.
 */
bool waiter_may_outlast(const struct waiter *w)
{
    return w->outlasting == OUTLASTS_NOT_YET && w->once && w->session != NULL &&
           w->member == NULL && !w->in_run && !w->is_surplus &&
           w->spec->terms.lock_kind != KIND_FAIR && w->spec->terms.value.len == 0;
}

bool waiter_outlast_loan(struct engine *eng, struct waiter *w)
{
    uint64_t end = eng->now + LENT_WAIT_MS;

    if (waiter_may_outlast(w)) {
        set_outlasting(w, OUTLASTS_NOW);
        set_once(w, false);
        if (w->deadline <= w->since ||
            end < w->deadline) { /* it may have QUEUE and WAIT */
            w->deadline = end;
        }
        arm_timer(eng, w);
    }
    return w->outlasting == OUTLASTS_NOW && !waiter_is_expiring(w) &&
           eng->now < w->deadline;
}

void waiter_end_outlasting(struct engine *eng, struct waiter *w)
{
    if (w->outlasting == OUTLASTS_NOW) {
        set_outlasting(w, OUTLASTS_OVER);
        set_once(w, true);
        arm_timer(eng, w);
    }
}

void waiter_await_answer(struct engine *eng, struct waiter *w)
{
    if (!waiter_awaits_head(w)) {
        set_state(eng, w,
                  waiter_is_expiring(w) ? WAITER_EXPIRING_AWAITS_HEAD
                                        : WAITER_AWAITS_HEAD);
    }
    lock_touch(eng, w->lock);
}

void waiter_decide(struct engine *eng, struct waiter *w)
{
    if (w->in_flight != NULL) {
        return; /* its own answer decides */
    }
    if (last_answer_decides(eng, w)) {
        waiter_end_unserved(eng, w);
    } else {
        waiter_await_answer(eng, w);
    }
}

void waiter_detach(struct engine *eng, struct waiter *w)
{
    keep_or_remove(eng, w, true, WAIT_GONE, LOCK_ERR);
}

/* Whether Redis grants the lock to nobody, for a known reason. */
static bool is_refused(const struct engine *eng, const struct lock *lock)
{
    enum last_answer_kind answer = last_answer_now(eng, lock);

    return answer == ANSWER_UNACKED || answer == ANSWER_REFUSED;
}

/* Whether Redis may be about to answer for a waiter whose time is up, or for the head:
 * then the answer decides, if it comes within the time that the protocol allows. */
static bool may_still_be_answered(const struct engine *eng, const struct waiter *w)
{
    const struct lock *lock = w->lock;

    if (!eng->up || w->in_flight != NULL || is_refused(eng, lock)) {
        return eng->up && w->in_flight != NULL;
    }
    return !last_answer_decides(eng, w) ||
           (waiter_is_head(w) && lock->state != LOCK_IDLE);
}

void waiter_expire(struct engine *eng, struct waiter *w)
{
    if (eng->now < w->deadline) {
        w->deadline = eng->now;
        waiter_on_timer(eng, w);
    }
}

void waiter_on_timer(struct engine *eng, struct waiter *w)
{
    uint64_t last = answer_deadline(eng, w->since + eng->cfg.redis_timeout_ms);

    if (w->session == NULL) {
        emit_wait_end(eng, w, WAIT_GONE, LOCK_ERR, 0);
        waiter_remove(eng, w); /* KEEP is over */
        return;
    }
    if (!w->once && last < w->deadline + TICK_MS) {
        last = w->deadline + TICK_MS;
    }
    if ((eng->now < last || tick_is_too_late(eng, last)) &&
        may_still_be_answered(eng, w)) {
        if (!waiter_is_expiring(w)) {
            set_state(eng, w,
                      waiter_awaits_head(w) ? WAITER_EXPIRING_AWAITS_HEAD
                                            : WAITER_EXPIRING);
        }
        timer_set(eng, &w->timer, TIMER_WAITER, last > eng->now ? last : eng->now + 1);
        if (!last_answer_decides(eng, w)) {
            waiter_decide(eng, w);
        }
        lock_touch(eng, w->lock);
        return;
    }
    if (!eng->up ||
        ((waiter_ends_next(w) || w->maybe_granted) && !is_refused(eng, w->lock))) {
        waiter_end_error(eng, w, LOCK_BACKEND, trouble_text(eng), true);
        return;
    }
    waiter_end_unserved(eng, w);
}
