#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"

#include <inttypes.h>
#include <stdlib.h>

enum { PROBED_MS = 2000 }; /* in which a link notices that its master is a replica */

static bool has(const struct sim *s, unsigned fault)
{
    return (s->profile.faults & fault) != 0;
}

static struct sim_daemon *some_daemon(struct sim *s)
{
    return &s->daemons[dice_below(&s->dice, s->daemon_count)];
}

static struct redis_name *some_name(struct sim *s)
{
    return s->names[dice_below(&s->dice, s->profile.names)];
}

/* Mostly short, now and then longer than a lease. */
static uint64_t some_outage(struct sim *s)
{
    const struct engine_config *cfg = &s->daemons[0].config;

    switch (dice_below(&s->dice, 4)) {
    case 0:
        return dice_between(&s->dice, 1, 20);
    case 1:
        return dice_between(&s->dice, 20, 500);
    case 2:
        return dice_between(&s->dice, 1, cfg->redis_timeout_ms * 2);
    default:
        return dice_between(&s->dice, cfg->watchdog_ms / 2, cfg->watchdog_ms * 3 / 2);
    }
}

/* --- while ops are on their way ------------------------------------------ */

void faults_op(struct sim *s, struct flight *f)
{
    struct sim_daemon *d = &s->daemons[f->daemon];

    if (has(s, FAULT_SLOW) && dice_chance(&s->dice, 100)) {
        uint64_t slow = dice_below(&s->dice, d->config.redis_timeout_ms * 2 / 3);

        d->last_arrive =
            s->now + slow > d->last_arrive ? s->now + slow : d->last_arrive;
    }
    if (has(s, FAULT_ERROR) && dice_chance(&s->dice, 10)) {
        f->times.deadline_us = 0;
    }
}

bool faults_refused(struct sim *s, const struct flight *f)
{
    (void)f;
    return has(s, FAULT_ERROR) && dice_chance(&s->dice, 10);
}

bool faults_message_lost(struct sim *s)
{
    return has(s, FAULT_SUB) && dice_chance(&s->dice, 50);
}

bool faults_acked(struct sim *s, const struct flight *f)
{
    /* A write after the replica stood still is not in it. */
    return !s->daemons[f->daemon].isolated && s->now >= s->replicas_gone_until &&
           s->failover_at == 0 &&
           !(has(s, FAULT_REPLICAS) && dice_chance(&s->dice, 50));
}

void fault_isolate(struct sim *s, size_t daemon)
{
    TRACE(s, "d%zu: its master is an old one from now on", daemon);
    sim_redis_save(sim_redis_now(s), &s->isolated);
    s->daemons[daemon].isolated = true;
}

/* --- Redis --------------------------------------------------------------- */

void fault_pause(struct sim *s, uint64_t ms)
{
    TRACE(s, "Redis stands still for %" PRIu64, ms);
    if (s->now < s->redis_paused_until) {
        return; /* what waits for its end keeps its order */
    }
    s->redis_paused_until = s->now + ms;
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];
        uint64_t timeout = d->config.redis_timeout_ms;

        if (ms > timeout) {
            uint64_t notice = timeout + dice_below(&s->dice, timeout / 4 + 1);

            link_break(s, d, notice,
                       (ms > notice ? ms - notice : 0) + dice_between(&s->dice, 1, 50),
                       true);
        }
    }
}

void fault_restart(struct sim *s, uint64_t gone_ms)
{
    TRACE(s, "Redis is gone for %" PRIu64, gone_ms);
    s->server++;
    s->redis_paused_until = s->redis_began = s->now + gone_ms;
    check_disturbed(s);
    s->latches.restarted_at = ++s->happened;
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct sim_daemon *d = &s->daemons[i];
        uint64_t notice = dice_below(&s->dice, gone_ms / 2 + 1);

        link_lose_scripts(s, d); /* also those of a link that was broken before */
        link_break(s, d, notice, gone_ms - notice + dice_between(&s->dice, 1, 100),
                   false);
        sub_break(s, d, notice, gone_ms - notice + dice_between(&s->dice, 1, 100));
    }
}

void fault_replica_at(struct sim *s, uint64_t behind)
{
    sim_redis_save(sim_redis_now(s), &s->replica);
    s->failover_at = s->redis.scripts + behind;
}

void fault_failover(struct sim *s, uint64_t gone_ms)
{
    TRACE(s, "a replica takes over");
    s->failover_at = 0;
    s->failovers++;
    s->check.fences_lost = true;
    fault_restart(s, gone_ms);
    check_failed_over(s);
    sim_redis_restore(sim_redis_now(s), s->replica);
    latches_moved(s);
}

void fault_demote(struct sim *s, size_t daemon, uint64_t notice_ms)
{
    TRACE(s, "d%zu: its master is a replica from now on", daemon);
    link_break(s, &s->daemons[daemon], notice_ms, dice_between(&s->dice, 1, 50), false);
}

/* By now it lacks so many of the last ones. */
void faults_ran(struct sim *s)
{
    if (s->failover_at != 0 && s->redis.scripts >= s->failover_at) {
        for (size_t i = 0; i < s->daemon_count; i++) {
            if (dice_chance(&s->dice, 200)) {
                fault_demote(s, i, dice_below(&s->dice, PROBED_MS));
            }
        }
        fault_failover(s, dice_between(&s->dice, 1, 2000));
    }
}

