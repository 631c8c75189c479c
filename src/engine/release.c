/* Sends a pending release, with the hand-over to a waiter of this daemon. */
#include "engine/release.h"
#include "engine/engine_priv.h"

static bool is_exclusive(enum lock_kind lock_kind)
{
    return lock_kind == KIND_PLAIN || lock_kind == KIND_WRITE;
}

bool successor_choose(struct engine *eng, const struct lock *lock,
                      const struct entry *e, const struct hold_req *req,
                      struct waiter **ret)
{
    const struct request *request;

    *ret = NULL;
    if (req->to.len == 0) {
        return true;
    }
    request = request_find(eng, req->name, req->to);
    if (request != NULL && request->entry != NULL && req->token != 0 &&
        request->entry->hold->token > req->token) {
        return true;
    }
    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NOT_NEXT);
        return false;
    }
    if (request == NULL || request->waiter == NULL) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NO_WAITER);
        return false;
    }
    if (!is_exclusive(request->waiter->spec->terms.lock_kind) || lock->fair != NULL ||
        (e != NULL && !is_exclusive(e->hold->lock_kind))) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_NOT_NEXT);
        return false;
    }
    *ret = request->waiter;
    return true;
}

/* Whether the release ends the very request that waits here with that spec: the request
 * was granted through another daemon, and may not begin again. */
static bool ends_request(const struct pending_release *d,
                         const struct acquire_spec *spec)
{
    return spec_id(spec).len != 0 && span_eq(release_request_id(d), spec_id(spec));
}

/* Redis may have granted it already. Then the script would take that for the hand-over
 * of the same release, sent before, and say that what is long gone was released. Also,
 * what its request had before may be about to end: a later release would then end what
 * the hand-over gives. */
static bool may_hold(const struct lock *lock, const struct waiter *w,
                     const struct pending_release *d)
{
    return (w->maybe_granted && !pending_release_undoes(d, w->spec)) ||
           lock_ends_later(lock, d, w->spec);
}

/* The waiter that the client wants to be next, while it waits. */
static struct waiter *named_waiter(const struct engine *eng, const struct lock *lock,
                                   const struct pending_release *d)
{
    struct request *request =
        d->to == NULL ? NULL : request_find(eng, lock_name(lock), spec_id(d->to));

    return request == NULL ? NULL : request->waiter;
}

bool successor_is_busy(const struct engine *eng, const struct lock *lock,
                       const struct pending_release *d)
{
    const struct waiter *named = named_waiter(eng, lock, d);

    return named != NULL && named->in_flight != NULL;
}

/* The waiter that the lock may move to in the same script: the one that the release
 * names, or the first. NULL: the lock is only freed. */
static struct waiter *successor_find(const struct engine *eng, const struct lock *lock,
                                     const struct pending_release *d)
{
    struct waiter *named = named_waiter(eng, lock, d);
    struct waiter *next = named != NULL ? named : lock_head(lock);

    if (next == NULL || next->in_flight != NULL || eng->stopping ||
        d->lock_class != lock->lock_class ||
        quarantine_until(eng, lock, next->spec->terms.lock_kind) != 0 ||
        lock_is_paused(eng, lock, PAUSE_ASKS) || eng->quorum ||
        lock->needs_restore > 0) {
        return NULL;
    }
    if (d->next == NULL ? ends_request(d, next->spec) || may_hold(lock, next, d)
                        : d->next != next->spec) {
        return NULL;
    }
    return next;
}

/* Whether the release names that waiter. `next` may be NULL. */
static bool successor_is_named(const struct engine *eng, const struct lock *lock,
                               const struct pending_release *d,
                               const struct waiter *next)
{
    return next != NULL && next == named_waiter(eng, lock, d);
}

/* The first hold, of those known here, that a FORCEUNLOCK means; or NULL. */
static struct hold *release_find_forced(const struct lock *lock,
                                        const struct pending_release *d)
{
    struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        if (release_forces(d, h)) {
            return h;
        }
    }
    return NULL;
}

/* How long a tombstone lives. Another daemon that believes in the hold must find the
 * tombstone when it renews, or it reports a loss to its client: so the tombstone lives
 * for a third of the lease, and for all that may hold up that renewal. The other daemon
 * is taken to have our configuration. After a failover the other daemon may be late: it
 * finds the tombstone as long as it may put the hold back. */
