/* replica_ack: the two ways of a node's ops while `min-replicas` is more than 0.
 *
 * What vouches (engine/op.h) goes over a second command link. All of it that is
 * asked while replicas are being waited for leaves together, with one WAIT behind it;
 * what comes back is held until that is answered, and is OP_NOREPLICAS if they are too
 * few. Everything else goes over the node's first link and waits for nobody, but for
 * what was asked of the same name before (name_order): that must have run, and the
 * answer must be there, unless it is a renewal, whose answer may come later.
 *
 * The node owns it, and the first link; it hands on all that happens there. Nothing is
 * reported during a call, but from within the links' events. */
#ifndef LATCHD_BACKEND_REPLICA_ACK_H
#define LATCHD_BACKEND_REPLICA_ACK_H

#include "backend/redis/redis_link.h"
#include "engine/op.h"
#include "util/list.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>

struct ordered_name;
struct replica_ack;

/* Reports a call as redis_link's on_reply does. `acked` is false if too few replicas
 * acknowledged the call. */
typedef void replica_ack_reply_fn(void *ctx, const struct redis_call *call,
                                  const redisReply *reply, bool acked);

struct replica_ack_events {
    const char *(*why_not)(void *ctx, bool same_server);
    /* The second link came up, or was lost. */
    void (*on_up)(void *ctx);
    void (*on_down)(void *ctx);
    replica_ack_reply_fn *on_reply;
};

struct replica_ack_setup {
    struct redis_link_setup link; /* of the first link; the second one is like it */
    struct redis_link *first;
    const char *instance; /* outlives it */
    const struct replica_ack_events *events;
    void *ctx;
};

struct replica_ack *replica_ack_new(const struct replica_ack_setup *setup);
/* Starts connecting; replica_ack_move() does so, too. */
void replica_ack_start(struct replica_ack *a);
/* With min-replicas 0 nothing more goes over the second link. */
void replica_ack_configure(struct replica_ack *a, const struct store_options *options);
/* The node's server is another one. */
void replica_ack_log_in(struct replica_ack *a);
void replica_ack_move(struct replica_ack *a);
/* Returns true if both links can be used, and lead to one server; if they lead to two,
 * drops the other one. `second`: the second link has just come up. */
bool replica_ack_agree(struct replica_ack *a, bool second);
void replica_ack_submit(struct replica_ack *a, const struct op *op);
/* See redis_link_abandon(); of the second link, and of answers that are held. */
void replica_ack_abandon(struct replica_ack *a, redis_group_fn *concerns, void *ctx,
                         bool sent_too);
/* From the first link. */
void replica_ack_on_reply(struct replica_ack *a, const struct redis_call *call,
                          const redisReply *reply);
void replica_ack_end_turn(struct replica_ack *a);
/* Whether nothing is waited for any more, and min-replicas is 0. */
bool replica_ack_is_over(const struct replica_ack *a);
void replica_ack_info(const struct replica_ack *a, struct store_info *ret);
/* Closes the link; no event comes afterwards. */
void replica_ack_close(struct replica_ack *a);
/* After it was closed, and not from within an event. NULL is fine. */
void replica_ack_free(struct replica_ack *a);

/* name_order: which ops may be sent now, if those of one name may go two ways.
 *
 * Ops of a name go one way without waiting for each other, as one way keeps their
 * order; before one goes the other way, all before it must have run. An op may be about
 * several names. Pure: no link, no clock. */

/* One name of an op: its position in the line of that name. */
struct ticket {
    struct list in_name;
    struct ordered_op *op;
    struct ordered_name *name;
    bool clear; /* all before it go the same way, and may go */
};

struct ordered_op {
    struct table_node in_ops; /* by id */
    struct list in_ready;     /* the caller's, once it may be sent */
    struct op *op;            /* a clone */
    int way;                  /* 0, 1 */
    bool may_go, held;
    size_t unclear;
    size_t ticket_count;
    struct ticket tickets[];
};

struct name_order {
    struct table names;
    struct table ops;
    size_t count[2];      /* ops, by their ways */
    struct list ready[2]; /* those that may go, in order; for the caller to take */
    struct list fresh;    /* of these, who may let others go */
};

void name_order_init(struct name_order *o);
void name_order_fini(struct name_order *o);

/* The op stands in line; it and others may be ready then. */
void name_order_add(struct name_order *o, const struct op *op, int way);
/* NULL: never added. */
struct ordered_op *name_order_find(const struct name_order *o, uint64_t op_id);
/* The op has run, or never will: what comes behind it need not wait any more. */
void name_order_leave(struct name_order *o, struct ordered_op *op);
/* Lets the op leave, and frees it. */
void name_order_remove(struct name_order *o, struct ordered_op *op);

/* The answer of that op is held back until the op leaves. */
void name_order_hold(struct ordered_op *op);
/* Whether the answer of an op before this one, for one of its names, is held back. */
bool name_order_is_behind_held(const struct ordered_op *op);

#endif
