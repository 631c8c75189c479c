/* Asks Redis for the head of a queue, and for other waiters that must ask for
 * themselves. */
#include "engine/acquire.h"
#include "engine/engine_priv.h"

#include "engine/deadlock.h"
#include "engine/loss_check.h"

/* The op ran: a waiter may be served now. */
static void take_limit(struct engine *eng, struct lock *lock, uint32_t limit)
{
    lock->limit = limit;
    last_answer_over(lock);
    if (lock_head(lock) != NULL) {
        lock_ask(eng, lock);
    }
}

static void answer_limit(struct engine *eng, const struct pending_request *c,
                         const struct op_result *r)
{
    switch (r->status) {
    case OP_OK:
        emit_int(eng, c->ref, 1);
        break;
    case OP_NOSEMAPHORE:
        emit_int(eng, c->ref, 0);
        break;
    case OP_BUSY:
        emit_error(eng, c->ref, LOCK_ERR, TEXT_PERMITS_OUT);
        break;
    default:
        emit_op_error(eng, c->ref, r);
        break;
    }
}

void on_limit_reply(struct engine *eng, struct inflight_op *o,
                    const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct lock *lock = o->lock;

    if (pending_request_was_retried(eng, o, r)) {
        return;
    }
    if (r->status == OP_OK && lock->lock_class == CLASS_SEMAPHORE) {
        take_limit(eng, lock, r->permits.limit);
    }
    inflight_free(eng, o);
    if (c != NULL) {
        answer_limit(eng, c, r);
        pending_request_free(eng, c);
    }
}

/* A grant from Redis: recorded and delivered, or undone. */

/* Whether the op found a hold that another daemon, or an earlier run of this one, was
 * granted, and that a client may rely on. Without an ID only this daemon can ask for
 * it. `mine`: an earlier op with that claim may be what granted it. */
static bool is_found(const struct acquire_spec *spec, const struct op_result *r,
                     bool mine)
{
    return r->attached && !mine && spec_id(spec).len != 0;
}

/* Whether an earlier op may have been granted. In a quorum, some of the servers may
 * have granted it without a majority. */
static bool may_be_mine(const struct engine *eng, bool claimed_before)
{
    return claimed_before || eng->quorum;
}

/* Undoes a waiter's grant, unless it is a hold that was found; with an ID the grant is
 * asked for again, instead. */
static void undo_grant(struct engine *eng, struct waiter *w, const struct op_result *r,
                       bool found)
{
    if (!found && pending_release_undo(eng, w->lock, w->spec)) {
        w->undo_token = r->loan_token != 0 ? r->loan_token : r->token;
    }
    fair_put_back(eng, w, r);
}

/* Redis granted a claim that nobody waits for any more. A client that went to another
 * daemon with its ID was granted, or found, the hold there. */
static void undo_unwanted_grant(struct engine *eng, struct lock *lock,
                                const struct acquire_spec *spec,
                                const struct op_result *r, bool claimed_before)
{
    if (!is_found(spec, r, !eng->stopping && may_be_mine(eng, claimed_before))) {
        (void)pending_release_undo(eng, lock, spec);
    }
}

void acquire_unacked(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked)
{
    bool found;

    eng->stats.unacked_grants++;
    last_answer_unacked(lock);
    last_answer_withdrawn(eng, lock);
    lock_pause(eng, lock, PAUSE_ASKS, ERROR_PAUSE_MS);
    if (waiter == NULL) {
        undo_unwanted_grant(eng, lock, spec, r, asked.claimed_before);
        return;
    }
    found = is_found(spec, r, may_be_mine(eng, waiter->maybe_granted));
    waiter->maybe_granted = false;
    undo_grant(eng, waiter, r, found);
    if (waiter_ends_next(waiter)) {
        waiter_end_error(eng, waiter, LOCK_NOREPLICAS, TEXT_NO_REPLICAS, false);
    } else {
        waiter_retry(eng, waiter);
    }
}

/* Makes the entry that the grant is, in the hold that it belongs to. */
static struct entry *record_grant(struct engine *eng, struct lock *lock,
                                  struct acquire_spec *spec, const struct op_result *r,
                                  struct asked asked)
{
    char made[TOKEN_FIELD_MAX];
    enum lock_kind lock_kind = lock_kind_of_hold(spec->terms.lock_kind);
    struct span field = spec_field(spec);
    struct entry *e;
    struct hold *h;

    if (field.len == 0) {
        field = token_field(made, r->token, lock_kind == KIND_WRITE);
    }
    h = lock_accept_holder(eng, lock, lock_kind, field, r->token);
    if (h == NULL) {
        h = hold_new(eng, lock, lock_kind, field, r->token);
        h->user =
            spec->terms.user; /* before the notice, which tells whose hold it is */
        emit_if_heard(eng, NOTICE_GRANTED, h);
    }
    h->user = h->user == 0 ? spec->terms.user : h->user;
    h->keeper_key = h->keeper_key || (r->attached && spec->owner_kind != OWNER_NAMED) ||
                    (lock_kind == KIND_READ && spec->owner_kind == OWNER_ID);
    hold_confirm(eng, h, asked);
    e = hold_add_entry(eng, h, spec);
    if (!list_empty(&lock->releases)) {
        /* A connection that came to the hold by RENEW may have left meanwhile. */
        (void)pending_release_withdraw(eng, lock, hold_field(h), spec_entry(spec));
    }
    e->since = r->attached ? asked.at : e->since;
    e->asked = asked.at - asked.ago_ms;
    e->taken_over = e->taken_over || r->attached;
    if (r->loan_token != 0) {
        h->loan_token = r->loan_token;
    }
    return e;
}

