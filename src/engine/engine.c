#include "engine/engine.h"
#include "engine/engine_priv.h"

#include "engine/leader_watch.h"
#include "engine/release.h"
#include "engine/restore.h"
#include "engine/schedule.h"

struct engine *engine_new(const struct engine_setup *setup)
{
    struct engine *eng = xcalloc(1, sizeof(*eng));

    eng->cfg = setup->config;
    memcpy(eng->instance, setup->instance, sizeof(eng->instance));
    eng->is_heard = true;
    eng->now = eng->down_at = setup->now_ms;
    eng->quorum = setup->quorum;
    effects_init(&eng->fx);
    heap_init(&eng->heap);
    eng->group_of = setup->group_of;
    eng->group_count = setup->group_of == NULL ? 1 : setup->group_count;
    eng->quarantine = xcalloc(eng->group_count, sizeof(*eng->quarantine));
    eng->quarantined = xcalloc(eng->group_count, sizeof(*eng->quarantined));
    eng->last_stale_ops = xcalloc(eng->group_count, sizeof(*eng->last_stale_ops));
    quarantine_all(eng, setup->no_grants_until_ms);
    renew_queues_init(eng);
    list_init(&eng->restores);
    list_init(&eng->holds);
    list_init(&eng->waiters);
    list_init(&eng->to_send);
    list_init(&eng->ops_to_send);
    list_init(&eng->waiting_for_store);
    list_init(&eng->infos);
    watch_set_init(&eng->leader_watches);
    watch_set_init(&eng->latch_watches);
    count_log_init(eng);
    list_init(&eng->over);
    release_log_init(eng);
    recent_init(&eng->fair_left, sizeof(struct recent_item), FAIR_LEFT_MAX);
    eng->fair_left.pool = &eng->pool;
    followed_names_init(eng);
    list_init(&eng->dirty_mlocks);
    list_init(&eng->loans);
    list_init(&eng->due_loans);
    list_init(&eng->loan_log_list);
    eng->read_clock = setup->read_clock;
    eng->may_tell = setup->may_tell;
    eng->may_tell_ctx = setup->may_tell_ctx;
    return eng;
}

static void free_pending_releases(struct engine *eng, struct lock *lock)
{
    struct pending_release *d;

    list_splice(&lock->releases, &lock->parallel_releases);
    LIST_EACH_SAFE(d, &lock->releases, in_lock) {
        pending_release_free(eng, lock, d);
    }
}

static void free_sessions(struct engine *eng)
{
    struct session *s;
    struct pending_request *c;
    struct attach *a;
    struct waiter *w;

    eng->stopping = true; /* nothing is kept and nothing begins a grace */
    TABLE_EACH(s, &eng->sessions, conn) {
        session_forget_lost(s);
        s->closing = true;
        LIST_EACH_SAFE(c, &s->pending_requests, in_session) {
            pending_request_free(eng, c);
        }
        LIST_EACH_SAFE(a, &s->attaches, in_session) {
            attach_free(eng, a);
        }
        LIST_EACH_SAFE(w, &s->waiters, in_session) {
            waiter_remove(eng, w);
        }
        table_remove(&eng->sessions, &s->conn);
        pool_free_sized(&eng->pool, s, sizeof(*s));
    }
}

void engine_free(struct engine *eng)
{
    struct inflight_op *o;
    struct waiter *w;
    struct hold *h;
    struct lock *lock;

    if (eng == NULL) {
        return;
    }
    mlocks_free(eng);
    count_log_free(eng);
    TABLE_EACH(o, &eng->inflight_ops, op) {
        inflight_free(eng, o);
    }
    free_sessions(eng);
    LIST_EACH_SAFE(w, &eng->waiters, in_all) {
        waiter_remove(eng, w);
    }
    LIST_EACH_SAFE(h, &eng->holds, in_all) {
        hold_forget(eng, h, false);
    }
    TABLE_EACH(lock, &eng->names, in_names) {
        free_pending_releases(eng, lock);
        loan_drop(eng, lock);
        leader_watch_free(eng, lock);
        latch_watch_free(eng, lock);
        lock_free(eng, lock);
    }
    requests_free(eng);
    recent_fini(&eng->release_log);
    loan_log_free(eng);
    free(eng->recent_asks);
    recent_fini(&eng->fair_left);
    recent_fini(&eng->followed);
    table_fini(&eng->names);
    table_fini(&eng->waits);
    renew_queues_fini(eng);
    free(eng->quarantine);
    free(eng->quarantined);
    free(eng->last_stale_ops);
    heap_fini(&eng->heap);
    dirty_locks_fini(&eng->dirty);
    effects_fini(&eng->fx);
    buf_reset(&eng->trouble);
    table_fini(&eng->inflight_ops);
    table_fini(&eng->sessions);
    pool_fini(&eng->pool);
    free(eng);
}

void engine_configure(struct engine *eng, const struct engine_config *config)
{
    eng->cfg = *config;
}

void engine_set_heard(struct engine *eng, bool heard)
{
    eng->is_heard = heard;
}

void engine_trim(struct engine *eng)
{
    pool_fini(&eng->pool);
}

size_t engine_object_count(const struct engine *eng)
{
    return eng->names.count + eng->hold_count + eng->waiter_count + eng->requests.count;
}

