/* quorum_tally: what the votes of several nodes on one op come to; the table is in
 * quorum_coordinator.h. Pure: no time, no nodes. */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_TALLY_H
#define LATCHD_BACKEND_QUORUM_QUORUM_TALLY_H

#include "backend/quorum/quorum_coordinator.h"

enum quorum_vote_state { VOTE_NONE, VOTE_OPEN, VOTE_IN, VOTE_SILENT };

struct quorum_vote {
    enum quorum_vote_state state;
    bool maybe_granted;     /* ACQUIRE: the node may have granted it */
    bool was_maybe_granted; /* the same, before this round */
    bool found; /* ACQUIRE: the hold was there, and belongs to another instance */
    struct sent_op *sent;
    struct op_result r;
    void *memory; /* of r */
};

enum quorum_verdict {
    TALLY_OPEN,
    TALLY_DONE,
    TALLY_AGAIN, /* ACQUIRE: again, with one token for all */
    TALLY_TAKE,  /* ACQUIRE: again, to take over what another instance has there */
    TALLY_SPLIT, /* ACQUIRE: *ret unless it is tried again */
    TALLY_LACK,  /* too few nodes could be asked: *ret, after a pause */
};

struct quorum_votes {
    const struct op *op;
    const struct quorum_vote *votes;
    unsigned count, need;
    bool final;                          /* no other answer is waited for */
    uint64_t abstains[QUORUM_NODES_MAX]; /* for so long, ms; 0: the node votes */
};

/* Whether such ops can be answered on a quorum. */
bool quorum_tallies(enum op_kind kind);
/* `items`: room for the items of a RENEW. */
enum quorum_verdict quorum_tally(const struct quorum_votes *p, struct op_result *ret,
                                 enum renew_result *items);

#endif
