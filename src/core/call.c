/* Requests that wait for one answer of Redis: RENEW, LOCKINFO, and a LOCK that was sent
 * again after its grant. UNLOCK and FORCEUNLOCK wait here too, for their duty. */
#include "core/loss.h"
#include "core/parts.h"
#include "util/alloc.h"

struct call *call_new(struct locks *l, enum call_kind kind, struct lock *lock,
                      const struct hold_req *req)
{
    const struct span field_prefix = SPAN(ID_FIELD_PREFIX);
    const struct span entry_prefix = SPAN(ID_ENTRY_PREFIX);
    struct call *c =
        pool_alloc(&l->pool, sizeof(*c) + req->owner.len + field_prefix.len +
                                 entry_prefix.len + 2 * req->id.len);
    char *at = c->data;

    c->kind = kind;
    c->lock = lock;
    lock->refs++;
    c->ref = req->from;
    c->target.token = req->token;
    c->target.lock_kind = kind_of_hold(req->kind);
    c->rw = lock->rw || kind_is_rw(req->kind);
    c->guessed = !lock_in_use(lock) && !kind_is_rw(req->kind);
    c->lease_ms = req->lease_ms;
    c->user = req->user;
    c->overrides = req->overrides;
    c->session = session_get(l, req->from.conn);
    list_append(&c->session->calls, &c->in_session);
    list_init(&c->in_waiting);
    list_init(&c->in_infos);
    list_init(&c->in_lock);
    if (kind == CALL_RENEW || kind == CALL_REGRANT) {
        list_append(&lock_desk(l, lock)->renews, &c->in_lock);
    }
    if (req->owner.len != 0) {
        c->target.kind = req->id.len != 0 ? TARGET_ENTRY : TARGET_OWNER;
        c->target.field = span_put2(&at, req->owner, SPAN_NONE);
    } else if (req->id.len != 0) {
        c->target.kind = TARGET_ID;
        c->target.field = span_put2(&at, field_prefix, req->id);
    } else {
        c->target.kind = TARGET_TOKEN;
    }
    if (req->id.len != 0) {
        c->target.entry = span_put2(&at, entry_prefix, req->id);
    }
    c->deadline = l->now + l->cfg.redis_timeout_ms;
    timer_set(l, &c->timer, TIMER_CALL, c->deadline);
    return c;
}

void call_aim(struct call *c, struct entry *e)
{
    if (e->hold->kind == OWNER_NAMED) {
        c->want = want_ref(e->want);
        c->target = (struct target){ .kind = TARGET_ENTRY,
                                     .lock_kind = e->hold->lock_kind,
                                     .field = want_field(c->want),
                                     .entry = want_entry(c->want) };
    }
}

/* The entry that it means, as far as it is known here and not on its way out. */
static struct entry *local_entry(const struct call *c)
{
    struct entry *e = lock_find_target(c->lock, &c->target);

    return e == NULL || e->ending ? NULL : e;
}

bool call_renews(const struct entry *e)
{
    struct list *it;

    LIST_FOREACH(it, &e->hold->lock->desk->renews)
    {
        if (local_entry(container_of(it, struct call, in_lock)) == e) {
            return true;
        }
    }
    return false;
}

void call_free(struct locks *l, struct call *c)
{
    if (c->duty != NULL) {
        c->duty->call = NULL;
    }
    if (c->work != NULL) {
        c->work->call = NULL;
    }
    list_del(&c->in_lock);
    if ((c->kind == CALL_REGRANT || c->kind == CALL_RENEW) && local_entry(c) != NULL) {
        entry_left(l, local_entry(c)); /* unless it has been attached */
    }
    want_unref(l, c->want);
    timer_stop(l, &c->timer);
    list_del(&c->in_session);
    list_del(&c->in_waiting);
    list_del(&c->in_infos);
    c->lock->refs--;
    lock_touch(l, c->lock);
    session_idle(l, c->session);
    pool_free(&l->pool, c);
}

void call_again(struct locks *l, struct call *c, enum op_status status)
{
    bool pause = status == OP_LATE || status == OP_ELSEWHERE;

    if (pause && l->now + RETRY_PAUSE_MS < c->deadline) {
        c->retry = true;
        timer_set(l, &c->timer, TIMER_CALL, l->now + RETRY_PAUSE_MS);
    } else if (!pause) {
        call_send(l, c);
    }
}

void call_on_timer(struct locks *l, struct call *c)
{
    if (c->retry) {
        c->retry = false;
        timer_set(l, &c->timer, TIMER_CALL, c->deadline);
        call_send(l, c);
        return;
    }
    if (tick_is_too_late(l, c->deadline)) {
        timer_set(l, &c->timer, TIMER_CALL, l->now + 1);
        return;
    }
    if (c->kind == CALL_INFO && lock_in_doubt(l, c->lock)) {
        info_in_doubt(l, c);
    } else {
        say_error(l, c->ref, LOCK_BACKEND, l->up ? TEXT_NO_ANSWER : TEXT_NO_REDIS);
    }
    call_free(l, c);
}

