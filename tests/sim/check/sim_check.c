/* The answers to clients, against what daemons may believe and Redis knows. */
#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"

#include <inttypes.h>

/* The connection has a grant of the same request: what a client says of the request is
 * about all that the request has, whichever daemon granted it. */
static bool has_same_request(const struct sim *s, const struct record *r,
                             const struct sim_conn *c)
{
    for (size_t i = 0; i < s->check.record_count && r->id.len > 0; i++) {
        const struct record *other = &s->check.records[i];

        if (other->name == r->name && (other->conn_bits & conn_bit(c)) != 0 &&
            rtext_is(&other->id, rtext_span(&r->id))) {
            return true;
        }
    }
    return false;
}

/* Does UNLOCK or RENEW in these words mean that record, perhaps among others? */
static bool means(const struct sim *s, const struct record *r, const struct sim_conn *c)
{
    const struct ask *ask = &c->ask;

    if (!rtext_is(&r->name->name, rtext_span(&ask->name))) {
        return false;
    }
    if (ask->value.len > 0) {
        return rtext_is(&r->value, rtext_span(&ask->value));
    }
    if (ask->id.len == 0 && ask->owner.len == 0 && ask->token == 0) {
        return (r->conn_bits & conn_bit(c)) != 0 || has_same_request(s, r, c);
    }
    if (ask->lock_kind != KIND_PLAIN && ask->kind != ASK_CANCEL &&
        r->kind != KIND_PLAIN && ask->lock_kind != r->kind) {
        return false;
    }
    return (ask->id.len == 0 || rtext_is(&r->id, rtext_span(&ask->id))) &&
           (ask->owner.len == 0 || rtext_is(&r->owner, rtext_span(&ask->owner))) &&
           (ask->token == 0 || r->token == ask->token);
}

bool check_means_id(const struct sim *s, const struct sim_conn *c, struct span id)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (rtext_is(&r->id, id) && means(s, r, c)) {
            return true;
        }
    }
    return false;
}

/* Its ID was released before: for longer than a mark of that lives, the daemon that did
 * it takes it for over. */
static bool is_anew(const struct sim *s, const struct record *r)
{
    for (size_t i = 0; i < s->check.record_count && r->id.len > 0; i++) {
        const struct record *other = &s->check.records[i];

        if (other != r && other->name == r->name && other->released &&
            rtext_is(&other->id, rtext_span(&r->id))) {
            return true;
        }
    }
    return false;
}

/* A RENEW of it is under way at another daemon, which keeps it from then on. */
static bool is_moving(const struct sim *s, const struct record *r)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (c->open && c->asking && c->ask.kind == ASK_RENEW &&
            c->daemon != r->daemon && means(s, r, c)) {
            return true;
        }
    }
    return false;
}

/* A RENEW of it was asked for at another daemon after this one. Though its client may
 * have gone since, that daemon keeps the hold once the RENEW has run. */
static bool is_renewed_later(const struct record *r, const struct sim_conn *c)
{
    return r->renewed_ms > c->asked_ms && r->renewed_at != c->daemon;
}

static bool sure(struct sim *s, const struct record *r, uint64_t *retuntil)
{
    struct belief *b = belief_get(s, r->daemon, r->name, r->token);

    if (!record_believed(s, r) || b == NULL || b->excused || r->owner.len > 0) {
        return false;
    }
    if (s->daemon_count > 1 && (s->failovers > 0 ? r->id.len > 0 : is_anew(s, r))) {
        return false; /* its ended mark is gone: over at one, begun anew at another */
    }
    *retuntil = b->until;
    return s->now < b->until;
}

static void remember_vague(struct sim *s, const struct sim_conn *c)
{
    struct sim_check *ck = &s->check;

    bool ends = c->ask.kind == ASK_UNLOCK || c->ask.kind == ASK_CANCEL ||
                (c->ask.kind == ASK_RENEW && c->ask.lease_ms > 0);

    if (!ends) {
        return;
    }
    for (size_t i = ck->vague_count; i-- > 0;) {
        if (ck->vague[i].until <= s->now) {
            ck->vague[i] = ck->vague[--ck->vague_count];
        }
    }
    if (ck->vague_count < VAGUE_MAX) {
        ck->vague[ck->vague_count++] =
            (struct vague){ c->ask.name, c->ask.owner, c->ask.id, c->ask.value,
                            c->id,       c->call,      UINT64_MAX };
    }
}

