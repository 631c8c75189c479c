/* What the votes on one op come to; the table is in ballot.h. */
#include "store/ballot_priv.h"

#include <assert.h>

enum { STATUS_COUNT = OP_NOREPLICAS + 1 };

/* How many said what. */
struct tally {
    unsigned of[STATUS_COUNT];
    unsigned open;     /* may still answer */
    unsigned answered; /* in a way that tells how things are there */
    int error, late;   /* one of these, or -1 */
};

static bool is_in(const struct poll *p, unsigned i)
{
    return p->votes[i].state == VOTE_IN;
}

static bool says(const struct poll *p, unsigned i, enum op_status status)
{
    return is_in(p, i) && p->votes[i].r.status == status;
}

static bool tells_nothing(enum op_status status)
{
    return status == OP_LATE || status == OP_UNKNOWN || status == OP_ERROR;
}

static struct tally count(const struct poll *p)
{
    struct tally t = { .error = -1, .late = -1 };

    for (unsigned i = 0; i < p->count; i++) {
        if (is_in(p, i)) {
            enum op_status status = p->votes[i].r.status;

            t.of[status]++;
            t.answered += tells_nothing(status) ? 0 : 1;
            t.error = status == OP_ERROR ? (int)i : t.error;
            t.late = status == OP_LATE ? (int)i : t.late;
        } else if (p->votes[i].state == VOTE_OPEN && !p->final) {
            t.open++;
        }
    }
    return t;
}

/* There is one that says so. */
static const struct op_result *first(const struct poll *p, enum op_status status)
{
    unsigned i = 0;

    while (!says(p, i, status)) {
        i++;
        assert(i < p->count);
    }
    return &p->votes[i].r;
}

static enum verdict done(struct op_result *ret, const struct op_result *r)
{
    *ret = *r;
    return VERDICT_DONE;
}

static enum verdict lack(const struct poll *p, const struct tally *t,
                         struct op_result *ret)
{
    ret->status = OP_UNKNOWN;
    if (t->error >= 0) {
        *ret = p->votes[t->error].r;
    } else if (t->late >= 0 || p->op->kind == OP_ACQUIRE) {
        ret->status = OP_LATE; /* an ACQUIRE is undone: it is as if it did nothing */
    }
    return VERDICT_LACK;
}

static void sort(uint64_t *values, unsigned n)
{
    for (unsigned i = 1; i < n; i++) {
        for (unsigned j = i; j > 0 && values[j] < values[j - 1]; j--) {
            uint64_t x = values[j];

            values[j] = values[j - 1];
            values[j - 1] = x;
        }
    }
}

/* --- ACQUIRE ---------------------------------------------------------------------- */

#define NO_END (UINT64_MAX - 1) /* it answered, but that nothing tells */

/* In what time that node is free again. */
static uint64_t free_in(const struct poll *p, unsigned i)
{
    const struct op_result *r = &p->votes[i].r;

    if (!is_in(p, i) || tells_nothing(r->status)) {
        return UINT64_MAX;
    }
    switch (r->status) {
    case OP_OK:
    case OP_BEHIND:
        return 0;
    case OP_BUSY:
        if (r->ttl_ms == -2 && !r->fair) {
            return p->abstains[i]; /* it is free now */
        }
        return r->ttl_ms >= 0 ? (uint64_t)r->ttl_ms : NO_END;
    default:
        return NO_END;
    }
}

static void set_busy(const struct poll *p, struct op_result *ret)
{
    uint64_t times[BALLOT_NODES_MAX];
    uint64_t when;

    for (unsigned i = 0; i < p->count; i++) {
        times[i] = free_in(p, i);
    }
    sort(times, p->count);
    when = times[p->need - 1];
    ret->status = OP_BUSY;
    ret->ttl_ms = when >= INT64_MAX ? -1 : (int64_t)when;
    if (when == 0 && p->op->reenter_only) {
        ret->ttl_ms = -2;
    }
}

/* The token of most who granted it; of how many, and how many of these have it for
 * another instance. */
struct given {
    uint64_t token;
    unsigned count, elsewhere;
};

static struct given given_as(const struct poll *p, uint64_t token)
{
    struct given g = { .token = token };

    for (unsigned i = 0; i < p->count; i++) {
        if (says(p, i, OP_OK) && p->votes[i].r.token == token) {
            g.count++;
            g.elsewhere += p->votes[i].r.elsewhere ? 1 : 0;
        }
    }
    return g;
}

static struct given most_given(const struct poll *p)
{
    struct given most = { 0 };

