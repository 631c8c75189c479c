/* ballot_priv: what the files of ballot share. For nobody else.
 *
 *   call    an op of the engine and the votes on it; freed with the last vote that
 *           still matters
 *   sent    an op on its way to a node; each gets one result, whoever still wants it
 *   bare    a hold that was granted, and that not all nodes have
 *   chore   an op that has to be done at some nodes, whoever has an answer already
 *   errand  a chore's at one node */
#ifndef LATCHD_STORE_BALLOT_PRIV_H
#define LATCHD_STORE_BALLOT_PRIV_H

#include "store/ballot.h"
#include "util/heap.h"
#include "util/list.h"
#include "util/table.h"

enum {
    PATIENCE_MIN_MS = 20, /* for who has not answered, when a majority has */
    STUCK_MS = 500,       /* who owes an answer for longer is not asked at all */
    LOOK_LEASE_MS = 1,    /* of what is to change nothing yet */
    LOOK_PAUSE_MS = 2,    /* before a bare is looked at, at first; doubled each time */
    LOOK_DOUBLINGS = 9,
    LOOKS_MAX = 14,       /* 7 s, then only renewals heal it */
    LACK_PAUSE_MS = 100,  /* before it is said that too few can be asked */
    LATE_PAUSE_MS = 10,   /* before an errand that was late goes again */
    ERROR_PAUSE_MS = 200, /* or was refused */
    SPLIT_PAUSE_MS = 4,   /* at most, at first; doubled each time */
    SPLIT_DOUBLINGS = 6,
    SPLIT_FORGET_MS = 2000,
    PROPOSALS_MAX = 8,
    ERRANDS_IN_FLIGHT = 500, /* at one node */
    CHORE_KEEP_MS = 600000,  /* a release whose lease is not known */
    SLACK_MS = 1000,         /* a lease is over at a node by then */
    SLOTS = 4096,            /* what is remembered by a hash of the name alone */
};

enum vote_state { VOTE_NONE, VOTE_OPEN, VOTE_IN, VOTE_SILENT };

struct vote {
    enum vote_state state;
    bool may;   /* ACQUIRE: it may have granted it */
    bool had;   /* the same before this round */
    bool found; /* ACQUIRE: it was there, and is another instance's */
    struct sent *sent;
    struct op_result r;
    void *memory; /* of r */
};

enum call_state {
    CALL_ASKING,
    CALL_PAUSED,    /* until all are asked again */
    CALL_LINGERING, /* `result` is told after a pause */
    CALL_DECIDED,   /* and told; a RENEW, for who is to be healed */
};

struct call {
    struct list in_calls;
    struct list in_done; /* `result` is to be told */
    struct heap_node timer;
    struct op *op;
    struct slot *slot; /* of its name */
    enum call_state state;
    uint64_t seq;
    uint64_t asked_at; /* this round */
    uint64_t propose;
    uint64_t untold; /* the first that it proposed */
    bool level;
    bool takes;     /* ACQUIRE: what was found at most */
    bool looks;     /* of the ballot's own: at bares */
    bool impatient; /* patience is over for who has not answered */
    unsigned rounds, proposals;
    struct op_result result;
    enum renew_result *items; /* of result */
    struct vote votes[BALLOT_NODES_MAX];
};

struct sent {
    struct table_node in_sents; /* by id */
    struct list in_node;        /* in order */
    unsigned node;
    uint64_t at;
    struct call *call;     /* NULL: its result tells nothing any more */
    struct errand *errand; /* or it is one of these */
};

/* WATCHES: for what became of the ACQUIRE that is to be undone. */
enum errand_state { ERRAND_NONE, ERRAND_WATCHES, ERRAND_WAITS, ERRAND_SENT };

struct errand {
    struct list in_node; /* WAITS */
    struct chore *chore;
    struct sent *sent;
    enum errand_state state;
    bool had; /* WATCHES: even if that did nothing, it may be there from before */
};

struct chore {
    struct table_node by_key;
    struct list in_chores;
    struct heap_node timer; /* its end */
    struct op *op;
    unsigned left;
    struct errand errands[BALLOT_NODES_MAX];
    size_t key_len;
    char key[];
};

struct bare {
    struct table_node by_name;
    struct list in_bares;
    struct list in_due;
    struct heap_node timer;
    uint64_t until; /* its lease */
    unsigned looks;
    bool looked_at; /* by a call that is under way */
    struct renew_item item;
    char text[];
};

struct ballot_node {
    bool up, was_up;
    uint64_t abstains_until;
    uint64_t pause_until; /* errands */
    uint64_t trip8;       /* a round trip, smoothed, in eighths of a ms */
    bool trip_known;
    size_t errands_in_flight;
    struct list sents;
    struct list errands;
};

struct slot {
    /* seq of the last op on such a name after which what was asked before may not be
     * put back: RELEASE, ATTACH, a RENEW that cuts the lease */
    uint64_t changed;
    uint64_t split_at;  /* when an ACQUIRE was split last */
    unsigned split_row; /* how often in a row */
};

