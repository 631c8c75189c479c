/* The beliefs that daemons may have, going by what Redis told them. */
#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BELIEFS_KEPT_MS = 60000 };

size_t check_name_index(struct sim *s, const struct redis_name *n)
{
    return (size_t)(n - s->redis.names);
}

struct belief *belief_get(struct sim *s, size_t daemon, const struct redis_name *n,
                          uint64_t token)
{
    struct sim_check *c = &s->check;

    for (size_t i = 0; i < c->belief_count; i++) {
        struct belief *b = &c->beliefs[i];

        if (b->token == token && b->name == n && b->daemon == daemon &&
            b->life == s->daemons[daemon].life) {
            return b;
        }
    }
    return NULL;
}

static void forget_old(struct sim *s)
{
    struct sim_check *c = &s->check;

    for (size_t i = c->belief_count; i-- > 0;) {
        if (c->beliefs[i].until + BELIEFS_KEPT_MS < s->now) {
            c->beliefs[i] = c->beliefs[--c->belief_count];
        }
    }
}

static struct belief *belief_make(struct sim *s, size_t daemon, struct redis_name *n,
                                  uint64_t token)
{
    struct sim_check *c = &s->check;
    struct belief *b = belief_get(s, daemon, n, token);

    if (b != NULL) {
        return b;
    }
    if (c->belief_count == c->belief_room) {
        forget_old(s);
    }
    if (c->belief_count == c->belief_room) {
        c->belief_room = c->belief_room == 0 ? 16 : c->belief_room * 2;
        c->beliefs = xrealloc(c->beliefs, c->belief_room * sizeof(*c->beliefs));
    }
    b = &c->beliefs[c->belief_count++];
    memset(b, 0, sizeof(*b));
    b->daemon = daemon;
    b->life = s->daemons[daemon].life;
    b->name = n;
    b->token = token;
    return b;
}

/* A script that left `lease_ms` on the hold was confirmed. */
static void confirm(struct sim *s, struct belief *b, const struct flight *f,
                    uint64_t lease_ms, bool exact)
{
    uint64_t full = f->sent_ms + lease_ms;
    uint64_t until = full - lease_ms / 100;

    until = lease_ms < 50 ? f->sent_ms : until - 50;
    if (b->excused && b->until > full) {
        b->until = full; /* whatever it was before, Redis may have no more */
    }
    b->sent_ms = f->sent_ms > b->sent_ms ? f->sent_ms : b->sent_ms;
    b->full_until = exact || full > b->full_until ? full : b->full_until;
    b->until = exact || until > b->until ? until : b->until;
    b->heard_ms = s->now;
    b->excused = f->ran <= s->check.external[check_name_index(s, b->name)] ||
                 f->ran <= b->displaced_at || check_is_displaced(s, b, f->ran);
    b->rolled = b->rolled && b->excused;
}

/* Uncertain holds are certain again once Redis confirmed them, asked after its clock
 * jumped, and heard before the lease that was confirmed is over. */
static void certain_again(struct sim *s, const struct belief *b, const struct flight *f)
{
    if (f->sent <= s->daemons[b->daemon].jumped || s->now >= b->until) {
        return;
    }
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (r->token == b->token && r->name == b->name && r->daemon == b->daemon &&
            r->life == b->life && !r->moved) {
            r->certain = true;
        }
    }
}

static void believe(struct sim *s, const struct flight *f, struct span name,
                    uint64_t token, uint64_t lease_ms, bool exact)
{
    struct redis_name *n = sim_redis_name(&s->redis, name);
    struct belief *b = belief_make(s, f->daemon, n, token);

    if (b->ran == 0) {
        b->sent = f->sent;
        b->ran = f->ran;
        b->minted = f->minted;
    }
    confirm(s, b, f, lease_ms, exact);
    b->told = TOLD_ANYTHING;
}

/* A client came back to the hold. Its terms count from now on, and what was to renew
 * the hold for KEEP until then may be wanted no more. */
static void believe_attached(struct sim *s, const struct flight *f)
{
    const struct op_result *r = &f->reply.result;
    struct redis_name *n = sim_redis_name(&s->redis, f->op.name);

    believe(s, f, f->op.name, r->token, (uint64_t)r->ttl_ms, f->op.attach.exact);
    belief_get(s, f->daemon, n, r->token)->renewing = 0;
}

/* Another daemon renews that request from now on, also if it was granted anew there.
 * Where something from outside ended the hold just after its client had come here, the
 * daemon from which the client came may have put the hold back (latchd-promises(7),
 * LIMITS). */
static void pass_on(struct sim *s, const struct belief *b)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (r->token == b->token && r->name == b->name && r->daemon == b->daemon &&
            (r->id.len > 0 || b->excused)) {
            r->moved = true;
        }
    }
}

