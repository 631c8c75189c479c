#include "sim/schedule/sim_schedule.h"

#include "latchd/protocol.h"
#include "sim/world/sim_faults.h"

enum {
    CLOSING_MS = 120000
}; /* longer than every lease, grace and KEEP of a schedule */

static uint64_t one_of(struct sim *s, const uint64_t *values, size_t count)
{
    return values[dice_below(&s->dice, count)];
}

static struct engine_config some_config(struct sim *s)
{
    static const uint64_t WATCHDOG[] = { 3000, 10000, 30000 };
    static const uint64_t TIMEOUT[] = { 300, 1000, 3000 };
    static const uint64_t RECHECK[] = { 500, 5000 };
    static const uint64_t LIMIT[] = { 2, 8, 64 };
    static const uint64_t FAIR_WAIT[] = { 1000, 5000, 30000 };
    static const uint64_t WINDOW[] = { 1, 4, 1024 };
    static const uint64_t FENCE_TTL[] = { 60000, 300000,
                                          3600000 }; /* from the least on */
    struct engine_config c = { 0 };

    c.watchdog_ms = one_of(s, WATCHDOG, 3);
    c.redis_timeout_ms = one_of(s, TIMEOUT, c.watchdog_ms > 3000 ? 3 : 2);
    c.recheck_ms = one_of(s, RECHECK, 2);
    c.fair_wait_ms = one_of(s, FAIR_WAIT, 3);
    c.fair_window = one_of(s, WINDOW, 3);
    c.fence_ttl_ms = FENCE_TTL[s->seed / 5 % 3];
    c.handover_limit = one_of(s, LIMIT, 3);
    c.handover_pause_ms = dice_between(&s->dice, 1, 5);
    c.grace_ms = dice_chance(&s->dice, 600) ? -1 : (int64_t)dice_below(&s->dice, 500);
    c.quarantine_ms = dice_chance(&s->dice, 800) ? c.watchdog_ms : 0;
    c.endless_lease_ms = dice_between(&s->dice, 1000, 60000);
    c.max_waiters = 1000;
    c.max_holds = 1000;
    return c;
}

static unsigned some_faults(struct sim *s)
{
    unsigned faults = 0;

    if (dice_chance(&s->dice, 250)) {
        return 0;
    }
    if (dice_chance(&s->dice, 350)) {
        return 1U << dice_below(&s->dice, FAULT_KINDS);
    }
    for (size_t i = 0; i < FAULT_KINDS; i++) {
        faults |= dice_chance(&s->dice, 350) ? 1U << i : 0;
    }
    return faults;
}

static void some_kinds(struct sim *s, unsigned kinds)
{
    struct sim_profile *p = &s->profile;

    p->fair = dice_chance(&s->dice, 500) && (kinds & KINDS_FAIR) != 0;
    p->mlock = dice_chance(&s->dice, 300) && (kinds & KINDS_MANY) != 0;
    p->mixed = dice_chance(&s->dice, 100) && (kinds & KINDS_MIXED) != 0;
    for (size_t i = 0; i < REDIS_NAMES_MAX; i++) {
        p->rw[i] = dice_chance(&s->dice, 350) && (kinds & KINDS_RW) != 0;
    }
}

/* LOCKs that come together, in every fourth schedule: a die would make others of all.
 * Few clients, as a run is of names that nobody has to do with. */
static void some_runs(struct sim *s)
{
    struct sim_profile *p = &s->profile;

    p->runs = s->seed % 4 == 0;
    if (p->runs) {
        p->names = 3;
        p->conns = 2 + p->conns % 4;
        memset(p->rw, 0, sizeof(p->rw));
    }
}

/* LOCKs that may be granted from loans, in every third schedule, without a die as well.
 * In most of these many clients want a name or two for themselves, as a name is not
 * lent otherwise. */
static void some_local(struct sim *s, struct engine_config *config)
{
    static const uint64_t WINDOW[] = { 5, 20, 40, 100 };
    struct sim_profile *p = &s->profile;

    p->local = s->seed % 3 == 0;
    config->local_window_ms = p->runs ? LOCAL_WINDOW_MAX_MS : WINDOW[s->seed / 3 % 4];
    if (p->local && s->seed % 4 != 1) {
        p->names = p->runs ? p->names : 1 + s->seed % 2;
        p->conns += 4;
        p->ids = p->owners = false;
        p->fair = p->fair && s->seed % 5 == 0;
        p->leases = p->leases && s->seed % 7 == 0;
        memset(p->rw, 0, sizeof(p->rw));
    }
}

/* Semaphores, in every fifth schedule without runs and loans, without a die as well. */
static void some_semaphores(struct sim *s, unsigned kinds)
{
    struct sim_profile *p = &s->profile;

    memset(p->limit, 0, sizeof(p->limit));
    if (s->seed % 5 != 2 || p->runs || p->local || (kinds & KINDS_PERMITS) == 0) {
        return;
    }
    for (size_t i = 0; i < REDIS_NAMES_MAX; i++) {
        if (i == 0 || (s->seed >> i) % 2 == 0) {
            p->limit[i] = 1 + (uint32_t)(s->seed / 5 + i) % 4;
            p->rw[i] = false;
        }
    }
}

