/* Random clients. */
#include "latchd/protocol.h"
#include "sim/world/sim_faults.h"
#include "sim/world/sim_world.h"

#include <inttypes.h>

/* Not one that stands still: it would have to be awake to be asked. */
static bool awake(const struct sim *s, size_t d)
{
    return s->daemons[d].engine != NULL && s->daemons[d].stalled_until <= s->now;
}

static struct redis_name *some_name(struct sim *s)
{
    return s->names[dice_below(&s->dice, s->profile.names)];
}

static void some_permits(struct sim *s, struct ask *a, uint32_t limit)
{
    a->lock_kind = KIND_PERMITS;
    a->permits =
        dice_chance(&s->dice, 700) ? 1 : 1 + (uint32_t)dice_below(&s->dice, limit);
    a->limit = dice_chance(&s->dice, 900) ? limit : 0;
}

/* A name in one of the kinds of its family, or, where that is tried, of the other. */
static void some_name_and_kind(struct sim *s, struct ask *a)
{
    size_t i = dice_below(&s->dice, s->profile.names);
    bool rw = s->profile.rw[i];
    bool is_lock = s->profile.limit[i] == 0;

    if (s->profile.mixed && dice_chance(&s->dice, 100)) {
        /* A semaphore that lost its counter is a free name to who wants a lock. */
        rw = is_lock ? !rw : rw;
    }
    a->name = s->names[i]->name;
    if (!is_lock && !rw) {
        some_permits(s, a, s->profile.limit[i]);
    } else if (rw) {
        a->lock_kind = dice_chance(&s->dice, 650) ? KIND_READ : KIND_WRITE;
    } else if (s->profile.fair && dice_chance(&s->dice, 500)) {
        a->lock_kind = KIND_FAIR;
    }
}

static struct rtext some_owner(struct sim *s)
{
    return rtext_printf("owner-%c", 'a' + (int)dice_below(&s->dice, s->profile.names));
}

/* --- LOCK ---------------------------------------------------------------- */

static void some_wait(struct sim *s, struct ask *a)
{
    static const uint64_t MOST[] = { 0, 50, 3000, 60000 };
    static const unsigned WEIGHTS[] = { 20, 25, 35, 8, 12 };
    size_t i = dice_weighted(&s->dice, WEIGHTS, 5);

    if (i < 4) {
        a->has |= LOCK_HAS_WAIT;
        a->wait_ms = dice_below(&s->dice, MOST[i] + 1);
    }
}

static void some_id(struct sim *s, struct ask *a)
{
    a->id = rtext_printf("request-%08" PRIx64, dice_u64(&s->dice) & 0xffffffff);
    if (dice_chance(&s->dice, 400)) {
        a->has |= LOCK_HAS_KEEP;
        a->keep_ms = dice_chance(&s->dice, 300) ? 0 : dice_between(&s->dice, 10, 3000);
    }
}

static void some_place(struct sim *s, struct ask *a)
{
    if (a->lock_kind != KIND_FAIR && dice_chance(&s->dice, 500)) {
        a->priority = (uint8_t)dice_below(&s->dice, LATCHD_PRIORITY_MAX + 1);
    }
    if (dice_chance(&s->dice, 200)) {
        a->has |= LOCK_HAS_QUEUE;
        a->queue_max = (uint32_t)dice_below(&s->dice, 4);
    }
}

static struct ask some_lock(struct sim *s)
{
    struct ask a = { .kind = ASK_LOCK };

