/* engine: the lock engine. The engine is a calculator: the caller reports what
 * happened, and the engine appends effects (effect.h). The engine has no socket, no
 * Redis client, no clock and no log.
 *
 *   - Time moves only by engine_tick(). The caller ticks first in every loop turn, so
 *     that what fell due is done before anything else of that turn.
 *   - Connections are 64-bit IDs, never used twice. The engine has state for a
 *     connection only while the connection holds or waits.
 *   - Every request gets exactly one EFFECT_REPLY to its call_ref, unless its
 *     connection was reported closed before.
 *   - Every EFFECT_OP gets exactly one engine_on_op_result(), except after
 *     engine_free().
 *
 * The caller owns the spans it passes; they need to live only during the call. */
#ifndef LATCHD_ENGINE_ENGINE_H
#define LATCHD_ENGINE_ENGINE_H

#include "engine/effect.h"
#include "engine/lock_terms.h"
#include "engine/op.h"
#include "util/histogram.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;

/* Times in ms; 0 means no limit where the field says so. Can be replaced at run time.
 */
enum { LOCAL_WINDOW_MAX_MS = 100 };

struct engine_config {
    uint64_t watchdog_ms;      /* lease of a watchdogged hold */
    uint64_t redis_timeout_ms; /* how long Redis may take to answer */
    uint64_t recheck_ms;       /* a head waiter asks at least this often */
    /* by how much a waiter extends a fair queue's deadlines */
    uint64_t fair_wait_ms;
    /* waiters of one name that have places in Redis's fair queue */
    uint64_t fair_window;
    uint64_t handover_limit;    /* hand-overs in a row before others get a chance */
    uint64_t handover_pause_ms; /* how long this daemon's head stands back then */
    int64_t grace_ms;           /* -1: the rest of the lease */
    uint64_t endless_lease_ms;  /* lease of an endless hold */
    /* a wait at least this long is reported by EFFECT_WAITED; 0: none is */
    uint64_t long_wait_ms;
    uint64_t long_hold_ms; /* the same of an entry, by EFFECT_HELD */
    uint64_t max_waiters;
    uint64_t max_holds;
    /* no new grants for this long after a failover; 0: at once */
    uint64_t quarantine_ms;
    uint64_t fence_ttl_ms;    /* see op_fence_ttl(); must not change */
    uint64_t local_window_ms; /* how long a loan lends; at most LOCAL_WINDOW_MAX_MS */
    /* by how much each step of PRIORITY puts a waiter before those who arrived later
     */
    uint64_t priority_aging_ms;
};

struct engine_setup {
    struct engine_config config;
    char instance[OP_INSTANCE_LEN + 1]; /* hex, new at each start */
    uint64_t now_ms;
    uint64_t seed;               /* for spreading renewals */
    uint64_t no_grants_until_ms; /* after an unclean reboot; 0: none */
    /* Where names are in groups: the group of a name, less than `group_count`. One op
     * is on names of one group, and a group that does not answer holds up no other
     * group. NULL: all names are one group. */
    uint32_t (*group_of)(struct span name);
    uint32_t group_count;
    /* Redis is a quorum of independent masters: plain locks only, whose hash fields
     * are chosen before asking, and which are never handed over. */
    bool quorum;
    /* The time in ms now, of which engine_tick() gets a copy once a turn; NULL: that
     * copy will do. */
    uint64_t (*read_clock)(void);
    /* Whether that user may be told who holds the name and waits for it, by an error
     * about another name; NULL: any user. */
    bool (*may_tell)(void *ctx, uint32_t user, struct span name);
    void *may_tell_ctx;
};

struct engine *engine_new(const struct engine_setup *setup);
void engine_free(struct engine *eng);
void engine_configure(struct engine *eng, const struct engine_config *config);
/* Whether anybody hears NOTICE_GRANTED and NOTICE_RELEASED, as is so at first.
 * Otherwise the engine leaves them out, as they would cost every grant and release. */
