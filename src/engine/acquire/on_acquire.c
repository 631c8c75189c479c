/* What the answer to an acquire means: a grant, a wait that goes on, or an end. */
#include "engine/acquire/acquire.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_priv.h"
#include "engine/fair/fair.h"
#include "engine/lock/entry.h"
#include "engine/lock/hold.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/lock/waiter.h"
#include "engine/multi/mlock.h"
#include "engine/pending_request.h"
#include "engine/recovery/restore.h"
#include "engine/release/pending_release.h"
#include "engine/renew/lease_shortening.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "util/digits.h"

enum {
    GRANTED_FIELD_MAX = sizeof(LATCHD_RESERVED_OWNER_PREFIX) + DIGITS_MAX +
                        sizeof(LATCHD_RESERVED_OWNER_SUFFIX),
};

/* Gives back what it was granted; with an ID it is asked for again, instead. */
static void undo_grant(struct engine *eng, struct waiter *w, const struct op_result *r)
{
    if (pending_release_undo(eng, w->lock, w->spec)) {
        w->undone = r->token;
    }
    fair_put_back(eng, w, r);
}

void acquire_unacked(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r)
{
    eng->stats.unacked_grants++;
    last_answer_unacked(eng, lock);
    lock_open_activity(eng, lock)->ask_after = eng->now + ERROR_PAUSE_MS;
    if (waiter == NULL) {
        (void)pending_release_undo(eng, lock, spec);
        return;
    }
    waiter->maybe_granted = false;
    undo_grant(eng, waiter, r);
    if (waiter->once || waiter->expiring) {
        waiter_end_error(eng, waiter, LOCK_NOREPLICAS, TEXT_NO_REPLICAS, false);
    } else {
        acquire_again(eng, waiter);
    }
}

/* Who was found to hold it may be the head, whose grant is not answered yet, or was not
 * acknowledged and is about to be undone: what the head hears tells. */
static bool may_be_the_heads(const struct lock *lock, const struct waiter *w)
{
    return (w == NULL || !waiter_is_head(w)) &&
           (lock->activity->asking != NULL || !list_empty(&lock->activity->releases));
}

static void on_acquire_busy(struct engine *eng, struct lock *lock, struct waiter *w,
                            enum lock_kind kind, const struct op_result *r,
                            uint64_t asked_at)
{
    bool run_out = r->ttl_ms > 0 && eng->now - asked_at > (uint64_t)r->ttl_ms;
    uint64_t quarantine = quarantine_until(eng, lock, kind);
    int64_t ttl_ms = r->ttl_ms;

    if (ttl_ms == -2 && quarantine != 0) {
        ttl_ms = (int64_t)(quarantine - eng->now);
        last_answer_withheld(eng, lock, quarantine);
    } else if (ttl_ms == -2) {
        last_answer_over(eng, lock);
    } else if (r->withheld) {
        last_answer_withheld(eng, lock, eng->now + lock_recheck_in(eng, ttl_ms));
    } else if (!may_be_the_heads(lock, w)) {
        last_answer_held(eng, lock, ttl_ms);
    }
    if (ttl_ms == -2) {
        lock_ask(eng, lock); /* free, but a probe may not take it: the head may */
    } else if (!lock->rw || (w != NULL && waiter_is_head(w))) {
        /* What keeps others out of a read/write lock need not be in the head's way. */
        lock_seen(eng, lock, r->id, ttl_ms, KIND_WRITE);
    }
    if (w == NULL) {
        return;
    }
    w->maybe_granted = false;
    if ((w->once && (ttl_ms != -2 || !waiter_is_head(w))) || w->expiring) {
        waiter_decide(eng, w);
    }
    if (run_out) {
        last_answer_over(eng, lock); /* it tells nothing to those who came since */
    }
}

static void on_acquire_failed(struct engine *eng, struct lock *lock, struct waiter *w,
                              const struct acquire_spec *spec,
                              const struct op_result *r)
{
    lock_pause(eng, lock, ERROR_PAUSE_MS);
    lock->ask = true;
    if (w == NULL) {
        (void)pending_release_undo(eng, lock, spec);
        return;
    }
    w->maybe_granted = true;
    if (waiter_is_head(w)) {
        last_answer_refused(eng, lock, r->text);
    }
    if (w->once || w->expiring) {
        waiter_end_error(eng, w, LOCK_BACKEND, r->text, true);
    } else {
        acquire_again(eng, w);
    }
}