/* It has run, and does not run again. */
static void forget_vague(struct sim *s, const struct sim_conn *c)
{
    struct sim_check *ck = &s->check;

    for (size_t i = ck->vague_count; i-- > 0;) {
        if (ck->vague[i].conn == c->id && ck->vague[i].call == c->call) {
            ck->vague[i].until = s->now + VAGUE_MS;
        }
    }
}

bool check_is_vague(const struct sim *s, const struct record *r)
{
    for (size_t i = 0; i < s->check.vague_count; i++) {
        const struct vague *v = &s->check.vague[i];

        bool fits = v->value.len > 0   ? rtext_is(&r->value, rtext_span(&v->value))
                    : v->id.len > 0    ? rtext_is(&r->id, rtext_span(&v->id))
                    : v->owner.len > 0 ? rtext_is(&r->owner, rtext_span(&v->owner))
                                       : r->owner.len > 0 || r->id.len > 0;

        if (fits && s->now < v->until &&
            rtext_is(&v->name, rtext_span(&r->name->name))) {
            return true;
        }
    }
    return false;
}

/* Whether its RENEW, which is under way, may leave the hold a shorter lease. */
static bool is_cutting(const struct sim *s, const struct sim_conn *c,
                       const struct record *r)
{
    return c->open && c->asking && c->ask.kind == ASK_RENEW && c->ask.lease_ms > 0 &&
           means(s, r, c);
}

bool check_is_cut(const struct sim *s, const struct record *r)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        if (is_cutting(s, &s->clients.conns[i], r)) {
            return true;
        }
    }
    return false;
}

/* A bare UNLOCK of a hold with an ID goes by that ID. Where the hold was taken away
 * from outside, and its request granted anew through another daemon, the UNLOCK ends
 * the later hold: UNLOCK in latchd-protocol(7) says so. */
static bool ends_anew(struct sim *s, const struct sim_conn *c, const struct record *r)
{
    bool bare = c->ask.id.len == 0 && c->ask.owner.len == 0 && c->ask.token == 0;

    for (size_t i = 0; bare && r->id.len > 0 && i < s->check.record_count; i++) {
        const struct record *o = &s->check.records[i];
        const struct belief *b;

        if (o->name != r->name || o->token >= r->token || o->daemon != c->daemon ||
            !rtext_is(&o->id, rtext_span(&r->id)) ||
            !rtext_is(&o->owner, rtext_span(&r->owner)) || !means(s, o, c)) {
            continue;
        }
        b = belief_get(s, o->daemon, o->name, o->token);
        if (b != NULL && b->excused && !b->rolled) {
            return true;
        }
    }
    return false;
}

/* Whether what is asked names the hold so that the daemon must find it. A value hold's
 * token is for a daemon that knows the hold. */
static bool is_named(const struct sim *s, const struct sim_conn *c,
                     const struct record *r)
{
    bool known = c->daemon == r->daemon && s->daemons[c->daemon].life == r->life;

    if (!known && check_stands_in_loan(s, r)) {
        return false;
    }
    return c->ask.id.len > 0 || (c->ask.token != 0 && (r->value.len == 0 || known));
}

/* Until when the hold lasts whatever becomes of the RENEWs that are under way. Redis
 * may run the one with the shortest lease long before the others. */
static uint64_t uncut_until(const struct sim *s, const struct record *r)
{
    uint64_t until = UINT64_MAX;

    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (is_cutting(s, c, r)) {
            uint64_t end = c->asked_ms + c->ask.lease_ms / 2;

            until = end < until ? end : until;
        }
    }
    return until;
}

