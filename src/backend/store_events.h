/* store_events: what the store reports to the daemon, and a node to its owner, of the
 * ops and the state of Redis; store_listener: what comes on a node's links without an
 * op. A backend that has no part in the latter hands its listener to the node as it is.
 *
 * No event comes during a call into the store: events come from the loop. */
#ifndef LATCHD_BACKEND_STORE_EVENTS_H
#define LATCHD_BACKEND_STORE_EVENTS_H

#include "engine/lock_kind.h"
#include "engine/op.h"

#include <stdbool.h>

/* Whether the event is about the names of that group (engine/engine.h). */
typedef bool store_concerns_fn(void *ctx, unsigned group);

struct store_events {
    void *ctx;
    void (*on_result)(void *ctx, const struct op_result *result);
    /* As engine_on_failover() and so on want it, before on_up or while the store is up.
     * A node reports it (unless it is NULL, without `concerns`) when its server was a
     * replica meanwhile, or is another one that ran already beside the last one. */
    void (*on_failed_over)(void *ctx, store_concerns_fn *concerns, void *arg);
    /* Not reported by a node. */
    void (*on_nothing_was_lost)(void *ctx, store_concerns_fn *concerns, void *arg);
    void (*on_up)(void *ctx, bool same_server);
    void (*on_down)(void *ctx);
};

struct store_listener {
    void *ctx;
    void (*on_clock_jumped)(void *ctx);
    /* The clock of a server is behind `us`, where it was, or that of the server before
     * it at the same link. NULL: it does not matter. */
    void (*on_clock_behind)(void *ctx, uint64_t us);
    /* From now on no message of this name is missed; once for each subscription, and
     * after each loss. */
    void (*on_subscribed)(void *ctx, struct span name, enum lock_class lock_class);
    /* The pub/sub link is gone. */
    void (*on_unsubscribed_all)(void *ctx);
    /* On the channel of that name, or on that of a member of its fair queue: then
     * whoever the member belongs to, `n` and `{n}` are both told. */
    void (*on_message)(void *ctx, struct span name, enum lock_class lock_class,
                       struct span payload);
    /* Announcements of daemons are received from now on; also after each reconnect. */
    void (*on_listening)(void *ctx);
    void (*on_announced)(void *ctx, struct span text);
    /* By store_hear(), for the pattern, or for the channel itself (SPAN_NONE). */
    void (*on_published)(void *ctx, struct span pattern, struct span channel,
                         struct span text);
};

#endif
