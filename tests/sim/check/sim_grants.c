/* The rules for a token that a client is given. */
#include "sim/world/sim_world.h"

#include "util/alloc.h"

#include <inttypes.h>

enum { RECORDS_KEPT = 64 };

static void forget_records(struct sim_check *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->record_count; i++) {
        bool recent = i + RECORDS_KEPT / 2 > c->record_count;

        if (recent || (c->records[i].held && !c->records[i].over)) {
            c->records[kept++] = c->records[i];
        }
    }
    c->record_count = kept;
}

static struct record *record_add(struct sim *s)
{
    struct sim_check *c = &s->check;

    if (c->record_count == c->record_room && c->record_count >= RECORDS_KEPT) {
        forget_records(c);
    }
    if (c->record_count == c->record_room) {
        c->record_room = c->record_room == 0 ? RECORDS_KEPT : c->record_room * 2;
        c->records = xrealloc(c->records, c->record_room * sizeof(*c->records));
    }
    memset(&c->records[c->record_count], 0, sizeof(*c->records));
    return &c->records[c->record_count++];
}

static bool same_owner(const struct record *a, const struct record *b)
{
    return a->token == b->token ||
           (a->owner.len > 0 && rtext_is(&a->owner, rtext_span(&b->owner))) ||
           (a->id.len > 0 && rtext_is(&a->id, rtext_span(&b->id)));
}

/* Granted from a loan that somebody ended from outside, which its daemon notices at the
 * end of the window. */
static bool is_from_ended_loan(struct sim *s, size_t d, const struct belief *b)
{
    const struct sim_loan *l = loan_of(s, d, b->name, b->token);

    return l != NULL && l->ran <= s->check.external[check_name_index(s, b->name)] &&
           s->now < l->sent_ms + s->daemons[d].config.local_window_ms;
}

/* Its owner enters a hold that was put back, with the token that the hold has: the
 * release of it, and a later hold, Redis has lost. */
static bool is_entered_again(const struct sim *s, const struct belief *b)
{
    return !b->minted && s->check.fences_lost;
}

static void check_token(struct sim *s, size_t d, size_t name, const struct belief *b)
{
    struct sim_check *c = &s->check;
    struct last_token *last = &c->last[name];
    struct last_token *own = &c->last_of[d][name];

    if (is_entered_again(s, b)) {
        return;
    }
    if (!check_tokens_may_repeat(s) && b->ran > last->at && b->token <= last->token &&
        !is_from_ended_loan(s, d, b)) {
        sim_fail(s, "token %" PRIu64 " after %" PRIu64, b->token, last->token);
    }
    if (!c->resurrected && b->sent > own->at && b->token <= own->token) {
        sim_fail(s, "token %" PRIu64 " from d%zu after %" PRIu64, b->token, d,
                 own->token);
    }
    if (b->token > last->token) {
        *last = (struct last_token){ b->token, ++s->happened };
    }
    if (b->token > own->token) {
        *own = (struct last_token){ b->token, ++s->happened };
    }
}

static bool is_excused(const struct belief *b)
{
    return b->excused && !b->rolled;
}

static uint32_t limit_of(const struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < s->profile.names; i++) {
        if (s->names[i] == n) {
            return s->profile.limit[i];
        }
    }
    return 0;
}

/* Permits that are vouched for beside one grant, with those of the grant: by its own
 * daemon, and by all that have no excuse. */
struct permits_out {
    uint32_t here, all;
};

/* False: it is vouched for beside the grant, but that is in order. */
static bool is_too_much(const struct sim *s, const struct record *mine,
                        const struct belief *own, const struct record *r,
                        const struct belief *b, struct permits_out *out)
{
    bool here = r->daemon == mine->daemon;
    bool excused = is_excused(b) || is_excused(own);

    if (r->kind != KIND_PERMITS || mine->kind != KIND_PERMITS) {
        return !excused || here;
    }
    out->here += here ? r->permits : 0;
    out->all += excused ? 0 : r->permits;
    return out->here > limit_of(s, mine->name) || out->all > limit_of(s, mine->name);
}

/* No other owner may be vouched for now; of a semaphore, no more permits than there
 * are. */
static void check_alone(struct sim *s, const struct record *mine,
                        const struct belief *own)
{
    struct permits_out out = { mine->permits, mine->permits };

    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];
        struct belief *b;

        if (r == mine || r->name != mine->name || same_owner(r, mine) ||
            (r->kind == KIND_READ && mine->kind == KIND_READ) ||
            !record_believed(s, r)) {
            continue;
        }
        b = belief_get(s, r->daemon, r->name, r->token);
        if (b != NULL && s->now < b->until && is_too_much(s, mine, own, r, b, &out)) {
            sim_fail(s, "two holders of %s: %" PRIu64 " (d%zu) and %" PRIu64 " (d%zu)",
                     r->name->name.s, r->token, r->daemon, mine->token, mine->daemon);
        }
    }
}