void check_asked(struct sim *s, struct sim_conn *c)
{
    const struct ask *ask = &c->ask;

    remember_vague(s, c);
    if (ask->kind == ASK_LOCK || ask->kind == ASK_MLOCK) {
        check_id_asked(s, c);
        s->check.asked_ids[s->check.asked_id_count++ % ASKED_IDS_MAX] =
            (struct asked_id){ ask->id, c->daemon, s->daemons[c->daemon].life };
    }
    s->check.force_asked += ask->kind == ASK_FORCE ? 1 : 0;
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (ask->kind == ASK_UNLOCK && means(s, r, c)) {
            c->expect_held = is_named(s, c, r) && !check_is_cut(s, r) &&
                             sure(s, r, &c->expect_until);
            r->over = true;
        } else if (ask->kind == ASK_UNLOCK && ends_anew(s, c, r)) {
            r->over = true;
        } else if (ask->kind == ASK_RENEW && means(s, r, c)) {
            c->expect_held =
                is_named(s, c, r) && !r->over && sure(s, r, &c->expect_until);
            if (uncut_until(s, r) < c->expect_until) {
                c->expect_until = uncut_until(s, r);
            }
            r->fixed = r->fixed || ask->lease_ms > 0;
            r->moved = r->moved || ask->lease_ms > 0 || c->daemon != r->daemon;
            if (r->renewed_ms == s->now && r->renewed_at != c->daemon) {
                r->tied_ms = s->now;
            }
            r->renewed_ms = s->now;
            r->renewed_at = c->daemon;
        } else if (ask_wants(ask, r->name) && ask->id.len > 0 &&
                   c->daemon != r->daemon && rtext_is(&r->id, rtext_span(&ask->id))) {
            r->moved = true;
        } else if (ask->kind == ASK_CANCEL && means(s, r, c)) {
            r->moved = true; /* it gives back a grant that was kept */
        }
    }
}

void check_closed(struct sim *s, struct sim_conn *c)
{
    check_many(s, c);
    for (size_t i = 0; i < s->clients.count; i++) {
        s->clients.conns[i].expect_held = false; /* GRACE 0 may end what they mean */
    }
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        r->conn_bits &= ~conn_bit(c); /* who connects next may get that bit */
        r->attached = r->attached && r->conn != c->id;
    }
}

void check_notice(struct sim *s, struct sim_daemon *d, const struct effect_notice *n)
{
    static const char *const WORDS[] = {
        [NOTICE_GRANTED] = "granted",     [NOTICE_RELEASED] = "released",
        [NOTICE_UNCERTAIN] = "uncertain", [NOTICE_CERTAIN] = "certain again",
        [NOTICE_LOST] = "lost",           [NOTICE_EXPIRED] = "expired",
    };

    TRACE(s, "d%zu: notice %s %.*s %" PRIu64, d->index, WORDS[n->kind], S(n->name),
          n->token);
    check_told(s, d, n);
    s->check.lost += n->kind == NOTICE_LOST ? 1 : 0;
    s->check.expired += n->kind == NOTICE_EXPIRED ? 1 : 0;
    s->check.uncertain += n->kind == NOTICE_UNCERTAIN ? 1 : 0;
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (r->token != n->token || !rtext_is(&r->name->name, n->name) ||
            r->daemon != d->index || r->life != d->life) {
            continue;
        }
        if (n->kind == NOTICE_RELEASED && record_believed(s, r) && r->owner.len == 0 &&
            !check_tokens_may_repeat(s)) { /* else its UNLOCK may mean another one */
            sim_fail(s, "d%zu released %s %" PRIu64 ", which its client still has",
                     d->index, r->name->name.s, r->token);
        } else if (n->kind == NOTICE_UNCERTAIN) {
            r->certain = false;
        } else if (n->kind == NOTICE_LOST || n->kind == NOTICE_EXPIRED ||
                   n->kind == NOTICE_RELEASED) {
            r->held = false;
        }
    }
}

/* --- other answers ------------------------------------------------------- */

