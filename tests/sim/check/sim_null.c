/* LOCK's and MLOCK's null: the wait is over, and somebody else has, or had, a name. */
#include "sim/world/sim_world.h"

#include <inttypes.h>

void check_op_runs(struct sim *s)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        const struct redis_name *n = &s->redis.names[i];

        if (n->field_count > 0 || n->queue_count > 0) {
            s->check.held_ms[i] = s->now;
        }
    }
}

/* How old what a daemon knows may be when that client asks: a recheck, and what it
 * stood still, if that has just ended. */
static uint64_t known_for_ms(const struct sim *s, const struct sim_conn *c)
{
    const struct sim_daemon *d = &s->daemons[c->daemon];
    bool wakes = c->asked_ms <= d->stalled_until + SIM_TICK_MS;

    return d->config.recheck_ms + SIM_TICK_MS + 2 * (uint64_t)s->profile.rtt_ms +
           (wakes ? d->stalled_until - d->stalled_since : 0);
}

/* Somebody had it when that client waited, or as long before as what a daemon knows may
 * be old. A hold that Redis has lost is believed in until its lease is over. */
static bool was_held(const struct sim *s, const struct sim_conn *c,
                     const struct redis_name *n)
{
    uint64_t known_for = known_for_ms(s, c);
    const struct sim_rest *r = &s->check.rests[n - s->redis.names];
    uint64_t rests_until = r->until > r->told_until ? r->until : r->told_until;

    /* A daemon may not know yet that an operator, or the clock, has ended a rest. */
    if (rests_until != 0 && rests_until + known_for >= c->asked_ms) {
        return true;
    }
    for (size_t i = 0; i < s->check.belief_count; i++) {
        const struct belief *b = &s->check.beliefs[i];

        if (b->name == n && b->full_until + known_for >= c->asked_ms) {
            return true;
        }
    }
    if (c->ask.lock_kind == KIND_PERMITS) {
        /* A clock that is set back has permits live on that had ended, also where the
         * key that tells their holder is gone. */
        known_for += s->set_back_ms;
    }
    return s->check.held_ms[n - s->redis.names] != 0 &&
           s->check.held_ms[n - s->redis.names] + known_for >= c->asked_ms;
}

/* Null means that somebody else has, or had, one of the names. */
static void check_held(struct sim *s, const struct sim_conn *c)
{
    check_op_runs(s);
    for (size_t i = 0; i < s->redis.name_count; i++) {
        const struct redis_name *n = &s->redis.names[i];

        if (ask_wants(&c->ask, n) && was_held(s, c, n)) {
            return;
        }
    }
    if (s->failovers == 0 && !s->daemons[c->daemon].isolated) {
        sim_fail(s, "null, but nobody else has had it: %s", ask_text(&c->ask));
    }
}

/* Whether Redis's clock was set back, and the same request was asked for through
 * another daemon, or before this one died: then the older LOCK of the two may count as
 * the later one. */
static bool may_be_outdated(const struct sim *s, const struct sim_conn *me)
{
    const struct sim_check *c = &s->check;

    for (size_t i = 0; s->set_back_ms > 0 && me->ask.id.len > 0 && i < ASKED_IDS_MAX;
         i++) {
        const struct asked_id *asked = &c->asked_ids[i];

        if ((asked->daemon != me->daemon ||
             asked->life != s->daemons[me->daemon].life) &&
            rtext_is(&asked->id, rtext_span(&me->ask.id))) {
            return true;
        }
    }
    return false;
}

void check_null_is_due(struct sim *s, const struct sim_conn *c)
{
    bool ended = (c->ask.has & OPT_WAIT) != 0 && s->now >= c->asked_ms + c->ask.wait_ms;

    if (c->may_be_null || may_be_outdated(s, c)) {
        return;
    }
    if ((c->ask.kind != ASK_LOCK && c->ask.kind != ASK_MLOCK) || !ended) {
        sim_fail(s, "null before the wait of %" PRIu64 " ms was over", c->ask.wait_ms);
    } else if (!s->daemons[c->daemon].told_up) {
        sim_fail(s, "null while Redis cannot be reached");
    } else {
        check_held(s, c);
    }
}
