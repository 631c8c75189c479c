/* due: the holds that are to be renewed, by what one script can do: of one group of
 * names, and one family. Private to core/.
 *
 * A group that does not answer holds up no other, and nothing more is sent for it.
 * Where all names are one group and Redis has more to do than it can, the part of it
 * that renewals get grows when they are late: a lock that is kept goes before one more.
 */
#ifndef LATCHD_CORE_DUE_H
#define LATCHD_CORE_DUE_H

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

struct locks;
struct hold;
struct work;

struct due {
    struct list holds;
    struct list in_ready; /* on dues.ready: more can be sent */
    size_t in_flight;
    uint32_t group;
    bool rw;
};

struct dues {
    struct due *all; /* two for each group */
    struct list ready;
    struct list sent; /* works in flight that count, in order */
    size_t sent_count;
};

void dues_init(struct locks *l);
void dues_fini(struct locks *l);
void due_add(struct locks *l, struct hold *h);
/* The next that something can be sent for, or NULL; it is to be followed by due_sent()
 * or due_done(). */
struct due *due_next(struct locks *l);
void due_sent(struct locks *l, struct due *d, struct work *w);
/* That work is answered; NULL: there was nothing to be sent. */
void due_done(struct locks *l, struct due *d, struct work *w);
/* Nothing is to be sent. */
bool dues_empty(const struct locks *l);

/* When the renewal of a hold is sent: before it is due. */
uint64_t due_at(const struct locks *l, const struct hold *h);

#endif
