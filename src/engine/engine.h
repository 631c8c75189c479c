/* engine: the lock engine. A calculator: it is told what happened and answers with
 * effects (effect.h). It knows no socket, no Redis client, no clock and no log.
 *
 *   - Time only moves by engine_tick(). The caller ticks first in every loop turn, so
 * that what fell due is done before anything else of that turn.
 *   - Connections are 64-bit ids, never used twice. The engine keeps state for one only
 *     while it holds or waits.
 *   - Every request gets exactly one EFFECT_REPLY to its call_ref, unless its
 * connection was reported closed before.
 *   - Every EFFECT_OP gets exactly one engine_on_op_result(), except after
 * engine_free().
 *
 * The caller owns the spans it passes; they need to live only during the call. */
#ifndef LATCHD_ENGINE_ENGINE_H
#define LATCHD_ENGINE_ENGINE_H

#include "engine/effect.h"
#include "engine/op.h"
#include "util/histogram.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

/* Times in ms; 0 = no limit where it says so. Can be replaced at run time. */
struct engine_config {
    uint64_t watchdog_ms;      /* lease of a watchdogged hold */
    uint64_t redis_timeout_ms; /* how long an answer may take */
    uint64_t recheck_ms;       /* a head waiter asks at least this often */
    uint64_t fair_wait_ms;     /* what a waiter adds to a fair queue's deadlines */
    uint64_t fair_window;   /* waiters of one name that stand in Redis's fair queue */
    uint64_t handoff_limit; /* moves in a row before others get a chance */
    uint64_t handoff_pause_ms; /* how long our head stands back then */
    int64_t grace_ms;          /* -1: the rest of the lease */
    uint64_t max_keep_ms;
    uint64_t max_lease_ms;
    uint64_t max_wait_ms;  /* 0: no limit */
    uint64_t long_wait_ms; /* a wait of so long is told by EFFECT_WAITED; 0: none */
    uint64_t max_waiters;
    uint64_t max_holds;
    uint64_t quarantine_ms; /* no new grants for so long after a failover; 0: at once */
};

struct engine_setup {
    struct engine_config config;
    char instance[OP_INSTANCE_LEN + 1]; /* hex, new at each start */
    uint64_t now_ms;
    uint64_t seed;               /* for spreading renewals */
    uint64_t no_grants_until_ms; /* after an unclean reboot; 0: none */
    /* Where names are kept apart: the group of a name, less than `group_count`. One op
     * is on names of one group, and a group that does not answer holds up no other.
     * NULL: all are one. */
    uint32_t (*group_of)(struct span name);
    uint32_t group_count;
    /* The truth is with a majority of independent masters: plain locks only, whose
     * fields are chosen before asking, and which are never handed over. */
    bool quorum;
};

struct engine *engine_new(const struct engine_setup *setup);
void engine_free(struct engine *eng);
void engine_configure(struct engine *eng, const struct engine_config *config);
struct effects *engine_effects(struct engine *eng);

/* --- time ------------------------------------------------------------------------- */

/* It is now `now_ms`. Does everything that fell due. A step of more than
 * ENGINE_STALL_MS since the last tick while something was due means that this process
 * stood still: every hold is uncertain until Redis confirms it. */
void engine_tick(struct engine *eng, uint64_t now_ms);

/* When the engine next needs a tick; UINT64_MAX: only after another event. */
uint64_t engine_next_deadline(const struct engine *eng);

/* --- requests --------------------------------------------------------------------- */

enum {
    LOCK_HAS_WAIT = 1 << 0,
    LOCK_HAS_LEASE = 1 << 1,
    LOCK_HAS_KEEP = 1 << 2,
    LOCK_HAS_GRACE = 1 << 3,
};

/* Syntax and bounds have been checked by cmd/; combinations that only the engine can
 * judge are answered by it. Empty owner or id: not given. */
struct lock_req {
    struct call_ref from;
    enum lock_kind kind;
    struct span name;
    struct span owner;
    struct span id;
    uint64_t wait_ms;
    uint64_t lease_ms;
    uint64_t keep_ms;
    uint64_t grace_ms;
    unsigned
        has; /* LOCK_HAS_*: without WAIT it waits for ever, without LEASE: watchdog */
    uint32_t user; /* who asks; see below */
};

/* WAIT 0: it is gone as soon as Redis has answered. */
static inline bool lock_tries_once(const struct lock_req *req)
{
    return (req->has & LOCK_HAS_WAIT) != 0 && req->wait_ms == 0;
}

