#include "sim/world/sim_world.h"

#include "sim/world/sim_faults.h"
#include "util/alloc.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SIM_SPINS_MAX = 50,
    SIM_SEQ_BITS = 22,
    GROUPS = 2,
};

void sim_trace(struct sim *s, const char *fmt, ...)
{
    char *line = s->trace[s->trace_count++ % SIM_TRACE_LINES];
    int used = snprintf(line, SIM_TRACE_WIDTH, "%8" PRIu64 " ", s->now - SIM_START_MS);
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(line + used, SIM_TRACE_WIDTH - (size_t)used, fmt, ap);
    va_end(ap);
    if (s->loud) {
        (void)printf("# %s\n", line);
    }
}

void sim_fail(struct sim *s, const char *fmt, ...)
{
    va_list ap;

    if (s->failed) {
        return;
    }
    s->failed = true;
    va_start(ap, fmt);
    (void)vsnprintf(s->failure, sizeof(s->failure), fmt, ap);
    va_end(ap);
    TRACE(s, "VIOLATION: %s", s->failure);
}

struct sim_redis *sim_redis_now(struct sim *s)
{
    uint64_t now = (uint64_t)((int64_t)(s->now - SIM_START_MS + SIM_REDIS_START_MS) +
                              s->redis_ahead_ms);

    if (now != s->redis.now_ms) {
        s->redis.now_ms = now;
        s->redis.us = 0;
    }
    return &s->redis;
}

uint64_t sim_delay(struct sim *s)
{
    return s->profile.steady ? s->profile.rtt_ms
                             : dice_below(&s->dice, s->profile.rtt_ms + 1);
}

/* --- events -------------------------------------------------------------- */

void sim_event_at(struct sim *s, struct event *e, uint64_t at)
{
    uint64_t seq = s->event_seq++ & ((1U << SIM_SEQ_BITS) - 1);

    heap_set(&s->events, &e->node, at << SIM_SEQ_BITS | seq);
}

void sim_event_put_off(struct sim *s, struct event *e, uint64_t at)
{
    heap_set(&s->events, &e->node,
             at << SIM_SEQ_BITS | (e->node.at & ((1U << SIM_SEQ_BITS) - 1)));
}

struct event *sim_event(struct sim *s, enum event_kind kind, uint64_t at)
{
    struct event *e = xcalloc(1, sizeof(*e));

    e->kind = kind;
    sim_event_at(s, e, at);
    return e;
}

/* The generation that an event must have to count still. */
static uint64_t generation(const struct sim_daemon *d, enum event_kind kind)
{
    switch (kind) {
    case EVENT_SUBSCRIBE:
    case EVENT_SUBSCRIBED:
    case EVENT_UNSUBSCRIBE:
    case EVENT_MESSAGE:
    case EVENT_SUB_DOWN:
    case EVENT_SUB_UP:
    case EVENT_ANNOUNCED:
        return d->sub_gen;
    case EVENT_WATCH:
    case EVENT_WATCHED:
    case EVENT_TOUCHED:
        return d->watch_gen;
    case EVENT_ANNOUNCE:
    case EVENT_LINK_DOWN:
    case EVENT_LINK_UP:
        return d->link_gen;
    default:
        return d->life;
    }
}

/* Something that the daemon would have to be awake for. */
static bool for_daemon(enum event_kind kind)
{
    return kind != EVENT_ARRIVE && kind != EVENT_SUBSCRIBE && kind != EVENT_ANNOUNCE &&
           kind != EVENT_UNSUBSCRIBE && kind != EVENT_WATCH && kind != EVENT_FOREIGN &&
           kind != EVENT_REBORN;
}

/* Where the clock of Redis should be by what the daemon knows of it. */
static void tell_clock(struct sim *s, struct sim_daemon *d)
{
    int64_t behind_ms = d->redis_ahead_ms - s->redis_ahead_ms;

    if (behind_ms > 0) {
        engine_on_clock_behind(
            d->engine, (sim_redis_now(s)->now_ms + 1 + (uint64_t)behind_ms) * 1000);
    }
    d->redis_ahead_ms = s->redis_ahead_ms;
}

