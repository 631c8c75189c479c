#include "engine/schedule.h"
#include "engine/engine_priv.h"

#include "engine/leader_watch.h"
#include "engine/loss_check.h"
#include "engine/release.h"
#include "engine/restore.h"
#include "engine/wait_queue.h"
#include "engine/watchdog.h"

#include <stdbool.h>

/* Pending requests: an attach or a look at Redis each. */

/* The op that carries the request out. */
static const struct sent_as {
    enum inflight_kind kind;
    enum op_kind op;
} SENT_AS[] = {
    [PENDING_RENEW] = { INFLIGHT_ATTACH, OP_ATTACH },
    [PENDING_REGRANT] = { INFLIGHT_ATTACH, OP_ATTACH },
    [PENDING_INFO] = { INFLIGHT_INSPECT, OP_INSPECT },
    [PENDING_LIMIT] = { INFLIGHT_LIMIT, OP_LIMIT },
    [PENDING_LATCH] = { INFLIGHT_LATCH, OP_LATCH },
};

static void fill_attach(struct engine *eng, struct pending_request *c,
                        struct inflight_op *o, struct op *op)
{
    const struct entry *e = entry_of_request(c);
    uint64_t ago_ms = eng->now - c->asked;

    o->lease_ms = c->attach.lease_ms != 0 ? c->attach.lease_ms : eng->cfg.watchdog_ms;
    o->request.exact = c->kind == PENDING_RENEW && c->attach.lease_ms != 0;
    op->lock_class = c->lock_class;
    op->attach.target = op_make_target(eng, &c->target);
    op->attach.lease_ms = o->lease_ms;
    op->attach.asked_ago_ms = ago_ms > ASKED_AGAIN_MS ? ago_ms - ASKED_AGAIN_MS : 0;
    op->attach.exact = o->request.exact;
    if (o->request.exact && e != NULL && hold_has_one_entry(e->hold)) {
        hold_shorten_lease(eng, e->hold, inflight_asked(o), false);
    }
}

static void send_request(struct engine *eng, struct pending_request *c)
{
    const struct sent_as *as = &SENT_AS[c->kind];
    struct inflight_op *o;
    struct op *op;

    list_del(&c->in_waiting);
    if (c->kind == PENDING_UNLOCK || c->kind == PENDING_FORCE) {
        (void)pending_release_for_call(eng, c);
        return;
    }
    /* LOCKINFO changes nothing, and is told who stands in the field of the loan. */
    if (!eng->up || c->lock->needs_restore > 0 ||
        (c->kind != PENDING_INFO && c->lock->loan != NULL)) {
        list_append(eng->up ? &c->lock->waiting_for_restore : &eng->waiting_for_store,
                    &c->in_waiting);
        lock_touch(eng, c->lock);
        return;
    }
    o = inflight_new(eng, as->kind, c->lock);
    o->request.call = c;
    c->in_flight = o;
    op = inflight_op(eng, o, as->op);
    if (as->op == OP_ATTACH) {
        fill_attach(eng, c, o, op);
    } else if (as->op == OP_LIMIT) {
        op->lock_class = CLASS_SEMAPHORE;
        op->limit.limit = c->limit;
    } else if (as->op == OP_LATCH) {
        op->lock_class = CLASS_LATCH;
        op->latch = c->latch.op;
        op->latch.request = op_copy(eng, c->latch.op.request);
    }
}

/* Sends what is queued, or lets it wait for Redis, or for the holds of its lock. */
static void pending_requests_send(struct engine *eng)
{
    struct pending_request *c;

    while (LIST_FIRST(c, &eng->to_send, in_waiting)) {
        send_request(eng, c);
    }
}

void pending_request_on_timer(struct engine *eng, struct pending_request *c)
{
    if (c->kind == PENDING_FOLLOWER) {
        name_watch_request_on_timer(eng, c);
        return;
    }
    if (c->is_paused) {
        c->is_paused = false;
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
        mlock_answer_error(eng, c->ref, LOCK_BACKEND, trouble_text(eng));
    }
    pending_request_free(eng, c);
}

