/* MLOCK, while it takes: what comes next, when it is done, how it ends.
 *
 * Names are taken in byte order, keeping what one has, so that MLOCKs never wait for
 * each other in a cycle. Each is an ordinary wait and an ordinary entry of the
 * client's session. The answers to a client come here instead, and are looked
 * at before the engine returns, so that nothing changes under their sender. */
#include "engine/mlock.h"
#include "engine/engine_priv.h"

/* --- terms ------------------------------------------------------------------------ */

static void mlock_drop_requests(struct engine *eng, struct mlock *ml, size_t first);
static void mlock_rewind(struct engine *eng, struct mlock *ml, size_t first);
static void mlock_free(struct engine *eng, struct mlock *ml);
static void mlock_unbind(struct engine *eng, struct mlock *ml);
static void mlock_confirm(struct engine *eng, struct mlock_member *m);
static void mlock_renew(struct engine *eng, struct mlock_member *m);
static void mlock_ask_next(struct engine *eng, struct mlock *ml);

/* When it gives up to learn what Redis would say. */
static uint64_t patience_ms(const struct engine *eng, const struct mlock *ml)
{
    uint64_t last = answer_deadline(eng, ml->since + eng->cfg.redis_timeout_ms);

    if (ml->once || ml->deadline == UINT64_MAX) {
        return ml->once ? last : UINT64_MAX;
    }
    return last < ml->deadline + TICK_MS ? ml->deadline + TICK_MS : last;
}

/* While it waited for the last name, the same MLOCK may have come to another daemon,
 * which took this entry over and gave it back: its owner's other entries keep the hold.
 */
static bool may_be_elsewhere(const struct engine *eng, const struct mlock_member *m)
{
    return m->mlock->request != NULL && peers_known(&eng->peers) &&
           m->confirmed + TICK_MS < m->mlock->last_taken;
}

static bool is_fresh(const struct engine *eng, const struct mlock_member *m)
{
    return !m->stale && entry_is_fresh(eng, m->entry) && !may_be_elsewhere(eng, m);
}

static void end_null(struct engine *eng, struct mlock *ml)
{
    emit_null(eng, ml->call);
    mlock_end(eng, ml, true);
}

static void end_error(struct engine *eng, struct mlock *ml, enum lock_error error,
                      struct span text)
{
    emit_error(eng, ml->call, error, text);
    mlock_end(eng, ml, error == LOCK_BACKEND || error == LOCK_UNBLOCKED);
}

/* Ends the MLOCK with the error that fits: Redis is away, or too few replicas have
 * acknowledged. */
static void end_backend(struct engine *eng, struct mlock *ml)
{
    const struct lock *lock =
        ml->next < ml->count ? lock_find(eng, ml->members[ml->next].name) : NULL;
    bool told = eng->up && lock != NULL;

    if ((told && last_answer_now(eng, lock) == ANSWER_UNACKED) ||
        (eng->up && ml->failing && ml->error == LOCK_NOREPLICAS)) {
        end_error(eng, ml, LOCK_NOREPLICAS, TEXT_NO_REPLICAS);
    } else if (told) {
        end_error(eng, ml, LOCK_BACKEND, last_answer_text(eng, lock));
    } else {
        end_error(eng, ml, LOCK_BACKEND, trouble_text(eng));
    }
}

/* --- steps ------------------------------------------------------------------------ */

/* All are held: under one grant, so that they can be taken back together. */
static void answer_tokens(struct engine *eng, struct mlock *ml)
{
    uint64_t *tokens = effects_alloc(&eng->fx, ml->count * sizeof(*tokens));
    uint64_t grant = ++eng->next_grant;

    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];
        struct attach *a = entry_attach_of(m->entry, ml->session);

        a = a != NULL ? a : entry_attach(eng, m->entry, ml->session);
        a->grant = grant;
        m->token_sent = true;
        m->joined = false;
        tokens[m->place] = m->entry->hold->token;
    }
    emit_tokens(eng, ml->call, tokens, ml->count, grant);
    mlock_drop_requests(eng, ml, 0); /* renewals of what it was waiting with */
    mlock_unbind(eng, ml);
    timer_stop(eng, &ml->timer);
    if (ml->request == NULL) {
        mlock_free(eng, ml);
        return;
    }
    mlock_set_state(ml, MLOCK_ANSWERED); /* the same ID may come again */
}

