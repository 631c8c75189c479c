#include "sim/world/sim_world.h"

#include "sim/redis/sim_redisson.h"
#include "sim/world/sim_faults.h"

#include <inttypes.h>

enum {
    FOREIGN_SLEEP_MS = 5000, /* at most: less than Redisson, so that schedules move */
    FOREIGN_SPIN_MS = 20,    /* at least */
};

static const char *const KIND_WORDS[] = { [FOREIGN_PLAIN] = "RLock",
                                          [FOREIGN_SPIN] = "SpinLock",
                                          [FOREIGN_FAIR] = "FairLock",
                                          [FOREIGN_READ] = "ReadLock",
                                          [FOREIGN_WRITE] = "WriteLock" };

static size_t index_of(const struct sim *s, const struct sim_foreign *f)
{
    return (size_t)(f - s->foreign);
}

static struct redis_name *touch(struct sim *s, const struct sim_foreign *f)
{
    return sim_redis_name(sim_redis_now(s), rtext_span(&f->name->name));
}

static void act_at(struct sim *s, struct sim_foreign *f, uint64_t at)
{
    struct event *e;

    f->next_at = at;
    f->gen++;
    if (at != UINT64_MAX) {
        e = sim_event(s, EVENT_FOREIGN, at);
        e->name = f->name;
        e->epoch = index_of(s, f);
        e->gen = f->gen;
    }
}

/* Listeners on the channels of a name, as PUBSUB NUMSUB counts it. */
static void count_listeners(struct sim *s, struct redis_name *n)
{
    memset(n->foreign_subscribers, 0, sizeof(n->foreign_subscribers));
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        const struct sim_foreign *f = &s->foreign[i];

        if (f->name == n && f->waits) {
            n->foreign_subscribers[CLASS_PLAIN] += f->kind == FOREIGN_PLAIN ? 1 : 0;
            n->foreign_subscribers[CLASS_RW] +=
                f->kind == FOREIGN_READ || f->kind == FOREIGN_WRITE ? 1 : 0;
        }
    }
}

static void go_idle(struct sim *s, struct sim_foreign *f)
{
    struct redis_name *n = f->name;

    if (!f->dies) {
        s->foreign_before = f->owner;
    }
    f->holds = f->waits = false;
    f->name = NULL;
    f->gen++;
    count_listeners(s, n);
}

static struct redisson_fair fair_of(struct sim *s, const struct sim_foreign *f)
{
    return (struct redisson_fair){
        .owner = rtext_span(&f->owner),
        .lease_ms = f->lease_ms,
        .wait_ms = f->wait_ms,
        .clock = (uint64_t)((int64_t)sim_redis_now(s)->now_ms + f->skew_ms),
    };
}

/* --- taking --------------------------------------------------------------- */

static struct redisson_wait plain_take(struct sim *s, const struct sim_foreign *f)
{
    struct redisson_wait w = { 0 };

    w.taken =
        redis_foreign_take(&s->redis, f->name, rtext_span(&f->owner), f->lease_ms);
    w.wrongtype = f->name->is_string;
    w.ttl_ms = redis_pttl(&s->redis, f->name);
    return w;
}

static struct redisson_wait fair_take(struct sim *s, const struct sim_foreign *f)
{
    struct redisson_fair fair = fair_of(s, f);
    struct redisson_wait w = { 0 };

    if (f->waits) {
        return redis_foreign_fair_take(&s->redis, f->name, &fair);
    }
    w.taken = redis_foreign_fair_try(&s->redis, f->name, &fair);
    return w;
}

static struct redisson_wait take(struct sim *s, const struct sim_foreign *f)
{
    struct span owner = rtext_span(&f->owner);
    struct redis_name *n = touch(s, f);

    switch (f->kind) {
    case FOREIGN_FAIR:
        return fair_take(s, f);
    case FOREIGN_READ:
        return redis_foreign_read(&s->redis, n, owner, f->lease_ms);
    case FOREIGN_WRITE:
        return redis_foreign_write(&s->redis, n, owner, f->lease_ms);
    default:
        return plain_take(s, f);
    }
}

static uint64_t next_step(const struct sim *s, const struct sim_foreign *f)
{
    uint64_t renewal = s->now + f->lease_ms / 3;

    return f->watched && renewal < f->end_at ? renewal : f->end_at;
}

static void taken(struct sim *s, struct sim_foreign *f)
{
    TRACE(s, "Redisson %zu takes %s (%s) for %" PRIu64, index_of(s, f), f->name->name.s,
          KIND_WORDS[f->kind], f->lease_ms);
    f->holds = true;
    f->waits = false;
    f->excused = false;
    f->until = s->now + f->lease_ms;
    f->end_at = s->now + dice_between(&s->dice, 1, f->lease_ms + f->lease_ms / 4);
    s->check.freed_ms[check_name_index(s, f->name)] = 0;
    count_listeners(s, f->name);
    act_at(s, f, next_step(s, f));
}

