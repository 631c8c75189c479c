/* Answers LOCKINFO. Nothing changes here. */
#include "engine/inspect.h"
#include "engine/engine_priv.h"

#include <malloc.h>

/* The memory that a name takes: walks over everything that belongs to it. */

/* Returns the size of a block from malloc(), with its rounding. */
static size_t size_of(const void *ptr)
{
    return malloc_usable_size((void *)(uintptr_t)ptr);
}

static size_t waiter_size(const struct waiter *w)
{
    return size_of(w) + size_of(w->spec) + size_of(w->request);
}

static size_t entry_size(const struct entry *e)
{
    size_t size = size_of(e) + size_of(e->request);

    size += size_of(e->spec);
    for (const struct attach *a = entry_first_attach(e); a != NULL;
         a = attach_next(a)) {
        size += a == &e->own_attach ? 0 : size_of(a);
    }
    return size;
}

static size_t hold_size(const struct hold *h)
{
    size_t size = size_of(h);

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        size += entry_size(e);
    }
    return size;
}

/* Of all, by the average of the first ones. */
static size_t scale_size(size_t size, size_t seen, size_t count)
{
    return seen == 0 ? 0 : (size_t)((double)size / (double)seen * (double)count);
}

static size_t queue_size(const struct lock *lock, size_t samples)
{
    size_t size = 0, seen = 0;
    struct waiter *w;

    LIST_EACH(w, &lock->queue, in_queue) {
        if (seen == samples) {
            break;
        }
        size += waiter_size(w);
        seen++;
    }
    return scale_size(size, seen, lock->waiting);
}

static size_t holds_size(const struct lock *lock, size_t samples)
{
    size_t size = 0, seen = 0;
    struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        if (seen == samples) {
            break;
        }
        size += hold_size(h);
        seen++;
    }
    return scale_size(size, seen, lock->hold_count);
}

static size_t inflight_size(const struct lock *lock)
{
    size_t size =
        size_of(lock->loan) + (lock_is_asking(lock) ? sizeof(struct inflight_op) : 0);
    struct pending_release *d;
    struct lease_shortening *shortening;

    LIST_EACH(d, &lock->releases, in_lock) {
        size += size_of(d);
    }
    LIST_EACH(shortening, &lock->shortenings, in_lock) {
        size += size_of(shortening);
    }
    return size;
}

size_t engine_memory(const struct engine *eng, struct span name, size_t samples)
{
    const struct lock *lock = lock_find(eng, name);

    return lock == NULL ? 0
                        : size_of(lock) + size_of(lock->marks) + size_of(lock->fair) +
                              inflight_size(lock) + queue_size(lock, samples) +
                              holds_size(lock, samples);
}

/* LOCKINFO tells of at most as many as this. */
enum { INFO_HOLDS_MAX = 1000, INFO_QUEUE_MAX = 1000, INFO_SEARCH_MAX = 20000 };

static bool is_field_of_loan(struct span field, uint64_t loan_token)
{
    char buf[TOKEN_FIELD_MAX];

    return loan_token != 0 && span_eq(field, token_field(buf, loan_token, false));
}

/* Our hold in a field that Redis named: the hold's own field, or that of the loan which
 * the hold was granted from. */
static const struct hold *hold_in_field(const struct lock *lock, struct span field)
{
    const struct hold *h = lock_hold_of(lock, field);

    if (h == NULL && lock_hold(lock) != NULL &&
        is_field_of_loan(field, lock_hold(lock)->loan_token)) {
        h = lock_hold(lock);
    }
    return h;
}

/* The name is lent, and nobody holds it: a field that Redis named is the loan's. */
static bool is_idle_loan(const struct lock *lock, struct span field)
{
    const struct loan *loan = lock->loan;

    return loan != NULL && loan->holder == NULL && is_field_of_loan(field, loan->token);
}

/* The name is lent to another daemon, which alone knows who holds it: the field is the
 * loan's, and its token nobody's. */
static bool is_lent_elsewhere(const struct op_result *r, const struct hold *h,
                              struct span field)
{
    struct span who = r->inspect.who;

    return h == NULL && who.len > 0 && who.ptr[0] == 'l' &&
           is_field_of_loan(field, r->token);
}

/* The token of an anonymous hold, which its field is made from; 0: it is not. */
static uint64_t token_in_field(struct span field)
{
    const struct span prefix = SPAN(LATCHD_RESERVED_OWNER_PREFIX);
    uint64_t token;

    return field_kind(field) == OWNER_ANONYMOUS &&
                   parse_u64(span_after(field, prefix.len), LATCHD_TOKEN_MAX, &token)
               ? token
               : 0;
}