/* Confirms a member; one that is being renewed is confirmed by its renewal. */
static void confirm_member(struct engine *eng, struct mlock_member *m)
{
    if (m->renewing) {
        mlock_set_asked(m, true);
    } else {
        mlock_confirm(eng, m);
    }
}

/* Everything is taken. What was confirmed too long ago is confirmed once more. */
static void finish_mlock(struct engine *eng, struct mlock *ml)
{
    bool fresh = true;

    for (size_t i = 0; i < ml->count && ml->asking == 0; i++) {
        if (entry_is_ending(ml->members[i].entry)) {
            return; /* somebody releases it; when it is gone, all begins from there */
        }
        fresh = fresh && is_fresh(eng, &ml->members[i]);
    }
    if (ml->asking > 0 || eng->now < ml->pause) {
        return;
    }
    if (fresh) {
        answer_tokens(eng, ml);
        return;
    }
    for (size_t i = 0; i < ml->count; i++) {
        if (!is_fresh(eng, &ml->members[i])) {
            confirm_member(eng, &ml->members[i]);
        }
    }
}

/* Somebody else sees to the time of what comes next. */
static bool is_waited_for(const struct mlock *ml)
{
    const struct mlock_member *m = &ml->members[ml->next];

    return m->asked || m->waiter != NULL;
}

static void go_on(struct engine *eng, struct mlock *ml)
{
    const struct mlock_member *m = &ml->members[ml->next];
    bool over = !ml->once && eng->now >= ml->deadline;

    if (is_waited_for(ml)) {
        return;
    }
    if (over && ml->hindered && !ml->failing && eng->up) {
        end_null(eng, ml);
    } else if ((over && (ml->failing || !eng->up)) ||
               eng->now >= patience_ms(eng, ml)) {
        end_backend(eng, ml);
    } else if (eng->now >= ml->pause && m->entry == NULL) {
        mlock_ask_next(eng, ml);
    } /* else it is being released: it is taken anew when that is done */
}

static void arm_timer(struct engine *eng, struct mlock *ml)
{
    uint64_t at = patience_ms(eng, ml);

    if (ml->refresh_at < at) {
        at = ml->refresh_at;
    }
    if (ml->pause > eng->now && ml->pause < at) {
        at = ml->pause;
    }
    if (ml->next < ml->count && !is_waited_for(ml) && ml->deadline > eng->now &&
        ml->deadline < at) {
        at = ml->deadline;
    }
    if (at == UINT64_MAX) {
        timer_stop(eng, &ml->timer);
    } else {
        timer_set(eng, &ml->timer, TIMER_MLOCK, at > eng->now ? at : eng->now + 1);
    }
}

static bool is_taken(const struct mlock_member *m)
{
    return m->entry != NULL && !entry_is_ending(m->entry);
}

/* May free it. */
void mlock_step(struct engine *eng, struct mlock *ml)
{
    uint64_t number = ml->number;

    if (ml->state == MLOCK_ANSWERED && ml->taken_over == 0) {
        mlock_free(eng, ml);
        return;
    }
    if (ml->state != MLOCK_ACQUIRING) {
        return;
    }
    if (ml->outcome == MLOCK_REFUSED) {
        end_error(eng, ml, ml->error, ml->text);
        return;
    }
    if (ml->outcome == MLOCK_NULL) {
        end_null(eng, ml);
        return;
    }
    if (ml->lost != SIZE_MAX) {
        mlock_rewind(eng, ml, ml->lost);
    }
    while (ml->next < ml->count && is_taken(&ml->members[ml->next])) {
        ml->next++;
    }
    if (ml->next == ml->count) {
        finish_mlock(eng, ml);
    } else {
        go_on(eng, ml);
    }
    ml = mlock_find(eng, number);
    if (ml != NULL && ml->state == MLOCK_ACQUIRING) {
        arm_timer(eng, ml);
    }
}