struct effects *engine_effects(struct engine *eng)
{
    return &eng->fx;
}

/* --- time ------------------------------------------------------------------------- */

static void on_pulse(struct engine *eng)
{
    if (eng->hold_count > 0) {
        timer_set(eng, &eng->pulse, TIMER_PULSE, eng->now + PULSE_MS);
    }
}

static void fire_timer(struct engine *eng, struct timer *t)
{
    switch ((enum timer_kind)t->node.tag) {
    case TIMER_LOCK:
        lock_on_timer(eng, container_of(t, struct lock, wake));
        break;
    case TIMER_WAITER:
        waiter_on_timer(eng, container_of(t, struct waiter, timer));
        break;
    case TIMER_HOLD:
        hold_on_timer(eng, container_of(t, struct hold, timer));
        break;
    case TIMER_ENTRY:
        entry_on_timer(eng, container_of(t, struct entry, timer));
        break;
    case TIMER_PENDING_REQUEST:
        pending_request_on_timer(eng, container_of(t, struct pending_request, timer));
        break;
    case TIMER_OVER:
        request_expire(eng);
        break;
    case TIMER_PULSE:
        on_pulse(eng);
        break;
    case TIMER_FAIR:
        fair_on_timer(eng, t);
        break;
    case TIMER_MLOCK:
        mlock_on_timer(eng, container_of(t, struct mlock, timer));
        break;
    case TIMER_LOAN:
        lock_touch(eng, container_of(t, struct loan, timer)->lock);
        break;
    case TIMER_WATCH:
        name_watch_note(eng, container_of(t, struct name_watch, timer));
        break;
    case TIMER_COUNT_LOG: /* count_log_send() comes next, */
    case TIMER_DUE_LOANS: /* and loan_renewals_flush() */
        break;
    case TIMER_PEERS:
        if (peers_on_timer(eng)) {
            engine_on_store_up(eng, false);
        }
        break;
    }
}

void engine_tick(struct engine *eng, uint64_t now_ms)
{
    struct heap_node *node = heap_min(&eng->heap);
    bool stalled =
        eng->hold_count > 0 && node != NULL && node->at + ENGINE_STALL_MS < now_ms;

    eng->before = eng->now;
    if (now_ms > eng->now) {
        eng->now = now_ms;
    }
    /* Ends first, then doubt: what ran out while we stood still is lost, not uncertain.
     */
    while ((node = heap_min(&eng->heap)) != NULL && node->at <= eng->now) {
        heap_remove(&eng->heap, node);
        fire_timer(eng, container_of(node, struct timer, node));
    }
    if (stalled) {
        holds_set_uncertain(eng);
    }
    engine_settle(eng);
}

uint64_t engine_next_deadline(const struct engine *eng)
{
    struct heap_node *node = heap_min(&eng->heap);

    return node == NULL ? UINT64_MAX : node->at;
}

/* --- stop ------------------------------------------------------------------------- */

void engine_stop(struct engine *eng)
{
    struct loan *loan;
    struct waiter *w;
    struct hold *h;

    eng->stopping = true;
    peers_leave(eng);
    mlock_stop(eng);
    watch_set_stop(eng, &eng->leader_watches);
    watch_set_stop(eng, &eng->latch_watches);
    LIST_EACH(loan, &eng->loans, in_all) {
        lock_touch(eng, loan->lock);
    }
    LIST_EACH_SAFE(w, &eng->waiters, in_all) {
        waiter_end_error(eng, w, LOCK_GOAWAY, TEXT_GOING, false);
    }
    LIST_EACH_SAFE(h, &eng->holds, in_all) {
        if (h->attached > 0) {
            hold_set_uncertain(eng, h);
            renew_request(eng, h);
        }
    }
    engine_settle(eng);
}

bool engine_stopped(const struct engine *eng)
{
    return eng->inflight_ops.count == 0 &&
           (!eng->up || (renew_queues_are_empty(eng) && list_empty(&eng->restores) &&
                         eng->leave_count == 0));
}

/* Requests about a connection: the end of it, of its wait, and of a grant. */

void engine_on_conn_closed(struct engine *eng, uint64_t conn)
{
    struct session *s = session_find(eng, conn);
    struct pending_request *c;
    struct waiter *w;
    struct attach *a;

    if (s == NULL) {
        return;
    }
    s->closing = true;
    mlock_conn_closed(eng, s);
    LIST_EACH_SAFE(c, &s->pending_requests, in_session) {
        pending_request_free(eng, c);
    }
    LIST_EACH_SAFE(w, &s->waiters, in_session) {
        waiter_detach(eng, w);
    }
    LIST_EACH_SAFE(a, &s->attaches, in_session) {
        entry_detach(eng, a);
    }
    session_free(eng, s);
    engine_settle(eng);
}

void engine_on_undelivered(struct engine *eng, uint64_t conn, uint64_t grant)
{
    struct session *s = session_find(eng, conn);
    struct attach *a;
    bool closing;

    if (s == NULL) {
        return;
    }
    closing = s->closing;
    s->closing = true; /* it stays until the list has been walked */
    LIST_EACH_SAFE(a, &s->attaches, in_session) {
        if (a->grant == grant) {
            if (a->entry->member != NULL) {
                a->entry->member->token_sent = false;
            }
            entry_take_back(eng, a, true);
        }
    }
    s->closing = closing;
    session_idle(eng, s);
    engine_settle(eng);
}

