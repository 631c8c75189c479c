/* A grant from Redis: recorded and delivered, or undone. */
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/fair/fair.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/lease_shortening.h"
#include "engine/hold/loan.h"
#include "engine/hold/loss.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/hold/recent_asks.h"
#include "engine/leader/followed_names.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/lock/permits.h"
#include "engine/lock/probe.h"
#include "engine/multi/mlock.h"
#include "engine/recovery/peers.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "engine/wait/waiter.h"

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
        w->undone = r->loan_token != 0 ? r->loan_token : r->token;
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
    last_answer_unacked(eng, lock);
    last_answer_ungiven(eng, lock);
    lock_open_activity(eng, lock)->ask_after = eng->now + ERROR_PAUSE_MS;
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
        waiter_ask_again(eng, waiter);
    }
}

/* Makes the entry that the grant is, in the hold that it belongs to. */
static struct entry *record_grant(struct engine *eng, struct lock *lock,
                                  struct acquire_spec *spec, const struct op_result *r,
                                  struct asked asked)
{
    char made[TOKEN_FIELD_MAX];
    enum lock_kind kind = lock_mode_of_hold(spec->lock_kind);
    struct span field = spec_field(spec);
    struct entry *e;
    struct hold *h;

    if (field.len == 0) {
        field = token_field(made, r->token, kind == KIND_WRITE);
    }
    h = lock_accept_holder(eng, lock, kind, field, r->token);
    if (h == NULL) {
        h = hold_new(eng, lock, kind, field, r->token);
        h->user = spec->user; /* before the notice, which tells whose hold it is */
        emit_if_heard(eng, NOTICE_GRANTED, h);
    }
    h->user = h->user == 0 ? spec->user : h->user;
    h->keeper_key = h->keeper_key || (r->attached && spec->kind != OWNER_NAMED) ||
                    (kind == KIND_READ && spec->kind == OWNER_ID);
    hold_confirm(eng, h, asked);
    e = hold_add_entry(eng, h, spec);
    if (!list_empty(&lock->activity->releases)) {
        /* A connection that came to the hold by RENEW may have left meanwhile. */
        (void)pending_release_withdraw(eng, lock, hold_field(h), spec_entry(spec));
    }
    e->since = r->attached ? asked.at : e->since;
    e->asked = asked.at - asked.ago_ms;
    e->taken_over = e->taken_over || r->attached;
    if (r->loan_token != 0) {
        h->loan_distance = (uint32_t)(r->loan_token - r->token);
    }
    return e;
}

/* Retains, for KEEP, a grant whose client is not connected. */
static void retain_grant(struct engine *eng, struct entry *e,
                         const struct acquire_spec *spec)
{
    if (!entry_is_attached(e)) { /* otherwise its client came by RENEW */
        entry_open_extra(eng, e)->until = e->hold->until;
        e->spec->keep_ms = spec->keep_ms;
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
                              .kind = spec->lock_kind,
                              .name = lock_name(e->hold->lock),
                              .owner = spec->kind == OWNER_NAMED
                                           ? field_owner(spec_field(spec))
                                           : SPAN_NONE,
                              .id = spec_id(spec),
                              .user = spec->user };
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
        waiter_ask_again(eng, w);
    }
}

/* Redis has gone back to before a grant was undone. Others may have been granted since,
 * with greater tokens. A named owner's token may be that of its other entries. */
static bool was_undone(const struct waiter *w, const struct op_result *r)
{
    return r->token <= w->undone && (w->spec->kind != OWNER_NAMED || r->attached);
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
    return w->spec->kind == OWNER_NAMED && !r->attached && r->count > 1 &&
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
    bool found = is_found(
        spec, r, may_be_mine(eng, claimed_before) || undo_cancelled || w->undone != 0);
    struct asked own = asked;

    /* The client came back while the lock was asked for on KEEP's terms, and wants
     * less. */
    if (w->session != NULL && spec->lease == LEASE_FIXED &&
        spec->lease_ms < own.lease_ms) {
        own.lease_ms = spec->lease_ms;
    }
    if (!asked_leaves_time(eng, w->lock, own) || was_cut(eng, w, asked)) {
        return_grant(eng, w, r, found, SPAN("Redis granted too late"));
        return true;
    }
    if (is_of_doubtful_hold(eng, w, r)) {
        lock_open_activity(eng, w->lock)->ask_after = eng->now + ERROR_PAUSE_MS;
        return_grant(eng, w, r, false, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (!undo_cancelled && was_undone(w, r)) {
        return_grant(eng, w, r, false, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (spec->kind == OWNER_NAMED &&
        lock_owner_is_others(w->lock, field_owner(spec_field(spec)), spec->user)) {
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
    bool ask = lock->ask;

    if (was.session != NULL) {
        was.call = waiter_call(w);
    }
    histogram_add(&eng->timings.wait, (eng->now - w->began) * 1000);
    emit_wait_end(eng, w, WAIT_GRANTED, LOCK_ERR);
    w->session = NULL;
    list_del(&w->in_session);
    w->request = NULL;
    if (was.request != NULL) {
        was.request->waiter = NULL;
    }
    fair_granted(eng, w, r);
    waiter_remove(eng, w);
    lock->ask = ask; /* the new head knows as much as the op that granted */
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
        emit_grant(eng, was->call, entry_attach(eng, e, was->session), asked.at);
        hold_schedule_renewal(eng, e->hold);
    }
}

/* The lock is lent to this daemon with that grant, or the grant comes from the loan. */
static void hold_from_loan(struct engine *eng, struct hold *h,
                           const struct op_result *r, struct asked asked)
{
    struct loan *loan = h->lock->activity->loan;

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

    return head != NULL && head->spec->lock_kind == KIND_READ &&
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
    bool first_reader = spec->lock_kind == KIND_READ && !lock_is_read_here(eng, lock);
    struct granted_waiter was = take_off_queue(eng, waiter, r);
    struct entry *e;

    if (was.member != NULL &&
        lock->activity->last_answer.held_at >= was.member->mlock->since) {
        was.member->mlock->hindered = true;
    }
    last_answer_served(eng, lock);

    e = record_grant(eng, lock, spec, r, asked);
    if (r->loan_token != 0) {
        hold_from_loan(eng, e->hold, r, asked);
    }
    if (was.request != NULL) {
        entry_open_extra(eng, e)->request = was.request;
        was.request->entry = e;
    }
    if (was.member != NULL) {
        mlock_on_entry(eng, was.member, e, asked.at);
    }
    if (spec->lock_kind == KIND_PERMITS) {
        permits_seen(eng, lock, r);
    } else {
        lock_seen(eng, lock, r->id, (int64_t)asked.lease_ms, e->hold->lock_kind);
    }
    lock->readers_in = lock->readers_in || first_reader ||
                       (spec->lock_kind == KIND_READ && reader_is_left_out(eng, lock));
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

void acquire_grant_from_loan(struct engine *eng, struct lock *lock, struct waiter *w)
{
    const struct loan *loan = lock->activity->loan;
    struct op_result r = {
        .id = loan->asked.op, .token = loan->next, .loan_token = loan->token, .count = 1
    };
    struct acquire_spec *spec = spec_ref(w->spec);

    inflight_saw_token(eng, r.token);
    eng->stats.local_grants++;
    accept_grant(eng, w, spec, &r, loan->asked);
    spec_unref(eng, spec);
}
