/* The notices of daemons on a hold: once, in an order that makes sense, and to every
 * connection that has it. */
#include "sim/world/sim_faults.h"
#include "sim/world/sim_world.h"

#include "engine/acquire_spec.h"

#include <inttypes.h>

enum { LOOKED_MS = 700 }; /* and the answer is there */

static bool is_about(const struct record *r, const struct sim_daemon *d,
                     const struct effect_notice *n)
{
    return r->token == n->token && r->daemon == d->index && r->life == d->life &&
           rtext_is(&r->name->name, n->name);
}

static bool tells(const struct effect_notice *n, uint64_t conn)
{
    for (size_t i = 0; i < n->conn_count; i++) {
        if (n->conns[i] == conn) {
            return true;
        }
    }
    return false;
}

/* Nobody twice. */
static void check_once(struct sim *s, const struct sim_daemon *d,
                       const struct effect_notice *n)
{
    for (size_t i = 0; i < n->conn_count; i++) {
        for (size_t k = i + 1; k < n->conn_count; k++) {
            if (n->conns[i] == n->conns[k]) {
                sim_fail(s, "d%zu tells a connection twice of %.*s %" PRIu64, d->index,
                         S(n->name), n->token);
            }
        }
    }
}

/* Each holder of it, as far as clients can know, is among them. */
static void check_all(struct sim *s, const struct sim_daemon *d,
                      const struct effect_notice *n)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (is_about(r, d, n) && r->held && r->attached && !r->over && !r->moved &&
            s->now < r->own_until && !s->check.draining && !tells(n, r->conn)) {
            sim_fail(s, "d%zu does not tell the holder what became of %s %" PRIu64,
                     d->index, r->name->name.s, r->token);
        }
    }
}

/* Its request was granted again before that release, which ended the later hold. */
static bool began_anew(const struct sim *s, const struct record *r)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *later = &s->check.records[i];

        if (r->id.len > 0 && later->name == r->name && later->token > r->token &&
            rtext_is(&later->id, rtext_span(&r->id)) &&
            later->granted_ms <= r->released_ms) {
            return true;
        }
    }
    return false;
}

/* A hold that its owner released, through any daemon, ends silently at the others. A
 * hold left to run out is looked at for the last time shortly before its end. A hold
 * freed by force is lost, though its request may have begun anew and been released. */
static void check_no_loss(struct sim *s, const struct sim_daemon *d,
                          const struct effect_notice *n, const struct belief *b)
{
    if (n->kind != NOTICE_LOST || !s->orderly || b == NULL || b->excused ||
        s->now >= b->until) {
        return;
    }
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (r->released && s->now > r->released_ms + LOOKED_MS && !check_is_cut(s, r) &&
            !began_anew(s, r) && r->token == n->token &&
            rtext_is(&r->name->name, n->name)) {
            sim_fail(s, "d%zu has lost %s %" PRIu64 ", which its client released",
                     d->index, r->name->name.s, r->token);
        }
    }
}

/* An expiry is the end of a LEASE, or of what nobody is connected for any more. */
static void check_expiry(struct sim *s, const struct sim_daemon *d,
                         const struct effect_notice *n)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (n->kind == NOTICE_EXPIRED && is_about(r, d, n) && r->held && r->attached &&
            !r->fixed && !r->over && !r->moved && !s->check.draining &&
            !check_tokens_may_repeat(s)) {
            sim_fail(s, "d%zu calls the loss of %s %" PRIu64 " an expiry", d->index,
                     r->name->name.s, r->token);
        }
    }
}

static bool follows(enum told told, enum notice_kind kind)
{
    switch (kind) {
    case NOTICE_GRANTED:
        return true;
    case NOTICE_UNCERTAIN:
        return told == TOLD_CERTAIN || told == TOLD_ANYTHING;
    case NOTICE_CERTAIN:
        return told == TOLD_UNCERTAIN || told == TOLD_ANYTHING;
    case NOTICE_RELEASED:
    case NOTICE_LOST:
    case NOTICE_EXPIRED:
        return told != TOLD_OVER;
    }
    return false;
}

static void note_grant(struct sim *s, const struct sim_daemon *d,
                       const struct redis_name *n, uint64_t token)
{
    struct sim_check *c = &s->check;

    c->told_grants[c->told_grant_count++ % TOLD_GRANTS_KEPT] =
        (struct told_grant){ d->index, n, token, s->now };
}

