/* Requests about holds and waits that are there: UNLOCK, RENEW, FORCEUNLOCK, CANCEL,
 * LOCKINFO come in here. */
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/loan_return.h"
#include "engine/hold/pending_release.h"
#include "engine/hold/pending_request.h"
#include "engine/hold/rest.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/multi/mlock.h"
#include "engine/release/successor.h"
#include "engine/request.h"
#include "engine/schedule/schedule.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "engine/value_hold.h"
#include "engine/wait/waiter.h"
#include "latchd/protocol.h"
#include "util/list.h"

/* --- UNLOCK ----------------------------------------------------------------------- */

/* READ or WRITE, if the request says one of them, is what this hold is. */
static bool fits_kind(const struct hold *h, const struct hold_req *req)
{
    return !lock_kind_tells_class(req->kind) || h->lock_kind == req->kind;
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
    struct list *it;

    if (lock->lock_class != CLASS_PLAIN && s != NULL) {
        LIST_FOREACH(it, &s->attaches) /* they are fewer than the holds may be */
        {
            struct entry *e = attach_entry(container_of(it, struct attach, in_session));

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
static struct hold *local_hold(struct engine *eng, const struct lock *lock,
                               const struct hold_req *req)
{
    struct hold *h = lock_hold(lock);

    if (h != NULL && req->id.len != 0) {
        struct request *r = request_find(eng, req->name, req->id);

        h = r != NULL && r->entry != NULL ? r->entry->hold : NULL;
    } else if (h != NULL && req->value.len != 0) {
        h = lock_value_hold(lock, req->value);
    } else if (h != NULL && req->owner.len != 0) {
        h = lock_held_by(lock, req->owner, req->kind);
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
    return req->kind == KIND_PLAIN && req->owner.len != 0 && req->id.len == 0 &&
           req->token == 0 && lock_held_by(lock, req->owner, KIND_WRITE) != NULL &&
           lock_held_by(lock, req->owner, KIND_READ) != NULL;
}

/* True: the request has been answered, as READ or WRITE is wrong or missing. */
static bool kind_refused(struct engine *eng, const struct lock *lock,
                         const struct hold_req *req)
{
    if (lock_kind_tells_class(req->kind) && eng->quorum) {
        emit_error(eng, req->from, LOCK_ERR, TEXT_QUORUM);
        return true;
    }
    if (lock_kind_tells_class(req->kind) &&
        lock->lock_class != lock_class_of(req->kind) && lock_in_use(lock)) {
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
static struct entry *local_entry(struct engine *eng, const struct lock *lock,
                                 const struct hold_req *req)
{
    const struct hold *h = local_hold(eng, lock, req);
    struct entry *e;
    size_t count = 0;

    if (h == NULL) {
        return NULL;
    }
    if (req->id.len != 0) {
        return request_find(eng, req->name, req->id)->entry;
    }
    if (req->owner.len != 0) {
        e = own_entry(h, req->from.conn, &count);
        return e != NULL ? e : newest_entry(h);
    }
    if (h->kind == OWNER_NAMED) {
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
            : pending_release_for_call(eng, lock, c);

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
static bool is_final(const struct lock *lock, const struct request *r,
                     const struct hold_req *req)
{
    struct target target = { .kind = TARGET_ID };
    char field[sizeof(ID_FIELD_PREFIX) + LATCHD_ID_MAX];
    char entry[sizeof(ID_ENTRY_PREFIX) + LATCHD_ID_MAX];
    char *at = field;

    if (r == NULL || r->over_at == NEVER || r->answer < 0) {
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
    struct request *r = request_find(eng, req->name, req->id);
    struct lock *lock = lock_get(eng, req->name);
    struct entry *e;

    if (user_refuses(eng, lock, req)) {
        engine_settle(eng);
        return;
    }
    if (is_final(lock, r, req)) {
        if (eng->now - r->over_at <= LATCHD_UNLOCK_AGAIN_MS) {
            emit_int(eng, req->from, r->answer);
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
        release_entry(eng, lock, local_entry(eng, lock, req), named, req);
    }
    engine_settle(eng);
}

/* --- RENEW, FORCEUNLOCK, CANCEL, LOCKINFO ----------------------------------------- */

void engine_renew(struct engine *eng, const struct hold_req *req)
{
    struct lock *lock = lock_get(eng, req->name);
    struct hold_req as = *req;
    struct entry *e;
    struct pending_request *c;

    if (user_refuses(eng, lock, req) || kind_refused(eng, lock, req)) {
        engine_settle(eng);
        return;
    }
    if (is_final(lock, request_find(eng, req->name, req->id), req)) {
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
        as.kind = e->hold->lock_kind;
        as.id = spec_id(e->spec);
        as.token = e->hold->token;
    } else {
        e = local_entry(eng, lock, req);
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
    const struct target any = { .kind = TARGET_ANY };
    struct pending_release *d =
        pending_release_new(eng, lock, RELEASE_FORCED, req->any ? &any : &c->target);

    d->call = c;
    c->release = d;
    engine_settle(eng);
}

static bool wait_graph_as(const struct waiter *w, const struct hold_req *req)
{
    if (req->id.len != 0) {
        return span_eq(spec_id(w->spec), req->id);
    }
    return w->spec->kind == OWNER_NAMED &&
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
    struct request *r = w->request;

    if (r != NULL) {
        w->request = NULL;
        r->waiter = NULL;
        request_over(eng, r, -1);
    }
    waiter_end_null(eng, w, false);
}

/* Where an ID names the wait, the others of the name need not be looked at. */
static struct waiter *waiter_of_id(struct engine *eng, const struct hold_req *req)
{
    struct request *r = req->id.len == 0 ? NULL : request_find(eng, req->name, req->id);

    return r == NULL ? NULL : r->waiter;
}

static size_t cancel_waits(struct engine *eng, struct lock *lock,
                           const struct hold_req *req, bool *ret_others)
{
    struct waiter *w = waiter_of_id(eng, req);
    struct list *it, *tmp;
    size_t count = 0;

    if (w != NULL && wait_graph_as(w, req)) {
        if (may_cancel(req, w->spec->user, ret_others)) {
            cancel_wait(eng, w);
            count++;
        }
        return count;
    }
    LIST_FOREACH_SAFE(it, tmp, &lock->activity->queue)
    {
        w = container_of(it, struct waiter, in_queue);
        if (wait_graph_as(w, req) && may_cancel(req, w->spec->user, ret_others)) {
            cancel_wait(eng, w);
            count++;
        }
    }
    return count;
}

size_t engine_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others)
{
    struct lock *lock = lock_find(eng, req->name);
    struct list *it;
    size_t count;

    *ret_others = false;
    count = mlock_cancel(eng, req, ret_others);
    if (lock == NULL) {
        engine_settle(eng);
        return count;
    }
    count += cancel_waits(eng, lock, req, ret_others);
    LIST_FOREACH(it, &lock->holds)
    {
        count +=
            cancel_kept(eng, container_of(it, struct hold, in_lock), req, ret_others);
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