/* Retains, for KEEP, a grant whose client is not connected. */
static void retain_grant(struct engine *eng, struct entry *e,
                         const struct acquire_spec *spec)
{
    if (!entry_is_attached(e)) { /* otherwise its client came by RENEW */
        e->until = e->hold->until;
        e->spec->terms.keep_ms = spec->terms.keep_ms;
        entry_retain(eng, e);
    }
}

/* The grant was asked for while its client was away, with KEEP as its lease: asks for
 * the full lease, and answers `call` then, by `last` at the latest. */
static void extend_grant(struct engine *eng, struct entry *e,
                         const struct acquire_spec *spec, struct call_ref call,
                         uint64_t last)
{
    struct lock_req again = { .from = call,
                              .name = lock_name(e->hold->lock),
                              .terms = spec->terms };
    struct pending_request *c;

    entry_set_retained(eng, e, !entry_is_attached(e));
    c = pending_request_regrant(eng, e, &again);
    if (last < c->deadline) {
        c->deadline = last;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST,
                  last > eng->now ? last : eng->now + 1);
    }
}

/* When a LOCK has to be answered at the latest. */
static uint64_t answer_by(const struct engine *eng, const struct waiter *w)
{
    uint64_t last = w->since + eng->cfg.redis_timeout_ms;

    return w->deadline > last ? w->deadline : last;
}

/* Undoes a grant that cannot be given out, unless it was found, and asks again. */
static void return_grant(struct engine *eng, struct waiter *w,
                         const struct op_result *r, bool found, struct span text)
{
    undo_grant(eng, w, r, found);
    if (waiter_ends_next(w)) {
        waiter_end_error(eng, w, LOCK_BACKEND, text, false);
    } else {
        waiter_retry(eng, w);
    }
}

/* Redis has gone back to before a grant was undone. Others may have been granted
 * since, with greater tokens. A named owner's token may be that of its other entries.
 */
static bool was_undone(const struct waiter *w, const struct op_result *r)
{
    return r->token <= w->undo_token &&
           (w->spec->owner_kind != OWNER_NAMED || r->attached);
}

/* The owner that the waiter named has become another user's since it joined the queue:
 * its entry is given back, and the wait ends with NOPERM. */
static void refuse_grant_of_others(struct engine *eng, struct waiter *w)
{
    w->maybe_granted = true; /* so that the entry is undone */
    waiter_end_error(eng, w, LOCK_NOPERM, TEXT_OTHERS, false);
}

/* Whether a shorter lease, asked for later for another entry of the owner, is over by
 * now, so that this grant is over as well, and its hold is forgotten. */
static bool was_cut(const struct engine *eng, const struct waiter *w,
                    struct asked asked)
{
    struct span field = spec_field(w->spec);

    return field.len != 0 && lock_hold_of(w->lock, field) == NULL &&
           lock_shortened_since(eng, w->lock, field, asked.op);
}

/* Whether the grant enters another daemon's hold that may have been released: Redis has
 * lost its last writes, and that daemon may be about to put back who was granted since.
 */
static bool is_of_doubtful_hold(const struct engine *eng, const struct waiter *w,
                                const struct op_result *r)
{
    return w->spec->owner_kind == OWNER_NAMED && !r->attached && r->count > 1 &&
           peers_may_restore(eng) && lock_hold_of(w->lock, spec_field(w->spec)) == NULL;
}

/* Whether the waiter must not have this grant; the grant has been dealt with then.
 * `claimed_before`: an earlier op with that claim may be what granted it.
 * `undo_cancelled`: the undo of an earlier grant of that claim had not been sent yet.
 */
