/* The places of those who wait at one daemon: in order of arrival and PRIORITY, and no
 * more than QUEUE allows. */
#include "latchd/protocol.h"
#include "sim/world/sim_world.h"

#include <inttypes.h>

/* It waits in the queue, at the place at which it arrived. */
static bool queues(const struct sim *s, const struct sim_conn *c)
{
    const struct ask *a = &c->ask;

    return c->open && c->asking && a->kind == ASK_LOCK && a->owner.len == 0 &&
           a->id.len == 0 &&
           ((a->has & OPT_WAIT) == 0 || s->now < c->asked_ms + a->wait_ms);
}

/* May `later` have the lock before `earlier`, who asked the same daemon? */
static bool may_pass(enum lock_kind later, enum lock_kind earlier)
{
    return lock_class_of(later) != lock_class_of(earlier) ||
           (later == KIND_READ && earlier == KIND_READ);
}

static int64_t aging_of(const struct sim *s, const struct sim_conn *c)
{
    return (int64_t)s->daemons[c->daemon].config.priority_aging_ms;
}

static int64_t rank_of(const struct sim *s, const struct sim_conn *c)
{
    return (int64_t)c->asked_ms - c->ask.priority * aging_of(s, c);
}

/* Whether `c`, who waits, stands before `me`. A poller's place is that of its first
 * try, or a later one. */
static bool stands_before(const struct sim *s, const struct sim_conn *c,
                          const struct sim_conn *me)
{
    int64_t mine = rank_of(s, me) - (int64_t)me->ask.polls_for_ms;
    int64_t others = rank_of(s, c);

    if (s->profile.fair && c->ask.priority != me->ask.priority) {
        return false; /* PRIORITY may be void */
    }
    return others < mine || (others == mine && c->arrival < me->arrival);
}

/* Whether the daemon may have asked for `me` before `c` came, or again for what it may
 * have got then. A reader may have been about to be let in. */
static bool was_asked_for(const struct sim *s, const struct sim_conn *me,
                          const struct sim_conn *c, uint64_t sent_ms)
{
    return c->arrival > me->arrival &&
           (sent_ms <= c->asked_ms || !s->orderly || me->ask.lock_kind == KIND_READ);
}

/* Nobody is passed by who came so much later, whatever their priorities. */
static bool starves(const struct sim *s, const struct sim_conn *c,
                    const struct sim_conn *me)
{
    return me->asked_ms > c->asked_ms + LATCHD_PRIORITY_MAX * (uint64_t)aging_of(s, c) +
                              me->ask.polls_for_ms;
}

void check_turn_among(struct sim *s, const struct sim_conn *me, uint64_t sent_ms)
{
    if (me->ask.kind != ASK_LOCK || me->ask.owner.len > 0 || me->ask.id.len > 0) {
        return;
    }
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];

        if (c == me || !queues(s, c) || c->daemon != me->daemon ||
            !rtext_is(&c->ask.name, rtext_span(&me->ask.name)) ||
            may_pass(me->ask.lock_kind, c->ask.lock_kind)) {
            continue;
        }
        if (starves(s, c, me)) {
            sim_fail(s, "c%zu waits since %" PRIu64 ", and starves", i,
                     c->asked_ms - SIM_START_MS);
        } else if (stands_before(s, c, me) && !was_asked_for(s, me, c, sent_ms)) {
            sim_fail(s,
                     "c%zu waits since %" PRIu64 " with priority %d, but one behind it "
                     "was granted",
                     i, c->asked_ms - SIM_START_MS, c->ask.priority);
        }
    }
}

/* --- QUEUE ---------------------------------------------------------------- */

static void count_waiter(void *ctx, const struct waiter_info *info)
{
    (void)info;
    ++*(size_t *)ctx;
}

/* Whether `o` waits for what `c` sends once more. */
static bool is_same_request(const struct sim_conn *o, const struct sim_conn *c)
{
    return o != c && o->asking && o->daemon == c->daemon && c->ask.id.len > 0 &&
           rtext_is(&o->ask.id, rtext_span(&c->ask.id)) &&
           rtext_is(&o->ask.name, rtext_span(&c->ask.name));
}

void check_queue_asked(struct sim *s, struct sim_conn *c)
{
    c->waiting = c->surely_waiting = 0;
    if ((c->ask.has & OPT_QUEUE) == 0) {
        return;
    }
    engine_waiters(s->daemons[c->daemon].engine, rtext_span(&c->ask.name), SIZE_MAX,
                   count_waiter, &c->waiting);
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *o = &s->clients.conns[i];

        if (is_same_request(o, c) && o->waiting > c->waiting) {
            c->waiting = o->waiting; /* its place is that of its first sending */
        }
        c->surely_waiting += o != c && queues(s, o) && o->daemon == c->daemon &&
                             (o->ask.has & OPT_QUEUE) == 0 &&
                             rtext_is(&o->ask.name, rtext_span(&c->ask.name));
    }
}

void check_limit(struct sim *s, const struct sim_conn *c)
{
    if ((c->ask.has & OPT_QUEUE) == 0 || c->waiting < c->ask.queue_max) {
        sim_fail(s, "LIMIT, but only %zu wait: %s", c->waiting, ask_text(&c->ask));
    }
}

void check_queue_kept(struct sim *s, const struct sim_conn *c)
{
    const struct engine_config *cfg = &s->daemons[c->daemon].config;

    if ((c->ask.has & OPT_QUEUE) != 0 && c->ask.id.len == 0 &&
        c->surely_waiting > (size_t)c->ask.queue_max + 1 && s->orderly &&
        s->now > c->asked_ms + cfg->redis_timeout_ms + SIM_TICK_MS) {
        sim_fail(s, "%zu waited, and it did, too: %s", c->surely_waiting,
                 ask_text(&c->ask));
    }
}