/* Sends the pending requests that waited until all holds of the lock were put back. */
static void pending_requests_resume(struct engine *eng, struct lock *lock)
{
    struct pending_request *c;

    while (lock->needs_restore == 0 && lock->loan == NULL &&
           LIST_FIRST(c, &lock->waiting_for_restore, in_waiting)) {
        send_request(eng, c);
    }
}

static void on_check_reply(struct engine *eng, struct inflight_op *o,
                           const struct op_result *r)
{
    inflight_on_result(eng, on_loss_check_reply(eng, o, r));
    inflight_free(eng, o);
}

typedef void reply_fn(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r);

static reply_fn *const ON_REPLY[] = {
    [INFLIGHT_ASK] = on_acquire_reply,
    [INFLIGHT_PROBE] = on_acquire_reply,
    [INFLIGHT_BATCH] = on_acquire_batch_reply,
    [INFLIGHT_RELEASE] = on_release_reply,
    [INFLIGHT_RENEW] = on_renew_reply,
    [INFLIGHT_RENEW_LOANS] = on_loan_renewal_reply,
    [INFLIGHT_ATTACH] = on_attach_reply,
    [INFLIGHT_INSPECT] = on_inspect_reply,
    [INFLIGHT_LIMIT] = on_limit_reply,
    [INFLIGHT_WATCH] = on_name_watch_look,
    [INFLIGHT_LATCH] = on_latch_reply,
    [INFLIGHT_COUNT_AGAIN] = on_count_again_reply,
    [INFLIGHT_QUEUE] = on_fair_reply,
    [INFLIGHT_LEAVE] = on_fair_reply,
    [INFLIGHT_RESTORE] = on_restore_reply,
    [INFLIGHT_CHECK] = on_check_reply,
};

void inflight_on_result(struct engine *eng, const struct op_result *r)
{
    struct inflight_op *o = inflight_find(eng, r->id);

    if (o != NULL) {
        inflight_saw_token(eng, r->token);
        if (!loss_check_begin(eng, o, r)) {
            ON_REPLY[o->kind](eng, o, r);
        }
    }
}

/* The scheduler of one name: which op the name needs next. */

/* As soon as one reader is granted, the readers behind it follow without waiting for
 * each other's answers, up to the first writer. */
static void let_readers_in(struct engine *eng, struct lock *lock)
{
    struct waiter *w;

    lock->readers_in = false;
    if (!lock_is_read_here(eng, lock)) {
        return;
    }
    LIST_EACH(w, &lock->queue, in_queue) {
        if (w->spec->terms.lock_kind != KIND_READ) {
            break;
        }
        if (w->in_flight == NULL) {
            acquire_join(eng, w);
        }
    }
}

static void subscribe_lock(struct engine *eng, struct lock *lock)
{
    struct span name = effects_copy(&eng->fx, lock_name(lock));

    effects_add(&eng->fx, EFFECT_SUBSCRIBE)->channel =
        (struct effect_channel){ .name = name, .lock_class = lock->lock_class };
    lock_set_sub(lock, SUB_ASKED);
}

void lock_free(struct engine *eng, struct lock *lock)
{
    lock_drop_shortenings(lock);
    fair_free(eng, lock);
    lock_note_foreign(eng, lock, false);
    timer_stop(eng, &lock->wake);
    last_answer_fini(&lock->last_answer);
    pool_free(&eng->pool, lock->marks);
    table_remove(&eng->names, &lock->in_names);
    pool_free_sized(&eng->pool, lock, offsetof(struct lock, name) + lock->name_len);
}

static bool is_watched(const struct lock *lock)
{
    return lock->leader_watch != NULL || lock->latch_watch != NULL;
}

/* Whether it is worth while to hear of changes. */
static bool watch_lasts(const struct lock *lock)
{
    return lock->latch_watch != NULL || leader_watch_lasts(lock->leader_watch);
}