/* While a hold of the name is in doubt it has little time: then it is told what is
 * known here. */
static void hurry(struct locks *l, struct call *c)
{
    uint64_t at = l->now + INFO_DOUBT_MS;

    if (lock_in_doubt(l, c->lock) && at < c->deadline) {
        c->deadline = at;
        c->retry = false;
        timer_set(l, &c->timer, TIMER_CALL, at);
    }
}

void info_hurry(struct locks *l)
{
    struct list *it;

    LIST_FOREACH(it, &l->infos)
    {
        hurry(l, container_of(it, struct call, in_infos));
    }
}

void call_info(struct locks *l, const struct hold_req *req)
{
    struct call *c = call_new(l, CALL_INFO, lock_get(l, req->name), req);

    list_append(&l->infos, &c->in_infos);
    hurry(l, c);
    call_send(l, c);
}

void call_send(struct locks *l, struct call *c)
{
    bool look = c->kind == CALL_INFO;
    struct entry *e = local_entry(c);
    struct work *w;
    struct op *op;

    if (!l->up || c->lock->unsure > 0) {
        list_del(&c->in_waiting);
        list_append(l->up ? &lock_desk(l, c->lock)->calls : &l->calls, &c->in_waiting);
        return;
    }
    w = work_new(l, look ? WORK_INSPECT : WORK_ATTACH, c->lock);
    w->call = c;
    w->lease_ms = c->lease_ms != 0 ? c->lease_ms : l->cfg.watchdog_ms;
    c->work = w;
    op = work_op(l, w, look ? OP_INSPECT : OP_ATTACH);
    if (look) {
        return;
    }
    op->target = op_target(l, &c->target);
    op->lease_ms = w->lease_ms;
    op->rw = c->rw;
    op->exact = w->exact = c->kind == CALL_RENEW && c->lease_ms != 0;
    if (op->exact && e != NULL && hold_alone(e->hold)) {
        hold_cut(l, e->hold, work_asked(w), false);
    }
}

struct call *call_regrant(struct locks *l, struct entry *e, const struct lock_req *req)
{
    struct hold_req as = {
        .from = req->from,
        .kind = e->hold->lock_kind,
        .name = req->name,
        .owner = req->owner,
        .id = req->id,
        .token = e->hold->kind == OWNER_ANONYMOUS ? e->hold->token : 0,
        .lease_ms = e->want->fixed ? e->want->lease_ms : 0,
        .user = req->user,
    };
    struct call *c = call_new(l, CALL_REGRANT, e->hold->lock, &as);

    call_aim(c, e);
    if (e->kept) {
        timer_stop(l, &e->timer); /* KEEP is over: the client is there */
    }
    call_send(l, c);
    return c;
}

/* The local entry of a hold that Redis has just confirmed for us. */
static struct entry *adopt(struct locks *l, struct lock *lock, struct work *w,
                           const struct op_result *r)
{
    enum owner_kind kind = field_kind(r->owner);
    struct hold *h;
    struct want *want;
    struct entry *e;

    h = lock_believe(l, lock, r->lock_kind, r->owner, r->token);
    if (h == NULL) {
        h = hold_new(l, lock, r->lock_kind, r->owner, r->token);
    }
    h->user = h->user == 0 ? w->call->user : h->user;
    h->keeper_key = h->keeper_key || kind != OWNER_NAMED;
    hold_confirm(l, h, work_asked(w));
    e = hold_find_entry(h, r->entry);
    if (e == NULL) {
        struct span id = SPAN_NONE;

        if (kind == OWNER_ID) {
            id = span_after(field_owner(r->owner), strlen(ID_FIELD_PREFIX));
        } else if (span_starts(r->entry, SPAN(ID_ENTRY_PREFIX))) {
            id = span_after(r->entry, strlen(ID_ENTRY_PREFIX));
        }

        want = want_found(l, r->lock_kind, r->owner, r->entry, id);
        want->grace_ms = l->cfg.grace_ms;
        want->user = h->user;
        e = hold_add_entry(l, h, want);
        want_unref(l, want);
    }
    return e;
}

/* An ID that this daemon did not know is known from now on. */
static void know_request(struct locks *l, struct lock *lock, struct entry *e)
{
    struct request *r;

    if (want_id(e->want).len == 0 || e->request != NULL) {
        return;
    }
    r = request_find(l, lock_name(lock), want_id(e->want));
    if (r == NULL) {
        r = request_new(l, lock_name(lock), e->want);
    }
    if (r->waiter == NULL && r->entry == NULL && r->over_at == NEVER) {
        r->entry = e;
        e->request = r;
    }
}