void engine_set_heard(struct engine *eng, bool heard);
struct effects *engine_effects(struct engine *eng);
/* Frees the memory that is kept for requests to come. */
void engine_trim(struct engine *eng);
/* How many there are of what takes memory: names, holds, waiters, and requests, also
 * those that are over and remembered. */
size_t engine_object_count(const struct engine *eng);

/* --- time ------------------------------------------------------------------------- */

/* Sets the time and does everything that fell due. A step of more than ENGINE_STALL_MS
 * since the last tick, while something was due, means that this process was stopped:
 * every hold is uncertain until Redis confirms it. */
void engine_tick(struct engine *eng, uint64_t now_ms);

/* When the engine next needs a tick; UINT64_MAX: only after another event. */
uint64_t engine_next_deadline(const struct engine *eng);

/* --- requests --------------------------------------------------------------------- */

/* A LOCK. cmd/ has checked syntax and bounds; combinations that only the engine can
 * judge are answered by the engine. */
struct lock_req {
    struct call_ref from;
    struct span name;
    struct lock_terms terms;
    /* When a client that polls asked first: its place in the queue is from then, and
     * its wait goes on when this one ends. 0: the client does not poll. */
    uint64_t polls_since;
    struct span trace; /* see spec_trace() */
};

/* An MLOCK, with the same terms for all names; their kind is not used. */
struct mlock_req {
    struct call_ref from;
    struct lock_terms terms;
    const struct span *names; /* in the client's order; no name twice */
    size_t name_count;        /* 1..LATCHD_MLOCK_MAX */
    uint64_t polls_since;     /* see lock_req */
    struct span trace;
};

/* UNLOCK, RENEW and FORCEUNLOCK name a hold in the same words. Owner, ID, value and
 * token all empty: the hold of this connection. */
struct hold_req {
    struct call_ref from;
    enum lock_kind lock_kind; /* READ, WRITE; PLAIN: the request does not say */
    struct span name;
    struct span owner;
    struct span id;
    struct span
        to; /* UNLOCK: the ID of the waiter that is to be next; empty: the first */
    struct span value; /* UNLOCK, RENEW: a pattern of value_hold.h */
    uint64_t token;    /* 0: not given */
    uint64_t lease_ms; /* RENEW LEASE; 0: not given, the watchdog renews */
    bool endless;      /* RENEW LEASE: from then on as OPT_ENDLESS */
    bool any;          /* FORCEUNLOCK ANY */
    bool tells_token;  /* RENEW: is to be answered with the token, too */
    uint32_t user;
    bool overrides; /* may use another user's holds and waits */
};

/* Whether the request means the hold of its connection. */
static inline bool hold_req_is_bare(const struct hold_req *req)
{
    return req->token == 0 && req->owner.len + req->id.len + req->value.len == 0;
}

/* A user is a number; the engine only compares users. 0: not known. What one user
 * acquired or waits for by an owner, token or ID cannot be used by another user:
 * LOCK_NOPERM. A hold that is found in Redis belongs to the first user who attaches
 * it. */

void engine_lock(struct engine *eng, const struct lock_req *req);
/* engine_lock() for LOCKs that came together on one connection: none is granted before
 * all ahead of it are. The LOCKs begin in order, as many as one op can ask for.
 * Returns how many began, at least one; the engine ignores the others. A LOCK that
 * began behind one that is not granted at once is answered REPLY_UNREACHED. */
size_t engine_lock_batch(struct engine *eng, const struct lock_req *reqs, size_t count);
/* False: another LOCK would exceed max-waiters or max-holds now. */
bool engine_has_room(const struct engine *eng);
void engine_mlock(struct engine *eng, const struct mlock_req *req);
void engine_unlock(struct engine *eng, const struct hold_req *req);
void engine_renew(struct engine *eng, const struct hold_req *req);
void engine_force_unlock(struct engine *eng, const struct hold_req *req);
void engine_lock_info(struct engine *eng, struct call_ref from, struct span name);
/* The same of a semaphore; an error if the name is none. */
void engine_semaphore_info(struct engine *eng, struct call_ref from, struct span name);
/* Sets the limit of a semaphore, which is made if there is none, and answers 1. 0:
 * deletes it instead; answers 0 if there is none. */
