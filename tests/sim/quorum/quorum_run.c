/* One schedule: servers and daemons, and the end. */
#include "sim/quorum/quorum.h"
#include "util/alloc.h"

#include <stdlib.h>

enum { SETTLE_MS = 3000 }; /* less than a lease: what is over then was undone */

static void set_up(struct quorum *q, const struct quorum_options *o)
{
    static const uint64_t RTT[] = { 0, 1, 5, 30 };

    q->server_count = dice_chance(&q->dice, 650) ? 3 : 5;
    q->rtt_ms = RTT[dice_below(&q->dice, 4)];
    q->lease_ms = dice_chance(&q->dice, 500) ? 10000 : 4000;
    q->timeout_ms = dice_chance(&q->dice, 500) ? 1000 : 500;
    q->quarantine_ms = o->no_quarantine ? 0 : q->lease_ms;
    q->daemon_count = o->daemons != 0 ? o->daemons : dice_between(&q->dice, 1, 5);
    q->name_count = o->names != 0 ? o->names : dice_between(&q->dice, 1, 3);
    q->client_count = o->clients != 0 ? o->clients : dice_between(&q->dice, 2, 10);
    q->orderly = dice_chance(&q->dice, 300);
    q->faults = !o->calm && dice_chance(&q->dice, 800);
    q->slow = !o->calm && q->seed % 8 == 7;
    q->faults = q->faults && !q->slow;
    for (unsigned i = 0; i < q->server_count; i++) {
        q->servers[i].all = q;
        q->servers[i].born = q->now;
        q->servers[i].keeps = dice_chance(&q->dice, 400);
        sim_redis_init(&q->servers[i].redis);
        q->servers[i].redis.hooks.ctx = &q->servers[i];
        q->servers[i].redis.hooks.published = qserver_published;
    }
    if (dice_chance(&q->dice, 400)) {
        q->servers[0].ahead_ms =
            dice_chance(&q->dice, 500) ? QUORUM_HOUR_MS : -QUORUM_HOUR_MS;
    }
    for (size_t i = 0; i < q->daemon_count; i++) {
        q->daemons[i].wall_ahead_ms = (int64_t)dice_below(&q->dice, 2000);
        for (unsigned k = 0; k < q->server_count; k++) {
            list_init(&q->daemons[i].links[k].open);
        }
        qdaemon_start(q, i);
    }
    for (size_t i = 0; i < q->client_count; i++) {
        q->clients[i].next_at = q->now + 50 + dice_below(&q->dice, 100);
    }
}

static void leave(struct quorum *q)
{
    q->draining = true;
    for (size_t i = 0; i < q->client_count && !q->failed; i++) {
        if (q->clients[i].state == QCLIENT_HOLDS) {
            qclient_leave(q, &q->clients[i]);
        }
    }
}

/* All leave at once, and nothing is left to lapse: it is released wherever it was, and
 * what a minority granted is undone. */
static void leave_at_once(struct quorum *q)
{
    quorum_trace(q, "--- all leave");
    qfault_heal(q);
    q->draining = true;
    for (size_t i = 0; i < q->client_count && !q->failed; i++) {
        qclient_leave(q, &q->clients[i]);
    }
    quorum_advance(q, q->timeout_ms + 1500);
    if (!q->failed && q->orderly) {
        quorum_check_end(q);
    }
}

/* Nothing fails any more: all waiters are served, all is given back, nothing stays. */
static void wind_down(struct quorum *q)
{
    quorum_trace(q, "--- the end");
    qfault_heal(q);
    q->draining = true;       /* nobody begins anew */
    quorum_advance(q, 10000); /* servers and daemons come back */
    quorum_advance(q, 3 * q->lease_ms + q->client_count * 2 * q->lease_ms);
    leave(q);
    quorum_advance(q, SETTLE_MS);
    if (!q->failed) {
        quorum_check_end(q);
    }
}

static bool all_there(const struct quorum *q)
{
    for (unsigned i = 0; i < q->server_count; i++) {
        if (q->servers[i].dead || q->servers[i].stopped_till > q->now ||
            q->servers[i].slow_ms != 0) {
            return false;
        }
    }
    return true;
}

struct quorum *quorum_run(uint64_t seed, const struct quorum_options *o)
{
    struct quorum *q = xcalloc(1, sizeof(*q));

    q->seed = seed;
    q->now = QUORUM_START_MS;
    q->loud = o->loud;
    dice_init(&q->dice, seed);
    heap_init(&q->events);
    set_up(q, o);
    for (unsigned i = 0; i < o->steps && !q->failed; i++) {
        if (q->faults && dice_chance(&q->dice, 250)) {
            qfault_act(q);
        } else if (q->slow && dice_chance(&q->dice, 150)) {
            qfault_slow(q);
        }
        quorum_advance(q,
                       dice_below(&q->dice, dice_chance(&q->dice, 100) ? 2000 : 100));
    }
    if (!q->failed && q->orderly && all_there(q)) {
        leave_at_once(q);
    } else if (!q->failed) {
        wind_down(q);
    }
    return q;
}

void quorum_free(struct quorum *q)
{
    struct heap_node *node;

    for (size_t i = 0; i < q->daemon_count; i++) {
        qdaemon_kill(q, i);
    }
    while ((node = heap_min(&q->events)) != NULL) {
        heap_remove(&q->events, node);
        free(container_of(node, struct qevent, node));
    }
    heap_fini(&q->events);
    for (unsigned i = 0; i < q->server_count; i++) {
        sim_redis_fini(&q->servers[i].redis);
    }
    free(q);
}
