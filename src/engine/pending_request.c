/* Requests that wait for one answer of Redis: RENEW, LOCKINFO, and a LOCK sent again
 * after its grant. UNLOCK and FORCEUNLOCK wait here for their pending release. */
#include "engine/pending_request.h"
#include "engine/acquire_spec.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_priv.h"
#include "engine/engine_state.h"
#include "engine/inflight_op.h"
#include "engine/introspect/inspect.h"
#include "engine/lock/entry.h"
#include "engine/lock/hold.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/multi/mlock.h"
#include "engine/op.h"
#include "engine/release/pending_release.h"
#include "engine/renew/lease_shortening.h"
#include "engine/renew/loss.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "engine/value_hold.h"
#include "util/alloc.h"
#include "util/pool.h"
#include "util/span.h"

struct pending_request *pending_request_new(struct engine *eng,
                                            enum pending_request_kind kind,
                                            struct lock *lock,
                                            const struct hold_req *req)
{
    const struct span field_prefix = SPAN(ID_FIELD_PREFIX);
    const struct span entry_prefix = SPAN(ID_ENTRY_PREFIX);
    struct pending_request *c = pool_alloc(
        &eng->pool, sizeof(*c) + req->owner.len + req->value.len + field_prefix.len +
                        entry_prefix.len + 2 * req->id.len);
    char *at = c->data;

    c->kind = kind;
    c->lock = lock;
    lock->refs++;
    c->ref = req->from;
    c->target.token = req->token;
    c->target.lock_kind = lock_mode_of_hold(req->kind);
    c->rw = lock->rw || lock_mode_is_rw(req->kind);
    c->guessed = !lock_in_use(lock) && !lock_mode_is_rw(req->kind);
    c->lease_ms = req->lease_ms;
    c->user = req->user;
    c->overrides = req->overrides;
    c->tells_token = req->tells_token;
    c->session = session_get(eng, req->from.conn);
    list_append(&c->session->pending_requests, &c->in_session);
    list_init(&c->in_waiting);
    list_init(&c->in_infos);
    list_init(&c->in_lock);
    if (kind == PENDING_RENEW || kind == PENDING_REGRANT) {
        list_append(&lock_open_activity(eng, lock)->renews, &c->in_lock);
    }
    if (req->owner.len != 0) {
        c->target.kind = req->id.len != 0 ? TARGET_ENTRY : TARGET_OWNER;
        c->target.field = span_put2(&at, req->owner, SPAN_NONE);
    } else if (req->id.len != 0) {
        c->target.kind = TARGET_ID;
        c->target.field = span_put2(&at, field_prefix, req->id);
    } else if (req->value.len != 0) {
        c->target.kind = TARGET_VALUE;
        c->target.field = span_put2(&at, req->value, SPAN_NONE);
        c->rw = c->guessed = false; /* a read/write lock is no value hold */
    } else {
        c->target.kind = TARGET_TOKEN;
    }
    if (req->id.len != 0) {
        c->target.entry = span_put2(&at, entry_prefix, req->id);
    }
    c->deadline = eng->now + eng->cfg.redis_timeout_ms;
    timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->deadline);
    return c;
}

void pending_request_aim(struct pending_request *c, struct entry *e)
{
    bool named = e->hold->kind == OWNER_NAMED;

    if (named || c->target.kind == TARGET_VALUE || hold_is_of_value(e->hold)) {
        c->spec = spec_ref(e->spec);
        c->target = (struct target){ .kind = named ? TARGET_ENTRY : TARGET_FIELD,
                                     .lock_kind = e->hold->lock_kind,
                                     .field = spec_field(c->spec),
                                     .entry = spec_entry(c->spec) };
    }
}

/* The entry that the request means, if that is known here and not ending. */
static struct entry *local_entry(const struct pending_request *c)
{
    struct entry *e = lock_find_target(c->lock, &c->target);

    return e == NULL || e->ending ? NULL : e;
}

bool pending_request_renews(const struct entry *e)
{
    struct list *it;

    LIST_FOREACH(it, &e->hold->lock->activity->renews)
    {
        if (local_entry(container_of(it, struct pending_request, in_lock)) == e) {
            return true;
        }
    }
    return false;
}