void engine_semaphore_limit(struct engine *eng, struct call_ref from, struct span name,
                            uint32_t limit);

/* A LEADER: who holds the name alone. */
struct leader_req {
    struct call_ref from;
    struct span name;
    /* Is to be answered only once the leader's token is another one, or the WAIT is
     * over; 0: nobody leads. */
    uint64_t after;
    uint64_t wait_ms;
    bool has_after;
    bool has_wait; /* without, and with `after`: waits for ever */
};

void engine_leader(struct engine *eng, const struct leader_req *req);

enum latch_word { LATCH_SETS, LATCH_COUNTS, LATCH_AWAITS, LATCH_DELETES, LATCH_INFO };

/* A LATCH command. */
struct latch_req {
    struct call_ref from;
    enum latch_word word;
    struct span name;
    struct span id;   /* SET, COUNT: sent again, it does nothing more; or empty */
    int64_t count;    /* SET: from 1 */
    uint64_t wait_ms; /* AWAIT, if has_wait; else it waits for ever */
    bool has_wait;
};

void engine_latch(struct engine *eng, const struct latch_req *req);
/* Whether anybody hears EFFECT_LEADER of that name; nobody at first. */
void engine_follow(struct engine *eng, struct span name, bool heard);

/* Ends waits (with null) and releases retained grants of the name, and the owner or
 * ID, of `req`. Returns how many. *ret_others: other users have such waits or grants,
 * too. */
size_t engine_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others);

/* --- connections ------------------------------------------------------------------ */

/* The connection is gone: its waits end or are retained, and its holds lose their
 * attachment. */
void engine_on_conn_closed(struct engine *eng, uint64_t conn);

/* The REPLY_TOKEN with this `grant` did not reach its client on `conn`: releases the
 * grant, or retains it if it has an ID. Must be called before engine_on_conn_closed().
 */
void engine_on_undelivered(struct engine *eng, uint64_t conn, uint64_t grant);

/* The state of the REPLY_TOKEN with this `grant`, for a caller that delivers it late.
 * FRESH: enough of the lease is left; STALE: too little is left; OVER: `conn` has no
 * such grant any more. */
enum grant_state { GRANT_FRESH, GRANT_STALE, GRANT_OVER };
enum grant_state engine_grant_state(const struct engine *eng, uint64_t conn,
                                    uint64_t grant);

/* Whether the connection holds or waits, and so must not be closed as idle. */
bool engine_conn_busy(const struct engine *eng, uint64_t conn);
/* Whether the engine has state for the connection, also of holds that it lost. */
bool engine_knows_conn(const struct engine *eng, uint64_t conn);

/* How often the connection has to say something, in ms: the least of its holds'
 * heartbeats; 0: never. EFFECT_HEARTBEAT tells when it got one. */
uint32_t engine_conn_heartbeat(const struct engine *eng, uint64_t conn);

/* Ends the wait of that LOCK now, as if its time were over. Does nothing if none waits.
 */
void engine_end_wait(struct engine *eng, struct call_ref from);

/* Whether the wait of that call for that name is to end, as the rights of its user have
 * changed. */
typedef bool engine_refuses_fn(void *ctx, uint64_t call, struct span name);
/* Ends the waits of that connection for which `refuses` is true, with NOPERM: of LOCKs,
 * MLOCKs, LEADERs and LATCH AWAITs. */
void engine_refuse_waits(struct engine *eng, uint64_t conn, engine_refuses_fn *refuses,
                         void *ctx);

/* CLIENT UNBLOCK: ends the wait of that connection. False: none waits. */
bool engine_unblock(struct engine *eng, uint64_t conn, bool with_error);

/* --- the store -------------------------------------------------------------------- */

void engine_on_op_result(struct engine *eng, const struct op_result *result);

/* Redis can be asked. `same_server`: this is the server of before (same run ID and
 * replication ID), and nothing can have been lost; otherwise holds are put back.
 * Results of ops that the lost link left open (OP_UNKNOWN) must be reported after this
 * call. */