/* Whether the fence key tells of that field, so that its token is the field's. */
static bool is_fence_of(const struct op_result *r, struct span field)
{
    struct span who = r->inspect.who;
    size_t head = 1 + OP_INSTANCE_LEN;

    return who.len > head && who.ptr[0] == 'f' && span_eq(span_after(who, head), field);
}

/* The token of a holder that Redis named; `h` is ours in that field. Redis knows best:
 * the owner may have a later hold by now, through another daemon. */
static uint64_t token_of(const struct hold *h, const struct op_result *r,
                         const struct op_field *field)
{
    if (field->token != 0) {
        return field->token;
    }
    if (field_kind(field->owner) == OWNER_REST) {
        return rest_field_token(field->owner);
    }
    if (is_fence_of(r, field->owner)) {
        return r->token;
    }
    return h != NULL ? h->token : token_in_field(field->owner);
}

uint64_t hold_client(const struct hold *h)
{
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        const struct attach *a = entry_first_attach(e);

        if (a != NULL) {
            return a->session->conn.key;
        }
    }
    return 0;
}

/* A walk along our waiters, in search of members of the fair queue. They stand there
 * in the order that they stand here, mostly: so it goes on where it stopped. */
struct search {
    const struct list *queue;
    const struct list *at;
    size_t left; /* steps; a waiter not found by then is shown as a member */
};

static const struct waiter *waiter_with(struct search *search, struct span member)
{
    const struct list *start = search->at;

    for (; search->left > 0; search->left--) {
        const struct list *it = search->at;

        search->at = it->next;
        if (it != search->queue) {
            const struct waiter *w = container_of(it, struct waiter, in_queue);

            if (spec_is_member(w->spec, member)) {
                return w;
            }
        }
        if (search->at == start) {
            break;
        }
    }
    return NULL;
}

/* Lists the fair queue; waiters of this daemon go by the owner that they will be. */
static const struct span *make_queue(struct engine *eng, const struct lock *lock,
                                     const struct op_result *r, size_t count)
{
    struct span *queue = effects_alloc(&eng->fx, (count + 1) * sizeof(*queue));
    char prefix[SERIAL_MAX + sizeof(LATCHD_RESERVED_OWNER_PREFIX)];
    int len = snprintf(prefix, sizeof(prefix),
                       LATCHD_RESERVED_OWNER_PREFIX "%s:", eng->instance);
    struct search search = { &lock->queue, &lock->queue, INFO_SEARCH_MAX };

    for (size_t i = 0; i < count; i++) {
        struct span who = r->inspect.queue[i];
        const struct waiter *w = span_starts(who, span_of(prefix, (size_t)len))
                                     ? waiter_with(&search, who)
                                     : NULL;

        if (w != NULL && spec_field(w->spec).len != 0) {
            who = spec_field(w->spec);
        }
        queue[i] = effects_copy(&eng->fx, who);
    }
    return queue;
}

/* Entries, or permits. */
static int64_t count_in_hold(const struct hold *h)
{
    int64_t count = 0;

    if (hold_permits(h) > 0) {
        return hold_permits(h);
    }
    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count++;
    }
    return count;
}

struct hold_view hold_view_of(const struct engine *eng, const struct hold *h)
{
    struct hold_view view = {
        .name = lock_name(h->lock),
        .owner = field_owner(hold_field(h)),
        .lock_kind = h->lock_kind,
        .count = count_in_hold(h),
        .token = h->token,
        .rests = hold_is_rest(h),
        .here = true,
        .conn = hold_client(h),
        .lease = hold_lease_kind(h),
        .held_ms = eng->now - h->began,
        .left_ms = h->until > eng->now ? h->until - eng->now : 0,
        .uncertain = !hold_is_certain(eng, h),
        .local = hold_loan(h) != NULL,
    };

    if (h->entries != NULL) {
        view.terms = h->entries->spec->terms;
    }
    view.terms.data = hold_data(h);
    view.terms.atleast_ms = hold_atleast_left(eng, h);
    return view;
}

/* The same in the memory of the effects. */
static struct hold_view copy_hold_view(struct engine *eng, const struct hold *h)
{
    struct hold_view view = hold_view_of(eng, h);

    view.name = SPAN_NONE;
    view.owner = effects_copy(&eng->fx, view.owner);
    effects_copy_terms(&eng->fx, &view.terms);
    return view;
}