static bool grant_is_rejected(struct engine *eng, struct waiter *w,
                              const struct op_result *r, struct asked asked,
                              bool claimed_before, bool undo_cancelled)
{
    const struct acquire_spec *spec = w->spec;
    bool found = is_found(spec, r,
                          may_be_mine(eng, claimed_before) || undo_cancelled ||
                              w->undo_token != 0);
    struct asked own = asked;

    /* The client came back while the lock was asked for on KEEP's terms, and wants
     * less. */
    if (w->session != NULL && spec->lease == LEASE_FIXED &&
        spec->terms.lease_ms < own.lease_ms) {
        own.lease_ms = spec->terms.lease_ms;
    }
    if (!answer_leaves_time(eng, w->lock, own) || was_cut(eng, w, asked)) {
        return_grant(eng, w, r, found, SPAN("Redis granted too late"));
        return true;
    }
    if (is_of_doubtful_hold(eng, w, r)) {
        lock_pause(eng, w->lock, PAUSE_ASKS, ERROR_PAUSE_MS);
        return_grant(eng, w, r, false, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (!undo_cancelled && was_undone(w, r)) {
        return_grant(eng, w, r, false, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (spec->owner_kind == OWNER_NAMED &&
        lock_owner_is_others(w->lock, field_owner(spec_field(spec)),
                             spec->terms.user)) {
        refuse_grant_of_others(eng, w);
        return true;
    }
    return false;
}

/* The parts of a granted waiter that its entry and its answer need after its end. */
struct granted_waiter {
    struct request *request;
    struct session *session; /* NULL: no connection waited */
    struct call_ref call;
    struct mlock_member *member;
    uint64_t answer_by;
};

/* Takes a waiter that was granted off its queue, and frees it. */
static struct granted_waiter take_off_queue(struct engine *eng, struct waiter *w,
                                            const struct op_result *r)
{
    struct granted_waiter was = { .request = w->request,
                                  .session = w->session,
                                  .member = w->member,
                                  .answer_by = answer_by(eng, w) };
    struct lock *lock = w->lock;
    enum lock_state state = lock->state;

    if (was.session != NULL) {
        was.call = waiter_call(w);
    }
    histogram_add(&eng->timings.wait, (eng->now - w->began) * 1000);
    emit_wait_end(eng, w, WAIT_GRANTED, LOCK_ERR, r->token);
    w->session = NULL;
    list_del(&w->in_session);
    w->request = NULL;
    if (was.request != NULL) {
        was.request->waiter = NULL;
    }
    fair_granted(eng, w, r);
    waiter_remove(eng, w);
    if (lock->state != state) {
        lock_set_state(lock, state); /* the new head knows as much as the granting op */
    }
    return was;
}

/* Answers a grant, or retains it for a client that is not connected, or first extends a
 * lease that was asked for KEEP only. */
static void deliver_grant(struct engine *eng, struct entry *e,
                          const struct acquire_spec *spec,
                          const struct granted_waiter *was, struct asked asked)
{
    if (was->session == NULL) {
        retain_grant(eng, e, spec);
    } else if (asked.lease_ms < spec_lease(eng, e->spec)) {
        extend_grant(eng, e, spec, was->call, was->answer_by);
        session_idle(eng, was->session);
    } else {
        mlock_answer_grant(eng, was->call, entry_attach(eng, e, was->session),
                           asked.at);
        hold_schedule_renewal(eng, e->hold);
    }
}

/* The lock is lent to this daemon with that grant, or the grant comes from the loan. */
static void hold_from_loan(struct engine *eng, struct hold *h,
                           const struct op_result *r, struct asked asked)
{
    struct loan *loan = h->lock->loan;

    if (loan == NULL || loan->token != r->loan_token) {
        loan_begin(eng, h, r->loan_token, asked);
        if (followed_name_is(eng, lock_name(h->lock))) {
            loan_end(eng, h->lock); /* that began while Redis was asked */
        }
        return;
    }
    loan->next = h->token + 1;
    loan->holder = h;
    loan_set_state(loan, LOAN_HELD);
}

/* Whether a reader is the first in line now that may join those who read, and has not
 * been asked for: it came, with a PRIORITY, before a writer who waits. */
static bool reader_is_left_out(const struct engine *eng, const struct lock *lock)
{
    const struct waiter *head = lock_head(lock);

    return head != NULL && head->spec->terms.lock_kind == KIND_READ &&
           head->in_flight == NULL && head->probe == PROBE_NONE &&
           !lock_blocks(eng, lock, head->spec);
}

/* Gives the lock to a waiter, who is off the queue first: what follows must not see it
 * wait. */
static void accept_grant(struct engine *eng, struct waiter *waiter,
                         struct acquire_spec *spec, const struct op_result *r,
                         struct asked asked)
{
    struct lock *lock = waiter->lock;
    bool first_reader =
        spec->terms.lock_kind == KIND_READ && !lock_is_read_here(eng, lock);
    struct granted_waiter was = take_off_queue(eng, waiter, r);
    struct entry *e;

    if (was.member != NULL && lock->last_answer.held_at >= was.member->mlock->since) {
        was.member->mlock->hindered = true;
    }
    last_answer_served(eng, lock);

    e = record_grant(eng, lock, spec, r, asked);
    if (r->loan_token != 0) {
        hold_from_loan(eng, e->hold, r, asked);
    }
    if (was.request != NULL) {
        e->request = was.request;
        was.request->entry = e;
    }
    if (was.member != NULL) {
        mlock_on_entry(eng, was.member, e, asked.at);
    }
    if (spec->terms.lock_kind == KIND_PERMITS) {
        permits_seen(eng, lock, r);
    } else {
        lock_seen(eng, lock, r->id, (int64_t)asked.lease_ms, e->hold->lock_kind);
    }
    lock->readers_in =
        lock->readers_in || first_reader ||
        (spec->terms.lock_kind == KIND_READ && reader_is_left_out(eng, lock));
    eng->stats.grants++;
    deliver_grant(eng, e, spec, &was, asked);
}

void acquire_granted(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked)
{
    bool claimed_before, undo_cancelled;

    if (waiter == NULL) {
        undo_unwanted_grant(eng, lock, spec, r, asked.claimed_before);
        return;
    }
    claimed_before = waiter->maybe_granted;
    waiter->maybe_granted = false;
    undo_cancelled = pending_release_cancel_undo(eng, lock, spec);
    if (!grant_is_rejected(eng, waiter, r, asked, claimed_before, undo_cancelled)) {
        if (spec->local) {
            recent_asks_granted(eng, lock);
        }
        accept_grant(eng, waiter, spec, r, asked);
    }
}

/* Grants the head of the queue the lock from its idle loan. */
static void acquire_grant_from_loan(struct engine *eng, struct lock *lock,
                                    struct waiter *w)
{
    const struct loan *loan = lock->loan;
    struct op_result r = {
        .id = loan->asked.op, .token = loan->next, .loan_token = loan->token, .count = 1
    };
    struct acquire_spec *spec = spec_ref(w->spec);

    inflight_saw_token(eng, r.token);
    eng->stats.local_grants++;
    accept_grant(eng, w, spec, &r, loan->asked);
    spec_unref(eng, spec);
}

enum { US_PER_MS = 1000 };

_Static_assert(LOCAL_WINDOW_MAX_MS *US_PER_MS <= OP_BLOCK_MAX,
               "a window has a token for each us");

/* A LOCK that may be local came: notes whether its name was asked for shortly before.
 */
static void local_grant_note(struct engine *eng, struct waiter *w)
{
    w->often = recent_asks_note(eng, w->lock);
}

static bool is_local(const struct waiter *w)
{
    return w->spec->local && w->member == NULL && w->session != NULL &&
           w->state != WAITER_REMOVED;
}

uint32_t local_grant_block(const struct engine *eng, const struct waiter *w)
{
    const struct list *behind = w->in_queue.next;
    const struct lock *lock = w->lock;
    bool wanted = w->often;

    if (!is_local(w) || lock->fair != NULL || eng->cfg.local_window_ms == 0 ||
        eng->now < eng->lends_after || followed_name_is(eng, lock_name(w->lock))) {
        return 0;
    }
    if (!wanted && waiter_is_head(w) && behind != &lock->queue) {
        wanted = is_local(container_of(behind, struct waiter, in_queue));
    }
    return wanted ? (uint32_t)eng->cfg.local_window_ms * US_PER_MS : 0;
}

/* The time, read now: this turn may have begun long ago. */
static uint64_t read_time(const struct engine *eng)
{
    uint64_t now = eng->read_clock == NULL ? eng->now : eng->read_clock();

    return now > eng->now ? now : eng->now;
}

/* Whether nothing has happened since Redis confirmed the loan that may have ended it,
 * and nothing is under way that may. */
static bool loan_is_certain(const struct engine *eng, const struct lock *lock,
                            const struct loan *loan)
{
    return eng->up && !answer_predates_store(eng, lock, loan->asked.op) &&
           list_empty(&lock->releases) && list_empty(&lock->waiting_for_restore) &&
           lock->fair == NULL && list_empty(&lock->holds) &&
           !lock_is_paused(eng, lock, PAUSE_ASKS) &&
           quarantine_until(eng, lock, KIND_PLAIN) == 0;
}

bool local_grant_try(struct engine *eng, struct lock *lock)
{
    struct loan *loan = lock->loan;
    struct waiter *head = lock_head(lock);

    if (!is_local(head) || head->in_flight != NULL || head->maybe_granted ||
        loan->next >= loan->token || !loan_is_certain(eng, lock, loan) ||
        read_time(eng) >= loan->lends_until) {
        return false;
    }
    acquire_grant_from_loan(eng, lock, head);
    return true;
}

static void send_acquire(struct engine *eng, enum inflight_kind kind, struct lock *lock,
                         struct waiter *w, bool reenter_only)
{
    struct inflight_op *in_flight = inflight_new(eng, kind, lock);
    struct op *op;

    in_flight->claim.waiter = w;
    in_flight->claim.spec = spec_ref(w->spec);
    in_flight->lease_ms = waiter_lease(eng, w);
    in_flight->claim.asked_ago_ms = waiter_asked_ago_ms(eng, w);
    w->in_flight = in_flight;
    op = inflight_op(eng, in_flight, OP_ACQUIRE);
    op->acquire.reenter_only = reenter_only;
    op->lock_class = lock->lock_class;
    op->acquire.claim = op_make_claim(eng, w->spec, in_flight->lease_ms);
    op->acquire.claim.asked_ago_ms = in_flight->claim.asked_ago_ms;
    op->acquire.claim.limit = lock->limit;
    fair_fill_claim(eng, op, w);
    if (kind == INFLIGHT_ASK && !reenter_only && !op->acquire.fair) {
        op->acquire.claim.block_us = local_grant_block(eng, w);
    }
    if (kind == INFLIGHT_ASK) {
        lock_begin_asking(lock, in_flight, true);
    }
}

static bool may_only_reenter(const struct engine *eng, const struct waiter *w)
{
    return eng->stopping ||
           quarantine_until(eng, w->lock, w->spec->terms.lock_kind) != 0;
}

void acquire_ask(struct engine *eng, struct lock *lock, struct waiter *w)
{
    send_acquire(eng, INFLIGHT_ASK, lock, w, may_only_reenter(eng, w));
}

void acquire_probe(struct engine *eng, struct waiter *w)
{
    waiter_set_probe(w, PROBE_NONE);
    send_acquire(eng, INFLIGHT_PROBE, w->lock, w, true);
}

void acquire_join(struct engine *eng, struct waiter *w)
{
    waiter_set_probe(w, PROBE_NONE);
    send_acquire(eng, INFLIGHT_PROBE, w->lock, w, may_only_reenter(eng, w));
}

/* Acquires several names by one op: in order, until one of them is not granted.
 *
 * Each name has an inflight_op of its own, as if it had been asked for alone, under an
 * op ID that is never sent. The op's result is dealt out to these. */

void acquire_ask_batch(struct engine *eng, struct waiter *const *waiters, size_t count,
                       bool all_or_none)
{
    struct inflight_op *all = inflight_new(eng, INFLIGHT_BATCH, NULL);

    all->batch.all_or_none = all_or_none;
    all->batch.parts = xcalloc(count, sizeof(struct inflight_op *));
    all->batch.count = count;
    for (size_t i = 0; i < count; i++) {
        struct waiter *w = waiters[i];
        struct inflight_op *part = inflight_new(eng, INFLIGHT_ASK, w->lock);

        part->claim.waiter = w;
        part->claim.spec = spec_ref(w->spec);
        part->lease_ms = waiter_lease(eng, w);
        w->in_flight = part;
        lock_begin_asking(w->lock, part, true);
        all->batch.parts[i] = part;
    }
    list_append(&eng->ops_to_send, &all->in_sent);
}

void acquire_send_batch(struct engine *eng, struct inflight_op *all)
{
    struct batch_item *items =
        effects_alloc(&eng->fx, all->batch.count * sizeof(*items));
    struct op *op;

    for (size_t i = 0; i < all->batch.count; i++) {
        const struct inflight_op *part = all->batch.parts[i];

        items[i] = (struct batch_item){
            .name = op_copy(eng, lock_name(part->lock)),
            .claim = op_make_claim(eng, part->claim.spec, part->lease_ms),
        };
        if (part->claim.waiter != NULL) {
            items[i].claim.block_us = local_grant_block(eng, part->claim.waiter);
        }
    }
    op = inflight_op(eng, all, OP_ACQUIRE_BATCH);
    op->group = all->batch.parts[0]->lock->group;
    op->batch.items = items;
    op->batch.count = all->batch.count;
    op->batch.all_or_none = all->batch.all_or_none;
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
    struct waiter *w = part->claim.waiter;
    struct acquire_spec *spec = spec_ref(part->claim.spec);

    inflight_free(eng, part);
    if (w != NULL) {
        w->maybe_granted = w->maybe_granted || maybe_granted;
        if (stands_alone(w)) {
            waiter_retry(eng, w);
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

    for (size_t i = 0; i < all->batch.count; i++) {
        struct inflight_op *part = all->batch.parts[i];
        struct op_result one = ran && i < r->batch.count ? r->batch.results[i] : *r;

        if (ran && one.status == OP_SKIPPED) {
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
               answer_leaves_time(eng, part->lock, inflight_asked(part));
        inflight_saw_token(eng, one.token);
        if (!loss_check_begin(eng, part, &one)) {
            on_acquire_reply(eng, part, &one);
        }
    }
    inflight_free(eng, all);
}

/* Handles the answer to an acquire: a grant, a wait that goes on, or an end. */

/* Whether the holder that a waiter's op found may be a waiter of this queue: the head's
 * grant may not be answered yet, or was not acknowledged and is about to be undone,
 * or has been since the op was sent. The head's own next answer decides then. */
static bool may_be_a_waiters(const struct lock *lock, const struct waiter *w,
                             uint64_t op)
{
    return op <= lock->last_answer.withdrawn_op ||
           ((w == NULL || !waiter_is_head(w)) &&
            (lock_is_asking(lock) || !list_empty(&lock->releases)));
}

/* Redis, or this daemon, may have stood still since the op was sent. Its answer counts
 * for those who waited then. */
static void end_outdated_answer(struct engine *eng, struct lock *lock,
                                struct asked asked)
{
    struct waiter *w;

    LIST_EACH_SAFE(w, &lock->queue, in_queue) {
        if (waiter_awaits_head(w) && w->since <= asked.at) {
            waiter_decide(eng, w);
        }
    }
    last_answer_over(lock);
}

static int64_t foreign_look_in(struct engine *eng, struct lock *lock, int64_t ttl_ms)
{
    uint64_t least = eng->foreign_names * 1000 / FOREIGN_LOOKS_MAX;
    uint64_t in;

    lock_note_foreign(eng, lock, true);
    in = (eng->now - lock->foreign_since) / FOREIGN_LOOK_PART;
    in = in < FOREIGN_LOOK_MS ? FOREIGN_LOOK_MS : in;
    in = in > FOREIGN_LOOK_MAX_MS ? FOREIGN_LOOK_MAX_MS : in;
    in = in < least ? least : in;
    return ttl_ms >= 0 && (uint64_t)ttl_ms < in ? ttl_ms : (int64_t)in;
}

/* Whether it is not known yet if anybody holds the name, and the head waits for that.
 * The answer to another waiter says no more; if the head that asked has left, the next
 * one asks. */
static bool lent_is_outlasted(struct engine *eng, struct lock *lock, struct waiter *w,
                              const struct op_result *r)
{
    struct waiter *head = lock_head(lock);
    bool lent = r->lent && lock->loan == NULL && list_empty(&lock->holds);

    if (head == NULL) {
        return false;
    }
    if (head != w) {
        return lent && (head->outlasting == OUTLASTS_NOW ||
                        (w == NULL && waiter_may_outlast(head)));
    }
    if (lent && waiter_outlast_loan(eng, w)) {
        last_answer_forget(lock);
        lock_seen(eng, lock, r->id, LENT_LOOK_MS, KIND_WRITE);
        return true;
    }
    waiter_end_outlasting(eng, w);
    return false;
}

static void on_acquire_busy(struct engine *eng, struct lock *lock, struct waiter *w,
                            enum lock_kind lock_kind, const struct op_result *r,
                            struct asked asked)
{
    uint64_t age = eng->now - asked.at;
    /* Too old to tell a null from: see LOCK in latchd-protocol(7). */
    bool outdated = age > eng->cfg.redis_timeout_ms ||
                    (r->ttl_ms != TTL_ABSENT && age > lock_recheck_in(eng, r->ttl_ms));
    uint64_t quarantine = quarantine_until(eng, lock, lock_kind);
    int64_t ttl_ms = r->ttl_ms;

    if (list_empty(&lock->holds) && lock->loan == NULL) {
        recent_asks_others(eng, lock);
    }
    if (lent_is_outlasted(eng, lock, w, r)) {
        if (w != NULL) {
            w->maybe_granted = false;
            if (!waiter_is_head(w) && (w->once || waiter_is_expiring(w))) {
                waiter_await_answer(eng, w);
            }
        }
        return;
    }
    if (ttl_ms == TTL_ABSENT && quarantine != 0) {
        ttl_ms = (int64_t)(quarantine - eng->now);
        last_answer_withheld(lock, quarantine);
    } else if (ttl_ms == TTL_ABSENT) {
        last_answer_over(lock);
    } else if (r->withheld) {
        last_answer_withheld(lock, eng->now + lock_recheck_in(eng, ttl_ms));
    } else if (!may_be_a_waiters(lock, w, asked.op)) {
        last_answer_held(eng, lock, ttl_ms);
    }
    if (ttl_ms == TTL_ABSENT) {
        lock_ask(eng, lock); /* free, but a probe may not take it: the head may */
    } else if (r->foreign) {
        lock_seen(eng, lock, r->id, foreign_look_in(eng, lock, ttl_ms), KIND_WRITE);
    } else if (lock->lock_class == CLASS_PLAIN || (w != NULL && waiter_is_head(w))) {
        /* A hold that excludes others from a read/write lock may admit the head. */
        lock_seen(eng, lock, r->id, ttl_ms, KIND_WRITE);
    }
    if (w != NULL) {
        w->maybe_granted = false;
        if ((w->once && (ttl_ms != TTL_ABSENT || !waiter_is_head(w))) ||
            waiter_is_expiring(w)) {
            waiter_decide(eng, w);
        }
    }
    if (outdated) {
        end_outdated_answer(eng, lock, asked);
    }
}

/* Redis was out of reach or too late, or refused. */
static void on_acquire_failed(struct engine *eng, struct lock *lock, struct waiter *w,
                              const struct acquire_spec *spec,
                              const struct op_result *r, bool claimed_before)
{
    bool may_have_run = r->status != OP_LATE;
    bool is_refused = may_have_run && r->status != OP_UNKNOWN;
    uint64_t retry_in = inflight_retry_in(INFLIGHT_ASK, r->status);

    /* a status that no ACQUIRE has is no reason to ask without a pause */
    lock_pause(eng, lock, PAUSE_ALL,
               retry_in == RETRY_NEVER ? ERROR_PAUSE_MS : retry_in);
    if (is_refused) {
        lock_ask(eng, lock);
    }
    if (w == NULL) {
        if (may_have_run || claimed_before) {
            (void)pending_release_undo(eng, lock, spec);
        }
        return;
    }
    w->maybe_granted = w->maybe_granted || may_have_run;
    if (is_refused && waiter_is_head(w)) {
        last_answer_refused(lock, r->text);
    }
    if (is_refused && waiter_ends_next(w)) {
        waiter_end_error(eng, w, LOCK_BACKEND, r->text, true);
    } else {
        waiter_retry(eng, w);
    }
}

/* Whether an op that found its hold at another daemon was sent long after its LOCK:
 * then the client has sent the LOCK to that daemon since. */
static bool is_retried_elsewhere(const struct waiter *w, struct asked asked)
{
    return w->session != NULL && asked.ago_ms > 0 && asked.at > w->since;
}

/* Redis grants nothing for a reason that asking again does not change. */
static void refuse_waiter(struct engine *eng, struct waiter *w, enum lock_error error,
                          struct span text)
{
    if (w != NULL) {
        w->maybe_granted = false;
        waiter_end_error(eng, w, error, text, false);
    }
}

/* Takes the answer to one ACQUIRE. `w` is NULL when its waiter is gone. */
static void on_acquire_answer(struct engine *eng, struct lock *lock,
                              struct acquire_spec *spec, struct waiter *w,
                              const struct op_result *r, struct asked asked)
{
    fair_on_result(eng, lock, w, r);
    yield_on_answer(eng, lock, r);
    if (r->status == OP_OK || (r->status == OP_BUSY && !r->foreign)) {
        lock_note_foreign(eng, lock, false);
    }
    switch (r->status) {
    case OP_OK:
        acquire_granted(eng, lock, spec, w, r, asked);
        break;
    case OP_BUSY:
        on_acquire_busy(eng, lock, w, spec->terms.lock_kind, r, asked);
        break;
    case OP_WRONGTYPE:
        refuse_waiter(eng, w, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_NOSEMAPHORE:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_NO_SEMAPHORE);
        break;
    case OP_BEYOND:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_BEYOND);
        break;
    case OP_OTHER_DATA:
        refuse_waiter(eng, w, LOCK_ERR, TEXT_OTHER_DATA);
        break;
    case OP_UPGRADE:
        refuse_waiter(eng, w, LOCK_DEADLOCK, TEXT_UPGRADE);
        break;
    case OP_OVER:
        refuse_waiter(eng, w, LOCK_NOTHELD, TEXT_OVER);
        break;
    case OP_ELSEWHERE:
        lock_pause(eng, lock, PAUSE_ALL, inflight_retry_in(INFLIGHT_ASK, r->status));
        if (w != NULL && w->session == NULL) {
            w->maybe_granted =
                false; /* its client has gone on through another daemon */
            waiter_remove(eng, w);
        } else if (w != NULL && is_retried_elsewhere(w, asked)) {
            w->maybe_granted = false;
            waiter_end_null(eng, w, false);
        } else if (w != NULL) {
            waiter_retry(eng, w); /* a newer op will do */
        }
        break;
    case OP_NOREPLICAS:
        acquire_unacked(eng, lock, spec, w, r, asked);
        break;
    case OP_LATE:
    case OP_UNKNOWN:
    case OP_ERROR:
    default: /* no other status is one of an acquire */
        on_acquire_failed(eng, lock, w, spec, r, asked.claimed_before);
        break;
    }
}

void on_acquire_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r)
{
    struct lock *lock = o->lock;
    struct waiter *waiter = o->claim.waiter;
    struct acquire_spec *spec = spec_ref(o->claim.spec);
    struct asked asked = inflight_asked(o);

    inflight_free(eng, o);
    on_acquire_answer(eng, lock, spec, waiter, r, asked);
    spec_unref(eng, spec);
}

/* Carries out LOCK requests: joins the queue, finds what the ID got before, or
 * refuses. */

static bool is_full(struct engine *eng, const struct lock_req *req)
{
    if (!lock_tries_once(&req->terms) && eng->waiter_count >= eng->cfg.max_waiters) {
        mlock_answer_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    if (eng->hold_count >= eng->cfg.max_holds) {
        mlock_answer_error(eng, req->from, LOCK_LIMIT, SPAN("max-holds reached"));
        return true;
    }
    return false;
}

/* Whether a waiter behind others has to ask Redis itself, because its owner or ID may
 * hold already. Not if another owner certainly holds. */
static bool needs_probe(const struct engine *eng, const struct lock *lock,
                        const struct acquire_spec *spec)
{
    bool may_hold = spec->owner_kind == OWNER_NAMED || spec_id(spec).len != 0;

    return may_hold && !lock_excludes(eng, lock, spec);
}

/* Whether the head may sleep without asking first: a certain hold of this daemon is in
 * its way. */
static bool known_held(const struct engine *eng, const struct lock *lock,
                       const struct waiter *w)
{
    return !w->once && !lock_is_asking(lock) && lock_blocks(eng, lock, w->spec) &&
           !needs_probe(eng, lock, w->spec);
}

/* Whether all waiters ahead want to read as well, so that this reader need not wait
 * for their answers. */
static bool may_join(const struct engine *eng, const struct lock *lock,
                     const struct acquire_spec *spec)
{
    return spec->terms.lock_kind == KIND_READ && lock->writers == 0 &&
           !lock_blocks(eng, lock, spec);
}

/* Decides what a waiter that has come, or come back, does first. */
static void start_wait(struct engine *eng, struct waiter *w)
{
    struct lock *lock = w->lock;

    lock_touch(eng, lock);
    if (w->in_flight != NULL) {
        return; /* asked already: that answer counts */
    }
    if (deadlock_refuses(eng, w)) {
        return;
    }
    if (waiter_is_head(w)) {
        if (!known_held(eng, lock, w)) {
            lock_ask(eng, lock);
        }
    } else if (may_join(eng, lock, w->spec)) {
        waiter_probe_later(eng, w, PROBE_JOIN);
    } else if (needs_probe(eng, lock, w->spec)) {
        /* A reader that was to join still is. */
        waiter_probe_later(eng, w, w->probe == PROBE_JOIN ? PROBE_JOIN : PROBE_REENTER);
    } else if (w->once) {
        /* Others are ahead. With Redis out of reach even that is not sure. */
        if (eng->up) {
            waiter_decide(eng, w);
        } else if (w->queue_full) {
            waiter_end_queue_full(eng, w);
        }
    }
}

/* Puts a request into its queue. NULL: the request has been answered. */
static struct waiter *enqueue_request(struct engine *eng, const struct lock_req *req)
{
    struct lock *lock = lock_get(eng, req->name);
    struct acquire_spec *spec;
    struct waiter *w;

    if (lock->lock_class != lock_class_of(req->terms.lock_kind) &&
        (lock_in_use(lock) || lock->latch_watch != NULL)) {
        mlock_answer_error(eng, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return NULL;
    }
    if (req->terms.owner.len != 0 &&
        lock_owner_is_others(lock, req->terms.owner, req->terms.user)) {
        mlock_answer_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
        return NULL;
    }
    lock_set_class(eng, lock, lock_class_of(req->terms.lock_kind));
    if (req->terms.limit != 0 && lock->limit == 0) {
        lock->limit = req->terms.limit;
    }
    spec = spec_new(eng, &req->terms, req->trace);
    w = waiter_new(eng, lock, session_get(eng, req->from.conn), req, spec);
    if (spec->local) {
        local_grant_note(eng, w);
    }
    if (req->terms.id.len != 0) {
        w->request = request_new(eng, req->name, spec);
        w->request->waiter = w;
        w->maybe_granted = pending_release_cancel_undo(eng, lock, spec);
    }
    return w;
}

static void new_wait(struct engine *eng, const struct lock_req *req)
{
    struct waiter *w = enqueue_request(eng, req);

    if (w != NULL) {
        start_wait(eng, w);
    }
}

/* The ID came again while its waiter waits: the wait goes on at its place, for the
 * newest request. */
static void wait_again(struct engine *eng, struct waiter *w, const struct lock_req *req)
{
    struct session *s;

    if (w->is_surplus && !lock_tries_once(&req->terms)) {
        mlock_answer_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return;
    }
    s = session_get(eng, req->from.conn);
    if (w->session != NULL) {
        struct session *old = w->session;

        mlock_answer_null(eng, waiter_call(w));
        w->session = NULL;
        list_del(&w->in_session);
        if (old != s) {
            session_idle(eng, old);
        }
    }
    if (req->terms.has & OPT_KEEP) {
        w->spec->terms.keep_ms = req->terms.keep_ms;
    }
    waiter_bind(eng, w, s, req);
    start_wait(eng, w);
}

/* The ID came again after its grant. Redis is asked even so, as the request may have
 * been ended through another daemon. */
static void grant_again(struct engine *eng, struct entry *e, const struct lock_req *req)
{
    if (entry_is_ending(e)) {
        mlock_answer_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else {
        (void)pending_request_regrant(eng, e, req);
    }
}

/* Whether a LOCK of that kind may be the request that is remembered. */
static bool same_kind(const struct request *request, enum lock_kind lock_kind)
{
    return request->lock_kind == lock_kind ||
           (request->found && lock_class_of(request->lock_kind) == CLASS_PLAIN &&
            lock_class_of(lock_kind) == CLASS_PLAIN);
}

/* The data that came with a request that waits or holds. */
static struct span request_data(const struct request *request)
{
    return (request->waiter != NULL ? request->waiter->spec : request->entry->spec)
        ->terms.data;
}

static void known_request(struct engine *eng, struct request *request,
                          const struct lock_req *req)
{
    if (user_differs(request->user, req->terms.user)) {
        mlock_answer_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
    } else if (request->over_at != NEVER) {
        mlock_answer_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
    } else if (!span_eq(request->owner, req->terms.owner)) {
        mlock_answer_error(eng, req->from, LOCK_ERR,
                           SPAN("that ID was used with another OWNER"));
    } else if (!same_kind(request, req->terms.lock_kind)) {
        mlock_answer_error(eng, req->from, LOCK_ERR,
                           SPAN("that ID was used with another kind"));
    } else if (mlock_uses(request) && !mlock_is_call(req->from)) {
        mlock_answer_error(eng, req->from, LOCK_ERR,
                           SPAN("that ID was used with MLOCK"));
    } else if (request->mlock == NULL &&
               !span_eq(request_data(request), req->terms.data)) {
        mlock_answer_error(eng, req->from, LOCK_ERR, TEXT_OTHER_DATA);
    } else if (request->waiter != NULL &&
               request->waiter->spec->terms.priority != req->terms.priority) {
        mlock_answer_error(eng, req->from, LOCK_ERR, TEXT_OTHER_PRIORITY);
    } else if (request->waiter != NULL) {
        wait_again(eng, request->waiter, req);
    } else {
        grant_again(eng, request->entry, req);
    }
}

void request_lock(struct engine *eng, const struct lock_req *req)
{
    struct request *request = request_find(eng, req->name, req->terms.id);

    if (eng->quorum && req->terms.lock_kind != KIND_PLAIN) {
        mlock_answer_error(eng, req->from, LOCK_ERR, TEXT_QUORUM);
    } else if (eng->quorum && req->terms.data.len != 0) {
        mlock_answer_error(eng, req->from, LOCK_ERR, SPAN("a quorum keeps no DATA"));
    } else if (eng->quorum && req->terms.atleast_ms != 0) {
        mlock_answer_error(eng, req->from, LOCK_ERR, SPAN("a quorum keeps no ATLEAST"));
    } else if (eng->stopping) {
        mlock_answer_error(eng, req->from, LOCK_GOAWAY, TEXT_GOING);
    } else if (request != NULL) {
        known_request(eng, request, req);
    } else if (!is_full(eng, req)) {
        new_wait(eng, req);
    }
}

bool lock_untouched(const struct engine *eng, struct span name, struct span id)
{
    const struct lock *lock = lock_find(eng, name);

    return quarantine_of_name(eng, name) == 0 && request_find(eng, name, id) == NULL &&
           (lock == NULL ||
            (list_empty(&lock->holds) && list_empty(&lock->queue) &&
             list_empty(&lock->releases) && !lock_is_asking(lock) && lock->refs == 0 &&
             lock->fair == NULL && lock->loan == NULL &&
             !lock_is_paused(eng, lock, PAUSE_ASKS)));
}

struct waiter *request_lock_enqueue(struct engine *eng, const struct lock_req *req)
{
    return enqueue_request(eng, req);
}

void request_lock_start(struct engine *eng, struct waiter *w)
{
    start_wait(eng, w);
}