enum grant_state engine_grant_state(const struct engine *eng, uint64_t conn,
                                    uint64_t grant)
{
    struct session *s = session_find(eng, conn);
    enum grant_state state = GRANT_OVER;
    const struct attach *a;

    if (s == NULL) {
        return state;
    }
    LIST_EACH(a, &s->attaches, in_session) {
        if (a->grant == grant) { /* an MLOCK's is in several places */
            if (!entry_is_fresh(eng, a->entry)) {
                return GRANT_STALE;
            }
            state = GRANT_FRESH;
        }
    }
    return state;
}

bool engine_conn_busy(const struct engine *eng, uint64_t conn)
{
    const struct session *s = session_find(eng, conn);

    return s != NULL && !(list_empty(&s->waiters) && list_empty(&s->attaches) &&
                          list_empty(&s->pending_requests) && list_empty(&s->mlocks));
}

bool engine_knows_conn(const struct engine *eng, uint64_t conn)
{
    return session_find(eng, conn) != NULL;
}

uint32_t engine_conn_heartbeat(const struct engine *eng, uint64_t conn)
{
    const struct session *s = session_find(eng, conn);
    uint32_t least = 0;
    struct attach *a;

    if (s == NULL) {
        return 0;
    }
    LIST_EACH(a, &s->attaches, in_session) {
        const struct entry *e = a->entry;
        uint32_t every_ms = entry_heartbeat(e);

        if (every_ms != 0 && (least == 0 || every_ms < least)) {
            least = every_ms;
        }
    }
    return least;
}

void engine_end_wait(struct engine *eng, struct call_ref from)
{
    struct session *s = session_find(eng, from.conn);
    struct waiter *w;

    if (s == NULL) {
        return;
    }
    LIST_EACH_SAFE(w, &s->waiters, in_session) {
        if (w->call == from.call) {
            waiter_expire(eng, w);
            break;
        }
    }
    engine_settle(eng);
}

bool engine_unblock(struct engine *eng, uint64_t conn, bool with_error)
{
    struct session *s = session_find(eng, conn);
    struct list *first = s == NULL ? NULL : list_first(&s->waiters);

    if (s != NULL && mlock_unblock(eng, s, with_error)) {
        engine_settle(eng);
        return true;
    }
    if (first == NULL) {
        bool led = s != NULL && name_watch_unblock(eng, s, with_error);

        engine_settle(eng);
        return led;
    }
    if (with_error) {
        waiter_end_error(eng, container_of(first, struct waiter, in_session),
                         LOCK_UNBLOCKED, TEXT_UNBLOCKED, true);
    } else {
        waiter_end_null(eng, container_of(first, struct waiter, in_session), true);
    }
    engine_settle(eng);
    return true;
}

/* --- rights ----------------------------------------------------------------------- */

static bool mlock_is_refused(const struct mlock *ml, engine_refuses_fn *refuses,
                             void *ctx)
{
    for (size_t i = 0; i < ml->count; i++) {
        if (refuses(ctx, ml->call.call, ml->members[i].name)) {
            return true;
        }
    }
    return false;
}

static void refuse_mlocks(struct engine *eng, const struct session *s,
                          engine_refuses_fn *refuses, void *ctx)
{
    struct mlock *ml;

    LIST_EACH_SAFE(ml, &s->mlocks, in_session) {
        if (mlock_is_refused(ml, refuses, ctx)) {
            emit_error(eng, ml->call, LOCK_NOPERM, TEXT_NO_RIGHT);
            mlock_end(eng, ml, false);
        }
    }
}

static void refuse_locks(struct engine *eng, const struct session *s,
                         engine_refuses_fn *refuses, void *ctx)
{
    struct waiter *w;

    LIST_EACH_SAFE(w, &s->waiters, in_session) {
        if (w->member == NULL && refuses(ctx, w->call, lock_name(w->lock))) {
            waiter_end_error(eng, w, LOCK_NOPERM, TEXT_NO_RIGHT, false);
        }
    }
}

void engine_refuse_waits(struct engine *eng, uint64_t conn, engine_refuses_fn *refuses,
                         void *ctx)
{
    struct session *s = session_find(eng, conn);

    if (s == NULL) {
        return;
    }
    s->closing = true; /* it stays until the lists have been walked */
    refuse_mlocks(eng, s, refuses, ctx);
    refuse_locks(eng, s, refuses, ctx);
    name_watch_refuse_waits(eng, s, refuses, ctx);
    s->closing = false;
    session_idle(eng, s);
    engine_settle(eng);
}

/* Requests about holds and waits that are there: UNLOCK, RENEW, FORCEUNLOCK, CANCEL,
 * LOCKINFO come in here. */

/* --- UNLOCK ----------------------------------------------------------------------- */

/* READ or WRITE, if the request says one of them, is what this hold is. */
static bool fits_kind(const struct hold *h, const struct hold_req *req)
{
    return !lock_kind_tells_class(req->lock_kind) || h->lock_kind == req->lock_kind;
}

