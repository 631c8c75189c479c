/* Runs: plain LOCKs that come together on one connection. Here each is on one of its
 * own, so that each can be watched, and leave, like any other. */
#include "sim/world/sim_world.h"

#include <stddef.h>

bool sim_is_busy(const struct sim_conn *c)
{
    return c->asking || c->unreached;
}

/* NULL: all ahead of it are answered. */
static const struct sim_conn *ahead_of(const struct sim *s, const struct sim_conn *c)
{
    const struct sim_conn *ahead = &s->clients.conns[c->ahead];

    return c->ahead_arrival != 0 && ahead->open && sim_is_busy(ahead) &&
                   ahead->arrival == c->ahead_arrival
               ? ahead
               : NULL;
}

static void ask_all(struct sim *s, const size_t *conns, size_t count)
{
    struct sim_daemon *d = &s->daemons[s->clients.conns[conns[0]].daemon];
    struct engine *l = sim_turn_begin(s, d);
    struct lock_req reqs[RUN_MAX];
    size_t begun;

    for (size_t i = 0; i < count; i++) {
        struct ask ask = s->clients.conns[conns[i]].ask;

        clients_asks(s, conns[i], &ask);
        if (i > 0) {
            s->clients.conns[conns[i]].ahead_arrival =
                s->clients.conns[conns[i - 1]].arrival;
        }
    }
    for (size_t i = 0; i < count; i++) {
        reqs[i] = lock_req_of(&s->clients.conns[conns[i]]);
    }
    begun = engine_lock_batch(l, reqs, count);
    for (size_t i = begun; i < count; i++) {
        s->clients.conns[conns[i]].asking = false;
        s->clients.conns[conns[i]].unreached = true;
        s->clients.unreached++;
    }
    sim_turn_end(s, d);
}

void sim_ask_run(struct sim *s, const size_t *conns, const struct ask *asks,
                 size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sim_conn *c = &s->clients.conns[conns[i]];

        c->ask = asks[i];
        c->ahead = i == 0 ? 0 : conns[i - 1];
        c->ahead_arrival = 0;
    }
    ask_all(s, conns, count);
}

void check_run(struct sim *s, const struct sim_conn *c)
{
    const struct sim_conn *ahead = ahead_of(s, c);

    if (ahead != NULL) {
        sim_fail(s, "%s is granted before the LOCK of %s ahead of it was answered",
                 c->ask.name.s, ahead->ask.name.s);
    }
}

/* -1: nobody's. */
static ptrdiff_t next_unreached(const struct sim *s, const struct sim_conn *ahead)
{
    for (size_t i = 0; i < s->clients.count; i++) {
        const struct sim_conn *c = &s->clients.conns[i];
        const struct sim_daemon *d = &s->daemons[c->daemon];

        if (c->open && c->unreached && ahead_of(s, c) == ahead && d->engine != NULL &&
            d->stalled_until <= s->now) {
            return (ptrdiff_t)i;
        }
    }
    return -1;
}

void clients_go_on(struct sim *s)
{
    size_t conns[RUN_MAX];
    size_t count = 0;
    ptrdiff_t next;

    if (s->clients.unreached == 0) {
        return;
    }
    while ((next = next_unreached(s, NULL)) >= 0) {
        for (count = 0; next >= 0 && count < RUN_MAX; count++) {
            conns[count] = (size_t)next;
            next = next_unreached(s, &s->clients.conns[next]);
        }
        for (size_t i = 0; i < count; i++) {
            s->clients.conns[conns[i]].unreached = false;
        }
        s->clients.conns[conns[0]].ahead_arrival = 0;
        ask_all(s, conns, count);
    }
    s->clients.unreached = 0;
    for (size_t i = 0; i < s->clients.count; i++) {
        s->clients.unreached += s->clients.conns[i].unreached ? 1 : 0;
    }
}
