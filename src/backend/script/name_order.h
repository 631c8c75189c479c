/* name_order: which ops may be sent now, if those of one name may go two ways.
 *
 * Ops of a name go one way without waiting for each other, as one way keeps their
 * order; before one goes the other way, all before it must have run. An op may be about
 * several names. Pure: no link, no clock. */
#ifndef LATCHD_BACKEND_SCRIPT_NAME_ORDER_H
#define LATCHD_BACKEND_SCRIPT_NAME_ORDER_H

#include "engine/op.h"
#include "util/list.h"
#include "util/table.h"

#include <stdbool.h>
#include <stddef.h>

struct ordered_name;

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
