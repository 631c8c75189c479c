/* Answers LOCKINFO. Nothing changes here. */
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
#include "engine/hold/rest.h"
#include "engine/inflight_op.h"
#include "engine/lock/hold_index.h"
#include "engine/lock/last_answer.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/lock/lock_mode.h"
#include "engine/op.h"
#include "engine/recovery/quarantine.h"
#include "engine/session.h"
#include "engine/value_hold.h"
#include "engine/wait/waiter.h"
#include "latchd/protocol.h"
#include "util/list.h"
#include "util/parse.h"
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
                         const struct op_field *f)
{
    if (f->token != 0) {
        return f->token;
    }
    if (field_kind(f->owner) == OWNER_REST) {
        return rest_field_token(f->owner);
    }
    if (is_fence_of(r, f->owner)) {
        return r->token;
    }
    return h != NULL ? h->token : token_in_field(f->owner);
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

            if (spec_is_member(w->spec, member)) {
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

/* What Redis says of the hold with the last token, or of the writer. */
static void add_terms(struct engine *eng, const struct op_result *r,
                      struct info_hold *info)
{
    bool rests = field_kind(info->owner) == OWNER_REST;
    bool fits =
        info->kind == KIND_WRITE ||
        (info->kind == KIND_PLAIN && info->token != 0 && info->token == r->token);

    if (rests) {
        info->atleast_ms = r->ttl_ms > 0 ? (uint64_t)r->ttl_ms : 0;
    } else if (fits) {
        info->data = effects_copy(&eng->fx, r->inspect.data);
        info->atleast_ms = r->inspect.atleast_ms;
    }
}

/* Of one that nobody holds. Whoever waits for it has asked, and asks again. */
static enum lock_state state_of_free(const struct engine *eng, const struct lock *lock,
                                     const struct op_result *r)
{
    enum last_answer_kind told = last_answer_now(eng, lock);
    bool refused =
        lock->activity->waiting > 0 && told != ANSWER_NONE && told != ANSWER_HELD;
    static const enum lock_kind KINDS[LOCK_CLASSES] = {
        [CLASS_PLAIN] = KIND_PLAIN,
        [CLASS_RW] = KIND_WRITE,
        [CLASS_SEMAPHORE] = KIND_PERMITS,
    };
    enum lock_kind kind = KINDS[lock->lock_class];

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
        const struct op_field *f = &r->inspect.fields[i];
        struct span field = f->owner;
        const struct hold *h = hold_in_field(lock, field);
        uint64_t token = token_of(h, r, f);
        struct info_hold *info = &told.list[told.count];

        if (is_idle_loan(lock, field)) {
            told.lent = true;
            continue;
        }
        if (is_lent_elsewhere(r, h, field)) {
            told.lent_elsewhere = true;
            continue;
        }
        field = h != NULL ? hold_field(h) : field;
        *info = (struct info_hold){
            .kind = f->lock_kind,
            .owner = effects_copy(&eng->fx, field_owner(field)),
            .count = f->count,
            .token = token,
        };
        add_terms(eng, r, info);
        told.rests = told.rests || field_kind(field) == OWNER_REST;
        if (h != NULL && h->token >= token) {
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
    if (told->rests) {
        return LOCK_STATE_RESTING;
    }
    if (told->count > 0) {
        return told->uncertain ? LOCK_STATE_UNCERTAIN : LOCK_STATE_HELD;
    }
    return told->lent_elsewhere ? LOCK_STATE_LENT_ELSEWHERE
           : told->lent         ? LOCK_STATE_LENT
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
        const struct info_hold *h = &told.list[i];

        if (h->kind != KIND_READ && !told.rests) {
            /* The token of a library's hold is not for all to know: see LOCKINFO. */
            *ret = (struct leader){ is_of_value(h->owner) ? 0 : h->token, h->owner,
                                    h->data };
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
        .kind = r->lock_kind,
        .state = state_of(eng, lock, r, &told),
        .ttl_ms = r->ttl_ms,
        .free = r->permits.free,
        .limit = r->permits.limit,
        .scope = scope,
        .waiting = lock->activity->waiting,
        .holds = told.list,
        .hold_count = told.count,
        .queue = make_queue(eng, lock, r, queued),
        .queue_count = queued,
    };
    return info;
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
            .count = count_in_hold(h),
            .token = h->token,
            .data = effects_copy(&eng->fx, hold_data(h)),
            .atleast_ms = hold_atleast_left(eng, h),
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
        .limit = lock->sharing->limit,
        .scope = c->scope,
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
    inflight_free(eng, w);
    pending_request_free(eng, c);
}
