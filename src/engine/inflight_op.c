/* Ops in flight: what was asked of Redis, for which object, and where the answer goes.
 */
#include "engine/inflight_op.h"
#include "engine/engine_priv.h"

/* A token that is further ahead of the clock than a year follows a counter. */
static const uint64_t CLOCK_AHEAD_US = UINT64_C(365) * 24 * 3600 * 1000000;

struct inflight_op *inflight_new(struct engine *eng, enum inflight_kind kind,
                                 struct lock *lock)
{
    struct inflight_op *o = pool_alloc(&eng->pool, sizeof(*o));

    o->op.key = ++eng->next_op;
    o->kind = kind;
    o->sent = eng->now;
    o->lock = lock;
    list_init(&o->in_sent);
    if (lock != NULL) {
        lock->refs++;
    }
    table_add(&eng->inflight_ops, &o->op);
    return o;
}

struct inflight_op *inflight_find(const struct engine *eng, uint64_t op_id)
{
    struct table_node *slot = table_find(&eng->inflight_ops, op_id);

    return slot == NULL ? NULL : container_of(slot, struct inflight_op, op);
}

/* The pauses before an op is sent again, for each result that is no answer to it. */
struct retry_pauses {
    uint16_t unknown_ms, late_ms, error_ms, elsewhere_ms;
};

#define NO_RETRY UINT16_MAX /* the client gets the error, or other ops ask */
#define NO_RETRIES                                                                     \
    {                                                                                  \
        NO_RETRY, NO_RETRY, NO_RETRY, NO_RETRY                                         \
    }

static const struct retry_pauses RETRIES[] = {
    [INFLIGHT_ASK] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, RETRY_PAUSE_MS },
    [INFLIGHT_PROBE] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, RETRY_PAUSE_MS },
    [INFLIGHT_BATCH] = NO_RETRIES, /* each of its parts is an ASK */
    [INFLIGHT_RELEASE] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, NO_RETRY },
    [INFLIGHT_RENEW] = { 0, 0, ERROR_PAUSE_MS, NO_RETRY },
    [INFLIGHT_RENEW_LOANS] = NO_RETRIES, /* a loan ends with its window then */
    [INFLIGHT_ATTACH] = { 0, RETRY_PAUSE_MS, NO_RETRY, RETRY_PAUSE_MS },
    [INFLIGHT_INSPECT] = { 0, RETRY_PAUSE_MS, NO_RETRY, NO_RETRY },
    [INFLIGHT_LIMIT] = { 0, RETRY_PAUSE_MS, NO_RETRY, NO_RETRY },
    [INFLIGHT_WATCH] = { RETRY_PAUSE_MS, RETRY_PAUSE_MS, NO_RETRY, NO_RETRY },
    [INFLIGHT_LATCH] = { 0, RETRY_PAUSE_MS, NO_RETRY, NO_RETRY },
    [INFLIGHT_COUNT_AGAIN] = { RETRY_PAUSE_MS, RETRY_PAUSE_MS, ERROR_PAUSE_MS,
                               NO_RETRY },
    [INFLIGHT_QUEUE] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, NO_RETRY },
    [INFLIGHT_LEAVE] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, NO_RETRY },
    [INFLIGHT_RESTORE] = { 0, RETRY_PAUSE_MS, ERROR_PAUSE_MS, NO_RETRY },
    [INFLIGHT_CHECK] = NO_RETRIES, /* renewals find out */
};

uint64_t inflight_retry_in(enum inflight_kind kind, enum op_status status)
{
    const struct retry_pauses *pauses = &RETRIES[kind];
    uint16_t ms = status == OP_UNKNOWN     ? pauses->unknown_ms
                  : status == OP_LATE      ? pauses->late_ms
                  : status == OP_ERROR     ? pauses->error_ms
                  : status == OP_ELSEWHERE ? pauses->elsewhere_ms
                                           : NO_RETRY;

    return ms == NO_RETRY ? RETRY_NEVER : ms;
}

/* Makes what the op is for forget the op. */
static void leave_subject(struct engine *eng, struct inflight_op *o)
{
    switch (o->kind) {
    case INFLIGHT_ASK:
    case INFLIGHT_PROBE:
    case INFLIGHT_RELEASE:
        if (o->claim.waiter != NULL) {
            o->claim.waiter->in_flight = NULL;
        }
        spec_unref(eng, o->claim.spec);
        break;
    case INFLIGHT_ATTACH:
    case INFLIGHT_INSPECT:
    case INFLIGHT_LIMIT:
    case INFLIGHT_LATCH:
        if (o->request.call != NULL) {
            o->request.call->in_flight = NULL;
        }
        break;
    case INFLIGHT_RENEW:
        for (size_t i = 0; i < o->renew.count; i++) {
            if (o->renew.items[i].hold != NULL) {
                o->renew.items[i].hold->renewal = NULL;
            }
        }
        free(o->renew.items);
        break;
    case INFLIGHT_RENEW_LOANS:
        for (size_t i = 0; i < o->loans.count; i++) {
            if (o->loans.items[i] != NULL) {
                o->loans.items[i]->renewal = NULL;
            }
        }
        free(o->loans.items);
        break;
    case INFLIGHT_BATCH:
        free(o->batch.parts);
        break;
    case INFLIGHT_RESTORE:
        eng->restores_in_flight--;
        eng->restores_cost -= o->cost;
        if (o->restore.hold != NULL) {
            o->restore.hold->restoring = NULL;
        }
        spec_unref(eng, o->restore.spec);
        break;
    case INFLIGHT_CHECK:
        if (o->loss.about != NULL) {
            o->loss.about->check = NULL;
        }
        free(o->loss.check);
        break;
    case INFLIGHT_WATCH:
        if (o->watch != NULL) {
            o->watch->look = NULL;
        }
        break;
    case INFLIGHT_COUNT_AGAIN:
    case INFLIGHT_QUEUE:
    case INFLIGHT_LEAVE:
        break;
    }
}