static uint64_t tombstone_ms(const struct engine *eng, const struct lock *lock)
{
    uint64_t late = peers_may_restore_late(eng, lock) ? eng->peers.back_late : eng->now;

    return eng->cfg.watchdog_ms / 3 + ENDED_RENEWALS * eng->cfg.redis_timeout_ms +
           ENGINE_STALL_MS + late - eng->now;
}

/* After which the hold has ended by itself: longer than its lease can be, as renewals
 * may have run that nobody confirmed. 0: its lease is over. */
static uint64_t ends_in_ms(const struct engine *eng, const struct hold *h)
{
    uint64_t left = h->until > eng->now ? h->until - eng->now : 0;
    uint64_t most = left > eng->cfg.watchdog_ms ? left : eng->cfg.watchdog_ms;

    return left == 0 ? 0 : 2 * most;
}

/* The grants of its own clients are known here. */
static bool may_leave_rest(const struct pending_release *d)
{
    return d->lock_class == CLASS_PLAIN && !d->returns_loan &&
           (d->local == NULL || hold_atleast_until(d->local->hold) != 0);
}

/* Whether the hold that a client gives up is not known here, and Redis may have lost
 * it: another daemon may put it back. */
static bool may_come_back(const struct engine *eng, const struct lock *lock,
                          const struct pending_release *d)
{
    return d->local == NULL && peers_may_restore_late(eng, lock) && !d->returns_loan &&
           !release_is_if_keeper(d) && !release_may_have_ended_it(d) &&
           lock_find_target(lock, &d->target) == NULL &&
           release_find_forced(lock, d) == NULL;
}

/* Redis may have lost the hold, also since its client's release was sent first, and
 * another daemon, at which the client has it too, may be about to put it back. */
static enum tombstone_if_missing tombstone_if_missing(const struct engine *eng,
                                                      const struct lock *lock,
                                                      const struct pending_release *d)
{
    if (release_is_replay(d)) {
        return d->leave_tombstone ? TOMBSTONE_OF_ANSWER : TOMBSTONE_NONE;
    }
    if (d->cause != RELEASE_REQUESTED || release_is_vague(d)) {
        return TOMBSTONE_NONE;
    }
    return (d->state == RELEASE_SENT_AGAIN && d->local != NULL) ||
                   may_come_back(eng, lock, d)
               ? TOMBSTONE_OF_DOUBT
               : TOMBSTONE_NONE;
}

/* Whether what the release ends is held for certain. */
static bool is_held(const struct engine *eng, struct lock *lock,
                    const struct pending_release *d)
{
    const struct hold *h =
        d->local != NULL ? d->local->hold : release_find_forced(lock, d);

    return h != NULL && hold_is_certain(eng, h);
}

void release_send(struct engine *eng, struct lock *lock, struct pending_release *d)
{
    bool parallel = d->state == RELEASE_PARALLEL;
    struct waiter *next =
        release_is_forced(d) || parallel ? NULL : successor_find(eng, lock, d);
    struct inflight_op *o = inflight_new(eng, INFLIGHT_RELEASE, lock);
    struct op *op;
    struct op_release *release;

    if (d->next == NULL && next != NULL) {
        d->next = spec_ref(next->spec);
    }
    o->claim.release = d;
    if (!parallel) {
        pending_release_set_state(d, d->state == RELEASE_MAYBE_RUN ? RELEASE_SENT_AGAIN
                                                                   : RELEASE_SENT);
        lock_begin_asking(lock, o, next != NULL && next == lock_head(lock));
    }
    if (d->tries++ == 0) {
        d->was_held = is_held(eng, lock, d);
    }
    op = inflight_op(eng, o, OP_RELEASE);
    op->lock_class = d->lock_class;
    release = &op->release;
    release->target = op_make_target(eng, &d->target);
    release->if_keeper = release_is_if_keeper(d);
    release->force = release_is_forced(d);
    release->leave_tombstone = d->leave_tombstone;
    release->skips_rest = d->skips_rest;
    release->was_held = d->was_held;
    release->may_rest = may_leave_rest(d);
    release->tombstone_if_missing = tombstone_if_missing(eng, lock, d);
    release->tombstone_ms = tombstone_ms(eng, lock);
    release->subscribed = lock->sub != SUB_NONE;
    release->ends_in_ms = d->local == NULL ? 0 : ends_in_ms(eng, d->local->hold);
    if (d->next == NULL) {
        d->may_free = true;
        return;
    }
    o->claim.spec = spec_ref(d->next);
    o->lease_ms = next != NULL ? waiter_lease(eng, next) : spec_lease(eng, d->next);
    if (next != NULL) {
        o->claim.waiter = next;
        next->in_flight = o;
        d->next_asked = eng->now - waiter_asked_ago_ms(eng, next);
    }
    o->claim.asked_ago_ms = eng->now - d->next_asked;
    o->claim.claimed_before = d->tries > 1; /* the lock may have moved to it */
    release->has_next = true;
    /* A repetition only finds out: it must not give the lock away otherwise. */
    release->yield = d->tries > 1 && next == NULL             ? YIELD_ALWAYS
                     : successor_is_named(eng, lock, d, next) ? YIELD_NEVER
                                                              : yield_choose(eng, lock);
    d->may_free = d->may_free || release->yield != YIELD_NEVER || lock->fair != NULL ||
                  d->lock_class != CLASS_PLAIN;
    release->next = op_make_claim(eng, d->next, o->lease_ms);
    release->next.asked_ago_ms = o->claim.asked_ago_ms;
    release->next.block_us = next != NULL ? local_grant_block(eng, next) : 0;
}