/* The answer to one ACQUIRE, for whoever is still there. */
static void on_acquire_answer(struct engine *eng, struct lock *lock,
                              struct acquire_spec *spec, struct waiter *w,
                              const struct op_result *r, struct asked asked)
{
    if (r->status == OP_LATE || r->status == OP_ELSEWHERE) {
        lock_pause(eng, lock, RETRY_PAUSE_MS);
    }
    fair_on_result(eng, lock, w, r);
    switch (r->status) {
    case OP_OK:
        acquire_granted(eng, lock, spec, w, r, asked);
        break;
    case OP_BUSY:
        on_acquire_busy(eng, lock, w, spec->lock_kind, r, asked.at);
        break;
    case OP_WRONGTYPE:
        if (w != NULL) {
            w->maybe_granted = false;
            waiter_end_error(eng, w, LOCK_WRONGTYPE, TEXT_WRONGTYPE, false);
        }
        break;
    case OP_UPGRADE:
        if (w != NULL) {
            w->maybe_granted = false;
            waiter_end_error(eng, w, LOCK_DEADLOCK, TEXT_UPGRADE, false);
        }
        break;
    case OP_OVER:
        if (w != NULL) {
            w->maybe_granted = false;
            waiter_end_error(eng, w, LOCK_NOTHELD, TEXT_OVER, false);
        }
        break;
    case OP_ELSEWHERE:
        if (w != NULL && w->session == NULL) {
            w->maybe_granted =
                false; /* its client has gone on through another daemon */
            waiter_remove(eng, w);
        } else if (w != NULL) {
            acquire_again(eng, w); /* a newer op will do */
        }
        break;
    case OP_LATE:
    case OP_UNKNOWN:
        if (w == NULL) {
            /* LATE: of an earlier one, that was unknown. */
            (void)pending_release_undo(eng, lock, spec);
        } else {
            w->maybe_granted = w->maybe_granted || r->status == OP_UNKNOWN;
            acquire_again(eng, w);
        }
        break;
    case OP_NOREPLICAS:
        acquire_unacked(eng, lock, spec, w, r);
        break;
    case OP_ERROR:
    default:
        on_acquire_failed(eng, lock, w, spec, r);
        break;
    }
}

void acquire_again(struct engine *eng, struct waiter *w)
{
    if (waiter_is_head(w)) {
        lock_ask(eng, w->lock);
    } else {
        w->join = w->spec->lock_kind == KIND_READ && w->lock->activity->writers == 0;
        acquire_probe_later(eng, w);
    }
}

void on_acquire_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct waiter *waiter = w->waiter;
    struct acquire_spec *spec = spec_ref(w->spec);
    struct asked asked = inflight_asked(w);

    inflight_free(eng, w);
    on_acquire_answer(eng, lock, spec, waiter, r, asked);
    spec_unref(eng, spec);
}

/* As the script made it from the token. */
static struct span granted_field(char out[static GRANTED_FIELD_MAX], uint64_t token,
                                 bool writes)
{
    struct span prefix = SPAN(LATCHD_RESERVED_OWNER_PREFIX);
    struct span suffix = writes ? SPAN(LATCHD_RESERVED_OWNER_SUFFIX) : SPAN("");
    char *at = out + GRANTED_FIELD_MAX - suffix.len;

    memcpy(at, suffix.ptr, suffix.len);
    at = digits_before(at, token) - prefix.len;
    memcpy(at, prefix.ptr, prefix.len);
    return span_of(at, (size_t)(out + GRANTED_FIELD_MAX - at));
}

/* Makes the entry that the grant is, in the hold that it belongs to. */
static struct entry *record_grant(struct engine *eng, struct lock *lock,
                                  struct acquire_spec *spec, const struct op_result *r,
                                  struct asked asked)
{
    char made[GRANTED_FIELD_MAX];
    enum lock_kind kind = lock_mode_of_hold(spec->lock_kind);
    struct span field = spec_field(spec);
    struct entry *e;
    struct hold *h;

    if (field.len == 0) {
        field = granted_field(made, r->token, kind == KIND_WRITE);
    }
    h = lock_accept_holder(eng, lock, kind, field, r->token);
    if (h == NULL) {
        h = hold_new(eng, lock, kind, field, r->token);
        emit_notice(eng, NOTICE_GRANTED, h);
    }
    h->user = h->user == 0 ? spec->user : h->user;
    h->keeper_key = h->keeper_key || (r->attached && spec->kind != OWNER_NAMED) ||
                    (kind == KIND_READ && spec->kind == OWNER_ID);
    hold_confirm(eng, h, asked);
    e = hold_add_entry(eng, h, spec);
    e->since = r->attached ? asked.at : e->since;
    e->taken_over = e->taken_over || r->attached;
    return e;
}

/* Granted while nobody is there to take it. */
static void keep_grant(struct engine *eng, struct entry *e,
                       const struct acquire_spec *spec)
{
    if (e->attaches == NULL) { /* otherwise its client came by RENEW */
        e->until = e->hold->until;
        e->spec->keep_ms = spec->keep_ms;
        entry_keep(eng, e);
    }
}