/* MLOCK: `one` of all names; its own name and kind are not used. */
struct mlock_req {
    struct lock_req one;
    const struct span *names; /* in the order given; none twice */
    size_t name_count;        /* 1..LATCHD_MLOCK_MAX */
};

/* UNLOCK, RENEW and FORCEUNLOCK name a hold in the same words. All empty: bare. */
struct hold_req {
    struct call_ref from;
    enum lock_kind kind; /* READ, WRITE; PLAIN: not said */
    struct span name;
    struct span owner;
    struct span id;
    uint64_t token;    /* 0: not given */
    uint64_t lease_ms; /* RENEW LEASE; 0: not given, the watchdog keeps it */
    bool any;          /* FORCEUNLOCK ANY */
    uint32_t user;
    bool overrides; /* may use what is another user's */
};

/* A user is a number that means nothing here but that it differs from others; 0: nobody
 * knows. What one user took or waits for by an owner, token or ID cannot be used by
 * another one: LOCK_NOPERM. What is found at Redis only belongs to whoever attaches it
 * first. */

void engine_lock(struct engine *eng, const struct lock_req *req);
/* The same for LOCKs that came together on one connection: none is granted before all
 * ahead of it are. They begin in order, as many as can be asked for by one op: how many
 * that are is returned, at least one; the others are as if they had not come. Those
 * that began behind one that is not granted at once are answered REPLY_UNREACHED. */
size_t engine_lock_batch(struct engine *eng, const struct lock_req *reqs, size_t count);
/* False: another LOCK would meet max-waiters or max-holds now. */
bool engine_has_room(const struct engine *eng);
void engine_mlock(struct engine *eng, const struct mlock_req *req);
void engine_unlock(struct engine *eng, const struct hold_req *req);
void engine_renew(struct engine *eng, const struct hold_req *req);
void engine_force_unlock(struct engine *eng, const struct hold_req *req);
void engine_lock_info(struct engine *eng, struct call_ref from, struct span name);

/* Ends waits (they are answered null) and gives back kept grants, by the name, and the
 * owner or ID, of `req`; returns how many. *ret_others: there are such of other users,
 * too. */
size_t engine_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others);

/* --- connections ------------------------------------------------------------------ */

/* The connection is gone: its waits end or are kept, its holds lose it. */
void engine_on_conn_closed(struct engine *eng, uint64_t conn);

/* The REPLY_TOKEN with this `grant` did not reach its client on `conn`: take it back,
 * or keep it if it has an ID. Call before engine_on_conn_closed(). */
void engine_on_undelivered(struct engine *eng, uint64_t conn, uint64_t grant);

/* What became of the REPLY_TOKEN with this `grant`, for who is only now to pass it on:
 * to be vouched for, or not since too little is left of its lease, or there is no such
 * grant on `conn` any more. */
enum grant_state { GRANT_FRESH, GRANT_STALE, GRANT_OVER };
enum grant_state engine_grant_state(const struct engine *eng, uint64_t conn,
                                    uint64_t grant);

/* True while the connection holds or waits (it must not be closed as idle). */
bool engine_conn_busy(const struct engine *eng, uint64_t conn);

/* CLIENT UNBLOCK: ends the wait of that connection, if it has one. */
bool engine_unblock(struct engine *eng, uint64_t conn, bool with_error);

/* --- the store -------------------------------------------------------------------- */

void engine_on_op_result(struct engine *eng, const struct op_result *result);

/* Redis can be asked. `same_server`: it is the one that was asked before (run id and
 * replication id), nothing can have been lost; otherwise holds are put back. Results of
 * ops that the lost link left open (OP_UNKNOWN) are to be reported after this call. */
void engine_on_store_up(struct engine *eng, bool same_server);
/* Another Redis answers for the names of the groups that `concerns` says (NULL: all)
 * from now on, and may lack what the one before had granted. Every hold of such a name
 * is uncertain, and put back before anything else is asked of that name; names that are
 * not held here are granted to nobody anew for quarantine_ms. To be called before an op
 * on them reaches the new one: before engine_on_store_up(), or while it is up. Of ops
 * that the old one answered no OK is believed any more. */