static void sleep_on(struct sim *s, struct sim_foreign *f, int64_t ttl)
{
    uint64_t least =
        f->kind == FOREIGN_SPIN || f->kind == FOREIGN_FAIR ? FOREIGN_SPIN_MS : 1;
    uint64_t ms = ttl < 0 || ttl > FOREIGN_SLEEP_MS ? FOREIGN_SLEEP_MS : (uint64_t)ttl;

    if (f->kind == FOREIGN_SPIN) {
        ms = least;
    }
    ms = ms < least ? least : ms;
    act_at(s, f, s->now + ms < f->end_at ? s->now + ms : f->end_at);
}

static void try(struct sim *s, struct sim_foreign *f)
{
    struct redisson_wait w;

    check_queue_before(s, touch(s, f));
    w = take(s, f);
    if (w.taken && f->kind == FOREIGN_FAIR) {
        check_scores_fell(s, f->name, f->wait_ms);
    }
    check_queue_after(s, f->name, NULL);
    if (w.taken) {
        taken(s, f);
    } else if (!f->waits || w.wrongtype) {
        go_idle(s, f);
    } else {
        sleep_on(s, f, w.ttl_ms);
    }
}

static void give_up(struct sim *s, struct sim_foreign *f)
{
    TRACE(s, "Redisson %zu %s %s", index_of(s, f),
          f->dies ? "dies waiting for" : "waits no longer for", f->name->name.s);
    if (f->kind == FOREIGN_FAIR && !f->dies) {
        struct redisson_fair fair = fair_of(s, f);
        struct redis_name *n = touch(s, f);

        check_queue_before(s, n);
        redis_foreign_fair_failed(&s->redis, n, &fair);
        check_scores_fell(s, n, f->wait_ms);
        check_queue_after(s, n, NULL);
        /* It may have been told that the lock is free; the next one is not. */
        s->check.freed_ms[check_name_index(s, n)] = 0;
    }
    if (f->dies) {
        foreign_die(s, f);
    } else {
        go_idle(s, f);
    }
}

/* --- holding -------------------------------------------------------------- */

/* Its own script may have cut the lease of others: Redisson's defect W2. */
static void cut(struct sim *s, const struct sim_foreign *f, uint64_t expired)
{
    const struct redis_name *n = f->name;

    if (n->field_count == 0 || n->expires >= expired) {
        return;
    }
    TRACE(s, "Redisson cuts the lease of %s to %" PRIu64, n->name.s,
          n->expires - s->redis.now_ms);
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        s->foreign[i].excused = s->foreign[i].excused || s->foreign[i].name == n;
    }
    check_cut(s, f->name);
}

/* A reader's hash field may outlive its lease, if others read: then its renewal says
 * that all is well, but the next one to leave takes it along. */
static bool has_ended(struct redis_name *n, const struct sim_foreign *f)
{
    return f->kind == FOREIGN_READ &&
           redis_hold_key(n, rtext_span(&f->owner), 1) == NULL;
}

static void renew(struct sim *s, struct sim_foreign *f)
{
    struct redis_name *n = touch(s, f);
    struct span owner = rtext_span(&f->owner);
    struct rtext writer = rtext_printf("%s:write", f->owner.s);
    uint64_t expired = n->expires;
    bool ended = has_ended(n, f);
    bool there;

    if (f->kind == FOREIGN_READ) {
        there = redis_foreign_renew_reads(&s->redis, n, owner, f->lease_ms);
    } else {
        there = redis_foreign_renew(
            &s->redis, n, f->kind == FOREIGN_WRITE ? rtext_span(&writer) : owner,
            f->lease_ms);
    }
    TRACE(s, "Redisson %zu renews %s%s", index_of(s, f), n->name.s,
          there ? "" : ", which it has lost");
    if (there && !ended) {
        f->until = s->now + f->lease_ms;
    }
    cut(s, f, expired);
    act_at(s, f, there ? next_step(s, f) : f->end_at);
}

static void unlock(struct sim *s, struct sim_foreign *f)
{
    struct redis_name *n = touch(s, f);
    struct span owner = rtext_span(&f->owner);
    struct redisson_fair fair = fair_of(s, f);

    TRACE(s, "Redisson %zu releases %s", index_of(s, f), n->name.s);
    f->holds = false; /* before anybody hears of it */
    check_queue_before(s, n);
    switch (f->kind) {
    case FOREIGN_FAIR:
        (void)redis_foreign_fair_release(&s->redis, n, &fair);
        break;
    case FOREIGN_READ:
        (void)redis_foreign_unread(&s->redis, n, owner);
        break;
    case FOREIGN_WRITE:
        (void)redis_foreign_unwrite(&s->redis, n, owner);
        break;
    default:
        (void)redis_foreign_release(&s->redis, n, owner, f->kind == FOREIGN_PLAIN);
    }
    check_queue_after(s, n, NULL);
}

