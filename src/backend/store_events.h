/* store_events: what the store tells the daemon, and a node tells whoever owns it.
 *
 * Nothing is reported during a call into the store: events come from the loop. */
#ifndef LATCHD_BACKEND_STORE_EVENTS_H
#define LATCHD_BACKEND_STORE_EVENTS_H

#include "engine/op.h"

#include <stdbool.h>

/* The names of which groups (engine/engine.h) it is about. */
typedef bool store_concerns_fn(void *ctx, unsigned group);

struct store_events {
    void *ctx;
    /* Before any of the following in a loop turn: look at the clock. Cheap. */
    void (*on_event)(void *ctx);
    void (*on_result)(void *ctx, const struct op_result *result);
    /* As engine_on_failover() and so on want it. A backend's; no node says it. It comes
     * before on_up, or while it is up. */
    void (*on_failed_over)(void *ctx, store_concerns_fn *concerns, void *arg);
    void (*on_nothing_was_lost)(void *ctx, store_concerns_fn *concerns, void *arg);
    void (*on_up)(void *ctx, bool same_server);
    void (*on_down)(void *ctx);
    void (*on_clock_jumped)(void *ctx);
    void (*on_subscribed)(void *ctx, struct span name, bool rw);
    void (*on_unsubscribed_all)(void *ctx);
    void (*on_message)(void *ctx, struct span name, bool rw);
    /* What daemons announce is heard from now on; also after each reconnect. */
    void (*on_listening)(void *ctx);
    void (*on_announced)(void *ctx, struct span text);
};

#endif