/* Steps a lock without waiters: its channel stays subscribed for a moment, in case one
 * comes, then the lock is forgotten. */
static void step_idle(struct engine *eng, struct lock *lock)
{
    if (lock->state == LOCK_MUST_ASK) {
        lock_set_state(lock, LOCK_IDLE);
    }
    lock_note_foreign(eng, lock, false);
    if (is_watched(lock)) {
        if (lock->sub == SUB_NONE && watch_lasts(lock)) {
            subscribe_lock(eng, lock);
        }
        return;
    }
    if (lock->sub != SUB_NONE) {
        if (!heap_armed(&lock->wake.node) ||
            lock->wake.node.at > eng->now + SUB_LINGER_MS) {
            timer_set(eng, &lock->wake, TIMER_LOCK, eng->now + SUB_LINGER_MS);
        }
        return;
    }
    if (lock->exempt > eng->now && list_empty(&lock->holds)) {
        /* till then it counts */
        timer_set(eng, &lock->wake, TIMER_LOCK, lock->exempt);
        return;
    }
    timer_stop(eng, &lock->wake);
    if (list_empty(&lock->holds) && lock->refs == 0 && list_empty(&lock->releases) &&
        lock->loan == NULL && fair_idle(lock) &&
        !lock->dirty) { /* else it is stepped again */
        lock_free(eng, lock);
    }
}

/* The head sleeps until a message, or for `recheck`. */
static void let_head_sleep(struct engine *eng, struct lock *lock)
{
    if (lock->sub == SUB_NONE) {
        subscribe_lock(eng, lock);
    }
    if (!heap_armed(&lock->wake.node)) {
        timer_set(eng, &lock->wake, TIMER_LOCK, eng->now + eng->cfg.recheck_ms);
    }
}

/* The head of an IDLE lock does not sleep if its wait ends with its next answer, or if
 * the channel has just been subscribed: a message may have come before that. */
static void step_head(struct engine *eng, struct lock *lock, struct waiter *head)
{
    bool is_exact = waiter_ends_next(head) || lock->last_answer.awaiting > 0;

    if (head->in_flight != NULL || !eng->up) {
        return; /* its answer, or Redis coming up, leads back here */
    }
    if (lock->state == LOCK_IDLE && waiter_is_expiring(head) &&
        last_answer_decides(eng, head)) {
        waiter_end_unserved(eng, head); /* what it waited for has left it locked */
    } else if (lock->state == LOCK_IDLE && !waiter_ends_next(head) &&
               lock->sub != SUB_ON) {
        let_head_sleep(eng, lock);
    } else if (!lock_awaits_pause(eng, lock, PAUSE_ASKS) &&
               (is_exact || !lock_awaits_pause(eng, lock, PAUSE_HEAD))) {
        acquire_ask(eng, lock, head);
    }
}

/* Waits that are over but for what they are to be told. The last comer stands last,
 * and tries once, most likely. While Redis is out of reach, what is believed here
 * decides nothing: their timers end them. */
static void step_awaiting(struct engine *eng, struct lock *lock)
{
    struct list *it = lock->queue.prev;

    if (lock->last_answer.awaiting == 0 || !eng->up) {
        return;
    }
    if (last_answer_now(eng, lock) == ANSWER_NONE) {
        if (lock->state == LOCK_IDLE &&
            lock_head(lock)->outlasting != OUTLASTS_NOW) { /* it asks now and then */
            lock_set_state(lock, LOCK_MUST_ASK);
        }
        return;
    }
    while (lock->last_answer.awaiting > 0 && it != &lock->queue) {
        struct waiter *w = container_of(it, struct waiter, in_queue);

        it = it->prev;
        if (waiter_awaits_head(w)) {
            waiter_decide(eng, w);
        }
    }
}

/* Lets waiters ask for themselves that must do so before they queue, but only while no
 * undo is in flight that could take away what they find. */
