/* Taking: the head of a queue asks Redis, and what the answer makes of it. */
#include "core/parts.h"
#include "core/restore.h"
#include "util/digits.h"

enum {
    GRANTED_FIELD_MAX = sizeof(LATCHD_RESERVED_OWNER_PREFIX) + DIGITS_MAX +
                        sizeof(LATCHD_RESERVED_OWNER_SUFFIX),
};

static void send_acquire(struct locks *l, enum work_kind kind, struct lock *lock,
                         struct waiter *w, bool reenter_only)
{
    struct work *work = work_new(l, kind, lock);
    struct op *op;

    work->waiter = w;
    work->want = want_ref(w->want);
    work->lease_ms = waiter_lease(l, w);
    w->work = work;
    op = work_op(l, work, OP_ACQUIRE);
    op->reenter_only = reenter_only;
    op->rw = lock->rw;
    op_claim(l, op, w->want, work->lease_ms);
    fair_claim(l, op, w);
    if (kind == WORK_ASK) {
        lock_desk(l, lock)->busy = work;
    }
}

static bool may_only_reenter(const struct locks *l, const struct waiter *w)
{
    return l->stopping || quarantine_until(l, w->lock, w->want->lock_kind) != 0;
}

void take_ask(struct locks *l, struct lock *lock, struct waiter *w)
{
    lock->ask = false;
    send_acquire(l, WORK_ASK, lock, w, may_only_reenter(l, w));
}

void take_probe(struct locks *l, struct waiter *w)
{
    if (w->probe) {
        w->probe = false;
        w->lock->desk->probes--;
    }
    send_acquire(l, WORK_PROBE, w->lock, w, true);
}

void take_join(struct locks *l, struct waiter *w)
{
    w->join = false;
    if (w->probe) {
        w->probe = false;
        w->lock->desk->probes--;
    }
    send_acquire(l, WORK_PROBE, w->lock, w, may_only_reenter(l, w));
}

void take_probe_later(struct locks *l, struct waiter *w)
{
    if (!w->probe) {
        w->probe = true;
        w->lock->desk->probes++;
        lock_touch(l, w->lock);
    }
}

bool take_may_ask(struct locks *l, struct lock *lock)
{
    uint64_t at = lock->desk->stand_back_until;

    at = at < lock->desk->ask_after ? lock->desk->ask_after : at;
    if (l->now < at) {
        timer_set(l, &lock->desk->wake, TIMER_LOCK, at);
    }
    return l->now >= at;
}

/* Gives back what it was granted; with an ID it is asked for again, instead. */
static void undo(struct locks *l, struct waiter *w, const struct op_result *r)
{
    if (duty_undo(l, w->lock, w->want)) {
        w->undone = r->token;
    }
    fair_put_back(l, w, r);
}

void take_unacked(struct locks *l, struct lock *lock, struct want *want,
                  struct waiter *waiter, const struct op_result *r)
{
    l->stats.unacked_grants++;
    last_answer_unacked(l, lock);
    lock_desk(l, lock)->ask_after = l->now + ERROR_PAUSE_MS;
    if (waiter == NULL) {
        (void)duty_undo(l, lock, want);
        return;
    }
    waiter->doubt = false;
    undo(l, waiter, r);
    if (waiter->once || waiter->expiring) {
        waiter_end_error(l, waiter, LOCK_NOREPLICAS, TEXT_NO_REPLICAS, false);
    } else {
        take_again(l, waiter);
    }
}

/* Who was found to hold it may be the head, whose grant is not answered yet, or was not
 * acknowledged and is about to be undone: what the head hears tells. */
static bool may_be_the_heads(const struct lock *lock, const struct waiter *w)
{
    return (w == NULL || !waiter_is_head(w)) &&
           (lock->desk->busy != NULL || !list_empty(&lock->desk->duties));
}

static void busy(struct locks *l, struct lock *lock, struct waiter *w,
                 enum lock_kind kind, const struct op_result *r)
{
    uint64_t quarantine = quarantine_until(l, lock, kind);
    int64_t ttl_ms = r->ttl_ms;

    if (ttl_ms == -2 && quarantine != 0) {
        ttl_ms = (int64_t)(quarantine - l->now);
        last_answer_withheld(l, lock, quarantine);
    } else if (ttl_ms == -2) {
        last_answer_over(l, lock);
    } else if (r->withheld) {
        last_answer_withheld(l, lock, l->now + lock_recheck_in(l, ttl_ms));
    } else if (!may_be_the_heads(lock, w)) {
        last_answer_held(l, lock, ttl_ms);
    }
    if (ttl_ms == -2) {
        lock_ask(l, lock); /* free, but a probe may not take it: the head may */
    } else if (!lock->rw || (w != NULL && waiter_is_head(w))) {
        /* What keeps others out of a read/write lock need not be in the head's way. */
        lock_seen(l, lock, r->id, ttl_ms, KIND_WRITE);
    }
    if (w == NULL) {
        return;
    }
    w->doubt = false;
    if ((w->once && (ttl_ms != -2 || !waiter_is_head(w))) || w->expiring) {
        waiter_decide(l, w);
    }
}

