/* Cycles of named owners that wait for each other: DEADLOCK where there is one, and
 * nowhere else. */
#include "sim/world/sim_world.h"

#include <inttypes.h>

enum { DEPTH_MAX = 6 };

/* The waits that count. Strict: only what one daemon must know for sure; else whatever
 * anybody might take for true. */
struct view {
    struct sim *s;
    bool strict;
    size_t daemon;
    uint64_t since; /* strict: all of it was there before */
    struct span target;
};

static bool in_the_way(enum lock_kind waits, enum lock_kind holds)
{
    return waits != KIND_READ || holds != KIND_READ;
}

static bool counts_as_wait(const struct view *v, const struct sim_conn *c)
{
    if (!c->open || !c->asking || c->ask.owner.len == 0) {
        return false;
    }
    if (!v->strict) {
        return c->ask.kind == ASK_LOCK || c->ask.kind == ASK_MLOCK;
    }
    return c->ask.kind == ASK_LOCK && (c->ask.has & (OPT_WAIT | OPT_QUEUE)) == 0 &&
           c->daemon == v->daemon && c->asked_ms < v->since;
}

static bool counts_as_hold(const struct view *v, const struct record *r)
{
    if (r->owner.len == 0) {
        return false;
    }
    return !v->strict || (record_believed(v->s, r) && r->daemon == v->daemon &&
                          r->granted_ms < v->since && !check_is_vague(v->s, r) &&
                          r->own_until == UINT64_MAX);
}

static bool owner_waits_back(const struct view *v, struct span owner, size_t depth);

static bool holds_any(const struct view *v, const struct redis_name *n,
                      struct span owner)
{
    for (size_t i = 0; i < v->s->check.record_count; i++) {
        const struct record *r = &v->s->check.records[i];

        if (r->name == n && r->held && rtext_is(&r->owner, owner)) {
            return true;
        }
    }
    return false;
}

static struct span field_owner(const struct redis_hash_field *f)
{
    size_t len = f->owner.len;

    return span_of(f->owner.s, len > 6 && strcmp(f->owner.s + len - 6, ":write") == 0
                                   ? len - 6
                                   : len);
}

/* The same by what Redis has: grants that no client heard of, or whose client left. */
static bool redis_leads_back(const struct view *v, const struct redis_name *n,
                             struct span owner, size_t depth)
{
    for (size_t i = 0; i < n->field_count; i++) {
        struct span holder = field_owner(&n->fields[i]);

        if (!span_eq(holder, owner) &&
            (span_eq(holder, v->target) || owner_waits_back(v, holder, depth + 1))) {
            return true;
        }
    }
    return false;
}

/* Does a wait of `owner` for that name lead to the target? */
static bool name_leads_back(const struct view *v, const struct redis_name *n,
                            struct span owner, enum lock_kind kind, size_t depth)
{
    const struct sim_check *ck = &v->s->check;

    if (v->strict && holds_any(v, n, owner)) {
        return false; /* it may not have to wait at all */
    }
    for (size_t i = 0; i < ck->record_count; i++) {
        const struct record *r = &ck->records[i];

        if (r->name == n && counts_as_hold(v, r) && !rtext_is(&r->owner, owner) &&
            (!v->strict || in_the_way(kind, r->kind)) &&
            (rtext_is(&r->owner, v->target) ||
             owner_waits_back(v, rtext_span(&r->owner), depth + 1))) {
            return true;
        }
    }
    return !v->strict && redis_leads_back(v, n, owner, depth);
}

static bool wait_leads_back(const struct view *v, const struct sim_conn *c,
                            size_t depth)
{
    for (size_t i = 0; i < v->s->redis.name_count; i++) {
        const struct redis_name *n = &v->s->redis.names[i];

        if (ask_wants(&c->ask, n) &&
            name_leads_back(v, n, rtext_span(&c->ask.owner), c->ask.lock_kind, depth)) {
            return true;
        }
    }
    return false;
}

static bool owner_waits_back(const struct view *v, struct span owner, size_t depth)
{
    for (size_t i = 0; i < v->s->clients.count && depth < DEPTH_MAX; i++) {
        const struct sim_conn *c = &v->s->clients.conns[i];

        if (counts_as_wait(v, c) && rtext_is(&c->ask.owner, owner) &&
            wait_leads_back(v, c, depth)) {
            return true;
        }
    }
    return false;
}