/* A fixed lease runs on while others are waited for: renewed every third. */
static void refresh_leases(struct engine *eng, struct mlock *ml)
{
    ml->refresh_at = UINT64_MAX;
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];
        uint64_t due;

        if (!mlock_has_lease(ml) || !is_taken(m) || m->asked || m->renewing) {
            continue; /* whose answer comes arms it again */
        }
        due = entry_lease_began(m->entry) + ml->terms.lease_ms / 3;
        if (due <= eng->now) {
            mlock_renew(eng, m);
        } else if (due < ml->refresh_at) {
            ml->refresh_at = due;
        }
    }
}

void mlock_on_timer(struct engine *eng, struct mlock *ml)
{
    if (ml->state == MLOCK_RETAINED) {
        mlock_end(eng, ml, false);
        return;
    }
    if (ml->state != MLOCK_ACQUIRING) {
        return;
    }
    if (ml->outcome == MLOCK_OPEN && eng->now >= patience_ms(eng, ml) &&
        !tick_is_too_late(eng, patience_ms(eng, ml))) {
        end_backend(eng, ml);
        return;
    }
    if (eng->now >= ml->refresh_at && eng->now >= ml->pause) {
        refresh_leases(eng, ml);
    }
    mlock_touch(eng, ml);
}

/* MLOCK: its end, and giving back what it has taken. */

/* --- giving back ------------------------------------------------------------------ */

/* Redis would let a fixed lease end before KEEP does. */
static void outlast_keep(struct engine *eng, struct entry *e)
{
    struct hold *h = e->hold;
    uint64_t keep = e->spec->terms.keep_ms;

    if (e->retained && e->lease == LEASE_FIXED && h->attached == 0 &&
        hold_has_one_entry(h) && h->until < eng->now + keep) {
        h->exact_ms = keep + GRACE_SLACK_MS + keep / 50;
        renew_request(eng, h);
    }
}

static void leave_entry(struct engine *eng, struct mlock_member *m, bool keep)
{
    struct entry *e = m->entry;
    struct session *s = m->mlock->session;
    struct attach *a = s == NULL ? NULL : entry_attach_of(e, s);
    bool told = m->token_sent, joined = m->joined;

    m->joined = false;
    if (!keep) {
        mlock_unlink_entry(m);
    }
    if (told) {
        /* By an answer before: it is its client's, but not by this connection. */
        if (joined && a != NULL) {
            entry_take_back(eng, a, keep);
        }
        return;
    }
    if (a != NULL) {
        entry_take_back(eng, a, keep);
    } else if (!keep && e->retained && !entry_is_ending(e) && !entry_is_attached(e)) {
        entry_disown(eng, e);
        pending_release_end_entry(eng, e);
    }
    if (keep) {
        outlast_keep(eng, e);
    }
}

/* Drops the requests of the members from `first` on, whose answers are not wanted any
 * more. */
static void mlock_drop_requests(struct engine *eng, struct mlock *ml, size_t first)
{
    struct pending_request *c;

    for (size_t i = first; i < ml->count; i++) {
        mlock_set_asked(&ml->members[i], false);
    }
    LIST_EACH_SAFE(c, &ml->session->pending_requests, in_session) {
        struct mlock_member *m = mlock_find_member(eng, c->ref);

        if (m != NULL && m->mlock == ml && m >= &ml->members[first]) {
            pending_request_free(eng, c);
        }
    }
}

/* Goes back to before `first`: the members behind it are released, so that the order
 * of acquiring is kept. */
static void mlock_rewind(struct engine *eng, struct mlock *ml, size_t first)
{
    mlock_drop_requests(eng, ml, first);
    for (size_t i = first; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];

        if (m->waiter != NULL) {
            waiter_remove(eng, m->waiter);
        }
        if (m->entry != NULL) {
            leave_entry(eng, m, false);
        }
        m->stale = false;
    }
    ml->next = first;
    ml->lost = SIZE_MAX;
}