static void happen_link(struct sim *s, struct sim_daemon *d, const struct event *e)
{
    switch (e->kind) {
    case EVENT_LINK_DOWN:
        link_down(s, d);
        break;
    case EVENT_LINK_UP:
        link_up(s, d, e->flag);
        break;
    case EVENT_CLOCK_JUMPED:
        TRACE(s, "d%zu: told that the clock jumped", d->index);
        d->jumped = s->happened;
        (void)sim_turn_begin(s, d);
        tell_clock(s, d);
        engine_on_clock_jump(d->engine);
        sim_turn_end(s, d);
        check_all_uncertain(s, d, "a jump of the clock");
        break;
    case EVENT_ANNOUNCE:
    case EVENT_ANNOUNCED:
        peers_event(s, d, e);
        break;
    case EVENT_WATCH:
    case EVENT_WATCHED:
    case EVENT_TOUCHED:
        watch_event(s, d, e);
        break;
    default:
        sub_event(s, d, e);
    }
}

static void happen(struct sim *s, struct event *e)
{
    struct sim_daemon *d = &s->daemons[e->daemon];

    s->happened++;
    /* Redis answers none of them before it goes on: a daemon is not told "up" either.
     */
    if ((e->kind == EVENT_SUBSCRIBE || e->kind == EVENT_UNSUBSCRIBE ||
         e->kind == EVENT_ANNOUNCE || e->kind == EVENT_WATCH ||
         e->kind == EVENT_LINK_UP) &&
        s->now < s->redis_paused_until) {
        sim_event_put_off(s, e, s->redis_paused_until);
        return;
    }
    if (e->kind == EVENT_FOREIGN) {
        foreign_event(s, (size_t)e->epoch, e->gen);
    } else if (e->kind == EVENT_REBORN) {
        sim_start_daemon(s, e->daemon, &d->config);
    } else if (e->kind == EVENT_ARRIVE) {
        link_arrive(s, e->flight);
        return;
    } else if (d->engine != NULL && for_daemon(e->kind) && s->now < d->stalled_until) {
        sim_event_put_off(s, e, d->stalled_until);
        return;
    } else if (e->kind == EVENT_RESULT) {
        link_result(s, e->flight);
        return;
    } else if (d->engine != NULL && e->gen == generation(d, e->kind)) {
        happen_link(s, d, e);
    }
    free(e->text);
    free(e);
}

/* --- daemons ------------------------------------------------------------- */

/* Of a Cluster; `seed` says whether it is one, as a die would make others of all. */
static uint32_t group_of(struct span name)
{
    return name.len < 3 ? 0 : (unsigned char)name.ptr[2] % GROUPS;
}

void sim_start_daemon(struct sim *s, size_t index, const struct engine_config *config)
{
    struct sim_daemon *d = &s->daemons[index];
    struct engine_setup setup = { .config = *config, .now_ms = s->now };

    d->index = index;
    d->config = *config;
    d->life++;
    (void)snprintf(d->instance, sizeof(d->instance), "%04zx%012" PRIx64, index,
                   d->life);
    memcpy(setup.instance, d->instance, sizeof(setup.instance));
    setup.seed = dice_u64(&s->dice);
    d->grouped = s->seed % 4 == 3;
    if (d->grouped) {
        setup.group_of = group_of;
        setup.group_count = GROUPS;
    }
    d->engine = engine_new(&setup);
    d->ticked_ms = s->now;
    d->redis_ahead_ms = s->redis_ahead_ms;
    /* It does not know where the clock was, unless another daemon tells it in time: see
     * fence-ttl in latchd.conf(5). */
    s->check.fences_lost =
        s->check.fences_lost || (s->check.clock_set_back && config->fence_ttl_ms != 0 &&
                                 config->fence_ttl_ms < OP_FENCE_TTL_MS);
    d->stalled_since = d->stalled_until = 0;
    d->told_up = false;
    d->failovers = s->failovers;
    d->link_works = false;
    d->link_gen++;
    d->last_arrive = d->last_result = d->last_acked = 0;
    d->sub_gen++;
    watch_break(s, d);
    sub_greets(s, d);
    memset(d->wanted, 0, sizeof(d->wanted));
    memset(d->follows, 0, sizeof(d->follows));
    TRACE(s, "d%zu: starts as %s", index, d->instance);
    if (s->now < s->redis_paused_until) {
        struct event *e = sim_event(s, EVENT_LINK_UP, s->redis_paused_until);

        e->daemon = index;
        e->gen = d->link_gen;
    } else {
        link_up(s, d, false);
    }
}