/* It was asked for while nobody was there, for KEEP only: the full lease first. */
static void acquire_rest(struct engine *eng, struct entry *e,
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

    entry_set_kept(eng, e, e->attaches == NULL);
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

/* A grant that cannot be given out: back with it, and again. */
static void acquire_back(struct engine *eng, struct waiter *w,
                         const struct op_result *r, struct span text)
{
    undo_grant(eng, w, r);
    if (w->once || w->expiring) {
        waiter_end_error(eng, w, LOCK_BACKEND, text, false);
    } else {
        acquire_again(eng, w);
    }
}

/* Redis has gone back to before a grant was undone. Others may have been granted since,
 * with greater tokens. A named owner's token may be that of its other entries. */
static bool was_undone(const struct waiter *w, const struct op_result *r)
{
    return r->token <= w->undone && (w->spec->kind != OWNER_NAMED || r->attached);
}

/* It came in with the name of an owner that has become another user's meanwhile. */
static void not_his(struct engine *eng, struct waiter *w)
{
    w->maybe_granted = true; /* its entry is given back */
    waiter_end_error(eng, w, LOCK_NOPERM, TEXT_OTHERS, false);
}

/* A shorter lease that was asked for after it, for another entry of its owner that was
 * left, is over by now, and that hold is forgotten. */
static bool was_cut(const struct engine *eng, const struct waiter *w,
                    struct asked asked)
{
    struct span field = spec_field(w->spec);

    return field.len != 0 && lock_hold_of(w->lock, field) == NULL &&
           lock_shortened_since(eng, w->lock, field, asked.op);
}

/* It is not to have that grant, whose undo had (`undoes`) not been sent yet. */
static bool not_given(struct engine *eng, struct waiter *w, const struct op_result *r,
                      struct asked asked, bool undoes)
{
    const struct acquire_spec *spec = w->spec;

    if (!asked_leaves_time(eng, w->lock, asked) || was_cut(eng, w, asked)) {
        acquire_back(eng, w, r, SPAN("Redis granted too late"));
        return true;
    }
    if (!undoes && was_undone(w, r)) {
        acquire_back(eng, w, r, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (spec->kind == OWNER_NAMED &&
        lock_owner_is_others(w->lock, field_owner(spec_field(spec)), spec->user)) {
        not_his(eng, w);
        return true;
    }
    return false;
}

void acquire_granted(struct engine *eng, struct lock *lock, struct acquire_spec *spec,
                     struct waiter *waiter, const struct op_result *r,
                     struct asked asked)
{
    struct request *request = waiter == NULL ? NULL : waiter->request;
    struct session *session = waiter == NULL ? NULL : waiter->session;
    struct call_ref call = waiter == NULL ? (struct call_ref){ 0 } : waiter->call;
    struct mlock_member *member = waiter == NULL ? NULL : waiter->member;
    bool ask = lock->ask;
    bool first = spec->lock_kind == KIND_READ && !lock_is_read_here(eng, lock);
    uint64_t last;
    bool undoes;
    struct entry *e;

    if (waiter == NULL) {
        /* Its client may have it from another daemon, and was told GOAWAY here. */
        if (!eng->stopping || !r->attached) {
            (void)pending_release_undo(eng, lock, spec);
        }
        return;
    }
    waiter->maybe_granted = false;
    undoes = pending_release_cancel_undo(eng, lock,
                                         spec); /* of an earlier grant of that claim */
    if (not_given(eng, waiter, r, asked, undoes)) {
        return;
    }
    last = answer_by(eng, waiter);
    histogram_add(&eng->timings.wait, (eng->now - waiter->began) * 1000);
    emit_wait_end(eng, waiter, WAIT_GRANTED, LOCK_ERR);
    /* Off the queue first: what follows must not see it wait. */
    waiter->session = NULL;
    list_del(&waiter->in_session);
    waiter->request = NULL;
    if (request != NULL) {
        request->waiter = NULL;
    }
    fair_granted(eng, waiter, r);
    waiter_remove(eng, waiter);
    lock->ask = ask; /* who is head now knows as much as the op that granted */
    if (member != NULL && lock->activity->last_answer.held_at >= member->mlock->since) {
        member->mlock->hindered = true;
    }
    last_answer_served(eng, lock);

    e = record_grant(eng, lock, spec, r, asked);
    e->request = request;
    if (request != NULL) {
        request->entry = e;
    }
    if (member != NULL) {
        mlock_on_entry(eng, member, e);
    }
    lock_seen(eng, lock, r->id, (int64_t)asked.lease_ms, e->hold->lock_kind);
    lock->readers_in = lock->readers_in || first;
    eng->stats.grants++;
    if (session == NULL) {
        keep_grant(eng, e, spec);
    } else if (asked.lease_ms < spec_lease(eng, e->spec)) {
        acquire_rest(eng, e, spec, call, last);
        session_idle(eng, session);
    } else {
        emit_grant(eng, call, entry_attach(eng, e, session));
        hold_schedule_renewal(eng, e->hold);
    }
}
