/* waits: all that a named owner waits for, whatever names these waits are for. Private
 * to core/. */
#ifndef LATCHD_CORE_WAITS_H
#define LATCHD_CORE_WAITS_H

#include "core/state.h"

struct waits {
    struct table_node in_owners;
    struct list waiters;
    uint64_t seen; /* the last search for a circle that came by, and how */
    uint64_t wait_until;
    uint64_t lease_until;
    size_t owner_len;
    char owner[];
};

void waits_join(struct locks *l, struct waiter *w);
void waits_leave(struct locks *l, struct waiter *w);
struct waits *waits_find(const struct locks *l, struct span owner);

#endif