static void failed(struct locks *l, struct lock *lock, struct waiter *w,
                   const struct want *want, const struct op_result *r)
{
    lock_pause(l, lock, ERROR_PAUSE_MS);
    lock->ask = true;
    if (w == NULL) {
        (void)duty_undo(l, lock, want);
        return;
    }
    w->doubt = true;
    if (waiter_is_head(w)) {
        last_answer_refused(l, lock, r->text);
    }
    if (w->once || w->expiring) {
        waiter_end_error(l, w, LOCK_BACKEND, r->text, true);
    } else {
        take_again(l, w);
    }
}

/* The answer to one ACQUIRE, for whoever is still there. */
static void taken(struct locks *l, struct lock *lock, struct want *want,
                  struct waiter *w, const struct op_result *r, struct asked asked)
{
    if (r->status == OP_LATE || r->status == OP_ELSEWHERE) {
        lock_pause(l, lock, RETRY_PAUSE_MS);
    }
    fair_heard(l, lock, w, r);
    switch (r->status) {
    case OP_OK:
        take_granted(l, lock, want, w, r, asked);
        break;
    case OP_BUSY:
        busy(l, lock, w, want->lock_kind, r);
        break;
    case OP_WRONGTYPE:
        if (w != NULL) {
            w->doubt = false;
            waiter_end_error(l, w, LOCK_WRONGTYPE, TEXT_WRONGTYPE, false);
        }
        break;
    case OP_UPGRADE:
        if (w != NULL) {
            w->doubt = false;
            waiter_end_error(l, w, LOCK_DEADLOCK, TEXT_UPGRADE, false);
        }
        break;
    case OP_OVER:
        if (w != NULL) {
            w->doubt = false;
            waiter_end_error(l, w, LOCK_NOTHELD, TEXT_OVER, false);
        }
        break;
    case OP_ELSEWHERE:
        if (w != NULL && w->session == NULL) {
            w->doubt = false; /* its client has gone on through another daemon */
            waiter_remove(l, w);
        } else if (w != NULL) {
            take_again(l, w); /* a newer op will do */
        }
        break;
    case OP_LATE:
    case OP_UNKNOWN:
        if (w == NULL) {
            /* LATE: of an earlier one, that was unknown. */
            (void)duty_undo(l, lock, want);
        } else {
            w->doubt = w->doubt || r->status == OP_UNKNOWN;
            take_again(l, w);
        }
        break;
    case OP_NOREPLICAS:
        take_unacked(l, lock, want, w, r);
        break;
    case OP_ERROR:
    default:
        failed(l, lock, w, want, r);
        break;
    }
}

void take_again(struct locks *l, struct waiter *w)
{
    if (waiter_is_head(w)) {
        lock_ask(l, w->lock);
    } else {
        w->join = w->want->lock_kind == KIND_READ && w->lock->desk->writers == 0;
        take_probe_later(l, w);
    }
}