/* QUEUE and PRIORITY, in every second schedule, without a die as well. */
static void some_places(struct sim *s, struct engine_config *config)
{
    static const uint64_t AGING[] = { 10, 300, 10000 };

    s->profile.places = s->seed / 2 % 2 == 0;
    config->priority_aging_ms = AGING[s->seed / 4 % 3];
}

/* Leaders and followers, in every seventh schedule, without a die as well. Mostly many
 * candidates with IDs want a name or two, so that a holder can choose among them. */
static void some_leaders(struct sim *s, unsigned kinds)
{
    struct sim_profile *p = &s->profile;

    p->leaders = s->seed % 7 == 6 && (kinds & KINDS_LEADERS) != 0;
    if (p->leaders && s->seed % 5 != 0) {
        p->names = p->runs ? p->names : 1 + s->seed % 2;
        p->conns += 4;
        p->ids = p->ids || !p->local;
        p->fair = p->fair && s->seed % 5 == 1;
        p->undelivered = s->seed % 5 == 2 ? p->undelivered : 0;
    }
}

/* A latch, in every seventh schedule, without a die as well. */
static void some_latches(struct sim *s, unsigned kinds)
{
    s->profile.latches = s->seed % 7 == 3 && (kinds & KINDS_LATCHES) != 0;
    if (s->profile.latches) {
        s->profile.conns += 4;
        latches_begin(s);
    }
}

static void set_up(struct sim *s, const struct schedule_options *o)
{
    static const char *const NAMES[] = { "job", "door", "tap" };
    static const uint64_t RTT[] = { 0, 1, 5, 40 };
    struct sim_profile *p = &s->profile;
    struct engine_config config = some_config(s);

    p->faults = some_faults(s) & o->faults;
    s->calm = p->faults == 0;
    p->min_replicas = (p->faults & FAULT_REPLICAS) != 0;
    p->foreign_dies = dice_chance(&s->dice, 600);
    s->orderly =
        (p->faults & ~(unsigned)FAULT_FOREIGN) == 0 && (s->calm || !p->foreign_dies);
    some_kinds(s, o->kinds);
    p->rtt_ms = (unsigned)one_of(s, RTT, 4);
    p->names = dice_between(&s->dice, 1, 3);
    p->conns = dice_between(&s->dice, 2, 10);
    p->undelivered = dice_chance(&s->dice, 300) ? 50 : 0;
    p->ids = dice_chance(&s->dice, 600);
    p->owners = dice_chance(&s->dice, 500);
    p->leases = dice_chance(&s->dice, 600);
    p->force = dice_chance(&s->dice, 200);
    some_runs(s);
    some_local(s, &config);
    some_semaphores(s, o->kinds);
    some_places(s, &config);
    some_leaders(s, o->kinds);
    p->rests = s->seed % 5 == 1;
    s->daemon_count = dice_chance(&s->dice, 400) ? 2 : 1;
    for (size_t i = 0; i < p->names; i++) {
        s->names[i] = sim_redis_name(sim_redis_now(s), span_str(NAMES[i]));
    }
    some_latches(s, o->kinds);
    s->watches = s->seed % 4 != 1;
    for (size_t i = 0; i < s->daemon_count; i++) {
        sim_start_daemon(s, i, &config);
    }
}

static uint64_t some_time(struct sim *s)
{
    static const uint64_t MOST[] = { 0, 3, 50, 1000, 10000 };
    static const unsigned WEIGHTS[] = { 25, 40, 20, 12, 3 };

    return dice_below(&s->dice, MOST[dice_weighted(&s->dice, WEIGHTS, 5)] + 1);
}

static void close_all(struct sim *s)
{
    for (size_t i = 0; i < s->clients.count && !s->failed; i++) {
        size_t d = s->clients.conns[i].daemon;

        if (s->daemons[d].stalled_until > s->now) {
            sim_run(s, s->daemons[d].stalled_until - s->now);
        }
        sim_close(s, i);
    }
    if (!s->failed) {
        sim_run(s, CLOSING_MS + LATCHD_OVER_MS + s->set_back_ms);
    }
}

/* Everybody leaves, everything works again, and nothing may be left. */
static void wind_down(struct sim *s)
{
    TRACE(s, "--- the end: everybody leaves");
    faults_stop(s);
    schedule_learn(s);
    if (dice_chance(&s->dice, 300)) {
        schedule_drain(s);
    }
    sim_run(s, dice_below(&s->dice, 100));
    close_all(s);
    if (!s->failed && schedule_free_values(s)) {
        close_all(s);
    }
    if (!s->failed) {
        check_end(s);
        schedule_poke(s);
    }
    if (!s->failed) {
        latches_end(s);
    }
}

struct sim *schedule_run(uint64_t seed, const struct schedule_options *o)
{
    struct sim *s = sim_new(seed, o->trace != SCHEDULE_QUIET);

    s->loud = o->trace == SCHEDULE_LOUD;
    set_up(s, o);
    for (unsigned i = 0; i < o->steps && !s->failed; i++) {
        unsigned roll = (unsigned)dice_below(&s->dice, 100);

        if (roll < 45) {
            if (s->profile.latches && dice_chance(&s->dice, 500)) {
                latches_act(s);
            } else {
                clients_act(s);
            }
        } else if (roll < 52 && s->profile.faults != 0) {
            faults_act(s);
        } else {
            sim_run(s, some_time(s));
        }
    }
    if (!s->failed) {
        wind_down(s);
    }
    return s;
}