void sim_kill_daemon(struct sim *s, size_t index)
{
    struct sim_daemon *d = &s->daemons[index];

    TRACE(s, "d%zu: killed", index);
    engine_free(d->engine);
    d->engine = NULL;
    link_forget_daemon(s, d);
    clients_daemon_died(s, index);
    check_daemon_died(s, d);
    d->life++;
    d->link_gen++;
    d->sub_gen++;
    watch_break(s, d);
    redis_drop_subscriber(&s->redis, index);
}

static void tick(struct sim *s, struct sim_daemon *d)
{
    uint64_t due = engine_next_deadline(d->engine);
    bool stood_still = s->now > d->ticked_ms + SIM_STALL_MS && due < s->now &&
                       s->now - due > SIM_STALL_MS;

    d->spins = s->now == d->ticked_ms ? d->spins + 1 : 0;
    d->ticked_ms = s->now;
    engine_tick(d->engine, s->now);
    d->stall_to_check = d->stall_to_check || stood_still;
}

struct engine *sim_turn_begin(struct sim *s, struct sim_daemon *d)
{
    if (s->now != d->ticked_ms) {
        tick(s, d);
    }
    return d->engine;
}

static void do_effect(struct sim *s, struct sim_daemon *d, const struct effect *e)
{
    switch (e->kind) {
    case EFFECT_OP:
        link_submit(s, d, &e->op);
        break;
    case EFFECT_REPLY:
        clients_reply(s, d, &e->reply);
        break;
    case EFFECT_NOTICE:
        check_notice(s, d, &e->notice);
        break;
    case EFFECT_WAITED:
    case EFFECT_HELD:
        break; /* is not asked for */
    case EFFECT_HEARTBEAT:
        clients_heartbeat(s, &e->heartbeat); /* who is silent closes by itself */
        break;
    case EFFECT_LEADER:
        check_leader_told(s, d, &e->leader);
        break;
    case EFFECT_SUBSCRIBE:
        sub_subscribe(s, d, e->channel.name, e->channel.lock_class);
        break;
    case EFFECT_UNSUBSCRIBE:
        if (e->channel.member.len == 0) {
            sub_unsubscribe(s, d, e->channel.name, e->channel.lock_class);
        }
        break;
    case EFFECT_ANNOUNCE:
        peers_announce(s, d, e->announcement);
        break;
    case EFFECT_WATCH:
        watch_name(s, d, e->channel.name);
        break;
    }
}

void sim_turn_end(struct sim *s, struct sim_daemon *d)
{
    struct effects *fx = engine_effects(d->engine);
    struct sim_clients *cl = &s->clients;

    do {
        for (size_t i = 0; i < fx->count; i++) {
            do_effect(s, d, fx->list[i]);
        }
        effects_reset(fx);
        for (size_t i = 0; i < cl->undelivered_count; i++) {
            engine_on_undelivered(d->engine, cl->undelivered[i].conn,
                                  cl->undelivered[i].grant);
            engine_on_conn_closed(d->engine, cl->undelivered[i].conn);
        }
        cl->undelivered_count = 0;
    } while (fx->count > 0);
    if (d->stall_to_check) {
        d->stall_to_check = false;
        check_all_uncertain(s, d, "it stood still");
    }
    check_turn(s, d);
}

/* --- time ---------------------------------------------------------------- */

