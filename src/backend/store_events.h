/* store_events: what the store reports to the daemon, and a node to its store: of the
 * ops and the state of Redis, and what comes on a node's links without an op.
 *
 * A topology looks at the events of its nodes that mean something else for the store,
 * and passes the others on as they are. No event comes during a call into the store:
 * events come from the loop. */
#ifndef LATCHD_BACKEND_STORE_EVENTS_H
#define LATCHD_BACKEND_STORE_EVENTS_H

#include "engine/lock_kind.h"
#include "engine/op.h"

#include <stdbool.h>

enum store_event_kind {
    STORE_RESULT,
    /* As engine_on_failover() and so on want it, before STORE_UP or while the store is
     * up. A node reports it (of all groups) when its server was a replica meanwhile, or
     * is another one that ran already beside the last one. */
    STORE_FAILED_OVER,
    STORE_LOST_NOTHING, /* not reported by a node */
    STORE_UP,
    STORE_DOWN,
    STORE_CLOCK_JUMPED,
    /* The clock of a server is behind `clock_us`, where it was, or that of the server
     * before it at the same link. */
    STORE_CLOCK_BEHIND,
    /* From now on no message of this name is missed; once for each subscription, and
     * after each loss. */
    STORE_SUBSCRIBED,
    STORE_UNSUBSCRIBED_ALL, /* the pub/sub link is gone */
    /* On the channel of that name, or on that of a member of its fair queue: then
     * whoever the member belongs to, `n` and `{n}` are both told. */
    STORE_MESSAGE,
    /* Announcements of daemons are received from now on; also after each reconnect. */
    STORE_LISTENING,
    STORE_ANNOUNCED,
    /* By store_hear(), for the pattern, or for the channel itself (SPAN_NONE). */
    STORE_PUBLISHED,
    STORE_MOVED, /* of a node of a cluster, for it alone: a channel is elsewhere now */
};

/* Whether the event is about the names of that group (engine/engine.h). */
typedef bool store_concerns_fn(void *ctx, unsigned group);

struct store_event {
    enum store_event_kind kind;
    union {
        const struct op_result *result;
        struct {
            store_concerns_fn *concerns; /* NULL: all groups */
            void *ctx;
        } groups;         /* FAILED_OVER, LOST_NOTHING */
        bool same_server; /* UP */
        uint64_t clock_us;
        struct {
            struct span name;
            enum lock_class lock_class;
            struct span payload;
        } channel;        /* SUBSCRIBED, MESSAGE */
        struct span text; /* ANNOUNCED */
        struct {
            struct span pattern, channel, text;
        } published;
    };
};

/* Where events go. */
struct store_events {
    void (*fn)(void *ctx, const struct store_event *ev);
    void *ctx;
};

static inline void store_tell(const struct store_events *to,
                              const struct store_event *ev)
{
    to->fn(to->ctx, ev);
}

#endif
