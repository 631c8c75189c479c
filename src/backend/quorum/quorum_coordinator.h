/* quorum_coordinator: one op of the engine, asked of several independent masters; one
 * result.
 *
 * A calculator, as engine/ is: it takes the time, results, and which nodes are up, and
 * answers by two callbacks: an op for a node, and the result of an op. It knows no
 * socket, no Redis client and no clock; the simulator runs it as the daemon does.
 *
 * Every op goes to all nodes that are up, at once. The result is reported as soon as
 * the outcome is certain; later answers change nothing, and are never waited for. A
 * node has a bounded time to answer: a few of its usual round trips once a majority has
 * answered, else timeout_ms. Of N nodes, a majority is M = N / 2 + 1.
 *
 *   ACQUIRE   M granted it, under one token: OK. If tokens differ, or a node has given
 *             a higher one (BEHIND), all are asked once more: for the token under which
 *             an ID was found, the highest one, as its client may have been told that;
 *             else, or if a node is ahead of it, for a higher one. If no majority
 *             is possible, the claim is undone wherever it may have been granted, and
 *             the result is the first of these that fits
 *               OVER, ELSEWHERE   one node says so
 *               WRONGTYPE         so many say so that no majority is left
 *               BUSY              M have answered; the ttl is the time in which M will
 *                                 be free, -1: not known. If some granted it, others
 *                                 may be asking as well: all is tried again after a
 *                                 pause of random length, ROUNDS_MAX times at most,
 *                                 and the next op on that name begins with a pause
 *               ERROR, LATE       too few nodes could be asked
 *             A hold that was granted to another instance for the same claim is only
 *             reported by the nodes at first. Once M have it, another round takes it
 *             over. Such a hold is never undone
 *   RELEASE   M have done it: OK with the highest count. M have answered: NOTHELD if M
 *             say so and none says ENDED, unless the hold was certain and a node that
 *             has answered did it; else OK, ENDED or ELSEWHERE if one says so. Then the
 *             release still goes to the other nodes, until they have done it or the
 *             lease is over (but not if the target is vague: any entry of an owner, any
 *             holder). Too few answered: ERROR, LATE, UNKNOWN
 *   RENEW     each item: M renewed it: OK, and nodes that say GONE have to put it back
 *             (RESTORE). No majority is possible: ENDED, ELSEWHERE, GONE, WRONGTYPE,
 *             the first of these that one says. Else UNKNOWN; then, of the nodes that
 *             say GONE, only those that lost nothing have to put it back
 *   ATTACH, RESTORE
 *             M say OK, with one token. An ATTACH changes nothing at first, and gives
 *             the hold its lease only if M have it; if it is not known whether M have
 *             it, nodes that lost nothing have to put it back, for the next time. So
 *             many say NOTHELD (ENDED..) that no majority is left: that. Else ERROR,
 *             LATE, UNKNOWN
 *   INSPECT   what M say about the holder; if M have answered and no M agree, the lock
 *             is free
 *   others    ERROR
 *
 * What is granted, or attached, but not at all nodes, is soon put back at those that
 * lack it, as long as a majority has it, or could: otherwise the next node that fails
 * takes the majority away (quorum_nodes.c). An undo takes back the token, too,
 * which nobody has seen: a node that has given a later token does not take a hold with
 * an older one.
 *
 * An op that has to be done at a node that cannot be asked now (an undo, a release) is
 * a deferred op, kept until it is done or the lease is over. There are
 * QUORUM_DEFERRED_OPS_MAX at most: then the oldest are forgotten, and end with their
 * leases.
 *
 * An ID or an owner may be found under an older token at a node that answers too late
 * to be asked again: a release by token leaves it there until its lease is over.
 *
 * A node that has been running for less than quarantine_ms, or whose clock has jumped,
 * may have lost what it granted: it abstains. For so long it grants nothing new (its
 * votes of what it does have count), so that by then the holds of others have ended or
 * are back.
 *
 * A claim always has its field. To the nodes, an anonymous claim is like an ID.
 * Times in ms of any clock that is never set back. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_H
#define LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_H

#include "engine/lock_terms.h"
#include "engine/op.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quorum_coordinator;
struct quorum_subs;

/* quorum_subs: which channels of lock names are subscribed at a majority of the nodes.
 *
 * A release is published at every node that had the lock, and those are a majority; so
 * a subscription at a majority misses none. Pure: no link, no clock. */