struct belief *belief_from_loan(struct sim *s, size_t daemon, struct redis_name *n,
                                uint64_t token)
{
    const struct sim_loan *l = loan_of(s, daemon, n, token);
    struct flight f = { .daemon = daemon };
    struct belief *b;

    if (l == NULL) {
        return NULL;
    }
    b = belief_make(s, daemon, n, token);
    if (b->ran == 0) {
        b->sent = b->ran = ++s->happened;
        b->minted = true;
        b->told = TOLD_ANYTHING;
        s->check.grants_from_loans++;
        check_lends(s, l, token);
    }
    f.sent_ms = l->sent_ms;
    f.ran = l->ran;
    confirm(s, b, &f, l->lease_ms, false);
    return b;
}

static void hear_renewal(struct sim *s, const struct flight *f, size_t i)
{
    const struct renew_item *item = &f->op.renew.items[i];
    struct redis_name *n = sim_redis_name(&s->redis, item->name);
    struct belief *b = belief_get(s, f->daemon, n, item->token);

    if (b == NULL) {
        return;
    }
    if (f->reply.script.items[i] == RENEW_ELSEWHERE) {
        b->renewing = 0;
        pass_on(s, b);
    } else if (f->reply.result.status != OP_OK) {
        return; /* too few replicas have it: nothing is confirmed */
    }
    b->renewing = 0;
    if (f->reply.script.items[i] == RENEW_OK) {
        confirm(s, b, f, item->lease_ms, item->exact);
        certain_again(s, b, f);
    }
}

static void hear_restored(struct sim *s, const struct flight *f)
{
    struct redis_name *n = sim_redis_name(&s->redis, f->op.name);
    struct belief *b = belief_get(s, f->daemon, n, f->op.restore.token);

    if (b != NULL) {
        b->renewing = 0;
        confirm(s, b, f, f->op.restore.claim.lease_ms, false);
        certain_again(s, b, f);
    }
}

static void note_lent(struct sim *s, const struct sim_daemon *d, struct span name,
                      const struct op_result *r)
{
    if (r->status == OP_BUSY && r->lent) {
        s->check
            .lent_ms[d->index][check_name_index(s, sim_redis_name(&s->redis, name))] =
            s->now;
    }
}

void check_result(struct sim *s, struct sim_daemon *d, struct flight *f)
{
    const struct op_result *r = &f->reply.result;

    check_rest_heard(s, f);
    if (f->op.kind == OP_ACQUIRE) {
        note_lent(s, d, f->op.name, r);
    }
    for (size_t i = 0; f->op.kind == OP_ACQUIRE_BATCH && i < r->batch.count; i++) {
        note_lent(s, d, f->op.batch.items[i].name, &r->batch.results[i]);
    }
    if (r->status != OP_OK && (r->status != OP_NOREPLICAS || f->op.kind != OP_RENEW)) {
        return;
    }
    switch (f->op.kind) {
    case OP_ACQUIRE:
        believe(s, f, f->op.name, r->token, f->op.acquire.claim.lease_ms, false);
        check_lent(s, f, f->op.name, r, f->op.acquire.claim.lease_ms);
        break;
    case OP_ACQUIRE_BATCH:
        for (size_t i = 0; i < r->batch.count; i++) {
            const struct batch_item *item = &f->op.batch.items[i];
            const struct op_result *one = &r->batch.results[i];

            if (one->status == OP_OK) {
                believe(s, f, item->name, one->token, item->claim.lease_ms, false);
                check_lent(s, f, item->name, one, item->claim.lease_ms);
            }
        }
        break;
    case OP_RELEASE:
        if (r->moved) {
            believe(s, f, f->op.name, r->token, f->op.release.next.lease_ms, false);
            check_lent(s, f, f->op.name, r, f->op.release.next.lease_ms);
        }
        break;
    case OP_ATTACH:
        believe_attached(s, f);
        break;
    case OP_RENEW:
        for (size_t i = 0; i < f->op.renew.count && !f->op.renew.loans; i++) {
            hear_renewal(s, f, i);
        }
        if (f->op.renew.loans) {
            check_loans_renewed(s, f);
        }
        break;
    case OP_RESTORE:
        hear_restored(s, f);
        break;
    case OP_INSPECT:
    case OP_LIMIT:
    case OP_SCAN:
    case OP_LATCH:
    case OP_QUEUE:
    case OP_LEAVE:
        break;
    }
}

void check_op_sent(struct sim *s, struct sim_daemon *d, struct flight *f)
{
    const struct op *op = &f->op;

    for (size_t i = 0; op->kind == OP_RENEW && i < op->renew.count; i++) {
        struct redis_name *n = sim_redis_name(&s->redis, op->renew.items[i].name);
        struct belief *b = belief_get(s, d->index, n, op->renew.items[i].token);

        if (b != NULL && op->renew.items[i].lease_ms > 1) { /* else it only looks */
            b->renewing = b->renewing == 0 ? s->now : b->renewing;
            b->wanted = s->now + op->renew.items[i].lease_ms;
        }
    }
    check_claims(s, d, op);
    if (op->kind == OP_ACQUIRE && op_claim(op)->lease_ms == 0) {
        sim_fail(s, "op %" PRIu64 " asks for a lease of 0", op->id);
    }
}