static void mlock_free(struct engine *eng, struct mlock *ml)
{
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];

        if (m->waiter != NULL) {
            m->waiter->member = NULL;
        }
        if (m->entry != NULL) {
            mlock_unlink_entry(m);
        }
    }
    if (ml->request != NULL) {
        ml->request->mlock = NULL;
        request_idle(eng, ml->request);
    }
    timer_stop(eng, &ml->timer);
    list_del(&ml->in_dirty);
    list_del(&ml->in_session);
    table_remove(&eng->mlocks, &ml->in_mlocks);
    free(ml->data);
    free(ml);
}

static void mlock_unbind(struct engine *eng, struct mlock *ml)
{
    struct session *s = ml->session;

    list_del(&ml->in_session);
    ml->session = NULL;
    session_idle(eng, s);
}

void mlock_end(struct engine *eng, struct mlock *ml, bool keep)
{
    keep = keep && ml->request != NULL && ml->terms.keep_ms > 0 && !eng->stopping;
    if (ml->session != NULL) {
        mlock_drop_requests(eng, ml, 0);
    }
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];

        if (m->waiter != NULL && !keep) {
            waiter_remove(eng, m->waiter);
        } else if (m->waiter != NULL && m->waiter->session != NULL) {
            waiter_detach(eng, m->waiter);
        }
        if (m->entry != NULL) {
            leave_entry(eng, m, keep);
        }
    }
    if (ml->session != NULL) {
        mlock_unbind(eng, ml);
    }
    if (!keep) {
        mlock_free(eng, ml);
        return;
    }
    mlock_set_state(ml, MLOCK_RETAINED);
    ml->outcome = MLOCK_OPEN;
    timer_set(eng, &ml->timer, TIMER_MLOCK, eng->now + ml->terms.keep_ms);
}

/* --- ends from outside ------------------------------------------------------------ */

void mlock_conn_closed(struct engine *eng, struct session *s)
{
    struct mlock *mlock;

    LIST_EACH_SAFE(mlock, &s->mlocks, in_session) {
        mlock_end(eng, mlock, true);
    }
}

bool mlock_unblock(struct engine *eng, struct session *s, bool with_error)
{
    struct list *first = list_first(&s->mlocks);
    struct mlock *ml;

    if (first == NULL) {
        return false;
    }
    ml = container_of(first, struct mlock, in_session);
    if (with_error) {
        emit_error(eng, ml->call, LOCK_UNBLOCKED, TEXT_UNBLOCKED);
    } else {
        emit_null(eng, ml->call);
    }
    mlock_end(eng, ml, true);
    return true;
}

void mlock_stop(struct engine *eng)
{
    struct mlock *ml;

    TABLE_EACH(ml, &eng->mlocks, in_mlocks) {
        if (ml->state == MLOCK_ACQUIRING) {
            emit_error(eng, ml->call, LOCK_GOAWAY, TEXT_GOING);
        }
        if (ml->state != MLOCK_ANSWERED) {
            mlock_end(eng, ml, false);
        }
    }
}

void mlocks_free(struct engine *eng)
{
    struct mlock *mlock;

    TABLE_EACH(mlock, &eng->mlocks, in_mlocks) {
        mlock_free(eng, mlock);
    }
    table_fini(&eng->mlocks);
}

/* MLOCK: asking for the next names, and once more for those that it has. */

/* The LOCK request of one member. */
static struct lock_req mlock_request(const struct engine *eng,
                                     const struct mlock_member *m)
{
    const struct mlock *ml = m->mlock;
    struct lock_req req = {
        .from = { ml->call.conn, mlock_member_call(m) },
        .name = m->name,
        .terms = ml->terms,
        .polls_since = ml->polls_since,
        .trace = ml->trace,
    };

    req.terms.lock_kind = KIND_PLAIN;
    req.terms.has &= ~(uint64_t)OPT_WAIT;
    if (ml->once || ml->deadline != UINT64_MAX) {
        req.terms.has |= OPT_WAIT;
        req.terms.wait_ms =
            ml->once || ml->deadline < eng->now ? 0 : ml->deadline - eng->now;
    }
    return req;
}

