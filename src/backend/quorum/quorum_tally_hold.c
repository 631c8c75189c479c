/* The outcome of the votes on an op about an existing hold: ATTACH, RESTORE, INSPECT.
 */
#include "backend/quorum/quorum_tally.h"

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

enum quorum_verdict coordinator_join_hold(const struct quorum_votes *p,
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

enum quorum_verdict coordinator_join_inspect(const struct quorum_votes *p,
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
    ret->ttl_ms = -2;
    ret->withheld = is_withheld(p);
    for (unsigned i = 0; i < p->count; i++) {
        if (votes_say(p, i, OP_OK) && p->votes[i].r.token > ret->token) {
            ret->token = p->votes[i].r.token;
            ret->attach.field = p->votes[i].r.attach.field;
        }
    }
    return TALLY_DONE;
}