void check_freed(struct sim *s, const struct redis_message *m)
{
    const struct redis_name *n = m->name;

    /* Redisson's plain locks do not tell its fair waiters, and those have to be waited
     * for. */
    if (m->lock_class == CLASS_PLAIN && m->member.len == 0 && n->queue_count > 0 &&
        !span_starts(rtext_span(&n->queue[0]), SPAN("latchd:"))) {
        return;
    }
    s->check.freed_ms[check_name_index(s, n)] = s->now;
}

static void check_taken(struct sim *s, const struct flight *f, struct span name,
                        const struct op_result *res, const struct claim *cl)
{
    if (res->status == OP_OK) {
        struct redis_name *n = sim_redis_name(&s->redis, name);

        s->check.freed_ms[check_name_index(s, n)] = 0;
        check_keeper(s, f, name, res, cl);
    }
}

/* Nothing that others have was touched. */
static void check_names_of(struct sim *s, struct flight *f)
{
    if (f->op.name.len > 0) {
        struct redis_name *n = sim_redis_name(&s->redis, f->op.name);

        check_entries(s, n);
        check_queue_after(s, n, f);
        foreign_check(s, n, f->daemon);
    }
    for (size_t i = 0; f->op.kind == OP_ACQUIRE_BATCH && i < f->op.batch.count; i++) {
        foreign_check(s, sim_redis_name(&s->redis, f->op.batch.items[i].name),
                      f->daemon);
    }
    for (size_t i = 0; f->op.kind == OP_RENEW && i < f->op.renew.count; i++) {
        foreign_check(s, sim_redis_name(&s->redis, f->op.renew.items[i].name),
                      f->daemon);
    }
}

/* With nothing wrong but failovers, what is to be put back is only in the way of who
 * was granted later; with one daemon nobody can have been. */
static void check_restored(struct sim *s, const struct flight *f)
{
    if (f->op.kind == OP_RESTORE && f->reply.result.status == OP_NOTHELD &&
        s->profile.faults == FAULT_FAILOVER &&
        (s->daemon_count == 1 ||
         sim_redis_name(&s->redis, f->op.name)->fence_token < f->op.restore.token)) {
        sim_fail(s, "%.*s %" PRIu64 " cannot be put back, but nobody else was granted",
                 S(f->op.name), f->op.restore.token);
    }
}

void check_op_ran(struct sim *s, struct flight *f)
{
    const struct op_result *res = &f->reply.result;
    bool ok = res->status == OP_OK;

    if (res->status == OP_UPGRADE) {
        const struct redis_name *n = sim_redis_name(&s->redis, f->op.name);

        s->check.upgrade_ms[check_name_index(s, n)] = s->now;
    }
    if (f->op.kind == OP_ACQUIRE) {
        check_taken(s, f, f->op.name, res, op_claim(&f->op));
    } else if (ok && (f->op.kind == OP_ATTACH || res->moved)) {
        check_keeper(s, f, f->op.name, res, op_claim(&f->op));
    }
    for (size_t i = 0; f->op.kind == OP_ACQUIRE_BATCH && ok && i < res->batch.count;
         i++) {
        check_taken(s, f, f->op.batch.items[i].name, &res->batch.results[i],
                    &f->op.batch.items[i].claim);
    }
    if (f->op.kind == OP_RELEASE && f->op.release.force) {
        if (s->check.force_asked == 0) {
            sim_fail(s, "op %" PRIu64 " frees by force, and nobody asked for it",
                     f->op.id);
        }
        if (ok) {
            check_external(s, sim_redis_name(&s->redis, f->op.name));
        }
    }
    check_restored(s, f);
    if (f->op.kind == OP_RESTORE && ok && res->restore.restored) {
        check_displaced(s, sim_redis_name(&s->redis, f->op.name), f->op.restore.token);
        check_not_told_gone(s, f);
    }
    check_names_of(s, f);
    check_rest_ran(s, f); /* after it is known which op made the token */
}

bool record_believed(const struct sim *s, const struct record *r)
{
    return !s->check.draining && r->held && r->certain && r->attached && !r->over &&
           !r->moved && s->now < r->own_until && s->daemons[r->daemon].engine != NULL &&
           s->daemons[r->daemon].life == r->life;
}

void check_daemon_died(struct sim *s, struct sim_daemon *d)
{
    struct sim_check *c = &s->check;

    check_rest_daemon_died(s, d);
    for (size_t i = c->belief_count; i-- > 0;) {
        if (c->beliefs[i].daemon == d->index) {
            c->beliefs[i] = c->beliefs[--c->belief_count];
        } else {
            /* Its successor knows of no failover, but of a restart. */
            c->beliefs[i].rolled = c->beliefs[i].rolled && c->beliefs[i].awaited;
        }
    }
    memset(c->last_of[d->index], 0, sizeof(c->last_of[d->index]));
}

void check_fini(struct sim_check *c)
{
    free(c->beliefs);
    free(c->records);
}