static void step_probes(struct engine *eng, struct lock *lock)
{
    struct waiter *w;

    LIST_EACH(w, &lock->queue, in_queue) {
        if (w->probe != PROBE_NONE && w->in_flight == NULL) {
            (w->probe == PROBE_JOIN ? acquire_join : acquire_probe)(eng, w);
        }
    }
}

/* Sends the releases of readers beside each other, except the last reader's: after
 * that release another owner's turn may come. Permits go to their waiters. */
static void step_parallel_releases(struct engine *eng, struct lock *lock)
{
    struct pending_release *d;

    if (lock->lock_class == CLASS_SEMAPHORE && lock_head(lock) != NULL) {
        return;
    }
    while (LIST_FIRST(d, &lock->releases, in_lock) &&
           lock->hold_count > lock->parallel_release_count + 1) {
        if (!d->may_be_parallel || release_was_sent(d)) {
            break;
        }
        pending_release_set_parallel(lock, d);
        release_send(eng, lock, d);
    }
}

/* An op that needs the hold in a field of its own waits until the hold is settled.
 * False: nothing else is sent now. */
static bool step_lent_hold(struct engine *eng, struct lock *lock, struct hold *h)
{
    if (h->renewal != NULL) {
        return false; /* its answer leads back here */
    }
    if (list_empty(&lock->releases) && list_empty(&lock->waiting_for_restore)) {
        return true;
    }
    if (eng->now < h->not_before) {
        timer_set(eng, &lock->wake, TIMER_LOCK, h->not_before);
    } else {
        renew_request(eng, h);
    }
    return false;
}

/* Passes an idle loan on to the next client of this daemon, keeps it for a moment, or
 * returns it. False: nothing else is sent now. */
static bool step_idle_loan(struct engine *eng, struct lock *lock, struct loan *loan)
{
    if (lock_is_asking(lock) && list_empty(&lock->releases)) {
        return false; /* its answer leads back here */
    }
    if (lock_head(lock) != NULL && local_grant_try(eng, lock)) {
        loan_renewal_note(eng, loan);
        return true;
    }
    if (lock_head(lock) == NULL && list_empty(&lock->releases) && !eng->stopping &&
        list_empty(&lock->waiting_for_restore) && fair_idle(lock) && eng->up &&
        heap_armed(&loan->timer.node) && eng->now < loan->lends_until) {
        return false; /* somebody may come */
    }
    loan_return(eng, lock);
    return true;
}

static bool step_loan(struct engine *eng, struct lock *lock, struct loan *loan)
{
    switch (loan->state) {
    case LOAN_HELD:
    case LOAN_SETTLING:
        return step_lent_hold(eng, lock, loan->holder);
    case LOAN_IDLE:
        return step_idle_loan(eng, lock, loan);
    case LOAN_RETURNING:
        break; /* its release is pending */
    }
    return true;
}

static void step_release(struct engine *eng, struct lock *lock,
                         struct pending_release *d)
{
    if (release_is_vague(d) && eng->now >= d->give_up_at) {
        pending_release_give_up(eng, lock, d); /* and leads back to lock_step() */
    } else if (user_refuses_release(eng, lock, d) || release_log_defers(eng, lock, d) ||
               pending_release_awaits_renewal(lock, d) ||
               successor_is_busy(eng, lock, d)) {
        ; /* so does that */
    } else if (eng->up && !lock_awaits_pause(eng, lock, PAUSE_ALL)) {
        release_send(eng, lock, d);
    }
}

/* The answer to a restore leads back to lock_step(). Permits may be put back only after
 * others were released once more, as Redis has lost that, too. */
static void step_restoring(struct engine *eng, struct lock *lock)
{
    struct list *release = list_first(&lock->releases);

    if (lock->lock_class == CLASS_SEMAPHORE && release != NULL &&
        !lock_is_asking(lock)) {
        step_release(eng, lock, container_of(release, struct pending_release, in_lock));
    }
}