typedef bool engine_concerns_fn(void *ctx, unsigned group);
void engine_on_failover(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
/* The last failover of those groups turned out to have lost nothing: what was to be
 * withheld because of it is not any more. */
void engine_on_lossless_failover(struct engine *eng, engine_concerns_fn *concerns,
                                 void *ctx);
/* Ops are emitted: Redis is up, and who else is there has been asked if need be. */
bool engine_is_up(const struct engine *eng);
/* Redis cannot be asked; no op is emitted until it is up again. */
void engine_on_store_down(struct engine *eng);
/* Redis's clock moved against ours: no lease can be trusted until confirmed. */
void engine_on_clock_jump(struct engine *eng);

/* The subscription of EFFECT_SUBSCRIBE is confirmed, also after each reconnect. */
void engine_on_subscribed(struct engine *eng, struct span name, bool rw);
/* The pub/sub link is gone: messages may be missed until engine_on_subscribed(). */
void engine_on_subscriptions_lost(struct engine *eng);
/* A message came on the channel of that name, or on that of one of our members of its
 * fair queue. */
void engine_on_message(struct engine *eng, struct span name, bool rw);

/* --- the other daemons ------------------------------------------------------------ */

/* To be called before engine_on_store_up(): this Redis has just begun. Who has never
 * been up then asks first who else is there, for a moment, and grants nothing till
 * then. */
void engine_store_is_young(struct engine *eng);
/* From now on announcements of others are heard; also after each reconnect. */
void engine_listening(struct engine *eng);
/* An EFFECT_ANNOUNCE of any daemon, perhaps this one's, perhaps not for the first time.
 */
void engine_announced(struct engine *eng, struct span text);

/* --- stop ------------------------------------------------------------------------- */

/* No new grants: waits end with GOAWAY, attached holds are reported uncertain and get
 * one last full renewal. Done when engine_stopped(), or when the caller loses patience.
 */
void engine_stop(struct engine *eng);
bool engine_stopped(const struct engine *eng);

/* --- looking ---------------------------------------------------------------------- */

struct engine_stats {
    uint64_t locks, holds, waiters, ops_in_flight;
    uint64_t grants, handovers, releases, lost, timeouts, renewals;
    /* Of the holds: */
    uint64_t uncertain;
    /* Of what they consist of, one for each LOCK that was granted: with a LEASE; kept
     * for a client that is not there yet. The others are on the watchdog. */
    uint64_t entries, fixed_entries, retained_entries;
    uint64_t
        retained_waiters; /* of the waiters: places kept for clients that come back */
    uint64_t oldest_wait_ms;
    uint64_t doubts, unanswered; /* holds that became uncertain; -BACKEND to waiters */
    /* As too few replicas acknowledged them: grants that were undone, renewals that did
     * not count. */
    uint64_t unacked_grants, unacked_renewals;
    uint64_t failovers;
    uint64_t restoring;     /* holds that are being put back */
    uint64_t restored;      /* that Redis had lost, and has again */
    uint64_t lost_failover; /* that could not be put back; they are in `lost`, too */
    uint64_t quarantine_left_ms; /* until all names can be granted again */
    uint64_t other_daemons;      /* that are known to use this Redis */
    bool store_up;
};

void engine_stats(const struct engine *eng, struct engine_stats *ret);

/* How long things took, since the engine was made; to a millisecond. */
struct engine_timings {
    /* From a LOCK's joining the queue, askings with the same ID counted together, to
     * its grant; 0 where the name was free. Each name of an MLOCK counts for itself.
     * Waits without a grant are not in here. */
    struct histogram wait;
    /* From an owner's grant (or RENEW, if that is how it came to this daemon) to its
     * release, its loss, or its going elsewhere. */
    struct histogram hold;
    /* By how much a renewal's confirmation came later than a third of its lease after
     * the one before; 0 for all that were in time, as they are sent early. */
    struct histogram renewal_lag;
};

const struct engine_timings *engine_timings(const struct engine *eng);

/* The bytes that a name takes here, by what the first `samples` of its holds and its
 * waiters take; 0: nobody here has to do with it. */
size_t engine_memory(const struct engine *eng, struct span name, size_t samples);

/* One step over the names that are held or waited for here, as SCAN does it: starts and
 * ends with cursor 0; a name that is there all the time is seen at least once. */
typedef void lock_name_fn(void *ctx, struct span name);
uint64_t engine_scan(struct engine *eng, uint64_t cursor, size_t count,
                     lock_name_fn *fn, void *ctx);

struct waiter_info {
    enum lock_kind kind;
    struct span owner; /* who will hold; empty: anonymous */
    uint64_t waited_ms;
    uint64_t left_ms; /* UINT64_MAX: no end */
    uint64_t conn;    /* 0: kept, no connection waits */
};

/* The waiters of a name, in order, at most `count`. */
typedef void waiter_info_fn(void *ctx, const struct waiter_info *info);
void engine_waiters(struct engine *eng, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx);

#endif
