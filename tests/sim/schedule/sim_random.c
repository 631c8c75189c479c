/* Random clients. */
#include "sim/schedule/sim_random_lock.h"
#include "sim/world/sim_faults.h"
#include "sim/world/sim_world.h"

/* Not one that stands still: it would have to be awake to be asked. */
static bool awake(const struct sim *s, size_t d)
{
    return s->daemons[d].engine != NULL && s->daemons[d].stalled_until <= s->now;
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
        a.name = random_name(s)->name;
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
    if (a->atleast_ms == 0 && dice_chance(&s->dice, 300)) {
        a->has &= ~(unsigned)OPT_WAIT;
        random_wait(s, a);
    }
    return true;
}

static struct ask some_cancel(struct sim *s)
{
    struct ask a = { .kind = ASK_CANCEL };

    if (!some_repeat(s, &a) || dice_chance(&s->dice, 200)) {
        a = (struct ask){ .kind = ASK_CANCEL, .owner = random_owner(s) };
        a.name = random_name(s)->name;
        return a;
    }
    return (struct ask){ .kind = ASK_CANCEL, .name = a.name, .id = a.id };
}

static bool some_plain(struct sim *s, struct ask *a)
{
    for (int tries = 0; tries < 4; tries++) {
        *a = random_lock(s);
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
        a.name = random_name(s)->name;
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
        a = random_lock_or_mlock(s);
    }
    sim_ask(s, index, &a);
}

static void look_around(struct sim *s, struct sim_daemon *d);

/* Where names are lent, a holder of one mostly gives it back soon, or nothing would be
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
        struct ask a = { .kind = ASK_LOCK, .has = OPT_LOCAL, .name = n->name };

        if (c->open && !sim_is_busy(c) && c->daemon == daemon) {
            random_wait(s, &a);
            if (s->profile.places) {
                random_place(s, &a);
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
    engine_waiters(l, rtext_span(&random_name(s)->name), 100, count_waiter, &waiters);
    if (names >= 1000) {
        sim_fail(s, "locks_scan does not come to an end");
    }
    sim_turn_end(s, d);
}