    some_name_and_kind(s, &a);
    some_wait(s, &a);
    if (s->profile.owners && dice_chance(&s->dice, 350) &&
        a.lock_kind != KIND_PERMITS) {
        a.owner = some_owner(s);
    }
    if (s->profile.ids && dice_chance(&s->dice, 450)) {
        some_id(s, &a);
    }
    if (a.lock_kind == KIND_PLAIN && a.owner.len == 0 && a.id.len == 0 &&
        dice_chance(&s->dice, s->profile.local ? 50 : 200)) {
        a.value =
            rtext_printf(ASK_ORIGIN "value-%c", 'a' + (int)dice_below(&s->dice, 2));
        a.polls_for_ms = dice_chance(&s->dice, 500) ? dice_below(&s->dice, 3000) : 0;
    }
    if (a.value.len > 0 && s->profile.leases && dice_chance(&s->dice, 250)) {
        a.has |= LOCK_IS_ENDLESS;
    } else if (s->profile.leases && dice_chance(&s->dice, 350)) {
        a.has |= LOCK_HAS_LEASE;
        a.lease_ms = dice_chance(&s->dice, 500) ? dice_between(&s->dice, 100, 1000)
                                                : dice_between(&s->dice, 1000, 30000);
    } else if (dice_chance(&s->dice, 300)) {
        a.has |= LOCK_HAS_GRACE;
        a.grace_ms = dice_chance(&s->dice, 500) ? 0 : dice_below(&s->dice, 2000);
    }
    if (s->profile.local && a.lock_kind == KIND_PLAIN && a.owner.len == 0 &&
        a.id.len == 0 && a.value.len == 0) {
        a.has |= LOCK_IS_LOCAL;
    }
    if (s->profile.places && a.value.len == 0) {
        some_place(s, &a);
    }
    leaders_adorn(s, &a);
    return a;
}

/* Several names in any order; of one family, or it could not but fail. */
static bool some_names(struct sim *s, struct ask *a)
{
    size_t from = dice_below(&s->dice, s->profile.names);
    size_t step = dice_between(&s->dice, 1, 2);

    for (size_t i = 0; i < s->profile.names; i++) {
        size_t k = (from + i * step) % s->profile.names;
        bool twice = step > 1 && s->profile.names % 2 == 0 && i > 0;

        if (!twice && s->profile.limit[k] == 0 &&
            (!s->profile.rw[k] || s->profile.mixed)) {
            a->names[a->name_count++] = s->names[k]->name;
        }
    }
    if (a->name_count > 2 && dice_chance(&s->dice, 500)) {
        a->name_count = 2;
    }
    a->name = a->names[0];
    return a->name_count > 0;
}

static struct ask some_mlock(struct sim *s)
{
    struct ask a = some_lock(s);

    if (!s->profile.mlock || dice_chance(&s->dice, 700)) {
        return a;
    }
    a.kind = ASK_MLOCK;
    a.lock_kind = KIND_PLAIN;
    a.has &= ~(unsigned)LOCK_HAS_QUEUE;
    a.data.len = 0;
    if (!some_names(s, &a)) {
        return some_lock(s);
    }
    return a;
}

/* --- about a hold -------------------------------------------------------- */

static struct record *some_record(struct sim *s, const struct sim_conn *c)
{
    struct sim_check *ck = &s->check;
    size_t back = ck->record_count < 12 ? ck->record_count : 12;

    for (int tries = 0; tries < 6 && back > 0; tries++) {
        struct record *r =
            &ck->records[ck->record_count - 1 - dice_below(&s->dice, back)];
        bool own = r->conn == c->id;

        if (dice_chance(&s->dice, own ? 900 : 250) && (!r->over || tries == 5)) {
            return r;
        }
    }
    return NULL;
}

static void name_hold(struct sim *s, struct ask *a, const struct record *r)
{
    a->name = r->name->name;
    if (r->kind != KIND_PLAIN && r->kind != KIND_PERMITS &&
        (r->owner.len > 0 || dice_chance(&s->dice, 300))) {
        a->lock_kind = r->kind;
    }
    if (r->value.len > 0 && dice_chance(&s->dice, 700)) {
        a->value = r->value;
    } else if (r->id.len > 0 && dice_chance(&s->dice, 700)) {
        a->id = r->id;
    } else if (r->owner.len > 0) {
        a->owner = r->owner;
        a->token = dice_chance(&s->dice, 300) ? r->token : 0;
    } else if (dice_chance(&s->dice, 900)) {
        a->token = r->token;
    } /* else bare */
}

static struct ask some_unlock(struct sim *s, const struct record *r)
{
    struct ask a = { .kind = ASK_UNLOCK };

    name_hold(s, &a, r);
    if (s->profile.leaders && dice_chance(&s->dice, 700)) {
        leaders_name_heir(s, &a);
    }
    return a;
}

static struct ask some_renew(struct sim *s, const struct record *r)
{
    struct ask a = { .kind = ASK_RENEW };

    name_hold(s, &a, r);
    if (dice_chance(&s->dice, 300)) {
        a.lease_ms = dice_between(&s->dice, 100, 10000);
    }
    return a;
}