/* The newest entry of this hold that the connection keeps; counts such entries. */
static struct entry *own_entry(const struct hold *h, uint64_t conn, size_t *count)
{
    struct entry *found = NULL;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (entry_is_ending(e)) {
            continue;
        }
        for (const struct attach *a = entry_first_attach(e); a != NULL;
             a = attach_next(a)) {
            if (a->session->conn.key == conn) {
                ++*count;
                found = found == NULL ? e : found;
                break;
            }
        }
    }
    return found;
}

static struct entry *newest_entry(const struct hold *h)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (!entry_is_ending(e)) {
            return e;
        }
    }
    return NULL;
}

/* The entries of a name that a connection has. */
struct own {
    struct entry *first; /* the first entry that the request may mean */
    size_t count;        /* of these */
    size_t others;       /* read where it says WRITE, or the other way round */
};

static struct own find_own(const struct lock *lock, const struct session *s,
                           const struct hold_req *req)
{
    struct own own = { 0 };
    struct attach *a;

    if (lock->lock_class != CLASS_PLAIN && s != NULL) {
        /* they are fewer than the holds may be */
        LIST_EACH(a, &s->attaches, in_session) {
            struct entry *e = a->entry;

            if (e->hold->lock != lock || entry_is_ending(e)) {
                continue;
            }
            if (!fits_kind(e->hold, req)) {
                own.others++;
                continue;
            }
            own.count++;
            own.first = own.first == NULL ? e : own.first;
        }
    } else if (lock_hold(lock) != NULL) {
        own.first = own_entry(lock_hold(lock), req->from.conn, &own.count);
    }
    return own;
}

/* The entry for an UNLOCK or RENEW that does not name a hold. NULL: the request has
 * been answered. */
static struct entry *bare_entry(struct engine *eng, struct lock *lock,
                                const struct hold_req *req)
{
    struct session *s = session_find(eng, req->from.conn);
    struct own own = find_own(lock, s, req);
    bool lost = s != NULL && session_has_lost(s, lock);

    if (own.count == 0 && own.others > 0) {
        emit_error(eng, req->from, LOCK_NOTHELD, TEXT_NOT_THERE);
        return NULL;
    }
    if (own.count == 0 && lost) {
        emit_error(eng, req->from, LOCK_NOTHELD, SPAN("this connection has lost it"));
        return NULL;
    }
    if (own.count != 1 || lost) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("TOKEN, OWNER or ID needed"));
        return NULL;
    }
    if (!req->overrides && user_differs(own.first->hold->user, req->user)) {
        emit_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS); /* of before its AUTH */
        return NULL;
    }
    return own.first;
}

/* The hold that the request means, if it is known here. */
static struct hold *local_hold(const struct lock *lock, const struct request *request,
                               const struct hold_req *req)
{
    struct hold *h = lock_hold(lock);

    if (h != NULL && req->id.len != 0) {
        h = request != NULL && request->entry != NULL ? request->entry->hold : NULL;
    } else if (h != NULL && req->value.len != 0) {
        h = lock_value_hold(lock, req->value);
    } else if (h != NULL && req->owner.len != 0) {
        h = lock_held_by(lock, req->owner, req->lock_kind);
    } else if (h != NULL) {
        h = lock_hold_with(lock, req->token);
    }
    if (h == NULL || hold_is_rest(h) || (req->token != 0 && h->token != req->token) ||
        (req->owner.len != 0 && !span_eq(field_owner(hold_field(h)), req->owner)) ||
        !fits_kind(h, req)) {
        return NULL;
    }
    return h;
}

/* The owner both reads and writes here, and the request does not say which is meant. */
static bool is_ambiguous(const struct lock *lock, const struct hold_req *req)
{
    return req->lock_kind == KIND_PLAIN && req->owner.len != 0 && req->id.len == 0 &&
           req->token == 0 && lock_held_by(lock, req->owner, KIND_WRITE) != NULL &&
           lock_held_by(lock, req->owner, KIND_READ) != NULL;
}

/* True: the request has been answered, as READ or WRITE is wrong or missing. */
static bool kind_refused(struct engine *eng, const struct lock *lock,
                         const struct hold_req *req)
{
    if (lock_kind_tells_class(req->lock_kind) && eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_QUORUM);
        return true;
    }
    if (lock_kind_tells_class(req->lock_kind) &&
        lock->lock_class != lock_class_of(req->lock_kind) && lock_in_use(lock)) {
        emit_error(eng, req->from, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        return true;
    }
    if (is_ambiguous(lock, req)) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_BOTH);
        return true;
    }
    return false;
}

/* The entry that the request means, if it is known here; NULL: Redis must be asked. */
static struct entry *local_entry(const struct lock *lock, const struct request *request,
                                 const struct hold_req *req)
{
    const struct hold *h = local_hold(lock, request, req);
    struct entry *e;
    size_t count = 0;

    if (h == NULL) {
        return NULL;
    }
    if (req->id.len != 0) {
        return request->entry;
    }
    if (req->owner.len != 0) {
        e = own_entry(h, req->from.conn, &count);
        return e != NULL ? e : newest_entry(h);
    }
    if (h->owner_kind == OWNER_NAMED) {
        return NULL;
    }
    return h->entries;
}