/* Handles the answer to a release: the end of an entry, a hand-over, or another try.
 */

/* Reports the holds that a FORCEUNLOCK ended as lost. */
static void lose_forced_holds(struct engine *eng, struct lock *lock,
                              const struct pending_release *d)
{
    struct hold *h;

    while ((h = release_find_forced(lock, d)) != NULL) {
        hold_lost_by_force(eng, h, d->call == NULL ? 0 : d->call->ref.conn);
    }
}

/* The request that an UNLOCK ends waits here: it was granted through another daemon. */
static struct waiter *waiter_of_ended(const struct engine *eng, const struct lock *lock,
                                      const struct pending_release *d)
{
    const struct request *request =
        request_find(eng, lock_name(lock), release_request_id(d));

    return request == NULL ? NULL : request->waiter;
}

/* Ends that wait, or that of the MLOCK whose request it is: what is kept of the request
 * in Redis, so that the request does not begin again, may be lost there. `left`: as
 * UNLOCK is answered. */
static void end_wait_of_ended(struct engine *eng, const struct lock *lock,
                              const struct pending_release *d, int64_t left)
{
    struct waiter *w = waiter_of_ended(eng, lock, d);

    if (w != NULL) {
        request_over(eng, w->request, left);
        waiter_end_error(eng, w, LOCK_NOTHELD, TEXT_OVER, false);
    } else {
        mlock_on_unlocked(eng, lock_name(lock), release_request_id(d));
    }
}

/* Ends the local entry of a release, as the entry is gone from Redis. `left`: how many
 * entries its owner still has there. `elsewhere`: it had been released before, through
 * another daemon. */
static void end_local_entry(struct engine *eng, struct pending_release *d, int64_t left,
                            bool elsewhere)
{
    struct entry *e = d->local;
    struct hold *h = e == NULL ? NULL : e->hold;
    bool ran_out;

    if (e == NULL) {
        return;
    }
    ran_out = left == 0 && release_is_if_keeper(d) && entry_has_run_out(eng, e);
    pending_release_unlink(d);
    entry_over(eng, e, release_is_if_keeper(d) ? -1 : left);
    eng->stats.releases += left == 0 && !hold_is_rest(h);
    if (!ran_out) {
        if (left == 0 && !elsewhere && hold_has_one_entry(h) && !hold_is_rest(h)) {
            emit_if_heard(eng, NOTICE_RELEASED, h);
        }
        emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
        entry_free(eng, e);
    }
    if (h->entries == NULL) {
        hold_forget(eng, h, true);
    } else if (ran_out) {
        hold_expired(eng, h);
    } else if (left == 0) {
        hold_lost(eng, h); /* it has entries that we believed in */
    } else {
        if (eng->quorum) {
            renew_request(eng, h); /* only a minority may have the others */
        }
        hold_schedule_renewal(eng, h);
    }
}

/* The lock was freed. `yielded`: for others' sake, so that our head stands back;
 * `listeners`: so many others listened then, 0: not known. */
static void on_freed(struct engine *eng, struct lock *lock, bool yielded,
                     uint32_t listeners)
{
    lock->yields.handovers = 0;
    lock->yields.since = NEVER;
    last_answer_over(lock);
    if (lock_head(lock) == NULL) {
        return;
    }
    if (yielded) {
        yield_begin(eng, lock, listeners);
    }
    lock_ask(eng, lock);
}

