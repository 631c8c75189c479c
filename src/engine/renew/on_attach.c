/* Handles the answer to an attach: of a RENEW, or a LOCK sent again after its grant. */
#include "engine/renew/on_attach.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/lease_shortening.h"
#include "engine/hold/loss.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/hold/rest.h"
#include "engine/inflight_op.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/multi/mlock.h"
#include "engine/op.h"
#include "engine/recovery/peers.h"
#include "engine/request.h"
#include "engine/user_check.h"
#include "util/span.h"

/* The local entry of a hold that Redis has just confirmed for us. */
static struct entry *adopt_entry(struct engine *eng, struct lock *lock,
                                 struct inflight_op *w, const struct op_result *r)
{
    enum owner_kind kind = field_kind(r->attach.field);
    struct hold *h;
    struct acquire_spec *spec;
    struct entry *e;

    h = lock_accept_holder(eng, lock, r->lock_kind, r->attach.field, r->token);
    if (h == NULL) {
        h = hold_new(eng, lock, r->lock_kind, r->attach.field, r->token);
    }
    h->user = h->user == 0 ? w->call->user : h->user;
    h->keeper_key = h->keeper_key || kind != OWNER_NAMED;
    if (r->loan_token != 0) {
        h->loan_distance = (uint32_t)(r->loan_token - r->token);
    }
    hold_confirm(eng, h, inflight_asked(w));
    e = hold_find_entry(h, r->attach.entry);
    if (e == NULL) {
        spec = spec_found(eng, r->lock_kind, r->attach.field, r->attach.entry,
                          r->attach.data, r->attach.atleast_ms);
        spec->grace_ms = eng->cfg.grace_ms;
        spec->user = h->user;
        spec->permits = r->attach.permits;
        e = hold_add_entry(eng, h, spec);
        spec_unref(eng, spec);
    }
    return e;
}

/* Remembers the ID of an entry that this daemon did not know. */
static void know_request(struct engine *eng, struct lock *lock, struct entry *e)
{
    struct request *r;

    if (spec_id(e->spec).len == 0 || e->extra->request != NULL) {
        return;
    }
    r = request_find(eng, lock_name(lock), spec_id(e->spec));
    if (r == NULL) {
        r = request_new(eng, lock_name(lock), e->spec);
    }
    if (r->waiter == NULL && r->entry == NULL && r->over_at == NEVER) {
        r->entry = e;
        entry_open_extra(eng, e)->request = r;
    }
}

/* Whether an UNLOCK of the ID was answered here since the request was sent, and a
 * failover has brought its hold back. */
static bool was_unlocked(const struct engine *eng, const struct pending_request *c)
{
    const struct span prefix = SPAN(ID_ENTRY_PREFIX);
    const struct request *r = NULL;

    if (span_starts(c->target.entry, prefix)) {
        r = request_find(eng, lock_name(c->lock),
                         span_after(c->target.entry, prefix.len));
    }
    return r != NULL && r->over_at != NEVER && r->answer >= 0 &&
           pending_request_entry(c) == NULL;
}

static void on_attached(struct engine *eng, struct inflight_op *w,
                        const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct entry *e;
    struct attach *a;
    bool knew;

    if (!c->overrides &&
        lock_owner_is_others(w->lock, field_owner(r->attach.field), c->user)) {
        emit_error(eng, c->ref, LOCK_NOPERM, TEXT_OTHERS);
        return;
    }
    if (was_unlocked(eng, c)) {
        emit_error(eng, c->ref, LOCK_NOTHELD, TEXT_OVER);
        return;
    }
    if (!pending_release_withdraw(eng, w->lock, r->attach.field, r->attach.entry)) {
        emit_error(eng, c->ref, LOCK_NOTHELD, TEXT_ENDING);
        return;
    }
    e = adopt_entry(eng, w->lock, w, r);
    entry_set_state(e, ENTRY_HELD); /* in case its release was given up */
    e->since = e->asked = w->sent;
    e->taken_over = true;
    know_request(eng, w->lock, e);
    entry_set_lease(eng, e,
                    c->endless         ? LEASE_ENDLESS
                    : c->lease_ms != 0 ? LEASE_FIXED
                                       : LEASE_WATCHDOG);
    if (c->lease_ms != 0) {
        uint64_t until = lease_valid_until(w->sent, c->lease_ms);

        entry_open_extra(eng, e)->until = until;
        if (hold_has_one_entry(e->hold) && c->kind == PENDING_RENEW) {
            hold_set_until(e->hold, until);
        }
    }
    knew = e->extra->member == NULL && entry_attach_of(e, c->session) != NULL;
    a = entry_attach(eng, e, c->session);
    lock_seen(eng, w->lock, w->op.key, (int64_t)w->lease_ms, r->lock_kind);
    hold_shorten_by_requests(eng, e, w->op.key);
    hold_schedule_renewal(eng, e->hold);
    if (c->kind == PENDING_REGRANT) {
        emit_grant(eng, c->ref, a, w->sent);
        if (knew && e->extra->member != NULL) {
            e->extra->member->token_sent = true;
        }
    } else {
        mlock_on_renewed(e, c->session);
        emit_renewed(eng, c->ref, r->ttl_ms - (int64_t)(eng->now - w->sent),
                     c->tells_token ? e->hold : NULL);
    }
}