static void release_entry(struct engine *eng, struct lock *lock, struct entry *e,
                          bool named, const struct hold_req *req)
{
    struct pending_request *c;
    struct pending_release *d;
    struct waiter *to;

    if (!successor_choose(eng, lock, e, req, &to) ||
        ((to == NULL || e == NULL) && unlock_in_memory(eng, e, req))) {
        return;
    }
    c = pending_request_new(eng, PENDING_UNLOCK, lock, req);
    d = e != NULL && !entry_is_ending(e)
            ? pending_release_for_entry(eng, e, RELEASE_REQUESTED)
            : pending_release_for_call(eng, c);

    /* An ID may have been granted anew, if Redis lost the hold and its mark. */
    d->target.token = req->token;
    /* For who sends it again, or for another daemon that has, or had, the hold: an ID
     * may have been sent there without our hearing of it. And if we have to send it
     * again, it tells how many entries were left. */
    d->leave_tombstone = named || e == NULL || e->taken_over ||
                         spec_id(e->spec).len != 0 || !hold_has_one_entry(e->hold);
    d->may_be_parallel =
        d->local != NULL && lock_kind_is_shared(d->local->hold->lock_kind);
    d->to = to == NULL ? NULL : spec_ref(to->spec);
    d->call = c;
    c->release = d;
}

/* An UNLOCK of that ID was answered here. Only that is final: a request that was lost
 * or given up here may still hold, through another daemon. And one that a failover has
 * brought back, and somebody has come back to by its token, is known here again. */
static bool is_final(const struct lock *lock, const struct request *request,
                     const struct hold_req *req)
{
    struct target target = { .kind = TARGET_ID };
    char field[sizeof(ID_FIELD_PREFIX) + LATCHD_ID_MAX];
    char entry[sizeof(ID_ENTRY_PREFIX) + LATCHD_ID_MAX];
    char *at = field;

    if (request == NULL || request->over_at == NEVER || request->answer < 0) {
        return false;
    }
    target.field = span_put2(&at, SPAN(ID_FIELD_PREFIX), req->id);
    at = entry;
    target.entry = span_put2(&at, SPAN(ID_ENTRY_PREFIX), req->id);
    return lock_find_target(lock, &target) == NULL;
}

void engine_unlock(struct engine *eng, const struct hold_req *req)
{
    bool named = req->token != 0 || req->id.len != 0;
    struct request *request = request_find(eng, req->name, req->id);
    struct lock *lock = lock_get(eng, req->name);
    struct entry *e;

    if (user_refuses(eng, lock, request, req)) {
        engine_settle(eng);
        return;
    }
    if (is_final(lock, request, req)) {
        if (eng->now - request->over_at <= LATCHD_UNLOCK_AGAIN_MS) {
            emit_int(eng, req->from, request->answer);
        } else {
            emit_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
        }
    } else if (kind_refused(eng, lock, req)) {
        ; /* and answered */
    } else if (hold_req_is_bare(req)) {
        e = bare_entry(eng, lock, req);
        if (e != NULL) {
            release_entry(eng, lock, e, false, req);
        }
    } else {
        release_entry(eng, lock, local_entry(lock, request, req), named, req);
    }
    engine_settle(eng);
}

/* --- RENEW, FORCEUNLOCK, CANCEL, LOCKINFO ----------------------------------------- */

void engine_renew(struct engine *eng, const struct hold_req *req)
{
    const struct request *request = request_find(eng, req->name, req->id);
    struct lock *lock = lock_get(eng, req->name);
    struct hold_req as = *req;
    struct entry *e;
    struct pending_request *c;

    if (user_refuses(eng, lock, request, req) || kind_refused(eng, lock, req)) {
        engine_settle(eng);
        return;
    }
    if (is_final(lock, request, req)) {
        emit_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
        engine_settle(eng);
        return;
    }
    if (hold_req_is_bare(req)) {
        e = bare_entry(eng, lock, req);
        if (e == NULL) {
            engine_settle(eng);
            return;
        }
        as.lock_kind = e->hold->lock_kind;
        as.id = spec_id(e->spec);
        as.token = e->hold->token;
    } else {
        e = local_entry(lock, request, req);
    }
    c = pending_request_new(eng, PENDING_RENEW, lock, &as);
    if (e != NULL) {
        /* A release that was sent may find that the hold is kept elsewhere by now. */
        (void)pending_release_withdraw(eng, lock, hold_field(e->hold),
                                       spec_entry(e->spec));
        pending_request_aim(c, e);
    }
    pending_request_queue(eng, c);
    engine_settle(eng);
}

void engine_force_unlock(struct engine *eng, const struct hold_req *req)
{
    struct lock *lock = lock_get(eng, req->name);
    struct pending_request *c = pending_request_new(eng, PENDING_FORCE, lock, req);

    if (req->any) {
        c->target.kind = TARGET_ANY;
    }
    (void)pending_release_for_call(eng, c);
    engine_settle(eng);
}

static bool waits_as(const struct waiter *w, const struct hold_req *req)
{
    if (req->id.len != 0) {
        return span_eq(spec_id(w->spec), req->id);
    }
    return w->spec->owner_kind == OWNER_NAMED &&
           span_eq(field_owner(spec_field(w->spec)), req->owner);
}

static bool may_cancel(const struct hold_req *req, uint32_t user, bool *ret_others)
{
    bool others = !req->overrides && user_differs(user, req->user);

    *ret_others = *ret_others || others;
    return !others;
}

