/* store: carries out the lock engine's ops in Redis, whatever the topology: one server,
 * or several (backend_config.h). Each op gets exactly one result. The store reconnects
 * by itself.
 *
 * It owns nodes (node.h); a topology (backend.h) says which, and how they work
 * together. No event comes during a call into the store, but for store_begin_turn():
 * events come from the loop.
 */
#ifndef LATCHD_BACKEND_STORE_H
#define LATCHD_BACKEND_STORE_H

#include "backend/backend_config.h"
#include "engine/lock_terms.h"
#include "engine/op.h"
#include "io/stream.h"
#include "util/histogram.h"

#include <stdbool.h>
#include <stdint.h>

struct store;

/* store_events: what the store reports to the daemon, and a node to its store: of the
 * ops and the state of Redis, and what comes on a node's links without an op.
 *
 * A topology looks at the events of its nodes that mean something else for the store,
 * and passes the others on as they are. No event comes during a call into the store:
 * events come from the loop. */

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
     * `n` and `{n}` are both told, as the member may be of either. */
    STORE_MESSAGE,
    /* Announcements of daemons are received from now on; also after each reconnect. */
    STORE_LISTENING,
    STORE_ANNOUNCED,
    /* By store_hear(), for the pattern, or for the channel itself (SPAN_NONE). */
    STORE_PUBLISHED,
    STORE_MOVED, /* of a node of a cluster, for it alone: a channel is elsewhere now */
    /* No name is watched; store_watch() watches so many names from now on, or none. */
    STORE_WATCH_CHANGED,
    /* The name is watched. It is missing, or one of those that were asked with it. */
    STORE_WATCHED,
    STORE_TOUCHED, /* a watched name was changed; without a name: any may have been */
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
            uint64_t limit;              /* of all names; 0: none can be watched */
            store_concerns_fn *concerns; /* NULL: all groups */
            void *ctx;
        } watch; /* WATCH_CHANGED */
        struct {
            struct span name;
            bool missing;
            store_concerns_fn *concerns; /* without a name; NULL: all groups */
            void *ctx;
        } touched; /* WATCHED, TOUCHED */
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

/* Options that may change while the store runs. */
struct store_options {
    uint64_t timeout_ms;         /* redis-timeout */
    uint64_t quarantine_ms;      /* of a quorum server that may have lost its data */
    unsigned min_replicas;       /* of each node; 0: nothing waits for replicas */
    uint64_t replica_timeout_ms; /* how long an op waits for them */
};

struct store_setup {
    struct io *io;
    struct backend_config config; /* copied */
    char instance[OP_INSTANCE_LEN + 1];
    struct store_options options;
    uint64_t seed; /* for jitter */
    struct store_events events;
    struct histogram *round_trips; /* the store's own; leave it NULL */
};

/* A master that Sentinels name. */
struct store_sentinel_info {
    const char *master; /* its name; NULL: no Sentinels */
    size_t known, reachable;
    uint64_t epoch;
    uint64_t switches;
};

/* See quorum_coordinator.h. */
struct store_quorum_info {
    size_t servers; /* 0: no quorum */
    uint64_t splits, undone, healed;
    uint64_t deferred_ops, forgotten;
};

struct store_info {
    const char *topology; /* single, ... */
    struct store_sentinel_info sentinel;
    struct store_quorum_info quorum;
    bool up;
    /* Why nothing is granted, as the server said it. NULL: nothing is known against it.
     * Valid for this turn of the loop. */
    const char *why_not;
    char product[8]; /* Redis, or Valkey; empty: not known yet */
    char version[32];
    char run_id[48];
    /* age of the server process when the link came up; of one node only */
    uint64_t running_ms;
    char address[160];
    uint64_t evicting; /* servers whose maxmemory-policy may throw locks away */
    uint64_t reconnects, calls, unknown, late, errors;
    uint64_t in_flight;
    /* Servers that tell of changes, of so many. Of one that does not, the reason. */
    uint64_t watches, watchable;
    const char *watch_why_not;    /* empty: not known */
    uint64_t waits, short_waits;  /* WAITs for replicas; those that found too few */
    int64_t replica_ack_replicas; /* found by the last WAIT */
    int64_t clock_offset_us;      /* Redis time minus our boot clock */
    uint64_t round_trip_us;       /* smoothed */
    /* Round trips of ops, from the turn that asked to the turn in which the answer
     * came; us. Lives as long as the store. */
    const struct histogram *round_trips;
};

/* One server of the store. */
struct store_node_info {
    const char *address;
    const char *role; /* its part in this topology: master, ... */
    bool up;
    uint64_t reconnects, in_flight, round_trip_us;
};

struct store *store_new(const struct store_setup *setup);
/* Starts connecting. */
void store_start(struct store *s);
/* Replaces the TLS that the store began with, if it did. Takes a reference. */
void store_set_tls(struct store *s, struct tls *tls);
/* Takes users and passwords from *config, which is of the same places: for later
 * connections, and for the links that are open, which log in again. */
void store_set_login(struct store *s, const struct backend_config *config);
void store_configure(struct store *s, const struct store_options *options);
void store_submit(struct store *s, const struct op *op);
/* The servers of the store are its parts, each named by a group that it has. Moves
 * *part on to the first one from there that can be asked now, for an OP_SCAN of that
 * group; false: there is none. The result of an op whose id has STORE_SCAN_ID is an
 * OP_SCAN's, and nobody else uses such ids. */
#define STORE_SCAN_ID (1ULL << 63)
bool store_seek_part(const struct store *s, uint32_t *part);
void store_subscribe(struct store *s, struct span name, enum lock_class lock_class);
void store_unsubscribe(struct store *s, struct span name, enum lock_class lock_class);
/* Stops listening to that member of this instance, which has left the fair queue of
 * `name`: see effect_channel. */
void store_unlisten(struct store *s, struct span name, struct span member);
/* Has the name watched: STORE_WATCHED, and STORE_TOUCHED once if it is changed then. In
 * vain if its server has no watch, or is out of reach. */
void store_watch(struct store *s, struct span name);
/* Sends `text` to all daemons that use the same locks, before what is submitted later.
 * Lost if Redis is out of reach. */
void store_announce(struct store *s, struct span text);
/* Wants the messages that are published at Redis on a channel of a lock library, or on
 * those that fit a pattern; or wants them no more. Not in a cluster, not on a quorum.
 */
void store_hear(struct store *s, bool is_pattern, struct span name, bool wanted);
/* Whether they come, as far as is known. */
bool store_hears(const struct store *s, bool is_pattern, struct span name);
/* Publishes on such a channel. False: perhaps in vain. */
bool store_publish(struct store *s, struct span channel, struct span text);
/* Begins a loop turn, before anything else in it: the owner has read the clock. Events
 * may come. */
void store_begin_turn(struct store *s);
/* Ends a loop turn: what was submitted leaves in one write. */
void store_end_turn(struct store *s);
void store_info(const struct store *s, struct store_info *ret);
/* Calls `fn` for each server in use now, in a stable order. */
typedef void store_node_fn(void *ctx, const struct store_node_info *node);
void store_each_node(const struct store *s, store_node_fn *fn, void *ctx);
/* Closes the links; no event comes afterwards. */
void store_close(struct store *s);
/* After the loop has run out. */
void store_free(struct store *s);

#endif