    for (unsigned i = 0; i < p->count; i++) {
        struct given g = { 0 };

        if (says(p, i, OP_OK) && p->votes[i].r.token != 0) {
            g = given_as(p, p->votes[i].r.token);
        }
        most = g.count > most.count ? g : most;
    }
    return most;
}

/* Who was late before may have it under an older token. */
static enum verdict granted(const struct poll *p, unsigned open, struct op_result *ret)
{
    struct given most = most_given(p);

    if (most.count < p->need) {
        return most.count + open >= p->need ? VERDICT_OPEN : VERDICT_AGAIN;
    }
    if (most.count - most.elsewhere < p->need) {
        return VERDICT_TAKE;
    }
    ret->status = OP_OK;
    ret->token = most.token;
    for (unsigned i = 0; i < p->count; i++) {
        const struct op_result *r = &p->votes[i].r;

        if (says(p, i, OP_OK)) {
            ret->count = r->count > ret->count ? r->count : ret->count;
            ret->attached = ret->attached || r->attached;
        }
    }
    return VERDICT_DONE;
}

static enum verdict join_acquire(const struct poll *p, struct op_result *ret)
{
    struct tally t = count(p);
    unsigned ok = t.of[OP_OK];

    if (ok >= p->need) {
        return granted(p, t.open, ret);
    }
    if (ok + t.open >= p->need) {
        return VERDICT_OPEN;
    }
    if (t.of[OP_OVER] > 0) {
        return done(ret, first(p, OP_OVER));
    }
    if (t.of[OP_ELSEWHERE] > 0) {
        return done(ret, first(p, OP_ELSEWHERE));
    }
    if (t.of[OP_BEHIND] > 0 && ok + t.of[OP_BEHIND] >= p->need) {
        return VERDICT_AGAIN;
    }
    if (t.of[OP_WRONGTYPE] > p->count - p->need) {
        return done(ret, first(p, OP_WRONGTYPE));
    }
    if (t.answered >= p->need) {
        set_busy(p, ret);
        return ok > 0 || t.of[OP_BEHIND] > 0 ? VERDICT_SPLIT : VERDICT_DONE;
    }
    return t.open > 0 ? VERDICT_OPEN : lack(p, &t, ret);
}

/* --- RELEASE ---------------------------------------------------------------------- */

static enum verdict released(const struct poll *p, enum op_status status,
                             struct op_result *ret)
{
    *ret = *first(p, status);
    for (unsigned i = 0; i < p->count; i++) {
        if (says(p, i, status) && p->votes[i].r.count > ret->count) {
            ret->count = p->votes[i].r.count;
        }
    }
    ret->freed = status == OP_OK && ret->count == 0;
    return VERDICT_DONE;
}

static enum verdict join_release(const struct poll *p, struct op_result *ret)
{
    static const enum op_status ORDER[] = { OP_OK,        OP_ENDED,     OP_ELSEWHERE,
                                            OP_WRONGTYPE, OP_AMBIGUOUS, OP_NOTHELD };
    struct tally t = count(p);
    unsigned over = t.of[OP_OK] + t.of[OP_ENDED];

    if (over < p->need && t.open > 0) {
        return VERDICT_OPEN;
    }
    if (t.answered < p->need) {
        return lack(p, &t, ret);
    }
    if (t.of[OP_NOTHELD] >= p->need && t.of[OP_ENDED] == 0) {
        return done(ret, first(p, OP_NOTHELD)); /* what a minority had was lost */
    }
    for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
        if (t.of[ORDER[i]] > 0) {
            return released(p, ORDER[i], ret);
        }
    }
    return lack(p, &t, ret);
}

/* --- RENEW ------------------------------------------------------------------------ */

/* False: it is not known yet. */
static bool join_item(const struct poll *p, size_t item, enum renew_result *ret)
{
    static const enum renew_result ORDER[] = { RENEW_ENDED, RENEW_ELSEWHERE, RENEW_GONE,
                                               RENEW_WRONGTYPE };
    unsigned of[RENEW_UNKNOWN + 1] = { 0 };
    unsigned told = 0;

    for (unsigned i = 0; i < p->count; i++) {
        if (says(p, i, OP_OK) && item < p->votes[i].r.item_count) {
            of[p->votes[i].r.items[item]]++;
            told++;
        }
    }
    *ret = RENEW_OK;
    if (of[RENEW_OK] >= p->need) {
        return true;
    }
    *ret = RENEW_UNKNOWN;
    if (told - of[RENEW_OK] <= p->count - p->need) {
        return false; /* it may still be a majority */
    }
    for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
        if (of[ORDER[i]] > 0) {
            *ret = ORDER[i];
            return true;
        }
    }
    return false;
}

