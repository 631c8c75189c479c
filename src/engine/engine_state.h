/* engine_state: what the lock engine remembers. Private to engine/.
 *
 *   locks ── names ──> lock ── desk ── queue ──> waiter ── want
 *     │                 │       ├── duties (what must be done at Redis, in order)
 *     │                 │       └── busy: the one work that may change who holds
 *     │                 └── holds ──> hold ── entries ──> entry ── attaches ──> attach
 *     ├── sessions: a connection's waiters, attaches and calls
 *     ├── requests: what became of each ID
 *     └── works: ops in flight, by op id
 *
 * A lock's life:      free -> asked -> held here <-> handed over -> free
 * A waiter's life:    queued [-> asked]* -> granted | timed out | kept -> ...
 * A hold's life:      HELD <-> UNCERTAIN -> ended (released, lost, or kept elsewhere)
 *
 * Everything here is plain memory of the engine. Pointers between objects are cleared
 * by whoever frees one of them; what is in flight is only ever found by its op id. */
#ifndef LATCHD_ENGINE_ENGINE_STATE_H
#define LATCHD_ENGINE_ENGINE_STATE_H

#include "engine/effect.h"
#include "engine/engine.h"
#include "engine/op.h"
#include "engine/recovery/peers.h"
#include "engine/renew/renew_queue.h"
#include "engine/timer.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/pool.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine {
    struct engine_config cfg;
    char instance[OP_INSTANCE_LEN + 1];
    uint64_t now;
    uint64_t before; /* of the tick before, since which Redis's answers were read */
    uint64_t dice;
    uint32_t (*group_of)(struct span name);
    uint32_t group_count;
    uint64_t *quarantine;    /* of each group: no new grants before this */
    uint64_t *quarantined;   /* the same without the last failover */
    uint64_t quarantine_end; /* the last of them */
    uint64_t next_op;
    uint64_t
        last_stale_op; /* Redis is another, or its clock: ops up to this tell nothing */
    uint64_t *last_stale_ops; /* the same of each group's names */
    uint64_t next_request;
    uint64_t next_grant;
    uint64_t next_notice;
    uint64_t seen_token;
    bool up;
    bool stopping;
    bool quorum; /* see engine_setup */
    struct effects fx;
    struct pool pool; /* all that comes and goes with a request */
    struct heap heap;
    struct timer pulse;
    struct timer over_timer;
    struct timer peers_timer;
    struct peers peers;
    struct table names; /* the locks */
    struct table sessions;
    struct table requests;
    struct table inflight_ops;
    struct list dirty; /* locks to be looked at before the engine returns */
    struct renew_queues renew_queues;
    struct list restores; /* holds to be put back */
    struct list holds;
    struct list waiters;
    struct list waiting_for_store; /* pending requests, sent when Redis is up */
    struct list infos;             /* LOCKINFOs that wait for an answer */
    bool hold_became_uncertain; /* they are to be looked at: a hold has become uncertain
                                 */
    struct list over;
    struct table mlocks;
    struct list dirty_mlocks; /* to be looked at before the engine returns */
    uint64_t next_mlock;
    struct table waits;
    uint64_t deadlock_search; /* the last one's number */
    size_t hold_count;
    size_t waiter_count;
    size_t over_count;
    struct list ended; /* releases that Redis may lose, see release_log.h */
    size_t release_log_count;
    struct list fair_left; /* names in whose queue places of ours were: fair_left.h */
    struct table fair_left_names;
    size_t restores_in_flight;
    size_t leave_count; /* places in fair queues that are to be left */
    struct engine_stats stats;
    struct engine_timings timings;
};

#endif