void take_done(struct locks *l, struct work *w, const struct op_result *r)
{
    struct lock *lock = w->lock;
    struct waiter *waiter = w->waiter;
    struct want *want = want_ref(w->want);
    struct asked asked = work_asked(w);

    work_free(l, w);
    taken(l, lock, want, waiter, r, asked);
    want_unref(l, want);
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
static struct entry *record(struct locks *l, struct lock *lock, struct want *want,
                            const struct op_result *r, struct asked asked)
{
    char made[GRANTED_FIELD_MAX];
    enum lock_kind kind = kind_of_hold(want->lock_kind);
    struct span field = want_field(want);
    struct entry *e;
    struct hold *h;

    if (field.len == 0) {
        field = granted_field(made, r->token, kind == KIND_WRITE);
    }
    h = lock_believe(l, lock, kind, field, r->token);
    if (h == NULL) {
        h = hold_new(l, lock, kind, field, r->token);
        say_notice(l, NOTICE_GRANTED, h);
    }
    h->user = h->user == 0 ? want->user : h->user;
    h->keeper_key = h->keeper_key || (r->attached && want->kind != OWNER_NAMED) ||
                    (kind == KIND_READ && want->kind == OWNER_ID);
    hold_confirm(l, h, asked);
    e = hold_add_entry(l, h, want);
    e->since = r->attached ? asked.at : e->since;
    e->taken = e->taken || r->attached;
    return e;
}

/* Granted while nobody is there to take it. */
static void keep(struct locks *l, struct entry *e, const struct want *want)
{
    if (e->attaches == NULL) { /* otherwise its client came by RENEW */
        e->until = e->hold->until;
        e->want->keep_ms = want->keep_ms;
        entry_keep(l, e);
    }
}

/* It was asked for while nobody was there, for KEEP only: the full lease first. */
static void take_rest(struct locks *l, struct entry *e, const struct want *want,
                      struct call_ref call, uint64_t last)
{
    struct lock_req again = { .from = call,
                              .kind = want->lock_kind,
                              .name = lock_name(e->hold->lock),
                              .owner = want->kind == OWNER_NAMED
                                           ? field_owner(want_field(want))
                                           : SPAN_NONE,
                              .id = want_id(want),
                              .user = want->user };
    struct call *c;

    entry_set_kept(l, e, e->attaches == NULL);
    c = call_regrant(l, e, &again);
    if (last < c->deadline) {
        c->deadline = last;
        timer_set(l, &c->timer, TIMER_CALL, last > l->now ? last : l->now + 1);
    }
}

/* When a LOCK has to be answered at the latest. */
static uint64_t answer_by(const struct locks *l, const struct waiter *w)
{
    uint64_t last = w->since + l->cfg.redis_timeout_ms;

    return w->deadline > last ? w->deadline : last;
}

/* A grant that cannot be given out: back with it, and again. */
static void take_back(struct locks *l, struct waiter *w, const struct op_result *r,
                      struct span text)
{
    undo(l, w, r);
    if (w->once || w->expiring) {
        waiter_end_error(l, w, LOCK_BACKEND, text, false);
    } else {
        take_again(l, w);
    }
}

/* Redis has gone back to before a grant was undone. Others may have been granted since,
 * with greater tokens. A named owner's token may be that of its other entries. */
static bool was_undone(const struct waiter *w, const struct op_result *r)
{
    return r->token <= w->undone && (w->want->kind != OWNER_NAMED || r->attached);
}

/* It came in with the name of an owner that has become another user's meanwhile. */
static void not_his(struct locks *l, struct waiter *w)
{
    w->doubt = true; /* its entry is given back */
    waiter_end_error(l, w, LOCK_NOPERM, TEXT_OTHERS, false);
}

/* It is not to have that grant, whose undo had (`undoes`) not been sent yet. */
static bool not_given(struct locks *l, struct waiter *w, const struct op_result *r,
                      struct asked asked, bool undoes)
{
    const struct want *want = w->want;

    if (!asked_in_time(l, w->lock, asked)) {
        take_back(l, w, r, SPAN("Redis granted too late"));
        return true;
    }
    if (!undoes && was_undone(w, r)) {
        take_back(l, w, r, SPAN("Redis has lost its last writes"));
        return true;
    }
    if (want->kind == OWNER_NAMED &&
        lock_owner_is_others(w->lock, field_owner(want_field(want)), want->user)) {
        not_his(l, w);
        return true;
    }
    return false;
}

void take_granted(struct locks *l, struct lock *lock, struct want *want,
                  struct waiter *waiter, const struct op_result *r, struct asked asked)
{
    struct request *request = waiter == NULL ? NULL : waiter->request;
    struct session *session = waiter == NULL ? NULL : waiter->session;
    struct call_ref call = waiter == NULL ? (struct call_ref){ 0 } : waiter->call;
    struct piece *piece = waiter == NULL ? NULL : waiter->piece;
    bool ask = lock->ask;
    bool first = want->lock_kind == KIND_READ && !lock_being_read(l, lock);
    uint64_t last;
    bool undoes;
    struct entry *e;

    if (waiter == NULL) {
        /* Its client may have it from another daemon, and was told GOAWAY here. */
        if (!l->stopping || !r->attached) {
            (void)duty_undo(l, lock, want);
        }
        return;
    }
    waiter->doubt = false;
    undoes = duty_cancel_undo(l, lock, want); /* of an earlier grant of that claim */
    if (not_given(l, waiter, r, asked, undoes)) {
        return;
    }
    last = answer_by(l, waiter);
    histogram_add(&l->timings.wait, (l->now - waiter->began) * 1000);
    say_waited(l, waiter, WAIT_GRANTED, LOCK_ERR);
    /* Off the queue first: what follows must not see it wait. */
    waiter->session = NULL;
    list_del(&waiter->in_session);
    waiter->request = NULL;
    if (request != NULL) {
        request->waiter = NULL;
    }
    fair_granted(l, waiter, r);
    waiter_remove(l, waiter);
    lock->ask = ask; /* who is head now knows as much as the op that granted */
    if (piece != NULL && lock->desk->last_answer.held_at >= piece->mlock->since) {
        piece->mlock->hindered = true;
    }
    last_answer_served(l, lock);

    e = record(l, lock, want, r, asked);
    e->request = request;
    if (request != NULL) {
        request->entry = e;
    }
    if (piece != NULL) {
        mlock_taken(l, piece, e);
    }
    lock_seen(l, lock, r->id, (int64_t)asked.lease_ms, e->hold->lock_kind);
    lock->readers_in = lock->readers_in || first;
    l->stats.grants++;
    if (session == NULL) {
        keep(l, e, want);
    } else if (asked.lease_ms < want_lease(l, e->want)) {
        take_rest(l, e, want, call, last);
        session_idle(l, session);
    } else {
        say_grant(l, call, entry_attach(l, e, session));
        hold_schedule(l, e->hold);
    }
}
