/* ended: what named owners gave back here within the last lease.
 *
 * A failover may bring such an entry back, or a daemon that knew no better put it back;
 * and as the lease of its hold is raised whenever its owner comes again, it might never
 * end, or that owner is let in by it while another holds. So when Redis may have lost
 * something, each of these releases is made once more; one of our own accord only if
 * its entry was not granted anew.
 * Holds of anonymous owners and of IDs alone need no such thing: nobody raises theirs.
 * Nothing is remembered on a quorum, which forgets nothing as a whole. Private to
 * core/.
 */
#ifndef LATCHD_CORE_ENDED_H
#define LATCHD_CORE_ENDED_H

#include "core/parts.h"

enum {
    ENDED_KEPT_MAX = 16384, /* then the oldest is forgotten: its lease ends it */
};

/* The release of that duty has run. */
void ended_note(struct locks *l, const struct lock *lock, const struct duty *d);
/* That duty is of ended_again(), and not to be done now: its entry may be granted anew
 * by an op in flight, or is known again, then the duty is gone. */
bool ended_waits(struct locks *l, struct lock *lock, struct duty *d);
/* Redis may have lost the releases of those groups (NULL: all). */
void ended_again(struct locks *l, locks_concerns_fn *concerns, void *ctx);
void ended_free(struct locks *l);

#endif