static void check_error(struct sim *s, const struct sim_conn *c, enum lock_error error)
{
    bool wanted = c->ask.kind == ASK_UNLOCK || c->ask.kind == ASK_RENEW;

    if (error == LOCK_NOTHELD && wanted && c->expect_held && s->now < c->expect_until &&
        !check_tokens_may_repeat(s)) {
        sim_fail(s, "NOTHELD for a hold that nothing has ended");
    }
    if (error == LOCK_NOTHELD && wanted) {
        check_told_gone(s, c);
    }
    /* A wait that ends while an op is in flight has one tick, whatever Redis takes. */
    if (error == LOCK_BACKEND && s->calm && 2 * s->profile.rtt_ms < SIM_TICK_MS) {
        sim_fail(s, "BACKEND, but Redis answers all the time");
    }
    if (error == LOCK_NOREPLICAS && !s->profile.min_replicas) {
        sim_fail(s, "NOREPLICAS, but nobody asked for replicas");
    }
    if (error == LOCK_DEADLOCK) {
        check_deadlock(s, c);
    }
    if (error == LOCK_WRONGTYPE && !s->profile.mixed &&
        (s->profile.faults & FAULT_STRING) == 0) {
        sim_fail(s, "WRONGTYPE, but nobody uses it otherwise: %s", ask_text(&c->ask));
    }
    if (error == LOCK_LIMIT) {
        check_limit(s, c);
    }
    if (error == LOCK_GOAWAY) {
        sim_fail(s, "GOAWAY without a reason");
    }
}

/* RENEW was answered: the hold is attached here. */
static void check_renewed(struct sim *s, const struct sim_conn *c, struct record *r)
{
    struct belief *b = belief_get(s, c->daemon, r->name, r->token);

    r->conn_bits |= conn_bit(c);
    if (r->owner.len > 0 || (c->ask.token == 0 && c->ask.id.len == 0) || b == NULL ||
        s->check.keepers[check_name_index(s, r->name)][0].token != r->token) {
        return; /* not this one, perhaps */
    }
    if (s->now > b->full_until) {
        sim_fail(s, "RENEW of %" PRIu64 " answered when its lease was over", r->token);
    }
    r->daemon = c->daemon;
    r->life = s->daemons[c->daemon].life;
    r->conn = c->id;
    r->held = r->certain = r->attached = true;
    r->moved = record_moved(s, r) || is_moving(s, r) || is_renewed_later(r, c) ||
               c->asked_ms == r->tied_ms;
}

static void check_unlocked(struct sim *s, const struct sim_conn *c, struct record *r)
{
    if (r->owner.len > 0) {
        return;
    }
    r->unlocked = r->unlocked || r->daemon == c->daemon;
    check_gone(s, c, r);
    if (!r->released && (c->ask.token != 0 || c->ask.id.len > 0)) {
        r->released = true;
        r->released_ms = s->now;
    }
}

/* An integer was answered: to UNLOCK, the number of entries that are left. */
static void check_done(struct sim *s, struct sim_conn *c, int64_t answer)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        struct record *r = &s->check.records[i];

        if (!means(s, r, c)) {
            continue;
        }
        if (c->ask.kind == ASK_UNLOCK) {
            check_unlocked(s, c, r);
        } else if (c->ask.kind == ASK_RENEW) {
            check_renewed(s, c, r);
        }
    }
}

void check_replied(struct sim *s, struct sim_conn *c, const struct effect_reply *r)
{
    if (ask_is_of_latch(&c->ask)) {
        latches_replied(s, c, r);
        return;
    }
    check_many(s, c);
    check_queue_kept(s, c);
    if (r->kind != REPLY_ERROR || r->error != LOCK_BACKEND) {
        forget_vague(s, c);
    }
    switch (r->kind) {
    case REPLY_TOKEN:
    case REPLY_TOKENS:
        check_grants(s, c, r);
        break;
    case REPLY_NULL:
        check_null_is_due(s, c);
        break;
    case REPLY_ERROR:
        check_error(s, c, r->error);
        break;
    case REPLY_INT:
        check_done(s, c, r->value);
        if (c->ask.kind == ASK_UNLOCK) {
            check_id_ended(s, c);
        }
        if (c->ask.to.len > 0 && r->value == 0) {
            check_handed(s, c);
        }
        break;
    case REPLY_LEADER:
        check_leader_answer(s, c, r);
        break;
    case REPLY_INFO:
    case REPLY_LATCH:
    case REPLY_UNREACHED:
    case REPLY_WRITTEN:
        break;
    }
}
