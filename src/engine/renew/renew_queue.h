/* renew_queue: the holds that are to be renewed, by what one script can do: of one
 * group of names, and one family. Private to engine/.
 *
 * A group that does not answer holds up no other, and nothing more is sent for it.
 * Where all names are one group and Redis has more to do than it can, the part of it
 * that renewals get grows when they are late: a lock that is kept goes before one more.
 */
#ifndef LATCHD_ENGINE_RENEW_RENEW_QUEUE_H
#define LATCHD_ENGINE_RENEW_RENEW_QUEUE_H

#include "util/list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RENEW_SLOT_MS = 50,      /* renewals are gathered in slots of this */
    RENEW_IN_FLIGHT_MAX = 8, /* scripts, where all names are one group.. */
    RENEW_LATE_MS = 500,     /* ..and if the first hold is overdue by so much: */
    RENEW_LATE_IN_FLIGHT_MAX = 64,
    RENEW_GROUPS_MAX = 512, /* else: of all groups, one for each.. */
    RENEW_STUCK_MS = 250,   /* ..not counting who has waited for so long */
    RENEW_GROUP_PARTS = 4,  /* moments, in a third of a lease, at which a group is due
                             */
};

struct engine;
struct hold;
struct inflight_op;

struct renew_queue {
    struct list holds;
    struct list in_ready; /* on dues.ready: more can be sent */
    size_t in_flight;
    uint32_t group;
    bool rw;
};

struct renew_queues {
    struct renew_queue *all; /* two for each group */
    struct list ready;
    struct list sent; /* works in flight that count, in order */
    size_t sent_count;
};

void renew_queues_init(struct engine *eng);
void renew_queues_fini(struct engine *eng);
void renew_queue_add(struct engine *eng, struct hold *h);
/* The next that something can be sent for, or NULL; it is to be followed by
 * renew_queue_on_sent() or renew_queue_on_done(). */
struct renew_queue *renew_queue_next(struct engine *eng);
void renew_queue_on_sent(struct engine *eng, struct renew_queue *d,
                         struct inflight_op *w);
/* That work is answered; NULL: there was nothing to be sent. */
void renew_queue_on_done(struct engine *eng, struct renew_queue *d,
                         struct inflight_op *w);
/* Nothing is to be sent. */
bool renew_queues_are_empty(const struct engine *eng);

/* When the renewal of a hold is sent: before it is due. */
uint64_t hold_renew_at(const struct engine *eng, const struct hold *h);

#endif
