/* coordinator_priv: what the files of ballot share. For nobody else.
 *
 *   call    an op of the engine and the votes on it; freed with the last vote that
 *           still matters
 *   sent    an op on its way to a node; each gets one result, whoever still wants it
 *   bare    a hold that was granted, and that not all nodes have
 *   chore   an op that has to be done at some nodes, whoever has an answer already
 *   errand  a chore's at one node */
#ifndef LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_PRIV_H
#define LATCHD_BACKEND_QUORUM_QUORUM_COORDINATOR_PRIV_H

#include "backend/quorum/quorum_coordinator.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/table.h"

enum {
    PATIENCE_MIN_MS = 20, /* for who has not answered, when a majority has */
    STUCK_MS = 500,       /* who owes an answer for longer is not asked at all */
    PROBE_LEASE_MS = 1,   /* of what is to change nothing yet */
    PROBE_PAUSE_MS = 2,   /* before a bare is looked at, at first; doubled each time */
    PROBE_DOUBLINGS = 9,
    PROBES_MAX = 14,      /* 7 s, then only renewals heal it */
    LACK_PAUSE_MS = 100,  /* before it is said that too few can be asked */
    LATE_PAUSE_MS = 10,   /* before an errand that was late goes again */
    ERROR_PAUSE_MS = 200, /* or was refused */
    SPLIT_PAUSE_MS = 4,   /* at most, at first; doubled each time */
    SPLIT_DOUBLINGS = 6,
    SPLIT_FORGET_MS = 2000,
    PROPOSALS_MAX = 8,
    DEFERRED_IN_FLIGHT = 500,  /* at one node */
    DEFERRED_KEEP_MS = 600000, /* a release whose lease is not known */
    SLACK_MS = 1000,           /* a lease is over at a node by then */
    SLOTS = 4096,              /* what is remembered by a hash of the name alone */
};

enum quorum_vote_state { VOTE_NONE, VOTE_OPEN, VOTE_IN, VOTE_SILENT };

struct quorum_vote {
    enum quorum_vote_state state;
    bool may;   /* ACQUIRE: it may have granted it */
    bool had;   /* the same before this round */
    bool found; /* ACQUIRE: it was there, and is another instance's */
    struct sent_op *sent;
    struct op_result r;
    void *memory; /* of r */
};

enum quorum_call_state {
    CALL_ASKING,
    CALL_PAUSED,    /* until all are asked again */
    CALL_LINGERING, /* `result` is told after a pause */
    CALL_DECIDED,   /* and told; a RENEW, for who is to be healed */
};

struct quorum_call {
    struct list in_calls;
    struct list in_done; /* `result` is to be told */
    struct heap_node timer;
    struct op *op;
    struct name_slot *slot; /* of its name */
    enum quorum_call_state state;
    uint64_t seq;
    uint64_t asked_at; /* this round */
    uint64_t propose;
    uint64_t untold; /* the first that it proposed */
    bool level;
    bool takes;     /* ACQUIRE: what was found at most */
    bool is_probe;  /* of the ballot's own: at bares */
    bool impatient; /* patience is over for who has not answered */
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
    struct quorum_call *call;   /* NULL: its result tells nothing any more */
    struct deferred_send *send; /* or it is one of these */
};

/* WATCHES: for what became of the ACQUIRE that is to be undone. */
enum deferred_send_state { SEND_NONE, SEND_WATCHES, SEND_WAITS, SEND_SENT };

struct deferred_send {
    struct list in_node; /* WAITS */
    struct deferred_op *deferred;
    struct sent_op *sent;
    enum deferred_send_state state;
    bool had; /* WATCHES: even if that did nothing, it may be there from before */
};

struct deferred_op {
    struct table_node by_key;
    struct list in_deferred;
    struct heap_node timer; /* its end */
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
    uint64_t until; /* its lease */
    unsigned probes;
    bool is_probed; /* by a call that is under way */
    struct renew_item item;
    char text[];
};

struct coordinator_node {
    bool up, was_up;
    uint64_t abstains_until;
    uint64_t pause_until; /* errands */
    uint64_t trip8;       /* a round trip, smoothed, in eighths of a ms */
    bool trip_known;
    size_t deferred_in_flight;
    struct list sents;
    struct list sends;
};

struct name_slot {
    /* seq of the last op on such a name after which what was asked before may not be
     * put back: RELEASE, ATTACH, a RENEW that cuts the lease */
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
    bool is_probing; /* a look is under way */
    struct name_slot slots[SLOTS];
    struct coordinator_stats stats;
    bool telling;
};

/* --- quorum_result_copy.c: a deep copy in one block of memory, for free(); may be NULL
 * --- */

struct op_result coordinator_copy_result(const struct op_result *r, void **ret_memory);

/* --- quorum_send.c ---------------------------------------------------------------- */

bool coordinator_usable(const struct quorum_coordinator *b, unsigned node);
struct sent_op *coordinator_send(struct quorum_coordinator *b, unsigned node,
                                 const struct op *op);
/* A node's result goes to whoever it is for. */
void coordinator_deliver(struct quorum_coordinator *b, unsigned node,
                         const struct op_result *result);