static size_t cancel_kept(struct engine *eng, const struct hold *h,
                          const struct hold_req *req, bool *ret_others)
{
    size_t count = 0;

    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->retained && !entry_is_ending(e) &&
            (req->id.len != 0 ? span_eq(spec_id(e->spec), req->id)
                              : span_eq(field_owner(hold_field(h)), req->owner)) &&
            may_cancel(req, h->user, ret_others)) {
            pending_release_end_entry(eng, e);
            count++;
        }
    }
    return count;
}

static void cancel_wait(struct engine *eng, struct waiter *w)
{
    struct request *request = w->request;

    if (request != NULL) {
        w->request = NULL;
        request->waiter = NULL;
        request_over(eng, request, -1);
    }
    waiter_end_null(eng, w, false);
}

/* Where an ID names the wait, the others of the name need not be looked at. */
static struct waiter *waiter_of_id(struct engine *eng, const struct hold_req *req)
{
    struct request *request =
        req->id.len == 0 ? NULL : request_find(eng, req->name, req->id);

    return request == NULL ? NULL : request->waiter;
}

static size_t cancel_waits(struct engine *eng, struct lock *lock,
                           const struct hold_req *req, bool *ret_others)
{
    struct waiter *w = waiter_of_id(eng, req);
    size_t count = 0;

    if (w != NULL && waits_as(w, req)) {
        if (may_cancel(req, w->spec->terms.user, ret_others)) {
            cancel_wait(eng, w);
            count++;
        }
        return count;
    }
    LIST_EACH_SAFE(w, &lock->queue, in_queue) {
        if (waits_as(w, req) && may_cancel(req, w->spec->terms.user, ret_others)) {
            cancel_wait(eng, w);
            count++;
        }
    }
    return count;
}

size_t engine_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others)
{
    struct lock *lock = lock_find(eng, req->name);
    struct hold *h;
    size_t count;

    *ret_others = false;
    count = mlock_cancel(eng, req, ret_others);
    if (lock == NULL) {
        engine_settle(eng);
        return count;
    }
    count += cancel_waits(eng, lock, req, ret_others);
    LIST_EACH(h, &lock->holds, in_lock) {
        count += cancel_kept(eng, h, req, ret_others);
    }
    engine_settle(eng);
    return count;
}

void engine_lock_info(struct engine *eng, struct call_ref from, struct span name)
{
    struct hold_req req = { .from = from, .name = name };

    request_info(eng, &req, INFO_OF_NAME);
    engine_settle(eng);
}

/* LATCH. */

void engine_latch(struct engine *eng, const struct latch_req *req)
{
    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum has no latches"));
    } else {
        (req->word == LATCH_AWAITS ? request_await : request_latch)(eng, req);
    }
    engine_settle(eng);
}

/* LEADER, and who listens to its channel. */

static void request_leader(struct engine *eng, const struct leader_req *req)
{
    struct hold_req as = { .from = req->from, .name = req->name };
    struct leader_watch *watch;
    struct pending_request *c;

    if (eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, SPAN("a quorum has no leaders"));
        return;
    }
    if (name_watch_refuses(eng, req->from)) {
        return;
    }
    watch = leader_watch_get(eng, lock_get(eng, req->name));
    c = pending_request_new(eng, PENDING_FOLLOWER, watch->watch.lock, &as);
    c->follower.waits_for_change = req->has_after;
    c->follower.after = req->after;
    name_watch_follow(eng, &watch->watch, c, req->wait_ms,
                      req->has_wait || !req->has_after);
}

void engine_leader(struct engine *eng, const struct leader_req *req)
{
    request_leader(eng, req);
    engine_settle(eng);
}

void engine_follow(struct engine *eng, struct span name, bool heard)
{
    leader_follow(eng, name, heard);
    engine_settle(eng);
}

/* LOCK, MLOCK, and LOCKs that came together on one connection: one op asks for as many
 * as possible, and stops at the first that is not granted. */

static size_t left_of(uint64_t max, uint64_t used)
{
    return max > used ? (size_t)(max - used) : 0;
}

bool engine_has_room(const struct engine *eng)
{
    return eng->waiter_count < eng->cfg.max_waiters &&
           eng->hold_count < eng->cfg.max_holds;
}

/* How many LOCKs of a batch the limits leave room for. */
static size_t run_max(const struct engine *eng)
{
    size_t waiters = left_of(eng->cfg.max_waiters, eng->waiter_count);
    size_t holds = left_of(eng->cfg.max_holds, eng->hold_count);
    size_t max = waiters < holds ? waiters : holds;

    if (!eng->up || eng->quorum || eng->stopping) {
        return 0;
    }
    return max < OP_BATCH_MAX ? max : OP_BATCH_MAX;
}

static bool may_join(const struct engine *eng, const struct lock_req *first,
                     const struct lock_req *req)
{
    return req->terms.lock_kind == KIND_PLAIN && req->terms.data.len == 0 &&
           req->terms.atleast_ms == 0 &&
           lock_group(eng, first->name) == lock_group(eng, req->name) &&
           lock_untouched(eng, req->name, req->terms.id);
}

