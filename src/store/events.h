/* events: what the store tells the daemon, and a node tells whoever owns it.
 *
 * Nothing is reported during a call into the store: events come from the loop. */
#ifndef LATCHD_STORE_EVENTS_H
#define LATCHD_STORE_EVENTS_H

#include "core/op.h"

#include <stdbool.h>

struct store_events {
    void *ctx;
    /* Before any of the following in a loop turn: look at the clock. Cheap. */
    void (*on_event)(void *ctx);
    void (*on_result)(void *ctx, const struct op_result *result);
    /* As locks_store_up() and so on want it. */
    void (*on_up)(void *ctx, bool same_server);
    void (*on_down)(void *ctx);
    void (*on_clock_jumped)(void *ctx);
    void (*on_subscribed)(void *ctx, struct span name, bool rw);
    void (*on_unsubscribed_all)(void *ctx);
    void (*on_message)(void *ctx, struct span name, bool rw);
};

#endif
