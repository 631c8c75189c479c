/* Looking: LOCKINFO, LOCKS, WAITERS and the numbers. Nothing changes here. */
#include "engine/introspect/inspect.h"
#include "engine/acquire_spec.h"
#include "engine/effect.h"
#include "engine/emit.h"
#include "engine/engine.h"
#include "engine/engine_state.h"
#include "engine/hold/entry.h"
#include "engine/hold/hold.h"
#include "engine/hold/loan.h"
#include "engine/hold/pending_request.h"
#include "engine/inflight_op.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/op.h"
#include "engine/recovery/quarantine.h"
#include "engine/session.h"
#include "engine/wait/waiter.h"
#include "latchd/protocol.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdio.h>

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
        is_field_of_loan(field, hold_loan_token(lock_hold(lock)))) {
        h = lock_hold(lock);
    }
    return h;
}

/* The name is lent, and nobody holds it: a field that Redis named is the loan's. */
static bool is_idle_loan(const struct lock *lock, struct span field)
{
    const struct loan *loan = lock->activity->loan;

    return loan != NULL && loan->holder == NULL && is_field_of_loan(field, loan->token);
}

/* The token of a holder that Redis named: ours, or what the fence key or the field say.
 */
static uint64_t token_of(const struct hold *h, const struct op_result *r,
                         struct span owner)
{
    struct span who = r->inspect.who;
    size_t head = 1 + OP_INSTANCE_LEN;

    if (h != NULL) {
        return h->token;
    }
    if (who.len > head && who.ptr[0] == 'f' &&
        span_eq(span_of(who.ptr + head, who.len - head), owner)) {
        return r->token;
    }
    return who.len > 1 && who.ptr[0] == 'a' && field_kind(owner) == OWNER_ANONYMOUS
               ? r->token
               : 0;
}

uint64_t hold_client(const struct hold *h)
{
    for (struct entry *e = h->entries; e != NULL; e = e->next) {
        if (e->attaches != NULL) {
            return e->attaches->session->conn.key;
        }
    }
    return 0;
}

/* A walk along our waiters, in search of members of the fair queue. They stand there
 * in the order that they stand here, mostly: so it goes on where it stopped. */
struct search {
    const struct list *queue;
    const struct list *at;
    size_t left; /* steps; whoever is not found by then is told of as a member */
};