static void attached(struct locks *l, struct work *w, const struct op_result *r)
{
    struct call *c = w->call;
    struct entry *e;
    struct attach *a;
    bool knew;

    if (!c->overrides &&
        lock_owner_is_others(w->lock, field_owner(r->owner), c->user)) {
        say_error(l, c->ref, LOCK_NOPERM, TEXT_OTHERS);
        return;
    }
    if (!duty_withdraw(l, w->lock, r->owner, r->entry)) {
        say_error(l, c->ref, LOCK_NOTHELD, TEXT_ENDING);
        return;
    }
    e = adopt(l, w->lock, w, r);
    e->ending = false; /* if its release was given up */
    e->since = w->sent;
    e->taken = true;
    know_request(l, w->lock, e);
    entry_set_fixed(l, e, c->lease_ms != 0);
    if (e->fixed) {
        e->until = hold_vouch_until(w->sent, c->lease_ms);
        if (hold_alone(e->hold) && c->kind == CALL_RENEW) {
            e->hold->until = e->until;
        }
    }
    knew = e->piece == NULL && entry_attach_of(e, c->session) != NULL;
    a = entry_attach(l, e, c->session);
    lock_seen(l, w->lock, w->op.key, (int64_t)w->lease_ms, r->lock_kind);
    hold_cut_by_calls(l, e, w->op.key);
    hold_schedule(l, e->hold);
    if (c->kind == CALL_REGRANT) {
        say_grant(l, c->ref, a);
        if (knew && e->piece != NULL) {
            e->piece->told = true;
        }
    } else {
        int64_t since = (int64_t)(l->now - w->sent);

        say_int(l, c->ref, r->ttl_ms > since ? r->ttl_ms - since : 0);
    }
}

static void attach_refused(struct locks *l, struct work *w, const struct op_result *r)
{
    struct call *c = w->call;
    struct entry *e = local_entry(c);

    switch (r->status) {
    case OP_AMBIGUOUS:
        say_error(l, c->ref, LOCK_ERR, TEXT_BOTH);
        break;
    case OP_WRONGTYPE:
        say_error(l, c->ref, LOCK_WRONGTYPE, TEXT_WRONGTYPE);
        break;
    case OP_ERROR:
        say_error(l, c->ref, LOCK_BACKEND, r->text);
        return;
    case OP_NOREPLICAS:
        /* Redis has it, and it ends with its lease; what is vouched for is as before.
         */
        say_error(l, c->ref, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
        return;
    default:
        say_error(l, c->ref, LOCK_NOTHELD,
                  c->kind == CALL_REGRANT ? TEXT_OVER : TEXT_NOT_THERE);
        break;
    }
    if (e != NULL && r->status != OP_AMBIGUOUS) {
        hold_lost(l, e->hold);
    }
}

/* A RENEW LEASE may have cut the lease, but nobody is told so: what is left is vouched
 * for, and the wanted lease asked for again. */
static void cut_for_nobody(struct locks *l, struct lock *lock, const struct work *w,
                           const struct op_result *r)
{
    const struct entry *e = w->call == NULL ? NULL : local_entry(w->call);
    bool told = r->status == OP_OK || r->status == OP_NOREPLICAS;
    bool ran = told || r->status == OP_UNKNOWN;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        struct hold *h = container_of(it, struct hold, in_lock);
        bool meant = told              ? span_eq(hold_field(h), r->owner)
                     : w->call != NULL ? e != NULL && e->hold == h
                                       : true; /* who knows */

        if (w->exact && ran && meant && hold_alone(h)) {
            hold_cut(l, h, work_asked(w), false);
        }
        hold_cut_failed(l, h, w->op.key);
    }
}

void attach_done(struct locks *l, struct work *w, const struct op_result *r)
{
    struct call *c = w->call;
    struct lock *lock = w->lock;
    /* As with a grant: a lease of which less than half is left is not given out. Nor
     * one that a cut, sent later, has taken back by now. */
    bool stale = r->status == OP_OK && (!asked_in_time(l, lock, work_asked(w)) ||
                                        lock_cut_since(l, lock, r->owner, w->op.key));

    if (c == NULL || stale || r->status != OP_OK) {
        cut_for_nobody(l, lock, w, r);
    }
    if (c == NULL) {
        work_free(l, w); /* the client has left: the lease it was given ends it */
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE || r->status == OP_ELSEWHERE ||
        stale) {
        work_free(l, w);
        call_again(l, c, r->status);
        return;
    }
    if (r->status == OP_WRONGTYPE && c->guessed && (c->rw ? r->plain : r->rw)) {
        c->guessed = false;
        c->rw = !c->rw;
        work_free(l, w);
        call_send(l, c);
        return;
    }
    if (r->status == OP_OK) {
        if (!lock_in_use(lock)) {
            lock_set_family(l, lock, c->rw);
        }
        attached(l, w, r);
    } else {
        attach_refused(l, w, r);
        lock_touch(l, lock);
    }
    work_free(l, w);
    call_free(l, c);
}
