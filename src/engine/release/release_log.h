/* release_log: what named owners gave back here within the last lease.
 *
 * A failover may bring such an entry back, or a daemon that knew no better put it back;
 * and as the lease of its hold is raised whenever its owner comes again, it might never
 * end, or that owner is let in by it while another holds. So when Redis may have lost
 * something, each of these releases is made once more; one of our own accord only if
 * its entry was not granted anew.
 * Holds of anonymous owners and of IDs alone need no such thing: nobody raises theirs.
 * Nothing is remembered on a quorum, which forgets nothing as a whole. Private to
 * engine/.
 */
#ifndef LATCHD_ENGINE_RELEASE_RELEASE_LOG_H
#define LATCHD_ENGINE_RELEASE_RELEASE_LOG_H

#include "engine/engine.h"

#include <stdbool.h>

struct engine;
struct lock;
struct pending_release;

enum {
    RELEASE_LOG_MAX = 16384, /* then the oldest is forgotten: its lease ends it */
};

/* The release of that duty has run. */
void release_log_add(struct engine *eng, const struct lock *lock,
                     const struct pending_release *d);
/* That duty is of release_log_replay(), and not to be done now: its entry may be
 * granted anew by an op in flight, or is known again, then the duty is gone. */
bool release_log_defers(struct engine *eng, struct lock *lock,
                        struct pending_release *d);
/* Redis may have lost the releases of those groups (NULL: all). */
void release_log_replay(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
void release_log_free(struct engine *eng);

#endif