struct ballot {
    struct ballot_setup setup;
    unsigned need;
    uint64_t now, wall_us;
    uint64_t seen_token;
    uint64_t next_id, next_seq;
    uint64_t dice;
    struct ballot_node nodes[BALLOT_NODES_MAX];
    struct table sents;
    struct list calls, done;
    struct heap call_timers, chore_timers;
    struct table chores;
    struct list chore_order;
    size_t chore_count;
    struct table bares;
    struct list bare_order, bares_due;
    struct heap bare_timers;
    size_t bare_count;
    bool looks; /* a look is under way */
    struct slot slots[SLOTS];
    struct ballot_stats stats;
    bool telling;
};

/* --- ballot_copy.c: a deep copy in one block of memory, for free(); may be NULL --- */

struct op_result ballot_copy_result(const struct op_result *r, void **ret_memory);

/* --- ballot_send.c ---------------------------------------------------------------- */

bool ballot_usable(const struct ballot *b, unsigned node);
struct sent *ballot_send(struct ballot *b, unsigned node, const struct op *op);
/* A node's result goes to whoever it is for. */
void ballot_deal(struct ballot *b, unsigned node, const struct op_result *result);
void ballot_sent_free(struct ballot *b, struct sent *s);
/* How long those who have not answered are waited for once a majority has. */
uint64_t ballot_patience(const struct ballot *b);
/* From 0 to most. */
uint64_t ballot_dice(struct ballot *b, uint64_t most);
struct slot *ballot_slot(struct ballot *b, struct span name);
void ballot_saw_token(struct ballot *b, uint64_t token);

/* --- ballot_join.c ---------------------------------------------------------------- */

enum verdict {
    VERDICT_OPEN,
    VERDICT_DONE,
    VERDICT_AGAIN, /* ACQUIRE: with a token above all that were seen */
    VERDICT_TAKE,  /* ACQUIRE: what another instance has there */
    VERDICT_SPLIT, /* ACQUIRE: *ret if it is not tried again */
    VERDICT_LACK,  /* too few could be asked: *ret, after a pause */
};

struct poll {
    const struct op *op;
    const struct vote *votes;
    unsigned count, need;
    bool final;                          /* nobody else is waited for */
    uint64_t abstains[BALLOT_NODES_MAX]; /* for so long; 0: it votes */
};

/* There is an answer to such ops. */
bool ballot_joins(enum op_kind kind);
/* `items`: room for those of a RENEW. */
enum verdict ballot_join(const struct poll *p, struct op_result *ret,
                         enum renew_result *items);

/* --- ballot_vote.c ---------------------------------------------------------------- */

/* Nothing was said; what is on its way is not for it any more. */
void vote_drop(struct vote *v);
void vote_count(struct vote *v, const struct op_result *r, bool acquires);

/* --- ballot_call.c ---------------------------------------------------------------- */

void ballot_call_begin(struct ballot *b, const struct op *op);
/* The same, for bare_looked(). */
void ballot_call_look(struct ballot *b, const struct op *op);
void ballot_call_free(struct ballot *b, struct call *c);
void ballot_call_on_vote(struct ballot *b, struct call *c, unsigned node,
                         const struct op_result *r);
/* It will not answer for now. */
void ballot_call_on_silence(struct ballot *b, struct call *c, unsigned node);
void ballot_call_on_timer(struct ballot *b, struct call *c);
/* Its result was told. */
void ballot_call_told(struct ballot *b, struct call *c);

/* --- ballot_heal.c ---------------------------------------------------------------- */

/* By its answer to this RENEW, which is decided, it has to be told to put that back. */
bool ballot_lacks(const struct ballot *b, const struct call *c, unsigned node,
                  size_t item);
/* It is told so. */
void ballot_heal_item(struct ballot *b, const struct call *c, unsigned node,
                      const struct renew_item *item);
/* All that this node lacks. */
void ballot_heal(struct ballot *b, struct call *c, unsigned node);
/* Too few have what a client comes back to, and some that could have it are gone. */
void ballot_heal_attach(struct ballot *b, const struct call *c);

/* --- ballot_bare.c ---------------------------------------------------------------- */

/* An op that vouches was told to be well. False: all that have answered have it. */
bool bare_note(struct ballot *b, const struct call *c);
/* It was released, or is about to be. */
void bare_forget(struct ballot *b, struct span name);
/* This RENEW was told. */
void bare_renewed(struct ballot *b, const struct call *c);
void bare_looked(struct ballot *b, const struct call *c);
void bare_on_timer(struct ballot *b, struct bare *bare);
void bare_free(struct ballot *b, struct bare *bare);
/* A node is there again. */
void bares_wake(struct ballot *b);
/* Looks at what is due. */
void bares_flush(struct ballot *b);

/* --- ballot_chore.c --------------------------------------------------------------- */

/* Ends the claim of that ACQUIRE wherever it may have been granted. */
void chore_undo(struct ballot *b, struct call *c);
/* A RELEASE that has been answered goes to the others as well. */
void chore_release(struct ballot *b, struct call *c);
/* The same claim is asked for anew: what was to be undone may be there, and is the
 * call's. */
void chore_absorb(struct ballot *b, struct call *c);
void chore_on_result(struct ballot *b, struct errand *e, const struct op_result *r);
void chore_free(struct ballot *b, struct chore *ch);
/* Others may be asking for that name at the same time: the next time begins with a
 * pause that may be longer. Not so: it is over. */
void ballot_note_split(struct ballot *b, struct slot *slot, bool split);
/* Sends what waits for that node. */
void chores_flush(struct ballot *b, unsigned node);

#endif