void coordinator_sent_free(struct quorum_coordinator *b, struct sent_op *s);
/* How long those who have not answered are waited for once a majority has. */
uint64_t coordinator_patience(const struct quorum_coordinator *b);
/* From 0 to most. */
uint64_t coordinator_dice(struct quorum_coordinator *b, uint64_t most);
struct name_slot *coordinator_slot(struct quorum_coordinator *b, struct span name);
void coordinator_saw_token(struct quorum_coordinator *b, uint64_t token);

/* --- quorum_tally.c ----------------------------------------------------------------
 */

enum quorum_verdict {
    TALLY_OPEN,
    TALLY_DONE,
    TALLY_AGAIN, /* ACQUIRE: with a token above all that were seen */
    TALLY_TAKE,  /* ACQUIRE: what another instance has there */
    TALLY_SPLIT, /* ACQUIRE: *ret if it is not tried again */
    TALLY_LACK,  /* too few could be asked: *ret, after a pause */
};

struct quorum_votes {
    const struct op *op;
    const struct quorum_vote *votes;
    unsigned count, need;
    bool final;                          /* nobody else is waited for */
    uint64_t abstains[QUORUM_NODES_MAX]; /* for so long; 0: it votes */
};

/* There is an answer to such ops. */
bool coordinator_tallies(enum op_kind kind);
/* `items`: room for those of a RENEW. */
enum quorum_verdict coordinator_tally(const struct quorum_votes *p,
                                      struct op_result *ret, enum renew_result *items);

/* --- quorum_vote.c ---------------------------------------------------------------- */

/* Nothing was said; what is on its way is not for it any more. */
void vote_drop(struct quorum_vote *v);
void vote_count(struct quorum_vote *v, const struct op_result *r, bool acquires);

/* --- quorum_call.c ---------------------------------------------------------------- */

void coordinator_call_begin(struct quorum_coordinator *b, const struct op *op);
/* The same, for partial_hold_on_probe(). */
void coordinator_call_probe(struct quorum_coordinator *b, const struct op *op);
void coordinator_call_free(struct quorum_coordinator *b, struct quorum_call *c);
void coordinator_call_on_vote(struct quorum_coordinator *b, struct quorum_call *c,
                              unsigned node, const struct op_result *r);
/* It will not answer for now. */
void coordinator_call_on_silence(struct quorum_coordinator *b, struct quorum_call *c,
                                 unsigned node);
void coordinator_call_on_timer(struct quorum_coordinator *b, struct quorum_call *c);
/* Its result was told. */
void coordinator_call_told(struct quorum_coordinator *b, struct quorum_call *c);

/* --- quorum_repair.c ----------------------------------------------------------------
 */

/* By its answer to this RENEW, which is decided, it has to be told to put that back. */
bool coordinator_lacks(const struct quorum_coordinator *b, const struct quorum_call *c,
                       unsigned node, size_t item);
/* It is told so. */
void coordinator_repair_item(struct quorum_coordinator *b, const struct quorum_call *c,
                             unsigned node, const struct renew_item *item);
/* All that this node lacks. */
void coordinator_repair(struct quorum_coordinator *b, struct quorum_call *c,
                        unsigned node);
/* Too few have what a client comes back to, and some that could have it are gone. */
void coordinator_repair_attach(struct quorum_coordinator *b,
                               const struct quorum_call *c);

/* --- quorum_partial_hold.c
 * ---------------------------------------------------------------- */

/* An op that vouches was told to be well. False: all that have answered have it. */
bool partial_hold_note(struct quorum_coordinator *b, const struct quorum_call *c);
/* It was released, or is about to be. */
void partial_hold_forget(struct quorum_coordinator *b, struct span name);
/* This RENEW was told. */
void partial_hold_on_renewal(struct quorum_coordinator *b, const struct quorum_call *c);
void partial_hold_on_probe(struct quorum_coordinator *b, const struct quorum_call *c);
void partial_hold_on_timer(struct quorum_coordinator *b, struct partial_hold *partial);
void partial_hold_free(struct quorum_coordinator *b, struct partial_hold *partial);
/* A node is there again. */
void partial_holds_wake(struct quorum_coordinator *b);
/* Looks at what is due. */
void partial_holds_flush(struct quorum_coordinator *b);

/* --- quorum_deferred_op.c
 * --------------------------------------------------------------- */

/* Ends the claim of that ACQUIRE wherever it may have been granted. */
void deferred_op_undo(struct quorum_coordinator *b, struct quorum_call *c);
/* A RELEASE that has been answered goes to the others as well. */
void deferred_op_release(struct quorum_coordinator *b, struct quorum_call *c);
/* The same claim is asked for anew: what was to be undone may be there, and is the
 * call's. */
void deferred_op_absorb(struct quorum_coordinator *b, struct quorum_call *c);
void deferred_op_on_result(struct quorum_coordinator *b, struct deferred_send *e,
                           const struct op_result *r);
void deferred_op_free(struct quorum_coordinator *b, struct deferred_op *ch);
/* Others may be asking for that name at the same time: the next time begins with a
 * pause that may be longer. Not so: it is over. */
void coordinator_note_split(struct quorum_coordinator *b, struct name_slot *slot,
                            bool split);
/* Sends what waits for that node. */
void deferred_ops_flush(struct quorum_coordinator *b, unsigned node);

#endif