/* Redis's terms of the hold with the last token, or of the writer. */
static void add_terms(struct engine *eng, const struct op_result *r,
                      struct hold_view *info)
{
    bool rests = field_kind(info->owner) == OWNER_REST;
    bool fits =
        info->lock_kind == KIND_WRITE ||
        (info->lock_kind == KIND_PLAIN && info->token != 0 && info->token == r->token);

    info->terms.data = SPAN_NONE;
    info->terms.atleast_ms = 0;
    if (rests) {
        info->terms.atleast_ms = r->ttl_ms > 0 ? (uint64_t)r->ttl_ms : 0;
    } else if (fits) {
        info->terms.data = effects_copy(&eng->fx, r->inspect.data);
        info->terms.atleast_ms = r->inspect.atleast_ms;
    }
}

/* Of a name that nobody holds. Its waiters have asked, and ask again. */
static enum info_state state_of_free(const struct engine *eng, const struct lock *lock,
                                     const struct op_result *r)
{
    enum last_answer_kind told = last_answer_now(eng, lock);
    bool refused = lock->waiting > 0 && told != ANSWER_NONE && told != ANSWER_HELD;
    static const enum lock_kind KINDS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = KIND_PLAIN,
        [CLASS_RW] = KIND_WRITE,
        [CLASS_SEMAPHORE] = KIND_PERMITS,
    };
    enum lock_kind lock_kind = KINDS[lock->lock_class];

    return r->withheld || refused || quarantine_until(eng, lock, lock_kind) != 0
               ? INFO_STATE_WITHHELD
               : INFO_STATE_FREE;
}

/* The holders, as Redis tells them. */
struct told_holds {
    struct hold_view *list;
    size_t count;
    bool uncertain; /* one of them is */
    bool lent;      /* nobody holds, and this daemon has the loan */
    bool lent_elsewhere;
    bool rests; /* the only one is a rest */
};

static struct told_holds make_holds(struct engine *eng, const struct lock *lock,
                                    const struct op_result *r)
{
    size_t count = r->inspect.field_count < INFO_HOLDS_MAX ? r->inspect.field_count
                                                           : INFO_HOLDS_MAX;
    struct told_holds told = {
        .list = effects_alloc(&eng->fx, (count + 1) * sizeof(*told.list)),
    };

    for (size_t i = 0; i < count; i++) {
        const struct op_field *op_field = &r->inspect.fields[i];
        struct span field = op_field->owner;
        const struct hold *h = hold_in_field(lock, field);
        uint64_t token = token_of(h, r, op_field);
        struct hold_view *info = &told.list[told.count];
        bool is_known;

        if (is_idle_loan(lock, field)) {
            told.lent = true;
            continue;
        }
        if (is_lent_elsewhere(r, h, field)) {
            told.lent_elsewhere = true;
            continue;
        }
        field = h != NULL ? hold_field(h) : field;
        is_known = h != NULL && h->token >= token;
        *info = is_known ? copy_hold_view(eng, h) : (struct hold_view){ 0 };
        info->lock_kind = op_field->lock_kind;
        info->owner = effects_copy(&eng->fx, field_owner(field));
        info->count = op_field->count;
        info->token = token;
        add_terms(eng, r, info);
        told.rests = told.rests || field_kind(field) == OWNER_REST;
        told.uncertain = told.uncertain || (is_known && info->uncertain);
        told.count++;
    }
    return told;
}

static enum info_state state_of(const struct engine *eng, const struct lock *lock,
                                const struct op_result *r,
                                const struct told_holds *told)
{
    if (told->rests) {
        return INFO_STATE_RESTING;
    }
    if (told->count > 0) {
        return told->uncertain ? INFO_STATE_UNCERTAIN : INFO_STATE_HELD;
    }
    return told->lent_elsewhere ? INFO_STATE_LENT_ELSEWHERE
           : told->lent         ? INFO_STATE_LENT
                                : state_of_free(eng, lock, r);
}

static bool is_of_value(struct span owner)
{
    struct span origin, value;

    return value_field_split(owner, &origin, &value);
}