/* Whether the LOCK is for a name whose loan is in that state. */
static bool is_lent(const struct engine *eng, const struct lock_req *req,
                    enum loan_state state)
{
    const struct lock *lock =
        (req->terms.has & OPT_LOCAL) != 0 ? lock_find(eng, req->name) : NULL;

    return lock != NULL && lock->loan != NULL && lock->loan->state == state;
}

/* The first of them whose names are lent are granted one after the other, up to one
 * that Redis has to be asked for. How many have begun. */
static size_t lock_lent_names(struct engine *eng, const struct lock_req *reqs,
                              size_t count)
{
    bool granted = true;
    size_t n = 0;

    while (n < count && granted && is_lent(eng, &reqs[n], LOAN_IDLE)) {
        request_lock(eng, &reqs[n]);
        engine_settle(eng);
        granted = is_lent(eng, &reqs[n], LOAN_HELD);
        n++;
    }
    return n;
}

size_t engine_lock_batch(struct engine *eng, const struct lock_req *reqs, size_t count)
{
    struct waiter *waiters[OP_BATCH_MAX];
    size_t max = run_max(eng);
    size_t lent = lock_lent_names(eng, reqs, count);
    size_t n = 0;

    if (lent > 0) {
        return lent;
    }
    while (n < count && n < max && may_join(eng, reqs, &reqs[n])) {
        waiters[n] = request_lock_enqueue(eng, &reqs[n]);
        waiters[n]->in_run = true;
        n++;
    }
    if (n > 1) {
        acquire_ask_batch(eng, waiters, n, false);
    } else if (n == 1) {
        waiters[0]->in_run = false;
        request_lock_start(eng, waiters[0]);
    } else {
        request_lock(eng, reqs);
        n = 1;
    }
    engine_settle(eng);
    return n;
}

void engine_lock(struct engine *eng, const struct lock_req *req)
{
    request_lock(eng, req);
    engine_settle(eng);
}

void engine_mlock(struct engine *eng, const struct mlock_req *req)
{
    request_mlock(eng, req);
    engine_settle(eng);
}

/* Requests about a semaphore as a whole. */

void engine_semaphore_info(struct engine *eng, struct call_ref from, struct span name)
{
    struct hold_req req = { .from = from, .name = name };

    if (eng->quorum) {
        emit_error(eng, from, LOCK_ERR, TEXT_QUORUM);
    } else {
        request_info(eng, &req, INFO_OF_SEMAPHORE);
    }
    engine_settle(eng);
}

void engine_semaphore_limit(struct engine *eng, struct call_ref from, struct span name,
                            uint32_t limit)
{
    struct hold_req req = { .from = from, .name = name };

    if (eng->quorum) {
        emit_error(eng, from, LOCK_ERR, TEXT_QUORUM);
    } else {
        request_limit(eng, &req, limit);
    }
    engine_settle(eng);
}

/* The events of Redis: up, down, another server, results, subscriptions and
 * messages. */

/* Messages may have been missed: every head asks again. A waiter that tries once behind
 * the head is answered by what the head hears. */
static void resume_lock(struct engine *eng, struct lock *lock)
{
    struct waiter *w;

    last_answer_over(lock);
    LIST_EACH_SAFE(w, &lock->queue, in_queue) {
        if (waiter_is_head(w)) {
            lock_ask(eng, lock);
        } else if (w->once && w->probe == PROBE_NONE && w->in_flight == NULL) {
            waiter_decide(eng, w);
        }
    }
    fair_refresh_soon(eng, lock);
    lock_touch(eng, lock);
}

void engine_on_store_up(struct engine *eng, bool same_server)
{
    struct pending_request *c;
    struct lock *lock;

    if (peers_ask_first(eng)) {
        return;
    }
    eng->up = true;
    loans_pause(eng);
    if (!same_server) {
        eng->last_stale_op = eng->next_op;
        peers_withhold(eng);
        TABLE_EACH(lock, &eng->names, in_names) {
            restore_lock(eng, lock);
        }
        release_log_replay(eng, NULL, NULL);
        count_log_replay(eng, NULL, NULL);
        latch_watches_distrust(eng);
        fair_left_again(eng, NULL, NULL);
    }
    count_log_resume(eng);
    peers_greet(eng);
    LIST_EACH_SAFE(c, &eng->waiting_for_store, in_waiting) {
        pending_request_queue(eng, c);
    }
    TABLE_EACH(lock, &eng->names, in_names) {
        resume_lock(eng, lock);
    }
    engine_settle(eng);
}

bool engine_is_up(const struct engine *eng)
{
    return eng->up;
}

void engine_on_store_down(struct engine *eng)
{
    peers_forget_asking(eng);
    watch_set_doubt(eng, &eng->leader_watches);
    watch_set_doubt(eng, &eng->latch_watches);
    count_log_pause(eng);
    eng->down_at = eng->now;
    eng->up = false;
}

void engine_set_trouble(struct engine *eng, struct span why)
{
    trouble_set(eng, why);
}

void engine_on_clock_jump(struct engine *eng)
{
    struct lock *lock;

    eng->last_stale_op = eng->next_op;
    holds_set_uncertain(eng);
    TABLE_EACH(lock, &eng->names, in_names) {
        fair_refresh_soon(eng, lock); /* its scores are by that clock */
    }
    engine_settle(eng);
}