/* When the daemon next wants to be ticked. */
static uint64_t wakes_at(const struct sim *s, const struct sim_daemon *d)
{
    uint64_t at;

    if (d->engine == NULL) {
        return UINT64_MAX;
    }
    at = engine_next_deadline(d->engine);
    if (d->stalled_until > s->now) {
        return d->stalled_until;
    }
    return at < s->now ? s->now : at;
}

static struct sim_daemon *next_daemon(struct sim *s, uint64_t *retat)
{
    struct sim_daemon *next = NULL;

    *retat = UINT64_MAX;
    for (size_t i = 0; i < s->daemon_count; i++) {
        uint64_t at = wakes_at(s, &s->daemons[i]);

        if (at < *retat) {
            *retat = at;
            next = &s->daemons[i];
        }
    }
    return next;
}

static void wake(struct sim *s, struct sim_daemon *d)
{
    tick(s, d);
    if (d->spins > SIM_SPINS_MAX) {
        sim_fail(s, "d%zu wants a tick at %" PRIu64 " again and again: it spins",
                 d->index, engine_next_deadline(d->engine) - SIM_START_MS);
    }
    sim_turn_end(s, d);
}

void sim_run(struct sim *s, uint64_t ms)
{
    uint64_t end = s->now + ms;

    watch_look(s); /* at what others did */
    while (!s->failed) {
        struct heap_node *first = heap_min(&s->events);
        uint64_t event_at = first == NULL ? UINT64_MAX : first->at >> SIM_SEQ_BITS;
        uint64_t daemon_at;
        struct sim_daemon *d = next_daemon(s, &daemon_at);
        uint64_t at = event_at < daemon_at ? event_at : daemon_at;

        if (at > end) {
            break;
        }
        s->now = at > s->now ? at : s->now;
        if (++s->event_count > SIM_EVENTS_MAX) {
            sim_fail(s, "too many events: something spins");
        } else if (daemon_at <= event_at) {
            wake(s, d);
        } else {
            heap_remove(&s->events, first);
            happen(s, container_of(first, struct event, node));
        }
        watch_look(s);
        clients_go_on(s);
    }
    s->now = end;
}

struct sim *sim_new(uint64_t seed, bool traced)
{
    struct sim *s = xcalloc(1, sizeof(*s));

    s->seed = seed;
    s->now = SIM_START_MS;
    s->profile.rtt_ms = 1;
    s->traced = traced;
    if (traced) {
        s->trace = xcalloc(SIM_TRACE_LINES, SIM_TRACE_WIDTH);
    }
    dice_init(&s->dice, seed);
    sim_redis_init(&s->redis);
    s->redis.hooks.ctx = s;
    s->redis.hooks.published = sub_published;
    heap_init(&s->events);
    list_init(&s->orphans);
    for (size_t i = 0; i < SIM_DAEMONS_MAX; i++) {
        list_init(&s->daemons[i].open);
    }
    return s;
}

void sim_free(struct sim *s)
{
    struct flight *f;
    struct heap_node *node;

    for (size_t i = 0; i < SIM_DAEMONS_MAX; i++) {
        engine_free(s->daemons[i].engine);
        link_forget_daemon(s, &s->daemons[i]);
    }
    LIST_EACH_SAFE(f, &s->orphans, node) {
        heap_remove(&s->events, &f->event.node);
        flight_free(f);
    }
    while ((node = heap_min(&s->events)) != NULL) {
        struct event *e = container_of(node, struct event, node);

        heap_remove(&s->events, node);
        free(e->text);
        free(e);
    }
    heap_fini(&s->events);
    clients_fini(&s->clients);
    latches_fini(&s->latches);
    check_fini(&s->check);
    sim_redis_fini(&s->redis);
    if (s->replica != NULL) {
        sim_redis_fini(s->replica);
        free(s->replica);
    }
    if (s->backup != NULL) {
        sim_redis_fini(s->backup);
        free(s->backup);
    }
    if (s->isolated != NULL) {
        sim_redis_fini(s->isolated);
        free(s->isolated);
    }
    free(s->trace);
    free(s);
}
