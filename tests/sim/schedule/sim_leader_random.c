/* Random leaders and followers. */
#include "sim/schedule/sim_schedule.h"

#include "sim/world/sim_faults.h"

#include <inttypes.h>

enum {
    BACK_MS = 5000,   /* steps, until every daemon works again */
    BACK_MAX = 60,    /* of these */
    LEARN_MS = 3000,  /* within this followers know what Redis has known all the time */
    LEARN_TIMES = 12, /* that are tried, as leases end meanwhile */
};

void leaders_adorn(struct sim *s, struct ask *a)
{
    bool alone = a->lock_kind != KIND_READ && a->lock_kind != KIND_PERMITS;

    if (!s->profile.leaders) {
        return;
    }
    if (alone && a->value.len == 0 && (a->has & OPT_LOCAL) == 0 &&
        dice_chance(&s->dice, 500)) {
        a->data =
            a->owner.len > 0 && dice_chance(&s->dice, 800)
                ? rtext_printf("of-%s", a->owner.s)
                : rtext_printf("data-%04x", (unsigned)dice_below(&s->dice, 65536));
    }
    if ((a->has & (OPT_LEASE | OPT_ENDLESS)) == 0 && a->value.len == 0 &&
        dice_chance(&s->dice, 300)) {
        a->heartbeat_ms = 200 + (uint32_t)dice_below(&s->dice, 2000);
    }
}

void leaders_repeat(struct sim *s, struct ask *a)
{
    if (s->profile.leaders && a->kind == ASK_LOCK && a->lock_kind != KIND_READ &&
        a->lock_kind != KIND_PERMITS && dice_chance(&s->dice, 50)) {
        a->data = rtext_of(SPAN("other"));
    }
}

/* A waiter of that name, whose ID an UNLOCK may name; mostly there is none. */
void leaders_name_heir(struct sim *s, struct ask *a)
{
    size_t from = dice_below(&s->dice, s->clients.count);

    for (size_t i = 0; i < s->clients.count && dice_chance(&s->dice, 900); i++) {
        const struct sim_conn *c = &s->clients.conns[(from + i) % s->clients.count];

        if (c->open && c->asking && c->ask.kind == ASK_LOCK && c->ask.id.len > 0 &&
            rtext_is(&c->ask.name, rtext_span(&a->name))) {
            a->to = c->ask.id;
            return;
        }
    }
}

static void some_follow(struct sim *s, size_t index)
{
    struct sim_conn *c = &s->clients.conns[index];
    size_t i = dice_below(&s->dice, s->profile.names);
    struct ask a = { .kind = ASK_LEADER, .name = s->names[i]->name };

    if (s->profile.limit[i] != 0) {
        return;
    }
    a.has_after = dice_chance(&s->dice, 800);
    a.after = a.has_after ? c->seen_leader[check_name_index(s, s->names[i])] : 0;
    if (dice_chance(&s->dice, 500)) {
        a.has |= OPT_WAIT;
        a.wait_ms = dice_below(&s->dice, 4000);
    }
    sim_ask(s, index, &a);
}

static void follow(struct sim *s, struct sim_daemon *d, size_t i, bool heard)
{
    size_t at = check_name_index(s, s->names[i]);

    if (d->engine != NULL && d->follows[at] != heard) {
        TRACE(s, "d%zu: a client %s leader:%s", d->index,
              heard ? "subscribes to" : "leaves", s->names[i]->name.s);
        d->follows[at] = heard;
        s->check.leaders_told[d->index][at].ever = false;
        s->check.leaders_told[d->index][at].token = 0;
        engine_follow(sim_turn_begin(s, d), rtext_span(&s->names[i]->name), heard);
        sim_turn_end(s, d);
    }
}

/* A leader resigns in favour of a candidate, if there is one. */
static bool resign(struct sim *s, const struct record *r)
{
    size_t index = (size_t)(r->conn & 0xffff);
    const struct sim_conn *c = &s->clients.conns[index];
    struct ask a = { .kind = ASK_UNLOCK, .name = r->name->name };

    if (!r->held || r->over || r->token == 0 || r->value.len > 0 || c->id != r->conn ||
        !c->open || sim_is_busy(c) || s->daemons[c->daemon].stalled_until > s->now ||
        s->daemons[c->daemon].engine == NULL) {
        return false;
    }
    leaders_name_heir(s, &a);
    if (a.to.len == 0) {
        return false;
    }
    a.id = r->id;
    a.owner = r->id.len > 0 ? a.owner : r->owner;
    a.token = r->token;
    sim_ask(s, index, &a);
    return true;
}

static bool some_resign(struct sim *s)
{
    for (size_t i = s->check.record_count; i-- > 0;) {
        if (resign(s, &s->check.records[i])) {
            return true;
        }
    }
    return false;
}

void leaders_act(struct sim *s, size_t index)
{
    struct sim_daemon *d = &s->daemons[s->clients.conns[index].daemon];

    if (dice_chance(&s->dice, 300) && some_resign(s)) {
        return;
    }
    if (dice_chance(&s->dice, 850)) {
        some_follow(s, index);
    } else {
        follow(s, d, dice_below(&s->dice, s->profile.names),
               dice_chance(&s->dice, 700));
    }
}

/* --- the end --------------------------------------------------------------------- */

static bool all_work(const struct sim *s)
{
    for (size_t i = 0; i < s->daemon_count; i++) {
        const struct sim_daemon *d = &s->daemons[i];

        if (d->engine == NULL || !d->told_up || !d->link_works || !d->sub_works ||
            d->stalled_until > s->now) {
            return false;
        }
    }
    return s->redis_paused_until <= s->now;
}

/* Also those who ask now, through each daemon. */
static void ask_all(struct sim *s, const struct redis_name *n)
{
    for (size_t i = 0; i < s->daemon_count && !s->failed; i++) {
        size_t c = sim_connect(s, i);

        sim_say(s, c, "LEADER %s AFTER 1", n->name.s);
        sim_run(s, LEARN_MS / 3);
        if (!s->failed && s->clients.conns[c].asking && !s->daemons[i].isolated) {
            sim_fail(s, "d%zu does not know who leads %s", i, n->name.s);
        }
        sim_close(s, c);
    }
}

/* Leases may end and waits be served meanwhile: then it is tried again. */
static void learn(struct sim *s, struct redis_name *n)
{
    const struct leader_seen *now = &s->check.leaders[check_name_index(s, n)];

    for (int i = 0; i < LEARN_TIMES && !s->failed; i++) {
        uint64_t before;

        check_leaders(s);
        before = now->changes;
        sim_run(s, LEARN_MS);
        check_leaders(s);
        if (now->changes == before && !s->failed) {
            check_followers_know(s, n);
            ask_all(s, n);
            return;
        }
    }
}

void schedule_learn(struct sim *s)
{
    if (!s->profile.leaders) {
        return;
    }
    TRACE(s, "--- followers learn who leads");
    for (int i = 0; i < BACK_MAX && !all_work(s) && !s->failed; i++) {
        sim_run(s, BACK_MS);
    }
    sim_run(s, s->daemons[0].config.quarantine_ms + BACK_MS);
    for (size_t i = 0; i < s->profile.names && !s->failed; i++) {
        if (s->profile.limit[i] == 0 && !s->profile.mixed && !s->profile.local) {
            learn(s, s->names[i]);
        }
    }
    for (size_t i = 0; i < s->daemon_count && !s->failed; i++) {
        for (size_t k = 0; k < s->profile.names; k++) {
            follow(s, &s->daemons[i], k, false);
        }
    }
}