static void answer_release(struct engine *eng, struct pending_release *d, int64_t value)
{
    if (d->call != NULL) {
        emit_int(eng, d->call->ref, value);
        pending_request_free(eng, d->call);
    }
}

static void answer_error(struct engine *eng, struct pending_release *d,
                         enum lock_error error, struct span text)
{
    if (d->call != NULL) {
        emit_error(eng, d->call->ref, error, text);
        pending_request_free(eng, d->call);
    }
}

/* The release took an owner's last entry, or a value hold, without this daemon knowing
 * which one that was: a hold of that owner, or value, which is known from before the
 * release is over as well. */
static void forget_hold_of_owner(struct engine *eng, struct lock *lock,
                                 const struct pending_release *d, struct asked asked)
{
    const struct target *target = &d->target;
    struct hold *h;

    if ((target->kind != TARGET_OWNER && target->kind != TARGET_VALUE) ||
        release_is_forced(d)) {
        return;
    }
    h = target->kind == TARGET_VALUE
            ? lock_value_hold(lock, target->field)
            : lock_held_by(lock, target->field, target->lock_kind);
    if (h != NULL && h->confirmed <= asked.at) {
        emit_if_heard(eng, NOTICE_RELEASED, h);
        hold_forget(eng, h, true);
    }
}

/* Whether `spec` was not served because too few permits are free. */
static bool lacks_permits(const struct acquire_spec *spec, const struct op_result *r)
{
    return spec->terms.lock_kind == KIND_PERMITS &&
           r->permits.free < spec->terms.permits;
}

/* An UNLOCK may name a waiter that is not the head, and whose time is over when Redis
 * says that the lock has not moved to it: the answer to the head decides for that one,
 * too. */
static void decide_named(struct engine *eng, struct waiter *named)
{
    if (!waiter_is_head(named) && waiter_ends_next(named) && !named->maybe_granted) {
        waiter_await_answer(eng, named);
    }
}

/* The release ran. The client that released is answered before the waiter that the lock
 * moved to. */
static void on_released(struct engine *eng, struct lock *lock,
                        struct pending_release *d, struct inflight_op *o,
                        const struct op_result *r)
{
    struct waiter *waiter = o->claim.waiter;
    struct acquire_spec *spec = o->claim.spec == NULL ? NULL : spec_ref(o->claim.spec);
    struct asked asked = inflight_asked(o);
    bool yielded = r->release.freed && spec != NULL && !lacks_permits(spec, r);

    inflight_free(eng, o);
    fair_on_result(eng, lock, NULL, r);
    if (r->release.own_head) {
        fair_on_own_head(eng, lock);
    }
    lose_forced_holds(eng, lock, d);
    waiter = waiter == waiter_of_ended(eng, lock, d) ? NULL : waiter;
    end_wait_of_ended(eng, lock, d, r->count);
    end_local_entry(eng, d, r->count, false);
    if (r->count == 0) {
        forget_hold_of_owner(eng, lock, d, asked);
    }
    answer_release(eng, d, release_is_forced(d) ? 1 : r->count);
    if (d->cause == RELEASE_UNDO) {
        last_answer_withdrawn(eng, lock);
    }
    pending_release_free(eng, lock, d);
    if (r->release.rest_ms > 0) {
        rest_begin(eng, lock, r->token, r->release.rest_ms, asked);
    }
    if (r->release.freed) {
        on_freed(eng, lock, yielded, r->release.listeners);
    }
    if (r->moved && r->status == OP_NOREPLICAS) {
        acquire_unacked(eng, lock, spec, waiter, r, asked);
    } else if (r->moved) {
        lock->yields.handovers++;
        eng->stats.handovers++;
        acquire_granted(eng, lock, spec, waiter, r, asked);
    } else if (!r->release.freed && waiter != NULL &&
               waiter->spec->terms.lock_kind == KIND_READ) {
        lock->readers_in = true; /* still held, but they may be let in */
        lock_ask(eng, lock);
    } else if (waiter != NULL && !r->release.freed && waiter_ends_next(waiter)) {
        last_answer_held(eng, lock,
                         TTL_NONE); /* its owner has more entries, or it rests */
        waiter_end_unserved(eng, waiter);
    } else if (waiter != NULL) {
        decide_named(eng, waiter);
    }
    spec_unref(eng, spec);
}

