/* A LOCK that waits: its place, its time, and what happens when either ends. */
#include "core/parts.h"
#include "core/restore.h"
#include "core/waits.h"
#include "util/alloc.h"

static void arm(struct locks *l, struct waiter *w)
{
    uint64_t at = w->deadline;

    if (w->once) {
        at = w->since +
             l->cfg.redis_timeout_ms; /* it is answered when Redis has been asked */
    }
    if (at == UINT64_MAX) {
        timer_stop(l, &w->timer);
    } else {
        timer_set(l, &w->timer, TIMER_WAITER, at);
    }
}

static void set_undecided(struct waiter *w, bool undecided)
{
    w->lock->desk->undecided += (uint32_t)undecided - (uint32_t)w->undecided;
    w->undecided = undecided;
}

static void set_kept(struct locks *l, struct waiter *w, bool kept)
{
    l->stats.kept_waiters += (uint64_t)kept - (uint64_t)w->kept;
    w->kept = kept;
}

void waiter_bind(struct locks *l, struct waiter *w, struct session *s,
                 const struct lock_req *req)
{
    list_del(&w->in_session);
    set_kept(l, w, false);
    set_undecided(w, false);
    w->session = s;
    list_append(&s->waiters, &w->in_session);
    w->call = req->from;
    w->since = l->now;
    w->once = lock_tries_once(req);
    w->deadline = req->has & LOCK_HAS_WAIT ? l->now + req->wait_ms : UINT64_MAX;
    w->expiring = false;
    w->in_run = false;
    w->piece = mlock_piece(l, req->from);
    if (w->piece != NULL) {
        w->piece->waiter = w;
    }
    arm(l, w);
}

void waiter_since(struct locks *l, struct waiter *w, uint64_t since)
{
    w->since = since;
    arm(l, w);
}

struct waiter *waiter_new(struct locks *l, struct lock *lock, struct session *s,
                          const struct lock_req *req, struct want *want)
{
    bool named = want->kind == OWNER_NAMED;
    struct waiter *w =
        pool_alloc(&l->pool, sizeof(*w) + (named ? sizeof(*w->in_waits) : 0));

    w->lock = lock;
    w->want = want;
    w->no_room = l->waiter_count >= l->cfg.max_waiters;
    w->began = l->now;
    list_init(&w->in_session);
    if (lock->desk->waiting == 0) {
        last_answer_forget(lock); /* what others heard is none of a new queue's */
    }
    list_append(&lock_desk(l, lock)->queue, &w->in_queue);
    list_append(&l->waiters, &w->in_all);
    lock->desk->waiting++;
    lock->desk->writers += want->lock_kind == KIND_WRITE;
    l->waiter_count++;
    fair_came(l, w);
    waits_join(l, w);
    waiter_bind(l, w, s, req);
    return w;
}

uint64_t waiter_lease(const struct locks *l, const struct waiter *w)
{
    uint64_t keep = w->want->keep_ms;

    return w->session != NULL ? want_lease(l, w->want)
                              : keep + GRACE_SLACK_MS + keep / 50;
}

bool waiter_is_head(const struct waiter *w)
{
    return lock_head(w->lock) == w;
}

static void unlink_session(struct locks *l, struct waiter *w)
{
    struct session *s = w->session;

    if (s != NULL) {
        list_del(&w->in_session);
        w->session = NULL;
        session_idle(l, s);
    }
}

void waiter_remove(struct locks *l, struct waiter *w)
{
    struct lock *lock = w->lock;
    bool head = waiter_is_head(w);
    bool undo = w->doubt && w->work == NULL;

    if (w->request != NULL) {
        w->request->waiter =
            NULL; /* first: an undo looks whether the request goes on */
    }
    if (w->work != NULL) {
        w->work->waiter = NULL; /* what it brings is undone when it comes */
        w->work = NULL;
    }
    if (w->piece != NULL) {
        mlock_waiter_gone(l, w);
    }
    lock->desk->probes -= w->probe;
    waits_leave(l, w);
    unlink_session(l, w);
    set_kept(l, w, false);
    set_undecided(w, false);
    timer_stop(l, &w->timer);
    fair_gone(l, w);
    list_del(&w->in_queue);
    list_del(&w->in_all);
    lock->desk->waiting--;
    if (w->want->lock_kind == KIND_WRITE) {
        lock->desk->writers--;
        lock->readers_in = true; /* those behind it, if it was all that stopped them */
    }
    l->waiter_count--;
    if (w->request != NULL) {
        request_idle(l, w->request);
    }
    if (undo) {
        /* Now that its request does not wait any more. */
        (void)duty_undo(l, lock, w->want);
    }
    want_unref(l, w->want);
    pool_free(&l->pool, w);
    /* The head may have gone with a message that was meant for whoever is next. */
    if (head) {
        lock_ask(l, lock);
    } else {
        lock_touch(l, lock);
    }
}