enum lock_kind check_hold_kind(enum lock_kind kind)
{
    return lock_class_of(kind) == CLASS_PLAIN ? KIND_PLAIN : kind;
}

static struct record *record_of_request(struct sim *s, const struct sim_conn *c,
                                        const struct redis_name *n)
{
    for (size_t i = s->check.record_count; c->ask.id.len > 0 && i-- > 0;) {
        struct record *r = &s->check.records[i];

        if (r->name == n && rtext_is(&r->id, rtext_span(&c->ask.id))) {
            return r;
        }
    }
    return NULL;
}

/* Was this token given before: to the same request, or to its owner? */
static bool is_again(struct sim *s, const struct sim_conn *c,
                     const struct redis_name *n, uint64_t token)
{
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (r->name == n && r->token == token &&
            ((c->ask.id.len > 0 && rtext_is(&r->id, rtext_span(&c->ask.id))) ||
             (c->ask.owner.len > 0 &&
              rtext_is(&r->owner, rtext_span(&c->ask.owner))))) {
            return true;
        }
    }
    return false;
}

/* A hold that a daemon has reported as lost or released no longer answers its request,
 * also at another daemon that was sent the same ID: one of them renews it. */
static bool is_told_over(struct sim *s, const struct record *r)
{
    bool over = check_tokens_may_repeat(s); /* what is told is not recorded then */

    for (size_t i = 0; i < s->daemon_count && !over; i++) {
        const struct belief *b = belief_get(s, i, r->name, r->token);

        over = b != NULL && b->told == TOLD_OVER;
    }
    return over;
}

/* The ID is in use through two daemons: its hold has ended with the newer connection,
 * and the older daemon, which answers only now, notices at its next renewal. The newer
 * connection may have been gone before it was told of the hold. */
static bool is_ended_elsewhere(struct sim *s, const struct sim_conn *c,
                               const struct record *r, bool was_told)
{
    if (!was_told) {
        return c->ask.id.len > 0 && c->ask.owner.len == 0 &&
               record_ended_by_keeper(s, r);
    }
    return r->id.len > 0 && !r->held && r->daemon != c->daemon && is_told_over(s, r);
}

static void check_request(struct sim *s, const struct sim_conn *c,
                          const struct record *r, uint64_t token)
{
    if (r->token != token && !r->moved && r->attached && r->daemon == c->daemon &&
        r->life == s->daemons[c->daemon].life && !is_told_over(s, r)) {
        sim_fail(s, "request %s was granted twice: %" PRIu64 " and %" PRIu64, r->id.s,
                 r->token, token);
    }
    /* A failover may lose its UNLOCK, and its daemon what it remembered. */
    if (r->token == token && r->unlocked && s->daemon_count == 1 &&
        !s->check.resurrected &&
        (s->failovers == 0 || r->life == s->daemons[c->daemon].life)) {
        sim_fail(s, "request %s is over, but was given %" PRIu64 " again", r->id.s,
                 token);
    }
}

static uint64_t ask_lease(const struct sim *s, const struct sim_conn *c)
{
    const struct engine_config *config = &s->daemons[c->daemon].config;

    if ((c->ask.has & OPT_ENDLESS) != 0) {
        return config->endless_lease_ms;
    }
    return (c->ask.has & OPT_LEASE) != 0 ? c->ask.lease_ms : config->watchdog_ms;
}

/* At least half of the lease must be left, whichever was asked for last. */
static void check_half(struct sim *s, const struct sim_conn *c, const struct record *r,
                       const struct belief *b)
{
    uint64_t lease = ask_lease(s, c);
    uint64_t given = b->full_until - b->sent_ms;

    lease = given < lease ? given : lease;
    if (r != NULL && r->token == b->token && r->lease_ms < lease) {
        lease = r->lease_ms;
    }
    if (s->now > b->full_until - lease / 2) {
        sim_fail(s, "token %" PRIu64 " with less than half of its lease left",
                 b->token);
    }
}

/* Whether another connection asks for the same owner, so that the belief may have been
 * confirmed for that one since. */
static bool shares_owner(const struct sim *s, const struct sim_conn *me)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (c != me && c->asking &&
            rtext_is(&c->ask.owner, rtext_span(&me->ask.owner))) {
            return true;
        }
    }
    return false;
}