enum leader_knowledge inspect_leader(struct engine *eng, const struct lock *lock,
                                     const struct op_result *r, struct leader *ret)
{
    struct told_holds told = make_holds(eng, lock, r);

    *ret = (struct leader){ .owner = span_of("", 0), .data = span_of("", 0) };
    for (size_t i = 0; i < told.count; i++) {
        const struct hold_view *view = &told.list[i];

        if (view->lock_kind != KIND_READ && !told.rests) {
            /* The token of a library's hold is not for all to know: see LOCKINFO. */
            *ret = (struct leader){ is_of_value(view->owner) ? 0 : view->token,
                                    view->owner, view->terms.data };
        }
    }
    if (told.lent_elsewhere) {
        return LEADER_LENT;
    }
    return told.count > 0 || told.lent ||
                   (!r->withheld && quarantine_until(eng, lock, KIND_PLAIN) == 0)
               ? LEADER_KNOWN
               : LEADER_WITHHELD;
}

static const struct lock_info *make_info(struct engine *eng, const struct lock *lock,
                                         const struct op_result *r,
                                         enum info_scope scope)
{
    struct lock_info *info = effects_alloc(&eng->fx, sizeof(*info));
    struct told_holds told = make_holds(eng, lock, r);
    size_t queued = r->inspect.queue_count < INFO_QUEUE_MAX ? r->inspect.queue_count
                                                            : INFO_QUEUE_MAX;

    *info = (struct lock_info){
        .name = effects_copy(&eng->fx, lock_name(lock)),
        .lock_kind = r->lock_kind,
        .state = state_of(eng, lock, r, &told),
        .ttl_ms = r->ttl_ms,
        .free = r->permits.free,
        .limit = r->permits.limit,
        .scope = scope,
        .waiting = lock->waiting,
        .holds = told.list,
        .hold_count = told.count,
        .queue = make_queue(eng, lock, r, queued),
        .queue_count = queued,
    };
    return info;
}

static void emit_info(struct engine *eng, struct call_ref to,
                      const struct lock_info *info)
{
    struct effect *effect = effects_add(&eng->fx, EFFECT_REPLY);

    effect->reply.to = to;
    effect->reply.kind = REPLY_INFO;
    effect->reply.info = info;
}

void inspect_answer_uncertain(struct engine *eng, const struct pending_request *c)
{
    const struct lock *lock = c->lock;
    struct lock_info *info = effects_alloc(&eng->fx, sizeof(*info));
    size_t most = lock->hold_count < INFO_HOLDS_MAX ? lock->hold_count : INFO_HOLDS_MAX;
    struct hold_view *holds = effects_alloc(&eng->fx, (most + 1) * sizeof(*holds));
    uint64_t until = eng->now;
    size_t count = 0;
    const struct hold *h;

    LIST_EACH(h, &lock->holds, in_lock) {
        if (count == most) {
            break;
        }
        holds[count++] = copy_hold_view(eng, h);
        until = h->until > until ? h->until : until;
    }
    *info = (struct lock_info){
        .name = effects_copy(&eng->fx, lock_name(lock)),
        .lock_kind = lock_hold(lock)->lock_kind,
        .state = INFO_STATE_UNCERTAIN,
        .ttl_ms = (int64_t)(until - eng->now),
        .limit = lock->limit,
        .scope = c->scope,
        .waiting = lock->waiting,
        .holds = holds,
        .hold_count = count,
    };
    emit_info(eng, c->ref, info);
}

void on_inspect_reply(struct engine *eng, struct inflight_op *o,
                      const struct op_result *r)
{
    struct pending_request *c = o->request.call;
    struct lock *lock = o->lock;

    if (pending_request_was_retried(eng, o, r)) {
        return;
    }
    if (c == NULL) {
        inflight_free(eng, o);
        return;
    }
    if (r->status == OP_OK && c->scope == INFO_OF_SEMAPHORE &&
        r->lock_kind != KIND_PERMITS) {
        bool is_free = r->inspect.field_count == 0;

        emit_error(eng, c->ref, is_free ? LOCK_ERR : LOCK_WRONGTYPE,
                   is_free ? TEXT_NO_SEMAPHORE : TEXT_WRONGTYPE);
    } else if (r->status == OP_OK) {
        emit_info(eng, c->ref, make_info(eng, lock, r, c->scope));
    } else if (r->status == OP_WRONGTYPE) {
        emit_other_data(eng, c->ref, r->ttl_ms,
                        r->inspect.is_string ? r->text : SPAN_NONE);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND, r->text);
    }
    inflight_free(eng, o);
    pending_request_free(eng, c);
}

/* LOCKS, WAITERS and the numbers of INFO: what is known here, without asking Redis. */

bool lock_is_listed(const struct lock *lock)
{
    return lock_in_use(lock) || latch_watch_waiting(lock) > 0;
}

