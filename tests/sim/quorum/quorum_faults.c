/* The faults. */
#include "sim/quorum/quorum.h"

#include <inttypes.h>

static bool one_more_may_fail(struct quorum *q)
{
    unsigned bad = 0;

    for (unsigned i = 0; i < q->server_count; i++) {
        const struct qserver *s = &q->servers[i];

        bad += s->dead || q->now < s->weak_till ? 1 : 0;
    }
    return bad < (q->server_count - 1) / 2;
}

static void server_dies(struct quorum *q, unsigned server)
{
    struct qevent *e;

    if (q->servers[server].dead || !one_more_may_fail(q)) {
        return;
    }
    quorum_trace(q, "s%u: dies", server);
    q->servers[server].dead = true;
    q->servers[server].stopped_till = 0;
    for (size_t i = 0; i < q->daemon_count; i++) {
        qlink_down(q, &q->daemons[i], server);
    }
    e = qevent_new(q, QEVENT_SERVER, q->now + 1 + dice_below(&q->dice, 8000));
    e->server = server;
}

/* Its clock is set, by an hour. If it goes forth all its leases are over at once;
 * scripts that are sent by the time before are too late. */
static void clock_jumps(struct quorum *q, unsigned server)
{
    struct qserver *s = &q->servers[server];
    bool forth = s->ahead_ms < 0 || (s->ahead_ms == 0 && dice_chance(&q->dice, 500));

    if (s->dead || q->now < s->weak_till || !one_more_may_fail(q) ||
        (!forth && q->set_back)) {
        return; /* what is left at one that was set back, is in the way for an hour */
    }
    q->set_back = q->set_back || !forth;
    s->ahead_ms += forth ? QUORUM_HOUR_MS : -QUORUM_HOUR_MS;
    s->set_back = s->set_back || !forth;
    s->weak_till = s->jumped_till = q->now + q->lease_ms + QUORUM_CLOCK_MS;
    quorum_trace(q, "s%u: its clock is an hour %s", server, forth ? "on" : "back");
    for (size_t i = 0; i < q->daemon_count; i++) {
        struct qevent *e =
            qevent_new(q, QEVENT_CLOCK, q->now + dice_below(&q->dice, QUORUM_CLOCK_MS));

        e->daemon = i;
        e->server = server;
    }
}

static void server_stops(struct quorum *q, unsigned server)
{
    uint64_t ms = dice_below(&q->dice, 5000);

    if (q->servers[server].dead || q->now < q->servers[server].stopped_till) {
        return; /* what waits there comes up when it goes on, not sooner */
    }
    quorum_trace(q, "s%u: stops for %d ms", server, (int)ms);
    q->servers[server].stopped_till = q->now + ms;
    for (size_t i = 0; i < q->daemon_count; i++) {
        struct qevent *e = qevent_new(q, QEVENT_SILENT, q->now + q->timeout_ms);

        e->daemon = i;
        e->server = server;
    }
}

static void partition(struct quorum *q, size_t daemon, unsigned server)
{
    struct qdaemon *d = &q->daemons[daemon];

    d->links[server].cut = !d->links[server].cut;
    quorum_trace(q, "d%zu - s%u: %s", daemon, server,
                 d->links[server].cut ? "cut" : "joined");
    if (d->links[server].cut) {
        qlink_down(q, d, server);
    }
}

static void daemon_dies(struct quorum *q, size_t daemon)
{
    struct qevent *e;

    if (q->daemons[daemon].engine == NULL) {
        return;
    }
    qdaemon_kill(q, daemon);
    e = qevent_new(q, QEVENT_DAEMON, q->now + 1 + dice_below(&q->dice, 3000));
    e->daemon = daemon;
}

/* Never so slow that an answer would be missing after the timeout. */
void qfault_slow(struct quorum *q)
{
    unsigned server = (unsigned)dice_below(&q->dice, q->server_count);
    struct qdaemon *d = &q->daemons[dice_below(&q->dice, q->daemon_count)];
    struct qlink *l = &d->links[server];

    l->slow_ms =
        dice_chance(&q->dice, 400) ? 0 : dice_below(&q->dice, q->timeout_ms / 4);
    quorum_trace(q, "d%zu - s%u: %" PRIu64 " ms slower", d->index, server, l->slow_ms);
}

void qfault_act(struct quorum *q)
{
    static const unsigned WEIGHTS[] = { 25, 20, 25, 10, 15, 5, 6 };
    unsigned server = (unsigned)dice_below(&q->dice, q->server_count);
    size_t daemon = dice_below(&q->dice, q->daemon_count);

    switch (dice_weighted(&q->dice, WEIGHTS, 7)) {
    case 0:
        server_dies(q, server);
        break;
    case 1:
        server_stops(q, server);
        break;
    case 2:
        partition(q, daemon, server);
        break;
    case 3:
        q->servers[server].slow_ms =
            dice_chance(&q->dice, 500) ? 0 : dice_below(&q->dice, 300);
        break;
    case 4:
        qlink_down(q, &q->daemons[daemon], server);
        break;
    case 5:
        if (!q->orderly) {
            daemon_dies(q, daemon);
        }
        break;
    default:
        clock_jumps(q, server);
        break;
    }
}

void qfault_heal(struct quorum *q)
{
    q->faults = false;
    for (unsigned i = 0; i < q->server_count; i++) {
        q->servers[i].slow_ms = 0;
        for (size_t d = 0; d < q->daemon_count; d++) {
            q->daemons[d].links[i].cut = false;
            q->daemons[d].links[i].slow_ms = 0;
        }
    }
}