void engine_on_clock_behind(struct engine *eng, uint64_t us)
{
    inflight_raise_clock_floor(eng, us);
    peers_tell_token(eng);
    engine_settle(eng);
}

void engine_on_failover(struct engine *eng, engine_concerns_fn *concerns, void *ctx)
{
    struct lock *lock;

    eng->stats.failovers++;
    loans_pause(eng);
    peers_lost_writes(eng);
    for (uint32_t i = 0; i < eng->group_count && eng->cfg.quarantine_ms > 0; i++) {
        if (concerns == NULL || concerns(ctx, i)) {
            quarantine_group(eng, i, eng->now + eng->cfg.quarantine_ms);
        }
    }
    TABLE_EACH(lock, &eng->names, in_names) {
        if (concerns == NULL || concerns(ctx, lock->group)) {
            quarantine_exempt(eng, lock);
            restore_lock(eng, lock);
        }
    }
    release_log_replay(eng, concerns, ctx);
    count_log_replay(eng, concerns, ctx);
    fair_left_again(eng, concerns, ctx);
    watch_set_doubt(eng, &eng->leader_watches);
    watch_set_doubt(eng, &eng->latch_watches);
    latch_watches_distrust(eng);
    engine_settle(eng);
}

void engine_on_lossless_failover(struct engine *eng, engine_concerns_fn *concerns,
                                 void *ctx)
{
    struct lock *lock;

    quarantine_lift(eng, concerns, ctx);
    if (concerns == NULL) {
        peers_lost_nothing(eng);
    }
    TABLE_EACH(lock, &eng->names, in_names) {
        if ((concerns == NULL || concerns(ctx, lock->group)) &&
            lock_head(lock) != NULL) {
            last_answer_over(lock);
            lock_ask(eng, lock);
        }
    }
    engine_settle(eng);
}

void engine_on_subscribed(struct engine *eng, struct span name,
                          enum lock_class lock_class)
{
    struct lock *lock = lock_find(eng, name);

    if (lock == NULL || lock->lock_class != lock_class || lock->sub == SUB_NONE) {
        return; /* a confirmation of a subscription that is over */
    }
    lock_set_sub(lock, SUB_ON);
    lock_doubt_seen(eng, lock);
    leader_watch_note(eng, lock);
    latch_watch_note(eng, lock);
    if (lock_head(lock) != NULL) {
        lock_ask(eng, lock);
    }
    engine_settle(eng);
}

void engine_on_subscriptions_lost(struct engine *eng)
{
    struct lock *lock;

    TABLE_EACH(lock, &eng->names, in_names) {
        if (lock->sub == SUB_ON || lock->sub == SUB_SURE) {
            lock_set_sub(lock, SUB_ASKED); /* the store asks again by itself */
        }
    }
    engine_settle(eng);
}

void engine_on_message(struct engine *eng, struct span name, enum lock_class lock_class,
                       struct span payload)
{
    struct lock *lock = lock_find(eng, name);
    struct hold *h;

    if (lock == NULL || lock->lock_class != lock_class) {
        return;
    }
    lock_doubt_seen(eng, lock);
    /* Of a semaphore, that some permits came back says nothing of the others. */
    LIST_EACH(h, &lock->holds, in_lock) {
        if (lock_class != CLASS_SEMAPHORE) {
            hold_freed(eng, h);
        }
    }
    last_answer_over(lock);
    leader_watch_note(eng, lock);
    latch_watch_on_message(eng, lock, payload);
    loan_doubt(lock);
    if (lock_head(lock) == NULL) {
        engine_settle(eng);
        return;
    }
    yield_on_message(eng, lock);
    lock_ask(eng, lock);
    engine_settle(eng);
}

void engine_on_op_result(struct engine *eng, const struct op_result *result)
{
    inflight_on_result(eng, result);
    engine_settle(eng);
}

void engine_on_watch(struct engine *eng, uint64_t limit, engine_concerns_fn *concerns,
                     void *ctx)
{
    eng->watch_limit = limit;
    holds_not_watched(eng, concerns, ctx);
}

void engine_on_watched(struct engine *eng, struct span name, bool missing)
{
    struct lock *lock = lock_find(eng, name);
    struct hold *h;

    if (lock == NULL) {
        return;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        hold_watched(eng, h, missing);
    }
    engine_settle(eng);
}

void engine_on_touched(struct engine *eng, struct span name,
                       engine_concerns_fn *concerns, void *ctx)
{
    struct lock *lock = name.len == 0 ? NULL : lock_find(eng, name);
    struct hold *h;

    if (name.len == 0) {
        holds_touched(eng, concerns, ctx);
        engine_settle(eng);
    }
    if (lock == NULL) {
        return;
    }
    LIST_EACH(h, &lock->holds, in_lock) {
        if (h->watch == WATCH_ON) {
            hold_touched(eng, h);
        }
    }
    engine_settle(eng);
}

void engine_announced(struct engine *eng, struct span text)
{
    struct span changed;
    struct lock *lock;

    if (followed_names_on_announcement(eng, text, &changed)) {
        lock = changed.len == 0 ? NULL : lock_find(eng, changed);
        if (lock != NULL) {
            leader_watch_note(eng, lock);
        }
    } else if (peers_on_announcement(eng, text)) {
        leader_watches_announce(eng);
    }
    engine_settle(eng);
}