static struct ask some_force(struct sim *s, const struct record *r)
{
    struct ask a = { .kind = ASK_FORCE };

    if (r == NULL || dice_chance(&s->dice, 300)) {
        a.name = some_name(s)->name;
        a.any = true;
    } else {
        a.name = r->name->name;
        a.owner = r->owner;
        a.token = r->owner.len > 0 ? 0 : r->token;
    }
    return a;
}

/* The same LOCK again: what a retrying library does. */
static bool some_repeat(struct sim *s, struct ask *a)
{
    const struct sim_conn *c =
        &s->clients.conns[dice_below(&s->dice, s->clients.count)];

    if ((c->ask.kind != ASK_LOCK && c->ask.kind != ASK_MLOCK) || c->ask.id.len == 0) {
        return false;
    }
    *a = c->ask;
    leaders_repeat(s, a);
    if (dice_chance(&s->dice, 300)) {
        a->has &= ~(unsigned)LOCK_HAS_WAIT;
        some_wait(s, a);
    }
    return true;
}

static struct ask some_cancel(struct sim *s)
{
    struct ask a = { .kind = ASK_CANCEL };

    if (!some_repeat(s, &a) || dice_chance(&s->dice, 200)) {
        a = (struct ask){ .kind = ASK_CANCEL, .owner = some_owner(s) };
        a.name = some_name(s)->name;
        return a;
    }
    return (struct ask){ .kind = ASK_CANCEL, .name = a.name, .id = a.id };
}

static bool some_plain(struct sim *s, struct ask *a)
{
    for (int tries = 0; tries < 4; tries++) {
        *a = some_lock(s);
        if (a->lock_kind == KIND_PLAIN || a->lock_kind == KIND_FAIR) {
            a->lock_kind = KIND_PLAIN;
            return true;
        }
    }
    return false;
}

/* It, and others that are idle, as one connection that sends plain LOCKs together. */
static void some_run(struct sim *s, size_t index)
{
    struct sim_clients *cl = &s->clients;
    size_t most = dice_between(&s->dice, 2, RUN_MAX);
    size_t conns[RUN_MAX];
    struct ask asks[RUN_MAX];
    size_t count = 0;

    for (size_t i = 0; i < cl->count && count < most; i++) {
        size_t k = (index + i) % cl->count;
        const struct sim_conn *c = &cl->conns[k];

        if (c->open && !sim_is_busy(c) && c->daemon == cl->conns[index].daemon &&
            some_plain(s, &asks[count])) {
            conns[count++] = k;
        }
    }
    if (count > 0) {
        sim_ask_run(s, conns, asks, count);
    }
}

static void act_idle(struct sim *s, size_t index)
{
    struct sim_conn *c = &s->clients.conns[index];
    static const unsigned WEIGHTS[] = { 45, 32, 7, 2, 2, 2, 6, 8, 60 };
    size_t what = dice_weighted(&s->dice, WEIGHTS, s->profile.runs ? 9 : 8);
    struct record *r = some_record(s, c);
    struct ask a;

    switch (what) {
    case 1:
    case 2:
        if (r == NULL) {
            return;
        }
        a = what == 1 ? some_unlock(s, r) : some_renew(s, r);
        break;
    case 3:
        if (!s->profile.force) {
            return;
        }
        a = some_force(s, r);
        break;
    case 4:
        a = (struct ask){ .kind = ASK_INFO };
        a.name = some_name(s)->name;
        break;
    case 5:
        a = some_cancel(s);
        break;
    case 6:
        sim_close(s, index);
        return;
    case 7:
        if (!s->profile.ids || !some_repeat(s, &a)) {
            return;
        }
        break;
    case 8:
        if (s->profile.runs) {
            some_run(s, index);
        }
        return;
    default:
        a = some_mlock(s);
    }
    sim_ask(s, index, &a);
}

static void look_around(struct sim *s, struct sim_daemon *d);

/* Where names are lent, whoever has one mostly gives it back soon, or nothing would be
 * granted from memory. */