static void fill_record(struct sim *s, const struct sim_conn *c, struct record *r,
                        const struct belief *b)
{
    uint64_t lease = ask_lease(s, c);
    bool fresh = !r->held;

    r->granted_ms = s->now;
    r->kind = check_hold_kind(c->ask.lock_kind);
    r->owner = c->ask.owner;
    r->id = c->ask.id;
    r->value = c->ask.value;
    r->permits = fresh ? c->ask.permits : r->permits;
    r->passed = r->passed || (!fresh && r->daemon != c->daemon);
    r->daemon = c->daemon;
    r->life = s->daemons[c->daemon].life;
    r->conn = c->id;
    r->conn_bits |= conn_bit(c);
    r->held = r->certain = r->attached = true;
    r->moved = record_moved(s, r);
    r->over = r->over || check_is_vague(s, r);
    if (fresh) {
        r->lease_ms = lease;
        r->fixed = (c->ask.has & OPT_LEASE) != 0;
        r->own_until = UINT64_MAX;
    }
    if (fresh && c->ask.owner.len > 0 && (c->ask.has & OPT_LEASE) != 0) {
        /* An entry with a lease of its own ends alone, and silently. An MLOCK may have
         * had it for long, and the owner another one since; under an ID, it was asked
         * for when that was first sent, but half of it is left. */
        uint64_t since = c->ask.kind == ASK_MLOCK && c->ask.id.len == 0 ? c->asked_ms
                         : c->ask.kind == ASK_MLOCK || shares_owner(s, c)
                             ? s->now - lease / 2
                             : b->sent_ms;

        r->own_until = since + lease - lease / 100 - 50;
    }
}

/* Each token of a loan is for one client. */
static void check_given_once(struct sim *s, const struct sim_conn *c,
                             const struct redis_name *n, uint64_t token)
{
    if ((c->ask.has & OPT_LOCAL) == 0 || s->check.resurrected ||
        check_tokens_may_repeat(s)) {
        return;
    }
    for (size_t i = 0; i < s->check.record_count; i++) {
        const struct record *r = &s->check.records[i];

        if (r->name == n && r->token == token) {
            sim_fail(s, "token %" PRIu64 " is given twice", token);
        }
    }
}

void check_grant(struct sim *s, struct sim_conn *c, struct redis_name *n,
                 uint64_t token)
{
    struct belief *b = belief_get(s, c->daemon, n, token);
    struct record *r = record_of_request(s, c, n);
    uint64_t told_ms = check_told_granted_ms(s, c->daemon, n, token);
    uint64_t sent_ms;
    bool was_told;

    s->check.grants++;
    check_given_once(s, c, n, token);
    sent_ms = b == NULL ? s->now : b->sent_ms;
    b = b != NULL ? b : belief_from_loan(s, c->daemon, n, token);
    if (b == NULL) {
        sim_fail(s, "token %" PRIu64 ", which Redis did not grant to d%zu", token,
                 c->daemon);
        return;
    }
    check_half(s, c, r, b);
    if (r != NULL) {
        check_request(s, c, r, token);
    }
    if (!is_again(s, c, n, token) &&
        !((lock_class_of(c->ask.lock_kind) != CLASS_PLAIN || s->check.resurrected ||
           s->failovers > 0) &&
          !b->minted) &&
        ((!check_tokens_may_repeat(s) && s->failovers == 0) ||
         (c->ask.owner.len == 0 && c->ask.id.len == 0))) {
        check_token(s, c->daemon, check_name_index(s, n), b);
    }
    was_told = r != NULL && r->token == token;
    if (!was_told) {
        r = record_add(s);
        r->name = n;
        r->token = token;
        r->daemon = c->daemon;
    }
    r->over = r->over || is_ended_elsewhere(s, c, r, was_told);
    fill_record(s, c, r, b);
    check_turn_among(s, c, told_ms < sent_ms ? told_ms : sent_ms);
    if (!r->over && !check_tokens_may_repeat(s)) {
        check_alone(s, r, b);
    }
}

void check_grants(struct sim *s, struct sim_conn *c, const struct effect_reply *r)
{
    struct sim_redis *redis = sim_redis_now(s);

    if (r->kind == REPLY_TOKEN) {
        check_grant(s, c, sim_redis_name(redis, rtext_span(&c->ask.name)),
                    (uint64_t)r->value);
        return;
    }
    if (c->ask.kind != ASK_MLOCK || r->token_count != c->ask.name_count) {
        sim_fail(s, "%zu tokens for %s", r->token_count, ask_text(&c->ask));
        return;
    }
    for (size_t i = 0; i < r->token_count; i++) {
        check_grant(s, c, sim_redis_name(redis, rtext_span(&c->ask.names[i])),
                    r->tokens[i]);
    }
}