static void retry_member(struct engine *eng, struct mlock_member *m)
{
    struct lock_req req = mlock_request(eng, m);

    (void)pending_request_regrant(eng, m->entry, &req);
}

/* Asks Redis whether the member is still held, and for its whole lease again. */
static void mlock_confirm(struct engine *eng, struct mlock_member *m)
{
    mlock_set_asked(m, true);
    m->stale = true;
    retry_member(eng, m);
}

/* mlock_confirm(), while the last confirmation still counts: the MLOCK does not wait
 * for it. */
static void mlock_renew(struct engine *eng, struct mlock_member *m)
{
    m->renewing = true;
    retry_member(eng, m);
}

/* A member that joins a queue, for the first time or again, has waited since the MLOCK
 * came. */
static void on_joined(struct engine *eng, struct mlock_member *m)
{
    if (m->waiter != NULL) {
        waiter_set_since(eng, m->waiter, m->mlock->since);
    }
}

static bool same_group(const struct engine *eng, const struct mlock_member *one,
                       const struct mlock_member *other)
{
    return lock_group(eng, one->name) == lock_group(eng, other->name);
}

/* A lock library's try, which is over at once: no name is to be taken, be it for a
 * moment, if not all of them are. */
static bool takes_all_or_none(const struct mlock *ml)
{
    return ml->once && ml->terms.value.len != 0;
}

static bool is_held(const struct engine *eng, const struct hold *h)
{
    return h != NULL && hold_is_certain(eng, h) && !hold_is_ending(h);
}

/* Whether somebody holds one of the names through this daemon, as far as Redis can be
 * asked: an outage is no null. */
static bool is_held_here(const struct engine *eng, const struct mlock *ml)
{
    for (size_t i = 0; i < ml->count && eng->up; i++) {
        const struct lock *lock = lock_find(eng, ml->members[i].name);

        if (lock != NULL && ml->members[i].entry == NULL &&
            (is_held(eng, lock_hold(lock)) || is_held(eng, lock->writer))) {
            return true;
        }
    }
    return false;
}

/* How many of the next names can be taken by one op. */
static size_t run_length(const struct engine *eng, const struct mlock *ml)
{
    size_t max = eng->cfg.max_waiters > eng->waiter_count
                     ? eng->cfg.max_waiters - eng->waiter_count
                     : 0;
    size_t n = 0;

    if (!eng->up || eng->quorum) {
        return 0;
    }
    max = max > OP_BATCH_MAX ? OP_BATCH_MAX : max;
    while (n < max && ml->next + n < ml->count &&
           same_group(eng, &ml->members[ml->next], &ml->members[ml->next + n]) &&
           lock_untouched(eng, ml->members[ml->next + n].name, ml->terms.id)) {
        n++;
    }
    return n;
}

static void ask_run(struct engine *eng, struct mlock *ml, size_t count)
{
    struct waiter *waiters[OP_BATCH_MAX];

    for (size_t i = 0; i < count; i++) {
        struct mlock_member *m = &ml->members[ml->next + i];
        struct lock_req req = mlock_request(eng, m);

        mlock_set_asked(m, true);
        waiters[i] = request_lock_enqueue(eng, &req);
        on_joined(eng, m);
    }
    acquire_ask_batch(eng, waiters, count, takes_all_or_none(ml) && count == ml->count);
}

static void mlock_ask_next(struct engine *eng, struct mlock *ml)
{
    struct mlock_member *m = &ml->members[ml->next];
    size_t run = run_length(eng, ml);

    if (takes_all_or_none(ml) && is_held_here(eng, ml)) {
        mlock_on_null(eng, m);
    } else if (run > 1) {
        ask_run(eng, ml, run);
    } else {
        struct lock_req req = mlock_request(eng, m);

        mlock_set_asked(m, true);
        request_lock(eng, &req);
        on_joined(eng, m);
    }
}