void pending_request_free(struct engine *eng, struct pending_request *c)
{
    if (c->release != NULL) {
        c->release->call = NULL;
    }
    if (c->in_flight != NULL) {
        c->in_flight->call = NULL;
    }
    list_del(&c->in_lock);
    if ((c->kind == PENDING_REGRANT || c->kind == PENDING_RENEW) &&
        local_entry(c) != NULL) {
        entry_left(eng, local_entry(c)); /* no effect if a connection has it */
    }
    spec_unref(eng, c->spec);
    timer_stop(eng, &c->timer);
    list_del(&c->in_session);
    list_del(&c->in_waiting);
    list_del(&c->in_infos);
    c->lock->refs--;
    lock_touch(eng, c->lock);
    session_idle(eng, c->session);
    pool_free(&eng->pool, c);
}

void pending_request_retry(struct engine *eng, struct pending_request *c,
                           enum op_status status)
{
    bool pause = status == OP_LATE || status == OP_ELSEWHERE;

    if (pause && eng->now + RETRY_PAUSE_MS < c->deadline) {
        c->retry = true;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + RETRY_PAUSE_MS);
    } else if (!pause) {
        pending_request_send(eng, c);
    }
}

void pending_request_on_timer(struct engine *eng, struct pending_request *c)
{
    if (c->retry) {
        c->retry = false;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, c->deadline);
        pending_request_send(eng, c);
        return;
    }
    if (tick_is_too_late(eng, c->deadline)) {
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, eng->now + 1);
        return;
    }
    if (c->kind == PENDING_INFO && lock_is_uncertain(eng, c->lock)) {
        inspect_answer_uncertain(eng, c);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND, eng->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    }
    pending_request_free(eng, c);
}

/* A LOCKINFO of a name with an uncertain hold waits only INFO_DOUBT_MS for Redis; then
 * what is known here is the answer. */
static void hurry_info(struct engine *eng, struct pending_request *c)
{
    uint64_t at = eng->now + INFO_DOUBT_MS;

    if (lock_is_uncertain(eng, c->lock) && at < c->deadline) {
        c->deadline = at;
        c->retry = false;
        timer_set(eng, &c->timer, TIMER_PENDING_REQUEST, at);
    }
}

void pending_info_hurry(struct engine *eng)
{
    struct list *it;

    LIST_FOREACH(it, &eng->infos)
    {
        hurry_info(eng, container_of(it, struct pending_request, in_infos));
    }
}

void request_info(struct engine *eng, const struct hold_req *req)
{
    struct pending_request *c =
        pending_request_new(eng, PENDING_INFO, lock_get(eng, req->name), req);

    list_append(&eng->infos, &c->in_infos);
    hurry_info(eng, c);
    pending_request_send(eng, c);
}

void pending_request_send(struct engine *eng, struct pending_request *c)
{
    bool look = c->kind == PENDING_INFO;
    struct entry *e = local_entry(c);
    struct inflight_op *w;
    struct op *op;

    if (!eng->up || c->lock->needs_restore > 0) {
        list_del(&c->in_waiting);
        list_append(eng->up ? &lock_open_activity(eng, c->lock)->waiting_for_restore
                            : &eng->waiting_for_store,
                    &c->in_waiting);
        return;
    }
    w = inflight_new(eng, look ? INFLIGHT_INSPECT : INFLIGHT_ATTACH, c->lock);
    w->call = c;
    w->lease_ms = c->lease_ms != 0 ? c->lease_ms : eng->cfg.watchdog_ms;
    c->in_flight = w;
    op = inflight_op(eng, w, look ? OP_INSPECT : OP_ATTACH);
    if (look) {
        return;
    }
    op->attach.target = op_make_target(eng, &c->target);
    op->attach.lease_ms = w->lease_ms;
    op->rw = c->rw;
    op->attach.exact = w->exact = c->kind == PENDING_RENEW && c->lease_ms != 0;
    if (op->attach.exact && e != NULL && hold_has_one_entry(e->hold)) {
        hold_shorten_lease(eng, e->hold, inflight_asked(w), false);
    }
}

struct pending_request *pending_request_regrant(struct engine *eng, struct entry *e,
                                                const struct lock_req *req)
{
    struct hold_req as = {
        .from = req->from,
        .kind = e->hold->lock_kind,
        .name = req->name,
        .owner = req->owner,
        .id = req->id,
        .token = e->hold->kind != OWNER_NAMED && req->id.len == 0 ? e->hold->token : 0,
        .lease_ms = e->spec->fixed ? e->spec->lease_ms : 0,
        .user = req->user,
    };
    struct pending_request *c =
        pending_request_new(eng, PENDING_REGRANT, e->hold->lock, &as);

    pending_request_aim(c, e);
    if (e->retained) {
        timer_stop(eng, &e->timer); /* KEEP is over: the client is there */
    }
    pending_request_send(eng, c);
    return c;
}

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
    hold_confirm(eng, h, inflight_asked(w));
    e = hold_find_entry(h, r->attach.entry);
    if (e == NULL) {
        spec = spec_found(eng, r->lock_kind, r->attach.field, r->attach.entry);
        spec->grace_ms = eng->cfg.grace_ms;
        spec->user = h->user;
        e = hold_add_entry(eng, h, spec);
        spec_unref(eng, spec);
    }
    return e;
}

