/* quorum_coordinator: one op of the engine, asked of several independent masters; one
 * result.
 *
 * A calculator, as engine/ is: it is told the time, results, and which nodes are there,
 * and answers by two callbacks: an op for a node, the result of an op. It knows no
 * socket, no Redis client and no clock; the simulator runs it as the daemon does.
 *
 * Every op goes to all nodes that are there, at once. As soon as the outcome is sure it
 * is told; who answers later changes nothing, and is never waited for. A node has a
 * bounded time: a few of its usual round trips while a majority has answered, else
 * timeout_ms. N nodes, a majority is M = N / 2 + 1.
 *
 *   ACQUIRE   M granted it, under one token: OK. Tokens differ, or a node has given a
 *             higher one (BEHIND): all are asked once more, for a higher one. No
 *             majority is possible: undone wherever it may have been granted, and
 *             (of these the first that fits)
 *               OVER, ELSEWHERE   one says so
 *               WRONGTYPE         so many say so that no majority is left
 *               BUSY              M have answered; the ttl is the time in which M will
 *                                 be free, -1: nothing tells. If some granted it,
 *                                 others may be asking as well: all is tried again
 *                                 after a pause of random length, ROUNDS_MAX times at
 *                                 most, and the next op on that name begins with one
 *               ERROR, LATE       too few could be asked
 *             What another instance was granted for it is only looked at, and taken
 *             over in another round once M have it; it is never undone
 *   RELEASE   M have done it: OK with the highest count. M have answered: OK, ENDED or
 *             ELSEWHERE if one says so, but NOTHELD if M do. Then it is still sent to
 *             the others, until they have done it or the lease is over (not when the
 *             target is vague: any entry of an owner, whoever holds). Too few
 *             answered: ERROR, LATE, UNKNOWN
 *   RENEW     each item: M renewed it: OK, and who says GONE is told to put it back
 *             (RESTORE). No majority is possible: ENDED, ELSEWHERE, GONE, WRONGTYPE,
 *             the first of these that one says. Else UNKNOWN; then, of those who say
 *             GONE, only who has lost nothing is told to put it back
 *   ATTACH, RESTORE
 *             M say OK, with one token. An ATTACH first only looks, and only if M have
 *             it, gives it its lease; if it is not known whether M have it, who has
 *             lost nothing is told to put it back, for the next time. So many say
 *             NOTHELD (ENDED..) that no majority is left: that. Else ERROR, LATE,
 *             UNKNOWN
 *   INSPECT   what M say of who holds it; M have answered, and no M agree: it is free
 *   others    ERROR
 *
 * What is granted, or attached, and not by all, is put back soon at those that lack it,
 * as long as a majority has it, or could: else the next node that fails takes the
 * majority away (quorum_partial_hold.c). An undo takes the token back as well, which
 * nobody was told of: a node that has given a later one does not take what has an older
 * one.
 *
 * What has to be done at a node that cannot be asked now (an undo, a release) is a
 * chore, kept until it is done or the lease is over, CHORES_MAX at most: then the
 * oldest are forgotten, and end with their leases.
 *
 * An ID or an owner may be found under an older token at a node that answers too late
 * to be asked again: what is released by its token stays there until its lease is over.
 *
 * A node that has been running for less than quarantine_ms, or whose clock has jumped,
 * may have lost what it granted: it abstains. For so long it grants nothing new (its
 * votes of what it does have count), so that what others hold has ended by then or is
 * back.
 *
 * A claim has its field always. Anonymous ones are to the nodes what IDs are.
 * Times in ms of any clock that is never set back. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_H
#define LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_H

#include "engine/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUORUM_NODES_MAX = 5,
    QUORUM_ROUNDS_MAX = 3,
    QUORUM_DEFERRED_OPS_MAX = 100000,
    QUORUM_PARTIAL_HOLDS_MAX = 100000,
};

struct quorum_coordinator;

struct coordinator_events {
    void *ctx;
    /* `op`, under an id of the ballot's own, lives during the call only. Nothing may be
     * called back. Its result is owed: coordinator_result(). */
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

/* It is now so late. `wall_us`: since 1970, what tokens are made of. */
void coordinator_time(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us);
/* The same, and what fell due is done: before anything else of a turn. */
void coordinator_tick(struct quorum_coordinator *b, uint64_t now_ms, uint64_t wall_us);
/* When it next needs a tick; UINT64_MAX: only after another event. */
uint64_t coordinator_next_deadline(const struct quorum_coordinator *b);

void coordinator_submit(struct quorum_coordinator *b, const struct op *op);
/* Of an op that was sent to that node. */
void coordinator_result(struct quorum_coordinator *b, unsigned node,
                        const struct op_result *result);

/* It can be asked. `same`: it is the process that was there before, with its data. If
 * not, or if it was never there before, it abstains until it has been running for the
 * quarantine. */
void coordinator_node_up(struct quorum_coordinator *b, unsigned node, bool same,
                         uint64_t running_ms);
/* It cannot; what it owes comes once it is up. */
void coordinator_node_down(struct quorum_coordinator *b, unsigned node);
/* Leases may have ended there that should not have. */
void coordinator_node_lost(struct quorum_coordinator *b, unsigned node);
/* A majority can be asked. */
bool coordinator_is_up(const struct quorum_coordinator *b);

struct coordinator_stats {
    uint64_t splits;         /* askings that were given up as others asked as well */
    uint64_t undone, healed; /* at single nodes */
    uint64_t deferred_ops;   /* to be done */
    uint64_t forgotten;      /* chores, as they were too many */
    uint64_t open;           /* ops without a result */
};
void coordinator_stats(const struct quorum_coordinator *b,
                       struct coordinator_stats *ret);
/* For how long that node grants nothing new, ms. */
uint64_t coordinator_abstains(const struct quorum_coordinator *b, unsigned node);

#endif