uint64_t check_told_granted_ms(const struct sim *s, size_t daemon,
                               const struct redis_name *n, uint64_t token)
{
    const struct sim_check *c = &s->check;

    for (size_t i = 0; i < TOLD_GRANTS_KEPT && i < c->told_grant_count; i++) {
        const struct told_grant *g =
            &c->told_grants[(c->told_grant_count - 1 - i) % TOLD_GRANTS_KEPT];

        if (g->daemon == daemon && g->name == n && g->token == token) {
            return g->ms;
        }
    }
    return UINT64_MAX;
}

void check_told(struct sim *s, const struct sim_daemon *d,
                const struct effect_notice *n)
{
    static const enum told NEXT[] = {
        [NOTICE_GRANTED] = TOLD_CERTAIN,     [NOTICE_RELEASED] = TOLD_OVER,
        [NOTICE_UNCERTAIN] = TOLD_UNCERTAIN, [NOTICE_CERTAIN] = TOLD_CERTAIN,
        [NOTICE_LOST] = TOLD_OVER,           [NOTICE_EXPIRED] = TOLD_OVER,
    };
    struct redis_name *name = sim_redis_name(&s->redis, n->name);
    struct belief *b = belief_get(s, d->index, name, n->token);
    bool named = n->kind != NOTICE_GRANTED && n->kind != NOTICE_RELEASED;

    if (!named && n->conn_count > 0) {
        sim_fail(s, "d%zu names connections, where nobody is told", d->index);
    }
    if (n->kind == NOTICE_GRANTED) {
        note_grant(s, d, name, n->token);
    }
    if (check_tokens_may_repeat(s)) {
        return; /* one token may stand for two holds */
    }
    if (b != NULL && !follows(b->told, n->kind)) {
        sim_fail(s, "d%zu tells what cannot follow of %.*s %" PRIu64, d->index,
                 S(n->name), n->token);
    }
    check_no_loss(s, d, n, b);
    check_expiry(s, d, n);
    if (b != NULL) {
        b->told = NEXT[n->kind];
    }
    if (named) {
        check_once(s, d, n);
        check_all(s, d, n);
    }
}

void check_told_certain(struct sim *s, const struct sim_daemon *d,
                        const struct record *r)
{
    const struct belief *b = belief_get(s, r->daemon, r->name, r->token);

    if (b != NULL && b->told == TOLD_UNCERTAIN && !d->stopping && s->now < b->until &&
        !check_tokens_may_repeat(s)) {
        sim_fail(s, "d%zu: %s %" PRIu64 " was confirmed, and nobody said so", d->index,
                 r->name->name.s, r->token);
    }
}

void check_told_gone(struct sim *s, const struct sim_conn *c)
{
    struct sim_check *k = &s->check;

    if (c->ask.token != 0) {
        k->gone[k->gone_count++ % GONE_KEPT] = (struct told_gone){
            sim_redis_name(&s->redis, rtext_span(&c->ask.name)),
            c->ask.token,
            s->failovers,
        };
    }
}

/* A client told so after the last failover can rely on it. (A daemon without pub/sub
 * does not know of others, and one that starts later knows of no failover.) */
void check_not_told_gone(struct sim *s, const struct flight *f)
{
    const unsigned harmful =
        FAULT_SUB | FAULT_LOSS | FAULT_DEL | FAULT_CLOCK | FAULT_DEATH | FAULT_STRING;
    const struct sim_check *k = &s->check;

    if (s->failovers == 0 || (s->profile.faults & harmful) != 0 ||
        check_tokens_may_repeat(s) ||
        field_kind(f->op.restore.claim.field) == OWNER_REST) {
        return;
    }
    for (size_t i = 0; i < GONE_KEPT && i < k->gone_count; i++) {
        const struct told_gone *g = &k->gone[i];

        if (g->token == f->op.restore.token && g->failovers == s->failovers &&
            rtext_is(&g->name->name, f->op.name)) {
            sim_fail(s,
                     "d%zu puts %s %" PRIu64 " back, of which its client was told that "
                     "it is not there",
                     f->daemon, g->name->name.s, g->token);
        }
    }
}