/* It reads already, and asks to write. */
static bool upgrades(struct sim *s, const struct sim_conn *c)
{
    const struct redis_name *n = sim_redis_name(&s->redis, rtext_span(&c->ask.name));
    struct span owner = rtext_span(&c->ask.owner);
    uint64_t upgrade_ms = s->check.upgrade_ms[check_name_index(s, n)];
    bool reads = holds_any(&(struct view){ .s = s }, n, owner);

    for (size_t i = 0; i < n->field_count && !reads; i++) {
        reads = span_eq(field_owner(&n->fields[i]), owner);
    }
    /* The same ID may have been asked for before, and found the owner reading. */
    reads = reads || (c->ask.id.len > 0 ? upgrade_ms != 0 : upgrade_ms >= c->asked_ms);
    return c->ask.lock_kind == KIND_WRITE && reads;
}

/* A daemon may believe in what somebody ended behind its back. */
static bool something_outside(const struct sim *s)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (s->check.external[i] != 0) {
            return true;
        }
    }
    return false;
}

/* It names an entry of that owner by its ID. */
static bool is_entry_of(const struct sim *s, const struct vague *v, struct span owner)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (v->id.len > 0 && rtext_is(&r->id, rtext_span(&v->id)) &&
            rtext_is(&r->owner, owner)) {
            return true;
        }
    }
    return false;
}

/* The daemon believes in a hold that was granted for a client which had gone, and which
 * another daemon was asked for since. */
static bool is_believed_in(struct sim *s, size_t daemon, const struct record *r)
{
    const struct belief *b = belief_get(s, daemon, r->name, r->token);

    return r->daemon != daemon && b != NULL && b->told != TOLD_OVER &&
           s->now < b->until;
}

/* Another daemon keeps it, and may have ended it since: the next renewal tells. */
static bool is_kept_elsewhere(struct sim *s, const struct sim_conn *c)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (rtext_is(&r->owner, rtext_span(&c->ask.owner)) &&
            (r->moved || r->passed || record_moved(s, r) ||
             is_believed_in(s, c->daemon, r))) {
            return true;
        }
    }
    return false;
}

/* RENEW and UNLOCK of one owner cross each other: the next renewal tells. */
static bool was_renewed_or_ended(const struct sim *s, const struct sim_conn *c)
{
    for (size_t i = 0; i < s->check.vague_count; i++) {
        const struct vague *v = &s->check.vague[i];

        if (s->now < v->until && (rtext_is(&v->owner, rtext_span(&c->ask.owner)) ||
                                  is_entry_of(s, v, rtext_span(&c->ask.owner)))) {
            return true;
        }
    }
    return false;
}

void check_deadlock(struct sim *s, const struct sim_conn *c)
{
    struct view v = { .s = s, .target = rtext_span(&c->ask.owner) };

    s->check.deadlocks++;
    if (something_outside(s) || was_renewed_or_ended(s, c) || is_kept_elsewhere(s, c)) {
        return;
    }
    if (c->ask.owner.len == 0 || (!upgrades(s, c) && !wait_leads_back(&v, c, 0))) {
        sim_fail(s, "DEADLOCK, but there is no cycle: %s", ask_text(&c->ask));
    }
}

/* The cycle that this wait closes, if it does, of what was there before it. */
static bool closes_cycle(struct sim *s, const struct sim_conn *c)
{
    struct view v = { s, true, c->daemon, c->asked_ms, rtext_span(&c->ask.owner) };

    return c->open && c->asking && c->ask.kind == ASK_LOCK && c->ask.owner.len > 0 &&
           c->ask.id.len == 0 && (c->ask.has & (OPT_WAIT | OPT_QUEUE)) == 0 &&
           wait_leads_back(&v, c, 0);
}

void check_cycle_asked(struct sim *s, struct sim_conn *c)
{
    c->closes_cycle = s->calm && closes_cycle(s, c);
}

void check_cycles(struct sim *s, const struct sim_daemon *d)
{
    uint64_t patience = 10 * s->profile.rtt_ms + SIM_TICK_MS;

    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (c->closes_cycle && c->daemon == d->index &&
            s->now > c->asked_ms + patience && closes_cycle(s, c)) {
            sim_fail(s, "c%zu waits in a cycle: %s", i, ask_text(&c->ask));
        }
    }
}