static const struct waiter *waiter_with(struct search *s, struct span member)
{
    const struct list *start = s->at;

    for (; s->left > 0; s->left--) {
        const struct list *it = s->at;

        s->at = it->next;
        if (it != s->queue) {
            const struct waiter *w = container_of(it, struct waiter, in_queue);

            if (span_eq(spec_member(w->spec), member)) {
                return w;
            }
        }
        if (s->at == start) {
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
    struct search search = { &lock->activity->queue, &lock->activity->queue,
                             INFO_SEARCH_MAX };

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

static void add_known(const struct engine *eng, const struct hold *h,
                      struct info_hold *info)
{
    info->client = hold_client(h);
    info->here = true;
    info->lease = hold_lease_kind(h);
    info->held_ms = eng->now - h->began;
    info->left_ms = h->until > eng->now ? h->until - eng->now : 0;
    info->local = hold_loan(h) != NULL;
}

/* Of one that nobody holds. Whoever waits for it has asked, and asks again. */
static enum lock_state state_of_free(const struct engine *eng, const struct lock *lock,
                                     const struct op_result *r)
{
    enum last_answer_kind told = last_answer_now(eng, lock);
    bool refused =
        lock->activity->waiting > 0 && told != ANSWER_NONE && told != ANSWER_HELD;
    enum lock_kind kind = lock->lock_class == CLASS_RW ? KIND_WRITE : KIND_PLAIN;

    return r->withheld || refused || quarantine_until(eng, lock, kind) != 0
               ? LOCK_STATE_WITHHELD
               : LOCK_STATE_FREE;
}

/* What Redis says of the holders. */
struct told_holds {
    struct info_hold *list;
    size_t count;
    bool uncertain; /* one of them is */
    bool lent;      /* nobody holds, and this daemon has the loan */
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
        struct span field = r->inspect.fields[i].owner;
        const struct hold *h = hold_in_field(lock, field);
        struct info_hold *info = &told.list[told.count];

        if (is_idle_loan(lock, field)) {
            told.lent = true;
            continue;
        }
        field = h != NULL ? hold_field(h) : field;
        *info = (struct info_hold){
            .kind = r->inspect.fields[i].lock_kind,
            .owner = effects_copy(&eng->fx, field_owner(field)),
            .count = r->inspect.fields[i].count,
            .token = r->inspect.fields[i].token != 0 ? r->inspect.fields[i].token
                                                     : token_of(h, r, field),
        };
        if (h != NULL) {
            told.uncertain = told.uncertain || !hold_is_certain(eng, h);
            add_known(eng, h, info);
        }
        told.count++;
    }
    return told;
}

static enum lock_state state_of(const struct engine *eng, const struct lock *lock,
                                const struct op_result *r,
                                const struct told_holds *told)
{
    if (told->count > 0) {
        return told->uncertain ? LOCK_STATE_UNCERTAIN : LOCK_STATE_HELD;
    }
    return told->lent ? LOCK_STATE_LENT : state_of_free(eng, lock, r);
}

static const struct lock_info *make_info(struct engine *eng, const struct lock *lock,
                                         const struct op_result *r)
{
    struct lock_info *info = effects_alloc(&eng->fx, sizeof(*info));
    struct told_holds told = make_holds(eng, lock, r);
    size_t queued = r->inspect.queue_count < INFO_QUEUE_MAX ? r->inspect.queue_count
                                                            : INFO_QUEUE_MAX;

    *info = (struct lock_info){
        .name = effects_copy(&eng->fx, lock_name(lock)),
        .kind = r->lock_kind,
        .state = state_of(eng, lock, r, &told),
        .ttl_ms = r->ttl_ms,
        .waiting = lock->activity->waiting,
        .holds = told.list,
        .hold_count = told.count,
        .queue = make_queue(eng, lock, r, queued),
        .queue_count = queued,
    };
    return info;
}

static int64_t entry_count(const struct hold *h)
{
    int64_t count = 0;

    for (const struct entry *e = h->entries; e != NULL; e = e->next) {
        count++;
    }
    return count;
}

static void emit_info(struct engine *eng, struct call_ref to,
                      const struct lock_info *info)
{
    struct effect *e = effects_add(&eng->fx, EFFECT_REPLY);

    e->reply.to = to;
    e->reply.kind = REPLY_INFO;
    e->reply.info = info;
}

void inspect_answer_uncertain(struct engine *eng, const struct pending_request *c)
{
    const struct lock *lock = c->lock;
    struct lock_info *info = effects_alloc(&eng->fx, sizeof(*info));
    size_t most = lock->hold_count < INFO_HOLDS_MAX ? lock->hold_count : INFO_HOLDS_MAX;
    struct info_hold *holds = effects_alloc(&eng->fx, (most + 1) * sizeof(*holds));
    uint64_t until = eng->now;
    size_t count = 0;
    struct list *it;

    LIST_FOREACH(it, &lock->holds)
    {
        const struct hold *h = container_of(it, struct hold, in_lock);

        if (count == most) {
            break;
        }
        holds[count] = (struct info_hold){
            .kind = h->lock_kind,
            .owner = effects_copy(&eng->fx, field_owner(hold_field(h))),
            .count = entry_count(h),
            .token = h->token,
        };
        add_known(eng, h, &holds[count]);
        count++;
        until = h->until > until ? h->until : until;
    }
    *info = (struct lock_info){
        .name = effects_copy(&eng->fx, lock_name(lock)),
        .kind = lock_hold(lock)->lock_kind,
        .state = LOCK_STATE_UNCERTAIN,
        .ttl_ms = (int64_t)(until - eng->now),
        .waiting = lock->activity->waiting,
        .holds = holds,
        .hold_count = count,
    };
    emit_info(eng, c->ref, info);
}

void on_inspect_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r)
{
    struct pending_request *c = w->call;
    struct lock *lock = w->lock;

    if (c == NULL) {
        inflight_free(eng, w);
        return;
    }
    if (r->status == OP_UNKNOWN || r->status == OP_LATE) {
        inflight_free(eng, w);
        pending_request_retry(eng, c, r->status);
        return;
    }
    if (r->status == OP_OK) {
        emit_info(eng, c->ref, make_info(eng, lock, r));
    } else if (r->status == OP_WRONGTYPE) {
        emit_other_data(eng, c->ref, r->ttl_ms,
                        r->inspect.is_string ? r->text : SPAN_NONE);
    } else {
        emit_error(eng, c->ref, LOCK_BACKEND, r->text);
    }
    inflight_free(eng, w);
    pending_request_free(eng, c);
}

/* --- LOCKS ------------------------------------------------------------------------ */

struct scan {
    lock_fn *fn;
    void *ctx;
    size_t seen;
};

static void visit_lock(void *ctx, struct table_node *n)
{
    struct scan *s = ctx;
    struct lock *lock = lock_of(n);

    if (lock_in_use(lock)) {
        s->fn(s->ctx, lock);
    }
    s->seen++;
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
    const struct naming *n = ctx;

    n->fn(n->ctx, lock_name(lock));
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
        .kind = w->spec->lock_kind,
        .owner = spec_field(w->spec),
        .waited_ms = eng->now - w->since,
        .left_ms = w->deadline == UINT64_MAX ? UINT64_MAX
                   : w->deadline > eng->now  ? w->deadline - eng->now
                                             : 0,
        .conn = w->session == NULL ? 0 : w->session->conn.key,
        .local = w->spec->local,
    };
}

void engine_waiters(struct engine *eng, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx)
{
    const struct lock *lock = lock_find(eng, name);
    struct list *it;

    if (lock == NULL) {
        return;
    }
    LIST_FOREACH(it, &lock->activity->queue)
    {
        struct waiter *w = container_of(it, struct waiter, in_queue);
        struct waiter_info info = waiter_info_of(eng, w);

        if (count-- == 0) {
            break;
        }
        fn(ctx, &info);
    }
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
    ret->holds = eng->hold_count;
    ret->waiters = eng->waiter_count;
    ret->ops_in_flight = eng->inflight_ops.count;
    ret->oldest_wait_ms = first == NULL ? 0 : eng->now - oldest_wait(first);
    ret->quarantine_left_ms =
        eng->now < eng->quarantine_end ? eng->quarantine_end - eng->now : 0;
    ret->other_daemons = eng->peers.count;
    ret->store_up = eng->up;
}

const struct engine_timings *engine_timings(const struct engine *eng)
{
    return &eng->timings;
}
