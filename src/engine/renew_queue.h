/* renew_queue: the holds that are due for renewal, one queue for what one script can
 * do: names of one group and of one lock class. Private to engine/.
 *
 * A group that does not answer holds up no other group, and nothing more is sent for
 * it. Where all names are one group and Redis is overloaded, the share of its time that
 * renewals get grows when they are late: keeping a lock is worth more than granting
 * another one. */
#ifndef LATCHD_ENGINE_RENEW_QUEUE_H
#define LATCHD_ENGINE_RENEW_QUEUE_H

#include "engine/lock_terms.h"
#include "engine/objects.h"
#include "util/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Redis may run all that is in flight one after the other: so it is bounded by its
 * cost, too, as if each script cost OP_COST_MAX. */
enum {
    RENEW_SLOT_MS = 50,      /* renewals are batched in slots of this length */
    RENEW_IN_FLIGHT_MAX = 8, /* scripts, where all names are one group.. */
    RENEW_LATE_MS = 500,     /* ..and if the first hold is overdue by this much: */
    RENEW_LATE_IN_FLIGHT_MAX = 64,
    RENEW_GROUPS_MAX = 512, /* else: one script for each group, in so many groups.. */
    RENEW_STUCK_MS = 250,   /* ..not counting those unanswered for this long */
    /* moments in a third of a lease at which holds of a group are due */
    RENEW_GROUP_PARTS = 4,
};

struct renew_queue {
    struct list holds;
    struct list in_ready; /* on renew_queues.ready: more can be sent */
    size_t in_flight;
    uint32_t group;
    enum lock_class lock_class;
};

struct renew_queues {
    struct renew_queue *all; /* two for each group */
    struct list ready;
    struct list sent; /* ops in flight that count, in the order of sending */
    size_t sent_count;
    uint64_t sent_cost;
};

void renew_queues_init(struct engine *eng);
void renew_queues_fini(struct engine *eng);
void renew_queue_add(struct engine *eng, struct hold *h);
/* The next queue for which a renewal can be sent, or NULL. renew_queue_on_sent() or
 * renew_queue_on_done() must follow. */
struct renew_queue *renew_queue_next(struct engine *eng);
void renew_queue_on_sent(struct engine *eng, struct renew_queue *queue,
                         struct inflight_op *o);
/* A renewal was answered; `w` NULL: there was nothing to send. */
void renew_queue_on_done(struct engine *eng, struct renew_queue *queue,
                         struct inflight_op *o);
/* Whether no renewal is waiting to be sent. */
bool renew_queues_are_empty(const struct engine *eng);

#endif
