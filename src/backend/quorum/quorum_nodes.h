/* quorum_nodes: the nodes of a quorum: the ops on their way to them, what they still
 * have to do (deferred ops), and what they lack (partial holds). The coordinator's own,
 * for nobody else.
 *
 *   quorum_call    an op of the engine and the votes on it; freed with the last vote
 *                  that still matters
 *   sent_op        an op on its way to a node; each gets one result, even if nobody
 *                  wants that any more
 *   partial_hold   a hold that was granted, but that not all nodes have
 *   deferred_op    an op that some nodes still have to do after the engine's answer
 *   deferred_send  the part of a deferred op at one node */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_NODES_H
#define LATCHD_BACKEND_QUORUM_QUORUM_NODES_H

#include "backend/quorum/quorum_tally.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/table.h"

enum {
    PATIENCE_MIN_MS = 20, /* for late nodes, once a majority has answered */
    /* a node that owes an answer for longer is not asked at all */
    STUCK_MS = 500,
    PROBE_LEASE_MS = 1, /* lease of an op that must change nothing yet */
    /* before a partial hold is probed, at first; doubled each time */
    PROBE_PAUSE_MS = 2,
    PROBE_DOUBLINGS = 9,
    PROBES_MAX = 14,      /* 7 s, then only renewals repair it */
    LACK_PAUSE_MS = 100,  /* before an op fails because too few nodes can be asked */
    LATE_PAUSE_MS = 10,   /* before a deferred send that was late goes again */
    ERROR_PAUSE_MS = 200, /* or one that was refused */
    SPLIT_PAUSE_MS = 4,   /* at most, at first; doubled each time */
    SPLIT_DOUBLINGS = 6,
    SPLIT_FORGET_MS = 2000,
    PROPOSALS_MAX = 8,
    DEFERRED_IN_FLIGHT = 500,  /* at one node */
    DEFERRED_KEEP_MS = 600000, /* a release whose lease is not known */
    SLACK_MS = 1000,           /* by then a lease is over at a node */
    SLOTS = 4096,              /* name slots, found by the hash of a name alone */
};

enum quorum_call_state {
    CALL_ASKING,
    CALL_PAUSED,    /* until all nodes are asked again */
    CALL_LINGERING, /* `result` is reported after a pause */
    CALL_DECIDED,   /* and reported; kept for a RENEW, to repair nodes */
};

struct quorum_call {
    struct list in_calls;
    struct list in_done; /* `result` is to be reported */
    struct heap_node timer;
    struct op *op;
    struct name_slot *slot; /* slot of its name */
    enum quorum_call_state state;
    uint64_t seq;
    uint64_t asked_at; /* this round */
    uint64_t propose;
    uint64_t retract_from; /* the first token that it proposed */
    /* ACQUIRE: the token under which some nodes have the hold already is proposed
     * instead; 0: none is */
    uint64_t keeps;
    bool level;
    bool takes;     /* ACQUIRE: takes over what was found */
    bool is_probe;  /* a call of the coordinator, for partial holds */
    bool impatient; /* the time for late nodes is over */
    unsigned rounds, proposals;
    struct op_result result;
    enum renew_result *items; /* of result */
    struct quorum_vote votes[QUORUM_NODES_MAX];
};

struct sent_op {
    struct table_node in_sents; /* by id */
    struct list in_node;        /* in order */
    unsigned node;
    uint64_t at;
    struct quorum_call *call;   /* NULL: nobody wants the result any more */
    struct deferred_send *send; /* or the deferred send that it is */
};

/* WATCHES: waits for the result of the ACQUIRE that is to be undone. */
enum deferred_send_state { SEND_NONE, SEND_WATCHES, SEND_WAITS, SEND_SENT };

struct deferred_send {
    struct list in_node; /* WAITS */
    struct deferred_op *deferred;
    struct sent_op *sent;
    enum deferred_send_state state;
    /* WATCHES: even if the ACQUIRE did nothing, an earlier one may have. */
    bool was_maybe_granted;
};

struct deferred_op {
    struct table_node by_key;
    struct list in_deferred;
    struct heap_node timer; /* when it is given up */
    struct op *op;
    unsigned left;
    struct deferred_send sends[QUORUM_NODES_MAX];
    size_t key_len;
    char key[];
};

struct partial_hold {
    struct table_node by_name;
    struct list in_partial;
    struct list in_due;
    struct heap_node timer;
    uint64_t until; /* end of its lease */
    unsigned probes;
    bool is_probed; /* a call that probes it is under way */
    struct renew_item item;
    char text[];
};

struct coordinator_node {
    bool up, was_up;
    uint64_t abstains_until;
    uint64_t pause_until; /* for deferred sends */
    uint64_t trip8;       /* a smoothed round trip, in eighths of a ms */
    bool trip_known;
    size_t deferred_in_flight;
    struct list sents;
    struct list sends;
};