struct quorum_subs *quorum_subs_new(unsigned node_count);
void quorum_subs_free(struct quorum_subs *h);

/* Adds a channel: all nodes are asked for it, from anew. */
void quorum_subs_add(struct quorum_subs *h, struct span name,
                     enum lock_class lock_class);
void quorum_subs_remove(struct quorum_subs *h, struct span name,
                        enum lock_class lock_class);
/* The node has subscribed. Returns true if the subscribed nodes become a majority by
 * this. */
bool quorum_subs_on(struct quorum_subs *h, unsigned node, struct span name,
                    enum lock_class lock_class);
/* The node has no subscriptions any more. Returns true if some channel has lost its
 * majority; then no channel is `told`, until quorum_subs_tell(). */
bool quorum_subs_off(struct quorum_subs *h, unsigned node);
/* Calls `fn` for the channels that have a majority and were not told since
 * quorum_subs_off(). */
typedef void quorum_subs_fn(void *ctx, struct span name, enum lock_class lock_class);
void quorum_subs_tell(struct quorum_subs *h, quorum_subs_fn *fn, void *ctx);

enum {
    QUORUM_NODES_MAX = 5,
    QUORUM_ROUNDS_MAX = 3,
    QUORUM_DEFERRED_OPS_MAX = 100000,
    QUORUM_PARTIAL_HOLDS_MAX = 100000,
};

struct coordinator_events {
    void *ctx;
    /* `op`, under an id of the coordinator's own, is valid during the call only. The
     * callback must not call the coordinator. The result is due in
     * coordinator_result(). */
    void (*send)(void *ctx, unsigned node, const struct op *op);
    /* Never during coordinator_submit(). */
    void (*done)(void *ctx, const struct op_result *result);
};

struct coordinator_setup {
    unsigned node_count;
    uint64_t timeout_ms;
    uint64_t quarantine_ms;
    uint64_t seed;
    uint64_t now_ms;
    struct coordinator_events events;
};

struct quorum_coordinator *coordinator_new(const struct coordinator_setup *setup);
void coordinator_free(struct quorum_coordinator *b);
void coordinator_configure(struct quorum_coordinator *b, uint64_t timeout_ms,
                           uint64_t quarantine_ms);

/* Sets the time. `wall_us`: since 1970, for tokens. */
void coordinator_time(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us);
/* Sets the time and does what fell due: before anything else of a turn. */
void coordinator_tick(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us);
/* When the coordinator next needs a tick; UINT64_MAX: only after another event. */
uint64_t coordinator_next_deadline(const struct quorum_coordinator *b);

void coordinator_submit(struct quorum_coordinator *b, const struct op *op);
/* The result of an op that was sent to that node. */
void coordinator_result(struct quorum_coordinator *b, unsigned node,
                        const struct op_result *result);

/* The node can be asked. `same`: the process is the one that was there before, with its
 * data. Any other process, and the first one, abstains until it has been running for
 * the quarantine. */
void coordinator_node_up(struct quorum_coordinator *b, unsigned node, bool same,
                         uint64_t running_ms);
/* The node cannot be asked; results that it owes come once it is up. */
void coordinator_node_down(struct quorum_coordinator *b, unsigned node);
/* Leases may have ended early at the node. */
void coordinator_node_lost(struct quorum_coordinator *b, unsigned node);
/* Whether a majority can be asked. */
bool coordinator_is_up(const struct quorum_coordinator *b);

struct coordinator_stats {
    /* rounds that were given up because others asked as well */
    uint64_t splits;
    uint64_t undone, healed; /* at single nodes */
    uint64_t deferred_ops;   /* still to be done */
    uint64_t forgotten;      /* deferred ops, because there were too many */
    uint64_t open;           /* ops without a result */
};
void coordinator_stats(const struct quorum_coordinator *b,
                       struct coordinator_stats *ret);
/* For how long that node grants nothing new, ms. */
uint64_t coordinator_abstains(const struct quorum_coordinator *b, unsigned node);

#endif
