/* heartbeat: connections that have to say something every so often, as what they hold
 * is to be free soon after their machine vanished.
 *
 * All of them are looked at every SWEEP_MS. One that is overdue is closed by the next
 * sweep only, so that what it sent in time was read before; after a turn of the loop
 * that took long, all times begin anew. */
#include "net/net_priv.h"
#include "util/alloc.h"
#include "util/clock.h"

#include <stdlib.h>

enum {
    SWEEP_MS = 50,
    /* A sweep that is later than that says that this process stood still. */
    STALL_MS = 100,
};

enum heartbeat_state {
    HEARTBEAT_IN_TIME,
    HEARTBEAT_OVERDUE, /* closed by the next sweep, unless it is heard until then */
};

struct heartbeat {
    struct table_node slot; /* key: the conn's id */
    struct conn *conn;
    enum heartbeat_state state;
    uint32_t every_ms;
    uint64_t since; /* its time counts from then, or from its last input */
};

static struct heartbeat *heartbeat_of(const struct conn *c)
{
    return container_of(table_find(&c->net->heartbeats, c->slot.key), struct heartbeat,
                        slot);
}

static struct heartbeat *heartbeat_new(struct conn *c, uint32_t every_ms)
{
    struct net *n = c->net;
    struct heartbeat *b = xcalloc(1, sizeof(*b));

    if (n->heartbeats.count == 0) {
        n->swept_ms = clock_boot_ms();
    }
    b->conn = c;
    b->every_ms = every_ms;
    b->slot.key = c->slot.key;
    table_add(&n->heartbeats, &b->slot);
    c->has_heartbeat = true;
    return b;
}

void net_set_heartbeat(struct net *n, uint64_t conn, uint32_t every_ms)
{
    struct conn *c = net_find(n, conn);
    struct heartbeat *b;

    if (c == NULL) {
        return;
    }
    b = c->has_heartbeat ? heartbeat_of(c) : heartbeat_new(c, every_ms);
    b->state = HEARTBEAT_IN_TIME;
    b->every_ms = every_ms < b->every_ms ? every_ms : b->every_ms;
    b->since = clock_boot_ms();
}

void conn_end_heartbeat(struct conn *c)
{
    struct heartbeat *b;

    if (c->has_heartbeat) {
        b = heartbeat_of(c);
        c->has_heartbeat = false;
        table_remove(&c->net->heartbeats, &b->slot);
        free(b);
    }
}

uint64_t net_next_sweep(const struct net *n)
{
    return n->heartbeats.count == 0 ? UINT64_MAX : n->swept_ms + SWEEP_MS;
}

/* Whether requests of the conn wait: its client may be silent meanwhile. */
static bool is_served(const struct conn *c)
{
    return c->flow != FLOW_FREE || !list_empty(&c->work);
}

static bool is_overdue(const struct heartbeat *b, uint64_t now_ms)
{
    uint64_t heard = b->conn->active_ms > b->since ? b->conn->active_ms : b->since;

    return now_ms > heard && now_ms - heard > b->every_ms;
}

/* Nothing was heard in time: ends the heartbeat if nothing needs it any more, or else
 * the conn. */
static void miss_heartbeat(struct net *n, struct heartbeat *b)
{
    struct conn *c = b->conn;
    uint32_t every_ms;

    n->handler.on_event(n->handler.ctx);
    every_ms = n->handler.heartbeat(n->handler.ctx, c);
    if (every_ms == 0) {
        conn_end_heartbeat(c);
    } else if (every_ms > b->every_ms) {
        b->every_ms = every_ms;
        b->state = HEARTBEAT_IN_TIME;
    } else {
        n->stats.silent++;
        conn_set_end(c, END_HEARTBEAT);
        conn_close(c);
    }
}

static void sweep_one(struct net *n, struct heartbeat *b, bool stalled, uint64_t now_ms)
{
    if (b->conn->state != CONN_OPEN) {
        conn_end_heartbeat(b->conn); /* it ends anyway */
    } else if (stalled || is_served(b->conn)) {
        b->since = now_ms;
        b->state = HEARTBEAT_IN_TIME;
    } else if (!is_overdue(b, now_ms)) {
        b->state = HEARTBEAT_IN_TIME;
    } else if (b->state == HEARTBEAT_IN_TIME) {
        b->state = HEARTBEAT_OVERDUE;
    } else {
        miss_heartbeat(n, b);
    }
}

void net_sweep_heartbeats(struct net *n, uint64_t now_ms)
{
    bool stalled = now_ms > n->swept_ms + SWEEP_MS + STALL_MS;
    struct table_walk walk;
    struct table_node *node;

    if (now_ms < net_next_sweep(n)) {
        return;
    }
    n->swept_ms = now_ms;
    TABLE_FOREACH(node, &walk, &n->heartbeats)
    {
        sweep_one(n, container_of(node, struct heartbeat, slot), stalled, now_ms);
    }
}