/* MLOCK: requests, and whatever ends one from outside. */

/* An MLOCK's own request has no name, which no lock has. */
#define NO_NAME SPAN("")

/* --- finding ---------------------------------------------------------------------- */

static struct mlock *find_by_id(const struct engine *eng, struct span id)
{
    struct request *request = request_find(eng, NO_NAME, id);

    return request == NULL ? NULL : request->mlock;
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
    emit_error(eng, req->from, LOCK_ERR, text);
    return true;
}

/* Refuses an MLOCK whose ID is known from another request. */
static bool id_refused(struct engine *eng, const struct mlock_req *req)
{
    for (size_t i = 0; i <= req->name_count; i++) {
        struct span name = i == 0 ? NO_NAME : req->names[i - 1];
        const struct request *request = request_find(eng, name, req->terms.id);

        if (request == NULL) {
            continue;
        }
        if (user_differs(request->user, req->terms.user)) {
            emit_error(eng, req->from, LOCK_NOPERM, TEXT_OTHERS);
            return true;
        }
        if (request->over_at != NEVER ||
            (request->entry != NULL && entry_is_ending(request->entry))) {
            emit_error(eng, req->from, LOCK_NOTHELD, TEXT_OVER);
            return true;
        }
        if (!span_eq(request->owner, req->terms.owner)) {
            return refuse_mlock(eng, req, SPAN("that ID was used with another OWNER"));
        }
        if (request->lock_kind != KIND_PLAIN && !request->found) {
            return refuse_mlock(eng, req, SPAN("that ID was used with another kind"));
        }
        if (request->waiter != NULL && request->waiter->member == NULL) {
            return refuse_mlock(eng, req, SPAN("that ID was used with LOCK"));
        }
    }
    return false;
}

/* Refuses several names of a lock library that one script cannot take. */
static bool value_refused(struct engine *eng, const struct mlock_req *req)
{
    uint32_t group = lock_group(eng, req->names[0]);

    if (req->terms.value.len == 0 || req->name_count == 1) {
        return false;
    }
    if (eng->quorum) {
        return refuse_mlock(eng, req,
                            SPAN("a quorum does not take several keys at once for a "
                                 "lock library: use MLOCK"));
    }
    for (size_t i = 1; i < req->name_count; i++) {
        if (lock_group(eng, req->names[i]) != group) {
            emit_error(eng, req->from, LOCK_CROSSSLOT,
                       SPAN("Keys in request don't hash to the same slot"));
            return true;
        }
    }
    return false;
}

static bool is_full(struct engine *eng, const struct mlock_req *req)
{
    if (!lock_tries_once(&req->terms) && eng->waiter_count >= eng->cfg.max_waiters) {
        emit_error(eng, req->from, LOCK_LIMIT, TEXT_NO_ROOM);
        return true;
    }
    if (eng->hold_count + req->name_count > eng->cfg.max_holds) {
        emit_error(eng, req->from, LOCK_LIMIT, SPAN("max-holds reached"));
        return true;
    }
    return false;
}

static void bind_session(struct engine *eng, struct mlock *ml,
                         const struct mlock_req *req)
{
    const struct lock_terms *one = &req->terms;
    bool waits = (one->has & OPT_WAIT) != 0;

    ml->session = session_get(eng, req->from.conn);
    list_append(&ml->session->mlocks, &ml->in_session);
    mlock_set_state(ml, MLOCK_ACQUIRING);
    ml->call = req->from;
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
    size_t bytes = lock_terms_bytes(&req->terms) + req->trace.len;
    char *at;

    for (size_t i = 0; i < ml->count; i++) {
        bytes += names[i].name.len;
    }
    at = ml->data = xmalloc(bytes);
    ml->terms = req->terms;
    ml->polls_since = req->polls_since;
    lock_terms_move(&ml->terms, &at);
    ml->trace = span_put2(&at, req->trace, SPAN_NONE);
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
    if (req->terms.id.len != 0) {
        struct acquire_spec *spec = spec_new(eng, &req->terms, SPAN_NONE);

        ml->terms.keep_ms = spec->terms.keep_ms;
        ml->terms.has |= OPT_KEEP;
        ml->request = request_new(eng, NO_NAME, spec);
        ml->request->mlock = ml;
        spec_unref(eng, spec);
    }
    bind_session(eng, ml, req);
}