/* No client waits any more, but the place stays for KEEP; or it ends so. */
static void keep_or_remove(struct locks *l, struct waiter *w, bool keep,
                           enum wait_end end, enum lock_error error)
{
    if (!keep || w->no_room || w->want->keep_ms == 0 || l->stopping) {
        say_waited(l, w, end, error);
        waiter_remove(l, w);
        return;
    }
    unlink_session(l, w);
    set_kept(l, w, true);
    set_undecided(w, false);
    w->once = false;
    w->expiring = false;
    w->deadline = l->now + w->want->keep_ms;
    arm(l, w);
    lock_touch(l, w->lock);
}

void waiter_end_null(struct locks *l, struct waiter *w, bool keep)
{
    if (w->session != NULL) {
        say_null(l, w->call);
        l->stats.timeouts++;
    }
    keep_or_remove(l, w, keep, WAIT_NULL, LOCK_ERR);
}

void waiter_end_error(struct locks *l, struct waiter *w, enum lock_error error,
                      struct span text, bool keep)
{
    if (w->session != NULL) {
        say_error(l, w->call, error, text);
        l->stats.unanswered += error == LOCK_BACKEND;
    }
    keep_or_remove(l, w, keep, WAIT_REFUSED, error);
}

void waiter_end_unserved(struct locks *l, struct waiter *w)
{
    enum last_answer_kind answer = last_answer_now(l, w->lock);
    bool passed =
        answer == ANSWER_HELD || (answer == ANSWER_NONE && last_answer_decides(l, w));

    if (answer == ANSWER_UNACKED) {
        /* Nobody holds it, or may not: what was granted is given back. */
        waiter_end_error(l, w, LOCK_NOREPLICAS, TEXT_NO_REPLICAS, !w->doubt);
    } else if (!passed) {
        waiter_end_error(l, w, LOCK_BACKEND, last_answer_text(l, w->lock), true);
    } else if (w->no_room && w->want->keep_ms > 0) {
        waiter_end_error(l, w, LOCK_LIMIT, TEXT_NO_ROOM, false);
    } else {
        waiter_end_null(l, w, true);
    }
}

void waiter_decide(struct locks *l, struct waiter *w)
{
    if (w->work != NULL) {
        return; /* its own answer decides */
    }
    if (last_answer_decides(l, w)) {
        waiter_end_unserved(l, w);
    } else {
        set_undecided(w, true);
        lock_touch(l, w->lock);
    }
}

void waiter_detach(struct locks *l, struct waiter *w)
{
    keep_or_remove(l, w, true, WAIT_GONE, LOCK_ERR);
}

/* Nobody is granted it, and why is known. */
static bool is_refused(const struct locks *l, const struct lock *lock)
{
    enum last_answer_kind answer = last_answer_now(l, lock);

    return answer == ANSWER_UNACKED || answer == ANSWER_REFUSED;
}

/* Its time is up, but Redis may be about to answer for it, or for the head: then the
 * answer decides, if it comes within what the protocol allows. */
static bool may_still_be_answered(const struct locks *l, const struct waiter *w)
{
    const struct lock *lock = w->lock;

    if (!l->up || w->work != NULL || is_refused(l, lock)) {
        return l->up && w->work != NULL;
    }
    return !last_answer_decides(l, w) ||
           (waiter_is_head(w) && (lock->ask || lock->desk->busy != NULL));
}

void waiter_on_timer(struct locks *l, struct waiter *w)
{
    uint64_t last = w->since + l->cfg.redis_timeout_ms;

    if (w->session == NULL) {
        say_waited(l, w, WAIT_GONE, LOCK_ERR);
        waiter_remove(l, w); /* KEEP is over */
        return;
    }
    if (!w->once && last < w->deadline + TICK_MS) {
        last = w->deadline + TICK_MS;
    }
    if ((l->now < last || tick_is_too_late(l, last)) && may_still_be_answered(l, w)) {
        w->expiring = true;
        timer_set(l, &w->timer, TIMER_WAITER, last > l->now ? last : l->now + 1);
        if (!last_answer_decides(l, w)) {
            waiter_decide(l, w);
        }
        lock_touch(l, w->lock);
        return;
    }
    if (!l->up || ((w->once || w->expiring || w->doubt) && !is_refused(l, w->lock))) {
        waiter_end_error(l, w, LOCK_BACKEND, l->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS,
                         true);
        return;
    }
    waiter_end_unserved(l, w);
}