static bool give_back(struct sim *s)
{
    for (size_t i = s->check.record_count; i-- > 0;) {
        const struct record *r = &s->check.records[i];

        for (size_t k = 0;
             r->held && !r->over && r->kind == KIND_PLAIN && k < s->clients.count;
             k++) {
            const struct sim_conn *c = &s->clients.conns[k];

            if (c->id == r->conn && c->open && !sim_is_busy(c) && awake(s, c->daemon)) {
                struct ask a = some_unlock(s, r);

                sim_ask(s, k, &a);
                return true;
            }
        }
    }
    return false;
}

/* An idle connection to that daemon asks for a name that may be lent. */
static void ask_local(struct sim *s, size_t daemon, const struct redis_name *n)
{
    for (size_t k = 0; k < s->clients.count; k++) {
        const struct sim_conn *c = &s->clients.conns[k];
        struct ask a = { .kind = ASK_LOCK, .has = LOCK_IS_LOCAL, .name = n->name };

        if (c->open && !sim_is_busy(c) && c->daemon == daemon) {
            some_wait(s, &a);
            if (s->profile.places) {
                some_place(s, &a);
            }
            sim_ask(s, k, &a);
            return;
        }
    }
}

/* The same for several names, by one idle connection. */
static void run_local(struct sim *s, size_t daemon)
{
    for (size_t k = 0; k < s->clients.count; k++) {
        const struct sim_conn *c = &s->clients.conns[k];

        if (c->open && !sim_is_busy(c) && c->daemon == daemon) {
            some_run(s, k);
            return;
        }
    }
}

/* Clients of one daemon that take a name for moments, one after the other. */
static void some_burst(struct sim *s)
{
    size_t turns = dice_between(&s->dice, 2, 12);
    size_t daemon = dice_below(&s->dice, s->daemon_count);
    size_t name = dice_below(&s->dice, s->profile.names);
    const struct redis_name *n = s->names[name];

    if (s->profile.rw[name]) {
        return;
    }
    for (size_t i = 0; i < turns && awake(s, daemon) && !s->failed; i++) {
        if (s->profile.runs && dice_chance(&s->dice, 500)) {
            run_local(s, daemon);
        } else if (dice_chance(&s->dice, 700)) {
            ask_local(s, daemon, n);
        }
        sim_run(s, dice_below(&s->dice, 3));
        if (!s->failed && dice_chance(&s->dice, 700)) {
            (void)give_back(s);
        }
        if (!s->failed && s->profile.faults != 0 && dice_chance(&s->dice, 40)) {
            faults_act(s);
        }
    }
}

void clients_act(struct sim *s)
{
    size_t index = dice_below(&s->dice, s->profile.conns);
    size_t d = dice_below(&s->dice, s->daemon_count);

    if (s->profile.local && dice_chance(&s->dice, 100)) {
        some_burst(s);
        return;
    }
    if (s->profile.local && dice_chance(&s->dice, 300) && give_back(s)) {
        return;
    }
    if (index >= s->clients.count || !s->clients.conns[index].open) {
        if (awake(s, d)) {
            index = sim_connect(s, d);
        }
        return;
    }
    if (!awake(s, s->clients.conns[index].daemon)) {
        return;
    }
    if (!sim_is_busy(&s->clients.conns[index])) {
        if (s->profile.leaders && dice_chance(&s->dice, 300)) {
            leaders_act(s, index);
        } else {
            act_idle(s, index);
        }
    } else if (dice_chance(&s->dice, 120)) {
        sim_close(s, index);
    } else if (dice_chance(&s->dice, 30)) {
        look_around(s, &s->daemons[s->clients.conns[index].daemon]);
    }
}

/* --- questions without an answer to check -------------------------------- */

static void count_name(void *ctx, struct span name)
{
    (void)name;
    ++*(size_t *)ctx;
}

static void count_waiter(void *ctx, const struct waiter_info *info)
{
    (void)info;
    ++*(size_t *)ctx;
}

static void look_around(struct sim *s, struct sim_daemon *d)
{
    struct engine *l = sim_turn_begin(s, d);
    size_t names = 0;
    size_t waiters = 0;
    uint64_t cursor = 0;

    do {
        cursor = engine_scan(l, cursor, 2, count_name, &names);
    } while (cursor != 0 && names < 1000);
    engine_waiters(l, rtext_span(&some_name(s)->name), 100, count_waiter, &waiters);
    if (names >= 1000) {
        sim_fail(s, "locks_scan does not come to an end");
    }
    sim_turn_end(s, d);
}