void inflight_free(struct engine *eng, struct inflight_op *o)
{
    leave_subject(eng, o);
    if (o->lock != NULL) {
        o->lock->refs--;
        if (o->is_asking) {
            lock_end_asking(o->lock);
        }
        lock_touch(eng, o->lock);
    }
    if (o->check != NULL) {
        o->check->loss.about = NULL;
    }
    list_del(&o->in_sent);
    table_remove(&eng->inflight_ops, &o->op);
    pool_free_sized(&eng->pool, o, sizeof(*o));
}

struct asked inflight_asked(const struct inflight_op *o)
{
    bool claims = o->kind == INFLIGHT_ASK || o->kind == INFLIGHT_PROBE ||
                  o->kind == INFLIGHT_RELEASE;

    return (struct asked){ .op = o->op.key,
                           .at = o->sent,
                           .lease_ms = o->lease_ms,
                           .claimed_before = claims && o->claim.claimed_before,
                           .ago_ms = claims ? o->claim.asked_ago_ms : 0 };
}

bool answer_predates_store(const struct engine *eng, const struct lock *lock,
                           uint64_t op_id)
{
    return op_id <= eng->last_stale_op || op_id <= eng->last_stale_ops[lock->group];
}

bool answer_leaves_time(const struct engine *eng, const struct lock *lock,
                        struct asked asked)
{
    return !answer_predates_store(eng, lock, asked.op) &&
           (eng->now - asked.at) * 2 <= asked.lease_ms;
}

struct span op_copy(struct engine *eng, struct span s)
{
    return effects_copy(&eng->fx, s);
}

struct op *inflight_op(struct engine *eng, struct inflight_op *o, enum op_kind kind)
{
    struct span name = o->lock == NULL ? SPAN_NONE : op_copy(eng, lock_name(o->lock));
    struct op *op = &effects_add(&eng->fx, EFFECT_OP)->op;

    op->kind = kind;
    op->id = o->op.key;
    op->name = name;
    op->grouped = eng->group_of != NULL;
    op->group = o->lock == NULL ? 0 : o->lock->group;
    op->seen_token = inflight_clock_floor(eng) > eng->seen_token
                         ? inflight_clock_floor(eng)
                         : eng->seen_token;
    op->fair_wait_ms = eng->cfg.fair_wait_ms;
    op->fence_ttl_ms = engine_fence_ttl(eng);
    return op;
}

struct target op_make_target(struct engine *eng, const struct target *target)
{
    return (struct target){ .kind = target->kind,
                            .lock_kind = target->lock_kind,
                            .field = op_copy(eng, target->field),
                            .entry = op_copy(eng, target->entry),
                            .token = target->token };
}

struct claim op_make_claim(struct engine *eng, const struct acquire_spec *spec,
                           uint64_t lease_ms)
{
    return (struct claim){
        .lock_kind = spec->terms.lock_kind,
        .owner_kind = spec->owner_kind,
        .field = op_copy(eng, spec_field(spec)),
        .entry =
            op_copy(eng, spec->owner_kind == OWNER_ID ? SPAN_NONE : spec_entry(spec)),
        .member = spec_copy_member(eng, spec),
        .data = op_copy(eng, spec->terms.data),
        .atleast_ms = spec->terms.atleast_ms,
        .lease_ms = lease_ms,
        .permits = spec->terms.permits,
    };
}

uint64_t inflight_clock_floor(const struct engine *eng)
{
    const struct clock_floor *floor = &eng->clock_floor;

    return floor->us == 0 ? 0 : floor->us + (eng->now - floor->at) * 1000;
}

void inflight_raise_clock_floor(struct engine *eng, uint64_t us)
{
    const uint64_t seen = eng->seen_token;

    /* The clock was at the newest token, too, unless Redisson made that one. */
    us = us != 0 && seen > us && seen - us < CLOCK_AHEAD_US ? seen : us;
    if (us > inflight_clock_floor(eng) && us <= (uint64_t)LATCHD_TOKEN_MAX) {
        eng->clock_floor = (struct clock_floor){ .us = us, .at = eng->now };
    }
}

void inflight_saw_token(struct engine *eng, uint64_t token)
{
    if (token > eng->seen_token && token <= (uint64_t)LATCHD_TOKEN_MAX) {
        eng->seen_token = token;
    }
}