/* Remembers the ID of an entry that this daemon did not know. */
static void know_request(struct engine *eng, struct lock *lock, struct entry *e)
{
    struct request *r;

    if (spec_id(e->spec).len == 0 || e->request != NULL) {
        return;
    }
    r = request_find(eng, lock_name(lock), spec_id(e->spec));
    if (r == NULL) {
        r = request_new(eng, lock_name(lock), e->spec);
    }
    if (r->waiter == NULL && r->entry == NULL && r->over_at == NEVER) {
        r->entry = e;
        e->request = r;
    }
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
    if (!pending_release_withdraw(eng, w->lock, r->attach.field, r->attach.entry)) {
        emit_error(eng, c->ref, LOCK_NOTHELD, TEXT_ENDING);
        return;
    }
    e = adopt_entry(eng, w->lock, w, r);
    e->ending = false; /* in case its release was given up */
    e->since = w->sent;
    e->taken_over = true;
    know_request(eng, w->lock, e);
    entry_set_fixed(eng, e, c->lease_ms != 0);
    if (e->fixed) {
        e->until = lease_valid_until(w->sent, c->lease_ms);
        if (hold_has_one_entry(e->hold) && c->kind == PENDING_RENEW) {
            e->hold->until = e->until;
        }
    }
    knew = e->member == NULL && entry_attach_of(e, c->session) != NULL;
    a = entry_attach(eng, e, c->session);
    lock_seen(eng, w->lock, w->op.key, (int64_t)w->lease_ms, r->lock_kind);
    hold_shorten_by_requests(eng, e, w->op.key);
    hold_schedule_renewal(eng, e->hold);
    if (c->kind == PENDING_REGRANT) {
        emit_grant(eng, c->ref, a);
        if (knew && e->member != NULL) {
            e->member->token_sent = true;
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
    struct entry *e = local_entry(c);

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

/* A RENEW LEASE may have shortened the lease, but its client gets no answer: counts on
 * what is left only, and asks for the old lease again. */
static void lease_shortening_for_nobody(struct engine *eng, struct lock *lock,
                                        const struct inflight_op *w,
                                        const struct op_result *r)
{
    const struct entry *e = w->call == NULL ? NULL : local_entry(w->call);
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ran = told || r->status == OP_UNKNOWN;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);
        bool meant = told              ? span_eq(hold_field(h), r->attach.field)
                     : w->call != NULL ? e != NULL && e->hold == h
                                       : true; /* who knows */

        if (w->exact && ran && meant && hold_has_one_entry(h)) {
            hold_shorten_lease(eng, h, inflight_asked(w), false);
        }
        hold_shortening_failed(eng, h, w->op.key);
    }
}

void on_attach_reply(struct engine *eng, struct inflight_op *w,
                     const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct lock *lock = w->lock;
    /* As with a grant: no client gets a lease of which less than half is left, nor one
     * that a later op has shortened since. */
    bool stale = r->status == OP_OK &&
                 (!asked_leaves_time(eng, lock, inflight_asked(w)) ||
                  lock_shortened_since(eng, lock, r->attach.field, w->op.key));

    if (c == NULL || stale || r->status != OP_OK) {
        lease_shortening_for_nobody(eng, lock, w, r);
    }
    if (c == NULL) {
        inflight_free(eng, w); /* the client is gone: its lease ends the hold */
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE || r->status == OP_ELSEWHERE ||
        stale) {
        inflight_free(eng, w);
        pending_request_retry(eng, c, r->status);
        return;
    }
    if (r->status == OP_WRONGTYPE && c->guessed && (c->rw ? r->plain : r->rw)) {
        c->guessed = false;
        c->rw = !c->rw;
        inflight_free(eng, w);
        pending_request_send(eng, c);
        return;
    }
    if (r->status == OP_OK) {
        if (!lock_in_use(lock)) {
            lock_set_class(eng, lock, c->rw);
        }
        on_attached(eng, w, r);
    } else {
        attach_refused(eng, w, r);
        lock_touch(eng, lock);
    }
    inflight_free(eng, w);
    pending_request_free(eng, c);
}