static enum verdict join_renew(const struct poll *p, struct op_result *ret,
                               enum renew_result *items)
{
    struct tally t = count(p);
    bool all = true;

    for (size_t i = 0; i < p->op->item_count; i++) {
        all = join_item(p, i, &items[i]) && all;
    }
    if (!all && t.open > 0) {
        return VERDICT_OPEN;
    }
    ret->status = OP_OK;
    ret->items = items;
    ret->item_count = p->op->item_count;
    return !all && t.of[OP_OK] < p->need ? lack(p, &t, ret) : VERDICT_DONE;
}

/* --- ATTACH, RESTORE, INSPECT ----------------------------------------------------- */

/* Is it the same hold that they tell of? */
static bool same_hold(const struct op_result *a, const struct op_result *b)
{
    return a->token == b->token && span_eq(a->owner, b->owner) &&
           span_eq(a->entry, b->entry);
}

static bool same_holder(const struct op_result *a, const struct op_result *b)
{
    return a->field_count == b->field_count && a->lock_kind == b->lock_kind &&
           (a->field_count == 0 || span_eq(a->fields[0].owner, b->fields[0].owner));
}

typedef bool same_fn(const struct op_result *a, const struct op_result *b);

/* One of M that say the same: that which has the shortest time of the M longest. */
static const struct op_result *agreed(const struct poll *p, same_fn *same)
{
    for (unsigned i = 0; i < p->count; i++) {
        unsigned like = 0, longer = 0;

        if (!says(p, i, OP_OK)) {
            continue;
        }
        for (unsigned j = 0; j < p->count; j++) {
            const struct op_result *r = &p->votes[j].r;

            if (says(p, j, OP_OK) && same(&p->votes[i].r, r)) {
                like++;
                longer += r->ttl_ms > p->votes[i].r.ttl_ms ||
                          (r->ttl_ms == p->votes[i].r.ttl_ms && j < i);
            }
        }
        if (like >= p->need && longer == p->need - 1) {
            return &p->votes[i].r;
        }
    }
    return NULL;
}

static enum verdict join_hold(const struct poll *p, struct op_result *ret)
{
    static const enum op_status ORDER[] = { OP_ENDED, OP_ELSEWHERE, OP_AMBIGUOUS,
                                            OP_NOTHELD, OP_WRONGTYPE };
    const struct op_result *r = agreed(p, same_hold);
    struct tally t = count(p);

    if (r != NULL) {
        return done(ret, r);
    }
    if (t.of[OP_OK] + t.open >= p->need && t.open > 0) {
        return VERDICT_OPEN;
    }
    if (t.answered - t.of[OP_OK] > p->count - p->need || t.of[OP_OK] >= p->need) {
        for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
            if (t.of[ORDER[i]] > 0) {
                return done(ret, first(p, ORDER[i]));
            }
        }
    }
    return t.open > 0 ? VERDICT_OPEN : lack(p, &t, ret);
}

static enum verdict join_inspect(const struct poll *p, struct op_result *ret)
{
    const struct op_result *r = agreed(p, same_holder);
    struct tally t = count(p);

    if (r != NULL) {
        return done(ret, r);
    }
    if (t.open > 0) {
        return VERDICT_OPEN;
    }
    if (t.of[OP_WRONGTYPE] > p->count - p->need) {
        return done(ret, first(p, OP_WRONGTYPE));
    }
    if (t.answered < p->need) {
        return lack(p, &t, ret);
    }
    ret->status = OP_OK;
    ret->ttl_ms = -2;
    for (unsigned i = 0; i < p->count; i++) {
        if (says(p, i, OP_OK) && p->votes[i].r.token > ret->token) {
            ret->token = p->votes[i].r.token;
            ret->owner = p->votes[i].r.owner;
        }
    }
    return VERDICT_DONE;
}

bool ballot_joins(enum op_kind kind)
{
    return kind == OP_ACQUIRE || kind == OP_RELEASE || kind == OP_RENEW ||
           kind == OP_ATTACH || kind == OP_RESTORE || kind == OP_INSPECT;
}

enum verdict ballot_join(const struct poll *p, struct op_result *ret,
                         enum renew_result *items)
{
    *ret = (struct op_result){ 0 };
    switch (p->op->kind) {
    case OP_ACQUIRE:
        return join_acquire(p, ret);
    case OP_RELEASE:
        return join_release(p, ret);
    case OP_RENEW:
        return join_renew(p, ret, items);
    case OP_ATTACH:
    case OP_RESTORE:
        return join_hold(p, ret);
    case OP_INSPECT:
        return join_inspect(p, ret);
    default:
        return VERDICT_LACK; /* ballot_joins() says so */
    }
}