/* Redis knows neither the entry nor of its release, and the owner has more entries: a
 * renewal finds out whether those are there. */
static void drop_missing_entry(struct engine *eng, struct pending_release *d)
{
    struct entry *e = d->local;
    struct hold *h = e->hold;

    pending_release_unlink(d);
    entry_over(eng, e, -1);
    emit_held_end(eng, e, HELD_RELEASED, LOSS_GONE);
    entry_free(eng, e);
    renew_request(eng, h);
    hold_schedule_renewal(eng, h);
    answer_error(eng, d, LOCK_NOTHELD, TEXT_NOT_THERE);
}

/* For how long the name still rests after a release whose hold is not there: an earlier
 * sending may have left a rest that Redis has lost since. */
static uint64_t rest_lost_ms(const struct engine *eng, const struct pending_release *d)
{
    const struct hold *h = d->local == NULL ? NULL : d->local->hold;

    if (h == NULL || hold_is_rest(h) || d->skips_rest || release_is_forced(d) ||
        d->state != RELEASE_SENT_AGAIN) {
        return 0;
    }
    return hold_atleast_left(eng, h);
}

/* The release ended nothing: tells the client why, if one waits, and drops the release.
 */
static void fail_release(struct engine *eng, struct lock *lock,
                         struct pending_release *d, enum lock_error error,
                         struct span text)
{
    answer_error(eng, d, error, text);
    pending_release_free(eng, lock, d);
}

/* Another daemon may put back what is not there. Asks again while the others reconnect:
 * they put it back, or find the tombstone, which tells then that there was something to
 * end. After that it is not there for certain, if it has a tombstone. False: it is not
 * to be answered that way. */
static bool await_restore(struct engine *eng, struct lock *lock,
                          struct pending_release *d)
{
    struct pending_request *c = d->call;

    if (c == NULL || !may_come_back(eng, lock, d)) {
        return false;
    }
    if (peers_may_restore(eng) && eng->now + RESTORE_PAUSE_MS < c->deadline) {
        c->release = NULL;
        d->call = NULL;
        pending_release_free(eng, lock, d);
        pending_request_retry(eng, c, RESTORE_PAUSE_MS);
        return true;
    }
    if (release_is_vague(d) || release_is_forced(d)) {
        fail_release(eng, lock, d, LOCK_BACKEND, TEXT_MAY_COME_BACK);
        return true;
    }
    return false;
}

/* OP_NOTHELD: there is nothing, or nothing any more, to release. */
static void on_not_held(struct engine *eng, struct lock *lock,
                        struct pending_release *d)
{
    struct hold *h = d->local == NULL ? NULL : d->local->hold;
    bool ran = release_may_have_ended_it(d);
    uint64_t rest_ms = rest_lost_ms(eng, d);
    uint64_t token = h == NULL ? 0 : h->token;

    if (await_restore(eng, lock, d)) {
        lock_ask(eng, lock);
        return;
    }
    lock->exempt = 0; /* others may have been granted what was believed to be held */
    if (ran && !release_is_forced(d) && h != NULL && !hold_has_one_entry(h)) {
        drop_missing_entry(eng, d);
    } else if (ran && !release_is_forced(d)) {
        /* We held it when this was first sent: it was this release that ended it. */
        end_wait_of_ended(eng, lock, d, 0);
        end_local_entry(eng, d, 0, false);
        answer_release(eng, d, 0);
    } else if (release_is_forced(d)) {
        answer_release(eng, d, ran ? 1 : 0);
        lose_forced_holds(eng, lock, d);
    } else {
        answer_error(eng, d, LOCK_NOTHELD, TEXT_NOT_THERE);
        if (h != NULL) {
            hold_lost(eng, h);
        }
    }
    pending_release_free(eng, lock, d);
    if (rest_ms > 0) {
        rest_put_back(eng, lock, token, rest_ms, true, REST_GIVEN_UP);
    }
    lock_ask(eng, lock);
}

void pending_release_give_up(struct engine *eng, struct lock *lock,
                             struct pending_release *d)
{
    struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        if (release_was_sent(d) && release_forces(d, h)) {
            hold_set_uncertain(eng, h);
            renew_request(eng, h);
        }
    }
    answer_error(eng, d, LOCK_BACKEND, trouble_text(eng));
    pending_release_free(eng, lock, d);
}

