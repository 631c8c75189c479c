/* MLOCK: requests, and whatever ends one from outside. */
#include "engine/acquire/request_lock.h"
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_limits.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/lock.h"
#include "engine/multi/mlock.h"
#include "engine/op.h"
#include "engine/request.h"
#include "engine/session.h"
#include "engine/user_check.h"
#include "engine/wait/wait_graph.h"
#include "engine/wait/waiter.h"
#include "latchd/protocol.h"
#include "util/alloc.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdlib.h>

/* An MLOCK's own request has no name, which no lock has. */
#define NO_NAME SPAN("")

/* --- finding ---------------------------------------------------------------------- */

static struct mlock *find_by_id(const struct engine *eng, struct span id)
{
    struct request *r = request_find(eng, NO_NAME, id);

    return r == NULL ? NULL : r->mlock;
}

/* --- names ------------------------------------------------------------------------ */

struct sorted {
    struct span name;
    size_t place;
};

static int compare_names(struct span a, struct span b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_sorted(const void *a, const void *b)
{
    return compare_names(((const struct sorted *)a)->name,
                         ((const struct sorted *)b)->name);
}

static struct sorted *sort_names(const struct mlock_req *req)
{
    struct sorted *names = xcalloc(req->name_count, sizeof(*names));

    for (size_t i = 0; i < req->name_count; i++) {
        names[i] = (struct sorted){ req->names[i], i };
    }
    qsort(names, req->name_count, sizeof(*names), compare_sorted);
    return names;
}

static bool has_twin(const struct sorted *names, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (span_eq(names[i - 1].name, names[i].name)) {
            return true;
        }
    }
    return false;
}

static bool same_names(const struct mlock *ml, const struct sorted *names, size_t count)
{
    bool same = ml->count == count;

    for (size_t i = 0; same && i < count; i++) {
        same = span_eq(ml->members[i].name, names[i].name);
    }
    return same;
}

static bool has_name(const struct mlock *ml, struct span name)
{
    size_t low = 0, high = ml->count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = compare_names(ml->members[mid].name, name);

        if (order == 0) {
            return true;
        }
        low = order < 0 ? mid + 1 : low;
        high = order < 0 ? high : mid;
    }
    return false;
}

/* --- MLOCK ------------------------------------------------------------------------ */

static bool refuse_mlock(struct engine *eng, const struct mlock_req *req,
                         struct span text)
{
    emit_error(eng, req->one.from, LOCK_ERR, text);
    return true;
}

/* Refuses an MLOCK whose ID is known from another request. */
static bool id_refused(struct engine *eng, const struct mlock_req *req)
{
    for (size_t i = 0; i <= req->name_count; i++) {
        struct span name = i == 0 ? NO_NAME : req->names[i - 1];
        const struct request *r = request_find(eng, name, req->one.id);

        if (r == NULL) {
            continue;
        }
        if (user_differs(r->user, req->one.user)) {
            emit_error(eng, req->one.from, LOCK_NOPERM, TEXT_OTHERS);
            return true;
        }
        if (r->over_at != NEVER || (r->entry != NULL && entry_is_ending(r->entry))) {
            emit_error(eng, req->one.from, LOCK_NOTHELD, TEXT_OVER);
            return true;
        }
        if (!span_eq(r->owner, req->one.owner)) {
            return refuse_mlock(eng, req, SPAN("that ID was used with another OWNER"));
        }
        if (r->lock_kind != KIND_PLAIN && !r->found) {
            return refuse_mlock(eng, req, SPAN("that ID was used with another kind"));
        }
        if (r->waiter != NULL && r->waiter->member == NULL) {
            return refuse_mlock(eng, req, SPAN("that ID was used with LOCK"));
        }
    }
    return false;
}

/* Refuses several names of a lock library that one script cannot take. */
static bool value_refused(struct engine *eng, const struct mlock_req *req)
{
    uint32_t group = lock_group(eng, req->names[0]);

    if (req->one.value.len == 0 || req->name_count == 1) {
        return false;
    }
    if (eng->quorum) {
        return refuse_mlock(eng, req,
                            SPAN("a quorum does not take several keys at once for a "
                                 "lock library: use MLOCK"));
    }
    for (size_t i = 1; i < req->name_count; i++) {
        if (lock_group(eng, req->names[i]) != group) {
            emit_error(eng, req->one.from, LOCK_CROSSSLOT,
                       SPAN("Keys in request don't hash to the same slot"));
            return true;
        }
    }
    return false;
}