static void attach_refused(struct engine *eng, struct inflight_op *w,
                           const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct entry *e = pending_request_entry(c);

    switch (r->status) {
    case OP_AMBIGUOUS:
        emit_error(eng, c->ref, LOCK_ERR, TEXT_BOTH);
        break;
    case OP_WRONGTYPE:
        emit_error(eng, c->ref, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_ERROR:
        emit_error(eng, c->ref, LOCK_BACKEND, r->text);
        return;
    case OP_NOREPLICAS:
        /* The hold is in Redis and ends with its lease; its state here stays. */
        emit_error(eng, c->ref, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
        return;
    default:
        emit_error(eng, c->ref, LOCK_NOTHELD,
                   c->kind == PENDING_REGRANT ? TEXT_OVER : TEXT_NOT_THERE);
        break;
    }
    if (e != NULL && r->status != OP_AMBIGUOUS) {
        hold_lost(eng, e->hold);
    }
}

/* Requests whose answers are still to come make a hold known here with a lease that a
 * later op has shortened: they have to ask again. */
static void cut_earlier_requests(const struct lock *lock, const struct inflight_op *w)
{
    struct list *it;

    LIST_FOREACH(it, &lock->activity->renews)
    {
        struct inflight_op *other =
            container_of(it, struct pending_request, in_lock)->in_flight;

        if (other != NULL && other->op.key < w->op.key) {
            other->cut = true;
        }
    }
}

/* A RENEW LEASE may have shortened the lease, but its client gets no answer: counts on
 * what is left only, and asks for the old lease again. */
static void lease_shortening_for_nobody(struct engine *eng, struct lock *lock,
                                        const struct inflight_op *w,
                                        const struct op_result *r)
{
    const struct entry *e = w->call == NULL ? NULL : pending_request_entry(w->call);
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ran = told || r->status == OP_UNKNOWN;
    bool known = false;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);
        bool meant = told              ? span_eq(hold_field(h), r->attach.field)
                     : w->call != NULL ? e != NULL && e->hold == h
                                       : !hold_is_rest(h); /* who knows */

        if (w->exact && ran && meant && hold_has_one_entry(h)) {
            hold_shorten_lease(eng, h, inflight_asked(w), false);
        }
        known = known || meant;
        hold_shortening_failed(eng, h, w->op.key);
    }
    if (w->exact && ran && !known) {
        cut_earlier_requests(lock, w);
    }
}

/* The hold has its lease, but the client that came back to it has gone again: another
 * entry, or what is retained for KEEP, lasts as long as Redis says. */
static void confirm_for_nobody(struct engine *eng, struct lock *lock,
                               const struct inflight_op *w, const struct op_result *r)
{
    struct hold *h = lock_hold_of(lock, r->attach.field);

    if (h != NULL && h->token == r->token && !w->exact) {
        hold_confirm(eng, h, inflight_asked(w));
        hold_schedule_renewal(eng, h);
    }
}

/* Whether another daemon may be about to put back what a failover has lost: until then
 * nobody is told that it is not there. */
static bool may_come_back(const struct engine *eng, const struct pending_request *c,
                          const struct op_result *r)
{
    return r->status == OP_NOTHELD && c->kind == PENDING_RENEW &&
           pending_request_entry(c) == NULL && peers_may_restore(eng);
}

void on_attach_reply(struct engine *eng, struct inflight_op *w,
                     const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct lock *lock = w->lock;
    enum lock_class other;
    /* As with a grant: no client gets a lease of which less than half is left, nor one
     * that a later op has shortened since. */
    bool stale = r->status == OP_OK &&
                 (w->cut || !asked_leaves_time(eng, lock, inflight_asked(w)) ||
                  lock_shortened_since(eng, lock, r->attach.field, w->op.key));

    if (c == NULL || stale || r->status != OP_OK) {
        lease_shortening_for_nobody(eng, lock, w, r);
    }
    if (c == NULL) {
        if (r->status == OP_OK && !stale) {
            confirm_for_nobody(eng, lock, w, r);
        }
        inflight_free(eng, w); /* the client is gone: its lease ends the hold */
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE || r->status == OP_ELSEWHERE ||
        stale) {
        inflight_free(eng, w);
        pending_request_retry(eng, c, r->status);
        return;
    }
    if (may_come_back(eng, c, r)) {
        inflight_free(eng, w);
        pending_request_retry(eng, c, OP_LATE);
        return;
    }
    if (r->status == OP_WRONGTYPE && c->guessed &&
        op_result_tells_class(r, c->lock_class, &other)) {
        c->guessed = false;
        c->lock_class = other;
        inflight_free(eng, w);
        pending_request_queue(eng, c);
        return;
    }
    if (r->status == OP_OK) {
        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, c->lock_class);
        }
        on_attached(eng, w, r);
    } else {
        attach_refused(eng, w, r);
        lock_touch(eng, lock);
    }
    inflight_free(eng, w);
    pending_request_free(eng, c);
}
