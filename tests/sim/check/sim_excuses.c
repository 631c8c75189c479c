/* Changes without blame: a name was touched from outside, or lost by a failover. */
#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"

static void excuse(struct sim *s, struct redis_name *n)
{
    struct sim_check *c = &s->check;

    s->happened++;
    foreign_excuse(s, n);
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (n == NULL || n == &s->redis.names[i]) {
            c->external[i] = s->happened;
            c->external_ms[i] = s->now;
        }
    }
    for (size_t i = 0; i < c->belief_count; i++) {
        if (n == NULL || n == c->beliefs[i].name) {
            c->beliefs[i].excused = true;
        }
    }
    for (size_t i = 0; i < s->clients.count; i++) {
        s->clients.conns[i].expect_held = false;
    }
}

void check_external(struct sim *s, struct redis_name *n)
{
    check_rest_external(s, n);
    excuse(s, n);
    for (size_t i = 0; i < s->check.belief_count; i++) {
        struct belief *b = &s->check.beliefs[i];

        b->rolled = b->rolled && n != NULL && n != b->name; /* not only by that */
    }
}

static bool redis_has(const struct sim *s, struct redis_name *n, uint64_t token)
{
    const struct sim_loan *l = loan_with_field(s, n, token);

    for (size_t i = 0; i < n->field_count; i++) {
        const struct redis_hash_field *f = &n->fields[i];
        uint64_t its = redis_token_of(n, &f->owner);

        if (its == token || (l != NULL && its == l->token)) {
            return true;
        }
    }
    return false;
}

/* Nothing is expected any more of what was asked about that name. */
static void expect_nothing(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        struct sim_conn *c = &s->clients.conns[i];

        c->expect_held =
            c->expect_held && !rtext_is(&c->ask.name, rtext_span(&n->name));
    }
}

/* A daemon that put an older one back first hears of it by its next renewal:
 * it was over when the later one was granted. */
void check_displaced(struct sim *s, struct redis_name *n, uint64_t token)
{
    struct sim_check *c = &s->check;

    s->happened++;
    c->displaced[check_name_index(s, n)] = (struct last_token){ token, s->happened };
    for (size_t i = 0; i < c->belief_count; i++) {
        struct belief *b = &c->beliefs[i];

        if (b->name == n && b->token < token && !redis_has(s, n, b->token)) {
            expect_nothing(s, n);
            b->displaced_at = s->happened;
            b->excused = true;
            b->rolled = false;
        }
    }
}

/* A script that ran then confirmed an older hold that had come back, and Redis
 * has the later one again since. */
bool check_is_displaced(struct sim *s, const struct belief *b, uint64_t ran)
{
    const struct last_token *by = &s->check.displaced[check_name_index(s, b->name)];

    return b->token < by->token && ran <= by->at && !redis_has(s, b->name, b->token);
}

/* Another daemon still believes in what was wiped, and puts it back if it hears of the
 * failover first: it need not wait, as nobody can have been granted what it held. */
static bool is_held_by_error(const struct sim_check *c, const struct belief *b,
                             uint64_t now)
{
    for (size_t i = 0; i < c->belief_count; i++) {
        const struct belief *o = &c->beliefs[i];

        if (o->name == b->name && o->daemon != b->daemon && o->excused &&
            now < o->until && o->told != TOLD_OVER) {
            return true;
        }
    }
    return false;
}

/* Another daemon granted an older hold and does not know yet that it was given back
 * elsewhere: that daemon puts the older one back, if it is first. Redis still knows, as
 * its data is not replaced before this is asked. */
static bool is_believed_too_long(const struct sim *s, const struct belief *b)
{
    const struct sim_check *c = &s->check;

    for (size_t i = 0; i < c->belief_count; i++) {
        const struct belief *o = &c->beliefs[i];

        if (o->name == b->name && o->daemon != b->daemon && s->now < o->full_until &&
            o->told != TOLD_OVER && !redis_has(s, o->name, o->token)) {
            return true;
        }
    }
    return false;
}

void check_failed_over(struct sim *s)
{
    struct sim_check *c = &s->check;
    bool all = true; /* who starts later knows of no failover */
    uint64_t end = s->now + s->daemons[0].config.quarantine_ms;

    for (size_t i = 0; i < s->daemon_count; i++) {
        all = all && s->daemons[i].engine != NULL;
    }
    check_rests_lost(s, s->daemon_count == 1);
    for (size_t i = 0; i < c->belief_count; i++) {
        struct belief *b = &c->beliefs[i];

        /* An acknowledged write is not lost, with or without a quarantine. A hold
         * taken over from another daemon is that one's again, if that was lost: it may
         * not have heard of it, and then it may release it. */
        b->rolled = (!b->excused || b->rolled) &&
                    (s->profile.min_replicas ||
                     (all && b->minted && b->full_until <= end &&
                      !is_held_by_error(c, b, s->now) && !is_believed_too_long(s, b)));
    }
    excuse(s, NULL);
}

void check_lost(struct sim *s, bool known)
{
    static const unsigned SLOWER = ~(unsigned)(FAULT_LOSS | FAULT_RESTART | FAULT_SUB |
                                               FAULT_DEL | FAULT_DEATH | FAULT_FOREIGN);
    struct sim_check *c = &s->check;
    bool all = known && (s->profile.faults & SLOWER) == 0;

    check_rests_lost(s, s->daemon_count == 1);
    for (size_t i = 0; i < c->belief_count; i++) {
        struct belief *b = &c->beliefs[i];

        b->rolled = (!b->excused || b->rolled) && all && b->minted &&
                    !is_held_by_error(c, b, s->now) && !is_believed_too_long(s, b);
        b->awaited = b->rolled;
    }
    excuse(s, NULL);
}

void check_disturbed(struct sim *s)
{
    for (size_t i = 0; i < s->check.belief_count; i++) {
        struct belief *b = &s->check.beliefs[i];

        b->rolled = b->rolled && !b->awaited;
    }
}

void check_cut(struct sim *s, struct redis_name *n)
{
    const struct engine_config *cfg = &s->daemons[0].config;

    /* Each third of the watchdog's time is looked, and raised again. */
    if ((s->profile.faults & ~(unsigned)FAULT_FOREIGN) != 0 ||
        n->expires < s->redis.now_ms + cfg->watchdog_ms / 3 + cfg->redis_timeout_ms) {
        check_external(s, n);
    }
}

bool check_tokens_may_repeat(const struct sim *s)
{
    return s->check.clock_set_back && s->check.fences_lost;
}