void foreign_release(struct sim *s, struct sim_foreign *f)
{
    if (f->holds) {
        unlock(s, f);
        go_idle(s, f);
    }
}

void foreign_die(struct sim *s, struct sim_foreign *f)
{
    TRACE(s, "Redisson %zu is dead", index_of(s, f));
    go_idle(s, f);
}

/* --- events --------------------------------------------------------------- */

void foreign_event(struct sim *s, size_t index, uint64_t gen)
{
    struct sim_foreign *f = &s->foreign[index];

    if (f->name == NULL || f->gen != gen) {
        return;
    }
    if (s->now < s->redis_paused_until) {
        act_at(s, f, s->redis_paused_until);
    } else if (f->holds && s->now >= f->end_at) {
        if (f->dies) {
            foreign_die(s, f);
        } else {
            foreign_release(s, f);
        }
    } else if (f->holds) {
        renew(s, f);
    } else if (f->waits && s->now >= f->end_at) {
        give_up(s, f);
    } else {
        try(s, f);
    }
}

static bool listens(const struct sim_foreign *f, const struct redis_message *m)
{
    if (f->name != m->name || !f->waits) {
        return false;
    }
    if (m->member.len > 0) {
        return f->kind == FOREIGN_FAIR && rtext_is(&f->owner, m->member);
    }
    return m->lock_class == CLASS_RW
               ? f->kind == FOREIGN_READ || f->kind == FOREIGN_WRITE
               : f->kind == FOREIGN_PLAIN;
}

void foreign_hears(struct sim *s, const struct redis_message *m)
{
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        struct sim_foreign *f = &s->foreign[i];
        uint64_t at = s->now + sim_delay(s) + s->profile.foreign_ms;

        if (listens(f, m) && at < f->next_at) {
            act_at(s, f, at);
        }
    }
}

/* --- beginning and end ---------------------------------------------------- */

struct sim_foreign *foreign_start(struct sim *s, struct redis_name *n,
                                  enum foreign_kind kind, bool waits)
{
    size_t i = 0;
    struct sim_foreign *f;

    while (i < SIM_FOREIGNS_MAX && s->foreign[i].name != NULL) {
        i++;
    }
    if (i == SIM_FOREIGNS_MAX) {
        return NULL;
    }
    f = &s->foreign[i];
    *f = (struct sim_foreign){ .name = n, .kind = kind, .waits = waits, .gen = f->gen };
    f->owner = rtext_printf("7d1f6bd4-83a1-4ce0-9b43-0f6a1d7b2a10:%" PRIu64,
                            42 + s->foreign_serial++);
    f->lease_ms = REDISSON_WATCHDOG_MS;
    f->wait_ms = REDISSON_FAIR_WAIT_MS;
    f->end_at = f->next_at = UINT64_MAX;
    count_listeners(s, n);
    return f;
}

void foreign_act_now(struct sim *s, struct sim_foreign *f)
{
    act_at(s, f, s->now);
}

void foreign_stop(struct sim *s)
{
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        struct sim_foreign *f = &s->foreign[i];

        if (f->waits) {
            f->end_at = s->now;
            give_up(s, f);
        } else if (f->holds) {
            f->watched = false;
        }
    }
}

/* --- checks --------------------------------------------------------------- */

static bool there(struct redis_name *n, const struct sim_foreign *f)
{
    struct rtext writer = rtext_printf("%s:write", f->owner.s);

    if (f->kind == FOREIGN_WRITE) {
        return n->mode == MODE_WRITE && redis_field(n, rtext_span(&writer)) != NULL;
    }
    if (redis_field(n, rtext_span(&f->owner)) == NULL) {
        return false;
    }
    /* It may write as well, if it did before. */
    return f->kind != FOREIGN_READ || n->mode == MODE_READ ||
           redis_field(n, rtext_span(&writer)) != NULL;
}

void foreign_check(struct sim *s, const struct redis_name *n, size_t daemon)
{
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        struct sim_foreign *f = &s->foreign[i];

        if (f->name == n && f->holds && !f->excused && s->now < f->until &&
            !there(f->name, f)) {
            sim_fail(s, "d%zu took %s from Redisson %zu (%s)", daemon, n->name.s, i,
                     KIND_WORDS[f->kind]);
        }
    }
}

void foreign_excuse(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < SIM_FOREIGNS_MAX; i++) {
        if (n == NULL || s->foreign[i].name == n) {
            s->foreign[i].excused = true;
        }
    }
}