struct scan {
    lock_fn *fn;
    void *ctx;
    size_t seen;
};

static void visit_lock(void *ctx, struct table_node *n)
{
    struct scan *scan = ctx;
    struct lock *lock = lock_of(n);

    if (lock_is_listed(lock)) {
        scan->fn(scan->ctx, lock);
    }
    scan->seen++;
}

uint64_t lock_scan(const struct engine *eng, uint64_t cursor, size_t count, lock_fn *fn,
                   void *ctx)
{
    struct scan s = { .fn = fn, .ctx = ctx };

    do {
        cursor = table_scan(&eng->names, cursor, visit_lock, &s);
        s.seen++; /* empty buckets count, too: a step is bounded */
    } while (cursor != 0 && s.seen < count);
    return cursor;
}

struct naming {
    lock_name_fn *fn;
    void *ctx;
};

static void tell_name(void *ctx, const struct lock *lock)
{
    const struct naming *naming = ctx;

    naming->fn(naming->ctx, lock_name(lock));
}

uint64_t engine_scan(struct engine *eng, uint64_t cursor, size_t count,
                     lock_name_fn *fn, void *ctx)
{
    struct naming n = { fn, ctx };

    return lock_scan(eng, cursor, count, tell_name, &n);
}

struct waiter_info waiter_info_of(const struct engine *eng, const struct waiter *w)
{
    return (struct waiter_info){
        .owner = spec_field(w->spec),
        .waited_ms = eng->now - w->since,
        .left_ms = w->deadline == UINT64_MAX ? UINT64_MAX
                   : w->deadline > eng->now  ? w->deadline - eng->now
                                             : 0,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
        .local = w->spec->local,
        .terms = w->spec->terms,
    };
}

struct waiter_info await_info_of(const struct engine *eng,
                                 const struct pending_request *c)
{
    return (struct waiter_info){
        .owner = span_of("", 0),
        .waited_ms = eng->now - c->asked,
        .left_ms = c->follower.wait_until == UINT64_MAX ? UINT64_MAX
                   : c->follower.wait_until > eng->now
                       ? c->follower.wait_until - eng->now
                       : 0,
        .conn = c->session->conn.key,
        .terms.lock_kind = KIND_LATCH,
    };
}

/* Calls `fn` for at most `count` who await a latch of that name. */
static void tell_awaits(const struct engine *eng, const struct lock *lock, size_t count,
                        waiter_info_fn *fn, void *ctx)
{
    const struct latch_watch *watch = lock->latch_watch;
    struct pending_request *c;

    if (watch == NULL) {
        return;
    }
    LIST_EACH(c, &watch->watch.followers, in_waiting) {
        struct waiter_info info = await_info_of(eng, c);

        if (count-- == 0) {
            break;
        }
        fn(ctx, &info);
    }
}

void engine_waiters(struct engine *eng, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx)
{
    const struct lock *lock = lock_find(eng, name);
    struct waiter *w;

    if (lock == NULL) {
        return;
    }
    LIST_EACH(w, &lock->queue, in_queue) {
        struct waiter_info info = waiter_info_of(eng, w);

        if (count == 0) {
            break;
        }
        fn(ctx, &info);
        count--;
    }
    tell_awaits(eng, lock, count, fn, ctx);
}

static uint64_t oldest_wait(const struct list *first)
{
    return container_of(first, struct waiter, in_all)->began;
}

void engine_stats(const struct engine *eng, struct engine_stats *ret)
{
    const struct list *first = list_first(&eng->waiters);

    *ret = eng->stats;
    ret->locks = eng->names.count;
    ret->watched = eng->watched;
    ret->holds = eng->hold_count - ret->resting;
    ret->entries -= ret->resting;
    ret->fixed_entries -= ret->resting;
    ret->waiters = eng->waiter_count;
    ret->ops_in_flight = eng->inflight_ops.count;
    ret->oldest_wait_ms = first == NULL ? 0 : eng->now - oldest_wait(first);
    ret->quarantine_left_ms =
        eng->now < eng->quarantine_end ? eng->quarantine_end - eng->now : 0;
    ret->other_daemons = eng->peers.count;
    ret->followers = eng->leader_watches.follower_count;
    ret->followed_names = eng->leader_watches.count;
    ret->awaits = eng->latch_watches.follower_count;
    ret->awaited_latches = eng->latch_watches.count;
    ret->store_up = eng->up;
}

const struct engine_timings *engine_timings(const struct engine *eng)
{
    return &eng->timings;
}