struct name_slot {
    /* seq of the last op on such a name after which answers to earlier ops must not be
     * put back: RELEASE, ATTACH, a RENEW that shortens the lease */
    uint64_t changed;
    uint64_t split_at;  /* when an ACQUIRE was split last */
    unsigned split_row; /* how often in a row */
};

struct quorum_coordinator {
    struct coordinator_setup setup;
    unsigned need;
    uint64_t now, wall_us;
    uint64_t seen_token;
    uint64_t next_id, next_seq;
    uint64_t dice;
    struct coordinator_node nodes[QUORUM_NODES_MAX];
    struct table sents;
    struct list calls, done;
    struct heap call_timers, deferred_timers;
    struct table deferred_ops;
    struct list deferred_order;
    size_t deferred_count;
    struct table partial_holds;
    struct list partial_order, partial_due;
    struct heap partial_timers;
    size_t partial_count;
    bool is_probing; /* a probe is under way */
    struct name_slot slots[SLOTS];
    struct coordinator_stats stats;
    bool telling;
};

/* --- ops on their way ------------------------------------------------------------- */

bool quorum_node_usable(const struct quorum_coordinator *b, unsigned node);
/* How long late nodes are waited for once a majority has answered. */
uint64_t quorum_patience(const struct quorum_coordinator *b);
struct sent_op *quorum_node_send(struct quorum_coordinator *b, unsigned node,
                                 const struct op *op);
/* Takes what the result is for: a call, a deferred send, or nothing any more. False:
 * that op is not on its way to this node. */
bool quorum_take_sent(struct quorum_coordinator *b, unsigned node,
                      const struct op_result *result, struct quorum_call **ret_call,
                      struct deferred_send **ret_send);
struct name_slot *name_slot_of(struct quorum_coordinator *b, struct span name);
/* Notes whether others ask for that name at the same time: if so, the next ACQUIRE
 * begins with a pause, which grows. */
void name_slot_note_split(struct quorum_coordinator *b, struct name_slot *slot,
                          bool split);
/* How long the node still grants nothing new, ms. */
uint64_t quorum_node_abstains(const struct quorum_coordinator *b, unsigned node);

/* --- deferred ops ----------------------------------------------------------------- */

/* Ends the claim of that ACQUIRE wherever it may have been granted. */
void deferred_op_undo(struct quorum_coordinator *b, struct quorum_call *c);
/* Sends a RELEASE that has been answered to the other nodes as well. */
void deferred_op_release(struct quorum_coordinator *b, struct quorum_call *c);
/* The same claim is asked for anew: what was to be undone may be there, and belongs to
 * the call now. */
void deferred_op_absorb(struct quorum_coordinator *b, struct quorum_call *c);
void deferred_op_on_result(struct quorum_coordinator *b, struct deferred_send *e,
                           const struct op_result *r);
/* Sends the deferred sends that wait for that node. */
void deferred_ops_flush(struct quorum_coordinator *b, unsigned node);
/* Gives up those whose time is over. */
void deferred_ops_expire(struct quorum_coordinator *b);

/* --- partial holds, and what nodes lack ------------------------------------------- */

/* Notes a hold after an op that extends its lease succeeded. Returns false if all nodes
 * that have answered have the hold. */
bool partial_hold_note(struct quorum_coordinator *b, const struct quorum_call *c);
/* Forgets the holds of a name, which was released, or is about to be. */
void partial_hold_forget(struct quorum_coordinator *b, struct span name);
/* The result of this RENEW was reported. */
void partial_hold_on_renewal(struct quorum_coordinator *b, const struct quorum_call *c);
void partial_hold_on_probe(struct quorum_coordinator *b, const struct quorum_call *c);
/* All whose pause is over are due. */
void partial_holds_fire(struct quorum_coordinator *b);
/* All that have given up are due: a node has come back. */
void partial_holds_wake(struct quorum_coordinator *b);
/* Fills in the RENEW of the next probe, for partial_hold_on_probe(); returns how many
 * items it has. 0: nothing is due, or a probe is under way. */
size_t partial_holds_probe(struct quorum_coordinator *b,
                           struct renew_item items[static OP_RENEW_MAX]);
/* Repairs all items that the node lacks. */
void quorum_repair(struct quorum_coordinator *b, struct quorum_call *c, unsigned node);
/* Repairs a hold that a client comes back to, which too few nodes have: some nodes that
 * could have it are gone. */
void quorum_repair_attach(struct quorum_coordinator *b, const struct quorum_call *c);

void quorum_nodes_init(struct quorum_coordinator *b);
void quorum_nodes_fini(struct quorum_coordinator *b);

#endif