void engine_on_store_up(struct engine *eng, bool same_server);
/* Another Redis serves the names of the groups for which `concerns` is true (NULL:
 * all) from now on, and may lack grants of the one before. Every hold of such a name
 * is uncertain, and is put back before anything else is asked of that name. Names that
 * are not held here are granted to nobody anew for quarantine_ms. Must be called
 * before an op on them reaches the new Redis: before engine_on_store_up(), or while
 * the store is up. An OK from the old Redis counts no more. */
typedef bool engine_concerns_fn(void *ctx, unsigned group);
void engine_on_failover(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
/* The last failover of those groups turned out to have lost nothing: ends the
 * quarantine that it began. */
void engine_on_lossless_failover(struct engine *eng, engine_concerns_fn *concerns,
                                 void *ctx);
/* Ops are emitted: Redis is up, and who else is there has been asked if need be. */
bool engine_is_up(const struct engine *eng);
/* Redis cannot be asked; no op is emitted until engine_on_store_up(). */
void engine_on_store_down(struct engine *eng);
/* Why a Redis that answers cannot be used, for errors while it is down; empty: it does
 * not answer, or that is not known. */
void engine_set_trouble(struct engine *eng, struct span why);
/* Redis's clock moved against this machine's: no lease counts until Redis confirms it.
 */
void engine_on_clock_jump(struct engine *eng);
/* Redis's clock was at `us` and is behind that now. Nobody's token was above it: new
 * ones have to be, also of names whose fence key is gone. */
void engine_on_clock_behind(struct engine *eng, uint64_t us);

/* The subscription of EFFECT_SUBSCRIBE is confirmed, also after each reconnect. */
void engine_on_subscribed(struct engine *eng, struct span name,
                          enum lock_class lock_class);
/* The pub/sub link is gone: messages may be missed until engine_on_subscribed(). */
void engine_on_subscriptions_lost(struct engine *eng);
/* A message came on the channel of that name, or on the channel of one of this
 * instance's members of the name's fair queue. */
void engine_on_message(struct engine *eng, struct span name, enum lock_class lock_class,
                       struct span payload);

/* Redis tells of no change of these groups' names (NULL: all). From now on EFFECT_WATCH
 * asks for that, for so many names of all groups at most; 0: Redis cannot. */
void engine_on_watch(struct engine *eng, uint64_t limit, engine_concerns_fn *concerns,
                     void *ctx);
/* The name of an EFFECT_WATCH is watched from now on. It is missing in Redis, or one of
 * those that were asked with it is. */
void engine_on_watched(struct engine *eng, struct span name, bool missing);
/* A watched name was changed, perhaps by an op of this daemon; or (empty) any name of
 * those groups may have been. */
void engine_on_touched(struct engine *eng, struct span name,
                       engine_concerns_fn *concerns, void *ctx);

/* --- the other daemons ------------------------------------------------------------ */

/* Must be called before engine_on_store_up(): this Redis has just started. An engine
 * that has never been up then asks first which other daemons there are, for a moment,
 * and grants nothing before that. */
void engine_store_is_young(struct engine *eng);
/* Announcements of other daemons are received from now on; also after each reconnect.
 */
void engine_listening(struct engine *eng);
/* An EFFECT_ANNOUNCE of any daemon has arrived, perhaps this one's own, perhaps a
 * duplicate. */
void engine_announced(struct engine *eng, struct span text);

/* --- stop ------------------------------------------------------------------------- */

/* Grants nothing any more: waits end with GOAWAY, attached holds are reported
 * uncertain and get one last full renewal. The stop is complete when engine_stopped(),
 * or when the caller gives up. */
void engine_stop(struct engine *eng);
bool engine_stopped(const struct engine *eng);

/* --- looking ---------------------------------------------------------------------- */

/* Counts and totals since the engine was made. */
struct engine_stats {
    uint64_t locks, holds, waiters, ops_in_flight;
    uint64_t resting; /* names that rest, as far as this daemon keeps that; no holds */
    uint64_t grants, handovers, releases, lost, timeouts, renewals;
    uint64_t expired; /* holds that nobody was to renew, when their lease was over */
    uint64_t watched, watch_looks; /* holds; looks as Redis told of a change */
    uint64_t yields; /* releases that freed a lock for others, who may be first */
    /* Names that are lent now; loans ever, and of these the ones whose hold got a field
     * of its own, and those that were given back; their renewals; grants from memory.
     */
    uint64_t lent, loans, settled, returned, loan_renewals, local_grants;
    /* of the holds: */
    uint64_t uncertain;
    /* Entries of these holds, one for each LOCK that was granted: all;
     * with a LEASE; retained for a client that is not connected. The others are on the
     * watchdog. */
    uint64_t entries, fixed_entries, retained_entries;
    uint64_t permits; /* of semaphores, that these holds have */
    /* of the waiters: places retained for clients that come back */
    uint64_t retained_waiters;
    uint64_t oldest_wait_ms;
    /* holds that became uncertain; waiters answered -BACKEND */
    uint64_t doubts, unanswered;
    uint64_t queue_refusals; /* LOCKs that were refused because of their QUEUE */
    /* Because too few replicas acknowledged them: grants that were undone, renewals
     * that did not count. */
    uint64_t unacked_grants, unacked_renewals;
    uint64_t failovers;
    uint64_t restoring; /* holds that are being put back */
    uint64_t restored;  /* holds that Redis had lost and has again */
    /* holds that could not be put back; counted in `lost`, too */
    uint64_t lost_failover;
    uint64_t quarantine_left_ms; /* until no name is in quarantine */
    uint64_t other_daemons;      /* daemons that are known to use this Redis */
    uint64_t followers;          /* LEADERs that wait */
    uint64_t followed_names;     /* names whose leaders clients here follow */
    uint64_t awaits;             /* LATCH AWAITs that wait */
    uint64_t awaited_latches;    /* that they wait for */
    uint64_t latch_counts;       /* COUNTs of latches that were answered */
    bool store_up;
};

void engine_stats(const struct engine *eng, struct engine_stats *ret);

/* How long things took since the engine was made, to a millisecond. */
struct engine_timings {
    /* From a LOCK's joining the queue to its grant, repetitions with the same ID
     * counted together; 0 where the name was free. Each name of an MLOCK counts for
     * itself. Waits without a grant do not count. */
    struct histogram wait;
    /* From an owner's grant (or the RENEW by which the hold came to this daemon) to
     * its release, its loss, or its move to another daemon. */
    struct histogram hold;
    /* By how much a renewal's confirmation came later than a third of the lease after
     * the one before; 0 if in time, as renewals are sent early. */
    struct histogram renewal_lag;
};

const struct engine_timings *engine_timings(const struct engine *eng);

/* The bytes of memory that a name takes here, extrapolated from the first `samples` of
 * its holds and of its waiters; 0: nobody here holds or waits. */
size_t engine_memory(const struct engine *eng, struct span name, size_t samples);

/* One step over the names that are held or waited for here. Works like SCAN: starts
 * and ends with cursor 0; a name that exists all the time is reported at least once. */
typedef void lock_name_fn(void *ctx, struct span name);
uint64_t engine_scan(struct engine *eng, uint64_t cursor, size_t count,
                     lock_name_fn *fn, void *ctx);

struct waiter_info {
    struct span owner; /* the owner that will hold; empty: anonymous, or LATCH */
    uint64_t waited_ms;
    uint64_t left_ms; /* UINT64_MAX: no end */
    uint64_t conn;    /* 0: retained, no connection waits */
    bool local;       /* may be granted from memory */
    struct lock_terms terms;
};

/* Calls `fn` for the waiters of a name, in order, at most `count`. */
typedef void waiter_info_fn(void *ctx, const struct waiter_info *info);
void engine_waiters(struct engine *eng, struct span name, size_t count,
                    waiter_info_fn *fn, void *ctx);

#endif