/* Moves the member's entry to the newest connection; Redis has to confirm it. */
static void rebind_entry(struct engine *eng, struct mlock_member *m, struct attach *old)
{
    bool joins = entry_attach_of(m->entry, m->mlock->session) == NULL;
    struct attach *a = entry_attach(eng, m->entry, m->mlock->session);

    m->entry->spec->terms.keep_ms = m->mlock->terms.keep_ms;
    if (old != NULL && old != a && (!m->token_sent || m->joined)) {
        attach_free(eng, old); /* whose connection was told nothing */
    }
    if (old == NULL || old != a) {
        m->joined = joins;
    }
    mlock_confirm(eng, m);
}

static void rebind_waiter(struct engine *eng, struct mlock_member *m)
{
    struct lock_req req = mlock_request(eng, m);

    m->waiter->spec->terms.keep_ms = m->mlock->terms.keep_ms;
    waiter_bind(eng, m->waiter, m->mlock->session, &req);
    request_lock_start(eng, m->waiter);
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
    if (req->terms.has & OPT_KEEP) {
        ml->terms.keep_ms = req->terms.keep_ms;
    }
    bind_session(eng, ml, req);
    for (size_t i = 0; i < ml->count; i++) {
        struct mlock_member *m = &ml->members[i];

        m->place = names[i].place;
        if (m->entry != NULL && !entry_is_ending(m->entry)) {
            rebind_entry(eng, m, old == NULL ? NULL : entry_attach_of(m->entry, old));
        } else if (m->waiter != NULL) {
            rebind_waiter(eng, m);
        }
    }
    if (old != NULL) {
        old->closing = closing;
        session_idle(eng, old);
    }
}

void request_mlock(struct engine *eng, const struct mlock_req *req)
{
    struct mlock *ml = find_by_id(eng, req->terms.id);
    struct sorted *names = sort_names(req);

    if (eng->stopping) {
        emit_error(eng, req->from, LOCK_GOAWAY, TEXT_GOING);
    } else if (has_twin(names, req->name_count)) {
        (void)refuse_mlock(eng, req, SPAN("a name is given twice"));
    } else if (value_refused(eng, req) ||
               (req->terms.id.len != 0 && id_refused(eng, req))) {
        ; /* and answered */
    } else if (ml != NULL && !same_names(ml, names, req->name_count)) {
        (void)refuse_mlock(eng, req, SPAN("that ID was used with other names"));
    } else if (ml != NULL && ml->terms.priority != req->terms.priority) {
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
        struct mlock_member *m = &ml->members[i];

        if (m->waiter == NULL && m->entry == NULL && span_eq(m->name, name)) {
            mlock_on_error(eng, m, LOCK_NOTHELD, TEXT_OVER);
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
    struct waiter *w;

    if (waits != NULL) {
        LIST_EACH(w, &waits->waiters, in_waits) {
            if (w->member != NULL && may_cancel(w->member->mlock, req, ret_others)) {
                return w->member->mlock;
            }
        }
    }
    if (h != NULL) {
        for (struct entry *e = h->entries; e != NULL; e = e->next) {
            if (e->member != NULL && may_cancel(e->member->mlock, req, ret_others)) {
                return e->member->mlock;
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
        struct request *request = ml->request;

        if (ml->state == MLOCK_ACQUIRING) {
            emit_null(eng, ml->call);
        }
        if (request != NULL) {
            ml->request = NULL;
            request->mlock = NULL;
            request_over(eng, request, -1);
        }
        mlock_end(eng, ml, false);
        count++;
    }
    return count;
}