/* OP_ENDED: a tombstone says that this release, or one through another daemon, has
 * run. */
static void on_ended(struct engine *eng, struct lock *lock, struct pending_release *d,
                     const struct op_result *r)
{
    end_wait_of_ended(eng, lock, d, r->count);
    end_local_entry(eng, d, r->count, d->tries == 1);
    answer_release(eng, d, release_is_forced(d) ? 0 : r->count);
    pending_release_free(eng, lock, d);
    lock_ask(eng, lock);
}

/* OP_ELSEWHERE: another instance keeps the entry, so that it is forgotten here. */
static void on_kept_elsewhere(struct engine *eng, struct lock *lock,
                              struct pending_release *d)
{
    struct entry *e = d->local;

    if (e != NULL) {
        struct hold *h = e->hold;

        pending_release_unlink(d);
        entry_free(eng, e);
        if (h->entries == NULL) {
            hold_forget(eng, h, false);
        }
    }
    pending_release_free(eng, lock, d);
}

/* OP_WRONGTYPE: the name is of the other lock class, or no lock at all. */
static void on_wrong_type(struct engine *eng, struct lock *lock,
                          struct pending_release *d, const struct op_result *r)
{
    struct hold *h = d->local == NULL ? NULL : d->local->hold;
    enum lock_class other;

    if (d->guessed && op_result_tells_class(r, d->lock_class, &other)) {
        /* lock_step() sends it again, as one of that class. */
        pending_release_requeue(lock, d, false);
        d->guessed = false;
        d->lock_class = other;
        spec_unref(eng, d->next); /* waiters here wait for the other class */
        d->next = NULL;
        return;
    }
    answer_error(eng, d, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
    if (h != NULL) {
        hold_lost(eng, h);
    }
    pending_release_free(eng, lock, d);
}

/* OP_ERROR, OP_LATE or OP_UNKNOWN: lock_step() sends the release again, with the same
 * claim, unless there is no use in that any more. */
static void retry_release(struct engine *eng, struct lock *lock,
                          struct pending_release *d, const struct op_result *r)
{
    bool in_doubt;

    if (r->status == OP_ERROR) {
        answer_error(eng, d, LOCK_BACKEND, r->text);
    }
    lock_pause(eng, lock, PAUSE_ALL, inflight_retry_in(INFLIGHT_RELEASE, r->status));
    /* Of a quorum a minority may have run it when most were late. */
    pending_release_requeue(lock, d, r->status != OP_LATE || eng->quorum);
    /* A FORCEUNLOCK that may have run could throw out the next holder. */
    in_doubt = r->status != OP_LATE && release_is_forced(d) && release_is_vague(d);
    if (in_doubt || eng->now >= d->give_up_at || d->tries >= RELEASE_TRIES_MAX) {
        pending_release_give_up(eng, lock, d);
        lock_ask(eng, lock);
    }
}

void on_release_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r)
{
    struct lock *lock = o->lock;
    struct pending_release *d = o->claim.release;
    struct waiter *next = o->claim.waiter;
    bool ran = r->status == OP_OK || r->status == OP_NOREPLICAS;

    if ((ran || r->status == OP_ENDED) && d->local == NULL && !release_is_forced(d)) {
        /* The hold became known here after the release was sent. */
        d->local = lock_find_target(lock, &d->target);
    }
    if (ran) {
        release_log_add(eng, lock, d);
        on_released(eng, lock, d, o, r);
        return;
    }
    inflight_free(eng, o);
    if (next != NULL && inflight_retry_in(INFLIGHT_RELEASE, r->status) == RETRY_NEVER) {
        decide_named(eng, next);
    }
    switch (r->status) {
    case OP_ENDED:
        on_ended(eng, lock, d, r);
        break;
    case OP_NOTHELD:
        on_not_held(eng, lock, d);
        break;
    case OP_ELSEWHERE:
        on_kept_elsewhere(eng, lock, d);
        break;
    case OP_AMBIGUOUS:
        fail_release(eng, lock, d, LOCK_ERR, TEXT_BOTH);
        break;
    case OP_WRONGTYPE:
        on_wrong_type(eng, lock, d, r);
        break;
    case OP_ERROR:
    case OP_LATE:
    case OP_UNKNOWN:
        retry_release(eng, lock, d, r);
        break;
    default: /* no other status is one of a release */
        pending_release_requeue(lock, d, false);
        break;
    }
}
