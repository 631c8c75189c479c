#include "backend/quorum/quorum_tally.h"

#include <assert.h>

enum { STATUS_COUNT = OP_NOREPLICAS + 1 };

/* How many nodes said what. */
struct tally {
    unsigned of[STATUS_COUNT];
    unsigned open;     /* may still answer */
    unsigned answered; /* with the state of the lock there */
    int error, late;   /* one of these, or -1 */
};

static bool votes_are_in(const struct quorum_votes *p, unsigned i)
{
    return p->votes[i].state == VOTE_IN;
}

static bool votes_say(const struct quorum_votes *p, unsigned i, enum op_status status)
{
    return votes_are_in(p, i) && p->votes[i].r.status == status;
}

static bool tells_nothing(enum op_status status)
{
    return status == OP_LATE || status == OP_UNKNOWN || status == OP_ERROR;
}

static struct tally votes_tally(const struct quorum_votes *p)
{
    struct tally t = { .error = -1, .late = -1 };

    for (unsigned i = 0; i < p->count; i++) {
        if (votes_are_in(p, i)) {
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

static const struct op_result *votes_first(const struct quorum_votes *p,
                                           enum op_status status)
{
    unsigned i = 0;

    while (!votes_say(p, i, status)) {
        i++;
        assert(i < p->count);
    }
    return &p->votes[i].r;
}

static enum quorum_verdict tally_done(struct op_result *ret, const struct op_result *r)
{
    *ret = *r;
    return TALLY_DONE;
}

static enum quorum_verdict tally_lack(const struct quorum_votes *p,
                                      const struct tally *t, struct op_result *ret)
{
    ret->status = OP_UNKNOWN;
    if (t->error >= 0) {
        *ret = p->votes[t->error].r;
    } else if (t->late >= 0 || p->op->kind == OP_ACQUIRE) {
        ret->status = OP_LATE; /* an ACQUIRE is undone: it is as if it did nothing */
    }
    return TALLY_LACK;
}

static void sort_values(uint64_t *values, unsigned n)
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

/* The time after which that node is free again. */
static uint64_t free_in(const struct quorum_votes *p, unsigned i)
{
    const struct op_result *r = &p->votes[i].r;

    if (!votes_are_in(p, i) || tells_nothing(r->status)) {
        return UINT64_MAX;
    }
    switch (r->status) {
    case OP_OK:
    case OP_BEHIND:
        return 0;
    case OP_BUSY:
        if (r->ttl_ms == TTL_ABSENT && !r->fair) {
            return p->abstains[i]; /* it is free now */
        }
        return r->ttl_ms >= 0 ? (uint64_t)r->ttl_ms : NO_END;
    default:
        return NO_END;
    }
}

/* The lock is free at the node, which may have forgotten a holder, and has no vote. */
static bool node_withholds(const struct quorum_votes *p, unsigned i)
{
    const struct op_result *r = &p->votes[i].r;

    return votes_say(p, i, OP_BUSY) && r->ttl_ms == TTL_ABSENT && !r->fair &&
           p->abstains[i] != 0;
}

static void set_busy(const struct quorum_votes *p, struct op_result *ret)
{
    uint64_t times[QUORUM_NODES_MAX] = { 0 };
    bool held = false;
    uint64_t when;

    for (unsigned i = 0; i < p->count; i++) {
        times[i] = free_in(p, i);
        ret->foreign =
            ret->foreign || (votes_say(p, i, OP_BUSY) && p->votes[i].r.foreign);
        ret->withheld = ret->withheld || node_withholds(p, i);
        held =
            held || (times[i] != 0 && times[i] != UINT64_MAX && !node_withholds(p, i));
    }
    sort_values(times, p->count);
    when = times[p->need - 1];
    ret->status = OP_BUSY;
    ret->ttl_ms = when >= INT64_MAX ? TTL_NONE : (int64_t)when;
    ret->withheld = ret->withheld && !held; /* it is only that too few vote */
    if (when == 0 && p->op->acquire.reenter_only) {
        ret->ttl_ms = TTL_ABSENT;
    }
}

/* The token that most nodes granted; how many did, and how many of these have it for
 * another instance. */
struct given {
    uint64_t token;
    unsigned count, elsewhere;
};

static struct given given_as(const struct quorum_votes *p, uint64_t token)
{
    struct given g = { .token = token };

    for (unsigned i = 0; i < p->count; i++) {
        if (votes_say(p, i, OP_OK) && p->votes[i].r.token == token) {
            g.count++;
            g.elsewhere += p->votes[i].r.elsewhere ? 1 : 0;
        }
    }
    return g;
}

static struct given most_given(const struct quorum_votes *p)
{
    struct given most = { 0 };

    for (unsigned i = 0; i < p->count; i++) {
        struct given g = { 0 };

        if (votes_say(p, i, OP_OK) && p->votes[i].r.token != 0) {
            g = given_as(p, p->votes[i].r.token);
        }
        most = g.count > most.count ? g : most;
    }
    return most;
}

/* A node that was late before may have it under an older token. */
static enum quorum_verdict tally_granted(const struct quorum_votes *p, unsigned open,
                                         struct op_result *ret)
{
    struct given most = most_given(p);

    if (most.count < p->need) {
        return most.count + open >= p->need ? TALLY_OPEN : TALLY_AGAIN;
    }
    if (most.count - most.elsewhere < p->need) {
        return TALLY_TAKE;
    }
    ret->status = OP_OK;
    ret->token = most.token;
    for (unsigned i = 0; i < p->count; i++) {
        const struct op_result *r = &p->votes[i].r;

        if (votes_say(p, i, OP_OK)) {
            ret->count = r->count > ret->count ? r->count : ret->count;
            ret->attached = ret->attached || r->attached;
        }
    }
    return TALLY_DONE;
}

static enum quorum_verdict join_acquire(const struct quorum_votes *p,
                                        struct op_result *ret)
{
    struct tally t = votes_tally(p);
    unsigned ok = t.of[OP_OK];

    if (ok >= p->need) {
        return tally_granted(p, t.open, ret);
    }
    if (ok + t.open >= p->need) {
        return TALLY_OPEN;
    }
    if (t.of[OP_OVER] > 0) {
        return tally_done(ret, votes_first(p, OP_OVER));
    }
    if (t.of[OP_ELSEWHERE] > 0) {
        return tally_done(ret, votes_first(p, OP_ELSEWHERE));
    }
    if (t.of[OP_BEHIND] > 0 && ok + t.of[OP_BEHIND] >= p->need) {
        return TALLY_AGAIN;
    }
    if (t.of[OP_WRONGTYPE] > p->count - p->need) {
        return tally_done(ret, votes_first(p, OP_WRONGTYPE));
    }
    if (t.answered >= p->need) {
        set_busy(p, ret);
        if (ret->withheld && t.open > 0) {
            return TALLY_OPEN; /* it may be the one that knows who holds it */
        }
        return ok > 0 || t.of[OP_BEHIND] > 0 ? TALLY_SPLIT : TALLY_DONE;
    }
    return t.open > 0 ? TALLY_OPEN : tally_lack(p, &t, ret);
}

/* --- RELEASE ---------------------------------------------------------------------- */

static enum quorum_verdict tally_released(const struct quorum_votes *p,
                                          enum op_status status, struct op_result *ret)
{
    *ret = *votes_first(p, status);
    for (unsigned i = 0; i < p->count; i++) {
        if (votes_say(p, i, status) && p->votes[i].r.count > ret->count) {
            ret->count = p->votes[i].r.count;
        }
    }
    ret->release.freed = status == OP_OK && ret->count == 0;
    return TALLY_DONE;
}

static enum quorum_verdict join_release(const struct quorum_votes *p,
                                        struct op_result *ret)
{
    static const enum op_status ORDER[] = { OP_OK,        OP_ENDED,     OP_ELSEWHERE,
                                            OP_WRONGTYPE, OP_AMBIGUOUS, OP_NOTHELD };
    struct tally t = votes_tally(p);
    unsigned over = t.of[OP_OK] + t.of[OP_ENDED];

    if (over < p->need && t.open > 0) {
        return TALLY_OPEN;
    }
    if (t.answered < p->need) {
        return tally_lack(p, &t, ret);
    }
    /* A hold that only a minority has was lost. But a node may be asked so late that it
     * has the next holder already, since this release freed the others. */
    if (t.of[OP_NOTHELD] >= p->need && t.of[OP_ENDED] == 0 &&
        (t.of[OP_OK] == 0 || !p->op->release.was_held)) {
        return tally_done(ret, votes_first(p, OP_NOTHELD));
    }
    for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
        if (t.of[ORDER[i]] > 0) {
            return tally_released(p, ORDER[i], ret);
        }
    }
    return tally_lack(p, &t, ret);
}

/* --- RENEW ------------------------------------------------------------------------ */

/* Returns false if it is not known yet. */
static bool join_item(const struct quorum_votes *p, size_t item, enum renew_result *ret)
{
    static const enum renew_result ORDER[] = { RENEW_ENDED, RENEW_ELSEWHERE, RENEW_GONE,
                                               RENEW_WRONGTYPE };
    unsigned of[RENEW_UNKNOWN + 1] = { 0 };
    unsigned told = 0;

    for (unsigned i = 0; i < p->count; i++) {
        if (votes_say(p, i, OP_OK) && item < p->votes[i].r.renew.count) {
            of[p->votes[i].r.renew.items[item]]++;
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

static enum quorum_verdict join_renew(const struct quorum_votes *p,
                                      struct op_result *ret, enum renew_result *items)
{
    struct tally t = votes_tally(p);
    bool all = true;

    for (size_t i = 0; i < p->op->renew.count; i++) {
        all = join_item(p, i, &items[i]) && all;
    }
    if (!all && t.open > 0) {
        return TALLY_OPEN;
    }
    ret->status = OP_OK;
    ret->renew.items = items;
    ret->renew.count = p->op->renew.count;
    return !all && t.of[OP_OK] < p->need ? tally_lack(p, &t, ret) : TALLY_DONE;
}

/* The outcome of the votes on an op about an existing hold: ATTACH, RESTORE, INSPECT.
 */

/* Whether both results are about the same hold. */
static bool same_hold(const struct op_result *a, const struct op_result *b)
{
    return a->token == b->token && span_eq(a->attach.field, b->attach.field) &&
           span_eq(a->attach.entry, b->attach.entry);
}

static bool same_holder(const struct op_result *a, const struct op_result *b)
{
    return a->inspect.field_count == b->inspect.field_count &&
           a->lock_kind == b->lock_kind &&
           (a->inspect.field_count == 0 ||
            span_eq(a->inspect.fields[0].owner, b->inspect.fields[0].owner));
}

typedef bool same_fn(const struct op_result *a, const struct op_result *b);

/* The answer of M nodes that agree: the one with the shortest of the M longest times.
 */
static const struct op_result *find_agreed(const struct quorum_votes *p, same_fn *same)
{
    for (unsigned i = 0; i < p->count; i++) {
        unsigned like = 0, longer = 0;

        if (!votes_say(p, i, OP_OK)) {
            continue;
        }
        for (unsigned j = 0; j < p->count; j++) {
            const struct op_result *r = &p->votes[j].r;

            if (votes_say(p, j, OP_OK) && same(&p->votes[i].r, r)) {
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

static enum quorum_verdict join_hold(const struct quorum_votes *p,
                                     struct op_result *ret)
{
    static const enum op_status ORDER[] = { OP_ENDED, OP_ELSEWHERE, OP_AMBIGUOUS,
                                            OP_NOTHELD, OP_WRONGTYPE };
    const struct op_result *r = find_agreed(p, same_hold);
    struct tally t = votes_tally(p);

    if (r != NULL) {
        return tally_done(ret, r);
    }
    if (t.of[OP_OK] + t.open >= p->need && t.open > 0) {
        return TALLY_OPEN;
    }
    if (t.answered - t.of[OP_OK] > p->count - p->need || t.of[OP_OK] >= p->need) {
        for (size_t i = 0; i < sizeof(ORDER) / sizeof(ORDER[0]); i++) {
            if (t.of[ORDER[i]] > 0) {
                return tally_done(ret, votes_first(p, ORDER[i]));
            }
        }
    }
    return t.open > 0 ? TALLY_OPEN : tally_lack(p, &t, ret);
}

/* Whether too few of the nodes that are up may grant the lock, should it be free. */
static bool is_withheld(const struct quorum_votes *p)
{
    unsigned voters = 0;

    for (unsigned i = 0; i < p->count; i++) {
        voters += p->votes[i].state != VOTE_SILENT && p->abstains[i] == 0;
    }
    return voters < p->need;
}

static enum quorum_verdict join_inspect(const struct quorum_votes *p,
                                        struct op_result *ret)
{
    const struct op_result *r = find_agreed(p, same_holder);
    struct tally t = votes_tally(p);

    if (r != NULL) {
        *ret = *r;
        ret->withheld = is_withheld(p);
        return TALLY_DONE;
    }
    if (t.open > 0) {
        return TALLY_OPEN;
    }
    if (t.of[OP_WRONGTYPE] > p->count - p->need) {
        return tally_done(ret, votes_first(p, OP_WRONGTYPE));
    }
    if (t.answered < p->need) {
        return tally_lack(p, &t, ret);
    }
    ret->status = OP_OK;
    ret->ttl_ms = TTL_ABSENT;
    ret->withheld = is_withheld(p);
    for (unsigned i = 0; i < p->count; i++) {
        if (votes_say(p, i, OP_OK) && p->votes[i].r.token > ret->token) {
            ret->token = p->votes[i].r.token;
            ret->inspect.who = p->votes[i].r.inspect.who;
        }
    }
    return TALLY_DONE;
}

/* --- for the coordinator ---------------------------------------------------------- */

bool quorum_tallies(enum op_kind kind)
{
    return kind == OP_ACQUIRE || kind == OP_RELEASE || kind == OP_RENEW ||
           kind == OP_ATTACH || kind == OP_RESTORE || kind == OP_INSPECT;
}

enum quorum_verdict quorum_tally(const struct quorum_votes *p, struct op_result *ret,
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
        return TALLY_LACK; /* quorum_tallies() says so */
    }
}
