/* inflight_op: an op that waits for its result, and is found by its op ID only.
 * Private to engine/. */
#ifndef LATCHD_ENGINE_INFLIGHT_OP_H
#define LATCHD_ENGINE_INFLIGHT_OP_H

#include "engine/objects.h"
#include "engine/op.h"
#include "util/list.h"
#include "util/span.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct logged_count;
struct loss_check;
struct renew_queue;

enum inflight_kind {
    INFLIGHT_ASK,
    INFLIGHT_PROBE,
    INFLIGHT_BATCH,
    INFLIGHT_RELEASE,
    INFLIGHT_RENEW,
    INFLIGHT_RENEW_LOANS,
    INFLIGHT_ATTACH,
    INFLIGHT_INSPECT,
    INFLIGHT_LIMIT,
    INFLIGHT_WATCH,
    INFLIGHT_LATCH,
    INFLIGHT_COUNT_AGAIN,
    INFLIGHT_QUEUE,
    INFLIGHT_LEAVE,
    INFLIGHT_RESTORE,
    INFLIGHT_CHECK
};

struct renewal_item {
    struct hold *hold;     /* NULL: gone */
    struct entry *checked; /* the entry whose keeper is checked; NULL: gone */
    uint64_t lease_ms;     /* that was asked for */
};

struct inflight_op {
    struct table_node op;
    enum inflight_kind kind;
    uint64_t sent;
    uint64_t lease_ms; /* that was asked for */
    struct lock *lock; /* the op's lock; none for BATCH, RENEW, RENEW_LOANS and CHECK */
    uint64_t cost;     /* RENEW, RESTORE: see op_cost() */
    /* RENEW: in order, while it counts; BATCH, CHECK: on eng->ops_to_send */
    struct list in_sent;
    struct inflight_op *check; /* the loss check that this op's result waits for */
    bool checked;
    bool is_asking; /* ASK, RELEASE: the lock is ASKING until the answer */
    /* by its kind; a pointer to what may be gone before the answer is NULL then */
    union {
        struct {                       /* ASK, PROBE, RELEASE */
            struct waiter *waiter;     /* the waiter that the op may grant */
            struct acquire_spec *spec; /* the claim that was sent */
            uint64_t asked_ago_ms;     /* the same claim's */
            /* the waiter is gone, and an earlier op may have granted */
            bool claimed_before;
            struct pending_release *release; /* RELEASE */
        } claim;
        struct { /* ATTACH, INSPECT, LIMIT, LATCH */
            struct pending_request *call;
            bool exact; /* ATTACH: the op may shorten the lease */
            bool cut;   /* ATTACH: a later one has shortened it, for nobody */
            /* ATTACH: of the hold that Redis has renewed, in a result that waits for
             * `check` */
            uint64_t renewed_token;
        } request;
        struct { /* RENEW */
            struct renewal_item *items;
            size_t count;
            struct renew_queue *queue;
        } renew;
        struct {                 /* RENEW_LOANS */
            struct loan **items; /* each NULL: gone */
            size_t count;
        } loans;
        struct { /* BATCH: one op in flight for each name, of kind ASK */
            struct inflight_op **parts;
            size_t count;
            bool all_or_none; /* see op_batch */
        } batch;
        struct { /* RESTORE */
            struct hold *hold;
            struct acquire_spec *spec;
        } restore;
        struct {                       /* CHECK */
            struct loss_check *check;  /* in one piece of memory, owned */
            struct inflight_op *about; /* the op whose result waits */
        } loss;
        struct name_watch *watch;     /* WATCH */
        struct logged_count *counted; /* COUNT_AGAIN */
    };
};

#define RETRY_NEVER UINT64_MAX
/* In how many ms an op of that kind is sent again that had this result, one of
 * OP_UNKNOWN, OP_LATE, OP_ERROR and OP_ELSEWHERE. RETRY_NEVER: any other result, or one
 * that answers an op of that kind, or that goes to a client as an error. */
uint64_t inflight_retry_in(enum inflight_kind kind, enum op_status status);

/* When, and for how long a lease, an op asked: its result counts from then. */
struct asked {
    uint64_t op;
    uint64_t at;
    uint64_t lease_ms;
    bool claimed_before; /* as in struct inflight_op */
    uint64_t ago_ms;     /* the claim's asked_ago_ms */
};

struct inflight_op *inflight_new(struct engine *eng, enum inflight_kind kind,
                                 struct lock *lock);
/* The op in flight with that ID. NULL: it has been answered. */
struct inflight_op *inflight_find(const struct engine *eng, uint64_t op_id);
void inflight_free(struct engine *eng, struct inflight_op *o);
struct op *inflight_op(struct engine *eng, struct inflight_op *o, enum op_kind kind);
struct span op_copy(struct engine *eng, struct span s);
struct target op_make_target(struct engine *eng, const struct target *target);
struct claim op_make_claim(struct engine *eng, const struct acquire_spec *spec,
                           uint64_t lease_ms);
struct asked inflight_asked(const struct inflight_op *o);
/* Whether enough of the lease that the op gave is left for a client to begin with. */
bool answer_leaves_time(const struct engine *eng, const struct lock *lock,
                        struct asked asked);
/* Whether the op was sent before Redis, or its clock, was replaced, so that its result
 * counts no more. */
bool answer_predates_store(const struct engine *eng, const struct lock *lock,
                           uint64_t op_id);
/* Notes a token that a result has: new tokens must be greater. */
void inflight_saw_token(struct engine *eng, uint64_t token);
/* Redis's clock is behind `us`, where it was: from now on tokens are above where it
 * would be by now, so that they grow from one daemon to the next as they did. */
void inflight_raise_clock_floor(struct engine *eng, uint64_t us);
/* 0: none is known. */
uint64_t inflight_clock_floor(const struct engine *eng);

#endif