static void lose_data(struct sim *s)
{
    bool known = peers_know_each_other(s);

    fault_restart(s, dice_between(&s->dice, 1, 2000));
    check_lost(s, known);
    s->check.fences_lost = true;
    if (s->backup != NULL && dice_chance(&s->dice, 600)) {
        TRACE(s, "Redis lost its last writes");
        sim_redis_restore(sim_redis_now(s), s->backup);
        s->check.resurrected = true;
    } else {
        TRACE(s, "Redis lost everything");
        redis_flushall(sim_redis_now(s));
    }
    latches_moved(s);
}

void fault_flush(struct sim *s)
{
    TRACE(s, "FLUSHALL");
    check_external(s, NULL);
    s->check.fences_lost = true;
    watch_flushed(s);
    redis_flushall(sim_redis_now(s));
    latches_moved(s);
}

static void operator_acts(struct sim *s)
{
    struct redis_name *n = some_name(s);

    if (s->profile.latches && dice_chance(&s->dice, 300)) {
        latches_delete(s);
    } else if (dice_chance(&s->dice, 300)) {
        watch_touch(s, n);
        fault_flush(s);
    } else {
        TRACE(s, "DEL %s", n->name.s);
        check_external(s, n);
        redis_operator_del(n);
    }
}

void fault_clock(struct sim *s, int64_t by_ms)
{
    TRACE(s, "Redis's clock moves by %" PRId64, by_ms);
    s->redis_ahead_ms += by_ms;
    if (by_ms < 0) {
        s->set_back_ms += (uint64_t)-by_ms;
        s->check.clock_set_back = true;
    }
    check_external(s, NULL);
    for (size_t i = 0; i < s->daemon_count; i++) {
        struct event *e =
            sim_event(s, EVENT_CLOCK_JUMPED, s->now + dice_below(&s->dice, 200));

        e->daemon = i;
        e->gen = s->daemons[i].life;
    }
}

static void string_acts(struct sim *s)
{
    struct redis_name *n = some_name(s);

    (void)sim_redis_name(sim_redis_now(s), rtext_span(&n->name));
    if (n->is_string) {
        TRACE(s, "DEL %s, a string", n->name.s);
        redis_del_string(n);
    } else if (redis_set_string(&s->redis, n)) {
        TRACE(s, "SET %s", n->name.s);
    }
}

/* --- daemons ------------------------------------------------------------- */

void fault_stall(struct sim *s, size_t daemon, uint64_t ms)
{
    if (s->daemons[daemon].stalled_until > s->now) {
        return; /* what waits for its end keeps its order */
    }
    TRACE(s, "d%zu: stands still for %" PRIu64, daemon, ms);
    s->daemons[daemon].stalled_since = s->now;
    s->daemons[daemon].stalled_until = s->now + ms;
}

static void break_link(struct sim *s)
{
    struct sim_daemon *d = some_daemon(s);
    uint64_t notice = dice_chance(&s->dice, 700)
                          ? dice_below(&s->dice, 5)
                          : dice_below(&s->dice, d->config.redis_timeout_ms);

    link_break(s, d, notice, some_outage(s), true);
}

static void kill_daemon(struct sim *s)
{
    struct sim_daemon *d = some_daemon(s);
    struct event *e;

    if (d->engine != NULL) {
        sim_kill_daemon(s, d->index);
        e = sim_event(s, EVENT_REBORN, s->now + dice_between(&s->dice, 1, 3000));
        e->daemon = d->index;
    }
}

static void act(struct sim *s, unsigned fault)
{
    struct sim_daemon *d = some_daemon(s);

    switch (fault) {
    case FAULT_LINK:
        break_link(s);
        break;
    case FAULT_SUB:
        sub_break(s, d, dice_below(&s->dice, 100), some_outage(s));
        break;
    case FAULT_PAUSE:
        fault_pause(s, some_outage(s));
        break;
    case FAULT_RESTART:
        fault_restart(s, some_outage(s));
        break;
    case FAULT_LOSS:
        if (dice_chance(&s->dice, 700)) {
            sim_redis_save(sim_redis_now(s), &s->backup);
        } else {
            lose_data(s);
        }
        break;
    case FAULT_FAILOVER:
        if (s->failover_at == 0) {
            fault_replica_at(s, dice_between(&s->dice, 1, 12));
        }
        break;
    case FAULT_DEL:
        operator_acts(s);
        break;
    case FAULT_CLOCK:
        fault_clock(s, (dice_chance(&s->dice, 500) ? 1 : -1) *
                           (int64_t)dice_between(&s->dice, 501, 40000));
        break;
    case FAULT_STALL:
        if (d->engine != NULL) {
            fault_stall(s, d->index, some_outage(s));
        }
        break;
    case FAULT_DEATH:
        kill_daemon(s);
        break;
    case FAULT_FOREIGN:
        if (s->profile.latches && dice_chance(&s->dice, 600)) {
            latches_foreign_act(s);
        } else {
            foreign_act_random(s);
        }
        break;
    case FAULT_STRING:
        string_acts(s);
        break;
    case FAULT_REPLICAS:
        s->replicas_gone_until = s->now + some_outage(s);
        break;
    default:
        break; /* SLOW and ERROR strike by themselves */
    }
}

void faults_act(struct sim *s)
{
    unsigned fault = 1U << dice_below(&s->dice, FAULT_KINDS);

    if (has(s, fault)) {
        act(s, fault);
    }
}

void faults_stop(struct sim *s)
{
    for (size_t i = 0; i < s->redis.name_count; i++) {
        if (&s->redis.names[i] != s->latches.name) {
            redis_del_string(&s->redis.names[i]);
        }
    }
    s->failover_at = 0;
    foreign_stop(s);
    s->profile.faults &=
        ~(unsigned)(FAULT_SLOW | FAULT_ERROR | FAULT_SUB | FAULT_REPLICAS);
    s->replicas_gone_until = 0;
}
