/* engine_state: what the lock engine remembers. Private to engine/.
 *
 *   engine ── names ──> lock ── queue ──> waiter ── spec (acquire_spec)
 *     │                  │        └── releases: pending releases, in order
 *     │                  └── holds ──> hold ── entries ──> entry ── attaches ──> attach
 *     ├── sessions: the waiters, attachments and pending requests of a connection
 *     ├── requests: what became of each request ID
 *     └── inflight_ops: ops in flight, by op ID
 *
 * A lock's state:     enum lock_state in lock.h has the picture
 * A waiter's life:    queued [-> asked]* -> granted | timed out | retained -> ...
 * A hold's life:      HELD <-> UNCERTAIN -> ended (released, lost, or kept elsewhere)
 *
 * Everything here is plain memory of the engine. Code that frees an object clears the
 * pointers to it; what is in flight is found by its op ID only. */
#ifndef LATCHD_ENGINE_ENGINE_STATE_H
#define LATCHD_ENGINE_ENGINE_STATE_H

#include "engine/dirty_locks.h"
#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/latch.h"
#include "engine/name_watch.h"
#include "engine/op.h"
#include "engine/peers.h"
#include "engine/renew_queue.h"
#include "engine/timer.h"
#include "util/alloc.h"
#include "util/buf.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/recent.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recent_ask;

/*   IDLE --holds are DOUBTED--> OPEN --anything may have changed once more--> AGAIN
 *     '<------------------------'  '<--- none was gone: others are PROBING ---' */
enum watch_probe {
    WATCH_PROBE_IDLE,
    WATCH_PROBE_OPEN,
    WATCH_PROBE_AGAIN,
};

struct engine {
    struct engine_config cfg;
    char instance[OP_INSTANCE_LEN + 1];
    bool is_heard; /* see engine_set_heard() */
    uint64_t now;
    /* the time of the tick before, since which Redis's answers were read */
    uint64_t before;
    uint64_t dice;
    uint32_t (*group_of)(struct span name);
    uint32_t group_count;
    uint64_t *quarantine;    /* of each group: nothing is granted anew before this */
    uint64_t *quarantined;   /* `quarantine` without the last failover's */
    uint64_t quarantine_end; /* the latest of `quarantine` */
    uint64_t next_op;
    /* results of ops up to this one count no more: Redis, or its clock, was replaced */
    uint64_t last_stale_op;
    uint64_t *last_stale_ops; /* last_stale_op for the names of each group */
    /* when Redis last turned out to have lost holds, perhaps */
    uint64_t restores_since;
    uint64_t next_request;
    uint64_t next_grant;
    uint64_t next_notice;
    uint64_t seen_token;
    /* Where Redis's clock was at `at` when it went back; 0: it did not, as far as is
     * known here. */
    struct clock_floor {
        uint64_t us, at;
    } clock_floor;
    uint64_t lends_after;           /* no name is lent before; see loan.h */
    struct recent_ask *recent_asks; /* NULL: no LOCAL so far; see loan.h */
    uint64_t (*read_clock)(void);
    bool (*may_tell)(void *ctx, uint32_t user, struct span name);
    void *may_tell_ctx;
    /* How many holds may be watched; how many are, and are about to be; see hold_watch.
     */
    uint64_t watch_limit, watched, watch_asked;
    struct {
        enum watch_probe state;
        uint64_t count;      /* holds that are PROBING */
        uint64_t wait_until; /* for these */
        const void *ctx;     /* of holds_touched() */
    } watch_probe;
    bool up;
    uint64_t down_at; /* since when it is not, if it is not */
    bool stopping;
    bool quorum; /* see engine_setup */
    struct effects fx;
    struct pool pool; /* the memory of all that comes and goes with a request */
    struct heap heap;
    struct timer pulse;
    struct timer over_timer;
    struct timer peers_timer;
    struct peers peers;
    struct table names; /* the locks, by name */
    struct table sessions;
    struct table requests;
    struct table inflight_ops;
    /* locks for which lock_step() runs before the engine returns */
    struct dirty_locks dirty;
    struct renew_queues renew_queues;
    struct list restores; /* holds that have to be put back */
    struct list holds;
    struct list waiters;
    struct list to_send;             /* pending requests, which the scheduler sends */
    struct list ops_to_send;         /* ops in flight, the same */
    struct list waiting_for_store;   /* pending requests, sent when Redis is up */
    struct list infos;               /* pending LOCKINFOs */
    struct watch_set leader_watches; /* see leader_watch.h */
    struct watch_set latch_watches;  /* see latch.h */
    struct count_log count_log;      /* see latch.h */
    struct recent followed;          /* see followed_names.h */
    /* a hold has become uncertain: pending_info_hurry() is to run */
    bool hold_became_uncertain;
    struct list over;
    struct table mlocks;
    /* MLOCKs for which mlock_step() runs before the engine returns */
    struct list dirty_mlocks;
    uint64_t next_mlock;
    struct table waits;
    uint64_t deadlock_search; /* the number of the last search */
    size_t hold_count;
    size_t waiter_count;
    size_t release_count; /* pending releases */
    size_t over_count;
    struct list loans;
    struct list due_loans; /* see loan.h */
    size_t noted_loans;    /* since the list was empty */
    struct timer due_loans_timer;
    struct table loan_log; /* see loan.h */
    struct list loan_log_list;
    size_t loan_log_count;
    struct recent release_log; /* releases that Redis may lose */
    /* names in whose fair queue this instance had places, see fair.h */
    struct recent fair_left;
    size_t foreign_names; /* see lock_note_foreign() */
    size_t restores_in_flight;
    uint64_t restores_cost; /* of those */
    size_t put_back_count;  /* holds that are RESTORING with is_put_back */
    size_t leave_count;     /* places in fair queues that have to leave */
    struct buf trouble; /* why a Redis that answers cannot be used; empty: not known */
    struct engine_stats stats;
    struct engine_timings timings;
};

/* See op_fence_ttl(). The tokens of a quorum follow the clocks of the daemons, which
 * may differ by more than one Redis differs from itself. */
static inline uint64_t engine_fence_ttl(const struct engine *eng)
{
    return eng->quorum || eng->cfg.fence_ttl_ms == 0 ? OP_FENCE_TTL_MS
                                                     : eng->cfg.fence_ttl_ms;
}

#endif