static bool is_full(struct engine *eng, const struct mlock_req *req)
{
    if (!lock_tries_once(&req->one) && eng->waiter_count >= eng->cfg.max_waiters) {
        emit_error(eng, req->one.from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    if (eng->hold_count + req->name_count > eng->cfg.max_holds) {
        emit_error(eng, req->one.from, LOCK_LIMIT, SPAN("max-holds reached"));
        return true;
    }
    return false;
}

static void bind_session(struct engine *eng, struct mlock *ml,
                         const struct mlock_req *req)
{
    const struct lock_req *one = &req->one;
    bool waits = (one->has & LOCK_HAS_WAIT) != 0;

    ml->session = session_get(eng, one->from.conn);
    list_append(&ml->session->mlocks, &ml->in_session);
    mlock_set_state(ml, MLOCK_ACQUIRING);
    ml->call = one->from;
    ml->since = eng->now;
    ml->once = lock_tries_once(one);
    ml->deadline = waits ? eng->now + one->wait_ms : UINT64_MAX;
    ml->outcome = MLOCK_OPEN;
    ml->failing = ml->hindered = false;
    ml->pause = 0;
    ml->next = 0;
    mlock_touch(eng, ml);
}

static void copy_names(struct mlock *ml, const struct mlock_req *req,
                       const struct sorted *names)
{
    size_t bytes = req->one.owner.len + req->one.id.len + req->one.value.len;
    char *at;

    for (size_t i = 0; i < ml->count; i++) {
        bytes += names[i].name.len;
    }
    at = ml->data = xmalloc(bytes);
    ml->terms = req->one;
    ml->terms.owner = span_put2(&at, req->one.owner, SPAN_NONE);
    ml->terms.value = span_put2(&at, req->one.value, SPAN_NONE);
    ml->terms.id = span_put2(&at, req->one.id, SPAN_NONE);
    for (size_t i = 0; i < ml->count; i++) {
        ml->members[i].mlock = ml;
        ml->members[i].name = span_put2(&at, names[i].name, SPAN_NONE);
        ml->members[i].place = names[i].place;
    }
}

static void begin_mlock(struct engine *eng, const struct mlock_req *req,
                        const struct sorted *names)
{
    size_t count = req->name_count;
    struct mlock *ml = xcalloc(1, sizeof(*ml) + count * sizeof(ml->members[0]));

    ml->number = ++eng->next_mlock;
    ml->count = count;
    ml->lost = SIZE_MAX;
    ml->refresh_at = UINT64_MAX;
    list_init(&ml->in_dirty);
    copy_names(ml, req, names);
    ml->in_mlocks.key = ml->number;
    table_add(&eng->mlocks, &ml->in_mlocks);
    if (req->one.id.len != 0) {
        struct acquire_spec *spec = spec_new(eng, &req->one);

        ml->terms.keep_ms = spec->keep_ms;
        ml->terms.has |= LOCK_HAS_KEEP;
        ml->request = request_new(eng, NO_NAME, spec);
        ml->request->mlock = ml;
        spec_unref(eng, spec);
    }
    bind_session(eng, ml, req);
}

/* Moves the member's entry to the newest connection; Redis has to confirm it. */
static void rebind_entry(struct engine *eng, struct mlock_member *p, struct attach *old)
{
    bool joins = entry_attach_of(p->entry, p->mlock->session) == NULL;
    struct attach *a = entry_attach(eng, p->entry, p->mlock->session);

    p->entry->spec->keep_ms = p->mlock->terms.keep_ms;
    if (old != NULL && old != a && (!p->token_sent || p->joined)) {
        attach_free(eng, old); /* whose connection was told nothing */
    }
    if (old == NULL || old != a) {
        p->joined = joins;
    }
    mlock_confirm(eng, p);
}

static void rebind_waiter(struct engine *eng, struct mlock_member *p)
{
    struct lock_req req = mlock_request(eng, p);

    p->waiter->spec->keep_ms = p->mlock->terms.keep_ms;
    waiter_bind(eng, p->waiter, p->mlock->session, &req);
    request_lock_start(eng, p->waiter);
}

/* The same ID again: it goes on where it is, for the newest call. */
static void resume_mlock(struct engine *eng, struct mlock *ml,
                         const struct mlock_req *req, const struct sorted *names)
{
    struct session *old = ml->session;
    bool closing = old != NULL && old->closing;

    if (old != NULL) {
        old->closing = true; /* it stays until all has left it */
        emit_null(eng, ml->call);
        mlock_drop_requests(eng, ml, 0);
        list_del(&ml->in_session);
    }
    if (req->one.has & LOCK_HAS_KEEP) {
        ml->terms.keep_ms = req->one.keep_ms;
    }
    bind_session(eng, ml, req);
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];

        p->place = names[i].place;
        if (p->entry != NULL && !entry_is_ending(p->entry)) {
            rebind_entry(eng, p, old == NULL ? NULL : entry_attach_of(p->entry, old));
        } else if (p->waiter != NULL) {
            rebind_waiter(eng, p);
        }
    }
    if (old != NULL) {
        old->closing = closing;
        session_idle(eng, old);
    }
}