/* Sends what may be in flight beside the one op that may change who holds. */
static void step_beside(struct engine *eng, struct lock *lock)
{
    if (lock->lock_class != CLASS_PLAIN && eng->up &&
        !lock_is_paused(eng, lock, PAUSE_ALL)) {
        step_parallel_releases(eng, lock);
    }
    if (!eng->up || !list_empty(&lock->releases) ||
        (lock->probes == 0 && !lock->readers_in) ||
        lock_awaits_pause(eng, lock, PAUSE_ASKS)) {
        return;
    }
    if (lock->probes > 0) {
        step_probes(eng, lock);
    }
    if (lock->readers_in) {
        let_readers_in(eng, lock);
    }
}

/* Sends the op that may change who holds, or lets the name sleep. */
static void step_turn(struct engine *eng, struct lock *lock)
{
    struct list *release = list_first(&lock->releases);
    struct waiter *head = lock_head(lock);

    fair_step(eng, lock, false);
    if (release != NULL) {
        step_release(eng, lock, container_of(release, struct pending_release, in_lock));
    } else if (head == NULL) {
        step_idle(eng, lock);
    } else {
        step_head(eng, lock, head);
        if (!lock_is_asking(lock)) {
            fair_step(eng, lock, true);
        }
    }
}

void lock_step(struct engine *eng, struct lock *lock)
{
    struct waiter *passed = wait_queue_step_back(eng, lock);

    if (passed != NULL) {
        waiter_on_passed(eng, passed);
    }
    leader_watch_step(eng, lock);
    latch_watch_step(eng, lock);
    followed_name_step(eng, lock);
    step_awaiting(eng, lock);
    if (lock->needs_restore > 0) {
        step_restoring(eng, lock);
        return;
    }
    if (lock->loan != NULL && !step_loan(eng, lock, lock->loan)) {
        return;
    }
    pending_requests_resume(eng, lock);
    step_beside(eng, lock);
    switch (lock->state) {
    case LOCK_IDLE:
    case LOCK_MUST_ASK:
        step_turn(eng, lock);
        break;
    case LOCK_ASKING:
    case LOCK_MUST_RETRY:
        break; /* the answer leads back here */
    }
}

void lock_on_timer(struct engine *eng, struct lock *lock)
{
    if (lock_head(lock) == NULL && lock->sub != SUB_NONE && !is_watched(lock) &&
        list_empty(&lock->releases)) {
        lock_unsubscribe(eng, lock);
        lock->yields = (struct yields){ 0 }; /* who else waits then is not known yet */
    }
    lock_ask(eng, lock);
}

/* Sends what the parts have queued. */
static void send_queued(struct engine *eng)
{
    struct inflight_op *o;

    pending_requests_send(eng);
    while (LIST_POP(o, &eng->ops_to_send, in_sent)) {
        (o->kind == INFLIGHT_BATCH ? acquire_send_batch : loss_check_send)(eng, o);
    }
}

static bool is_settled(const struct engine *eng)
{
    return dirty_locks_empty(&eng->dirty) && list_empty(&eng->dirty_mlocks) &&
           list_empty(&eng->to_send) && list_empty(&eng->ops_to_send);
}

void engine_settle(struct engine *eng)
{
    struct lock *lock;
    struct list *it;

    count_log_send(eng);
    while (!is_settled(eng)) {
        send_queued(eng);
        while ((lock = dirty_locks_take(&eng->dirty)) != NULL) {
            lock_step(eng, lock);
        }
        it = list_first(&eng->dirty_mlocks);
        if (it != NULL) {
            list_del(it);
            mlock_step(eng, container_of(it, struct mlock, in_dirty));
        }
    }
    if (eng->hold_became_uncertain) {
        eng->hold_became_uncertain = false;
        pending_info_hurry(eng);
    }
    renew_flush(eng);
    loan_renewals_flush(eng);
    restore_flush(eng);
}