void request_mlock(struct engine *eng, const struct mlock_req *req)
{
    struct mlock *ml = find_by_id(eng, req->one.id);
    struct sorted *names = sort_names(req);

    if (eng->stopping) {
        emit_error(eng, req->one.from, LOCK_GOAWAY, TEXT_GOING);
    } else if (has_twin(names, req->name_count)) {
        (void)refuse_mlock(eng, req, SPAN("a name is given twice"));
    } else if (value_refused(eng, req) ||
               (req->one.id.len != 0 && id_refused(eng, req))) {
        ; /* and answered */
    } else if (ml != NULL && !same_names(ml, names, req->name_count)) {
        (void)refuse_mlock(eng, req, SPAN("that ID was used with other names"));
    } else if (ml != NULL && ml->terms.priority != req->one.priority) {
        (void)refuse_mlock(eng, req, TEXT_OTHER_PRIORITY);
    } else if (ml != NULL) {
        resume_mlock(eng, ml, req, names);
    } else if (!is_full(eng, req)) {
        begin_mlock(eng, req, names);
    }
    free(names);
}

/* --- UNLOCK ----------------------------------------------------------------------- */

void mlock_on_unlocked(struct engine *eng, struct span name, struct span id)
{
    struct mlock *ml = find_by_id(eng, id);

    if (ml == NULL || ml->state != MLOCK_ACQUIRING) {
        return;
    }
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *p = &ml->members[i];

        if (p->waiter == NULL && p->entry == NULL && span_eq(p->name, name)) {
            mlock_on_error(eng, p, LOCK_NOTHELD, TEXT_OVER);
        }
    }
}

/* --- CANCEL ----------------------------------------------------------------------- */

static bool may_cancel(const struct mlock *ml, const struct hold_req *req,
                       bool *ret_others)
{
    bool others = !req->overrides && user_differs(ml->terms.user, req->user);

    if (ml->state == MLOCK_ANSWERED || !has_name(ml, req->name)) {
        return false;
    }
    *ret_others = *ret_others || others;
    return !others;
}

/* Finds an MLOCK of that owner that is under way and has the name among its own. */
static struct mlock *find_of_owner(const struct engine *eng, const struct hold_req *req,
                                   bool *ret_others)
{
    const struct lock *lock = lock_find(eng, req->name);
    const struct hold *h = lock == NULL ? NULL : lock_hold_of(lock, req->owner);
    const struct owner_waits *waits = wait_graph_find(eng, req->owner);
    struct list *it;

    if (waits != NULL) {
        LIST_FOREACH(it, &waits->waiters)
        {
            struct waiter *w = container_of(it, struct waiter, in_waits);

            if (w->member != NULL && may_cancel(w->member->mlock, req, ret_others)) {
                return w->member->mlock;
            }
        }
    }
    if (h != NULL) {
        for (struct entry *e = h->entries; e != NULL; e = e->next) {
            if (e->extra->member != NULL &&
                may_cancel(e->extra->member->mlock, req, ret_others)) {
                return e->extra->member->mlock;
            }
        }
    }
    return NULL;
}

static struct mlock *find_of_id(const struct engine *eng, const struct hold_req *req,
                                bool *ret_others)
{
    struct mlock *ml = find_by_id(eng, req->id);

    return ml != NULL && may_cancel(ml, req, ret_others) ? ml : NULL;
}

size_t mlock_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others)
{
    size_t count = 0;
    struct mlock *ml;

    while ((ml = req->id.len != 0 ? find_of_id(eng, req, ret_others)
                                  : find_of_owner(eng, req, ret_others)) != NULL) {
        struct request *r = ml->request;

        if (ml->state == MLOCK_ACQUIRING) {
            emit_null(eng, ml->call);
        }
        if (r != NULL) {
            ml->request = NULL;
            r->mlock = NULL;
            request_over(eng, r, -1);
        }
        mlock_end(eng, ml, false);
        count++;
    }
    return count;
}
