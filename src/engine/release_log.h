/* release_log: the entries that named owners released here within the last lease.
 *
 * A failover, or a daemon that missed the release, may bring such an entry back. The
 * lease of its hold is raised whenever the owner comes again, so the entry might never
 * end, or let that owner in while another one holds. So when Redis may have lost
 * something, each of these releases is made once more; a release that no client asked
 * for only if its entry was not granted anew.
 * Holds of anonymous owners and of IDs alone need no log: nobody raises their leases. A
 * quorum needs none either, as it never loses data as a whole. Private to engine/. */
#ifndef LATCHD_ENGINE_RELEASE_LOG_H
#define LATCHD_ENGINE_RELEASE_LOG_H

#include "engine/engine.h"
#include "engine/objects.h"

#include <stdbool.h>

enum {
    /* then the oldest release is dropped: the lease ends its hold */
    RELEASE_LOG_MAX = 16384,
};

void release_log_init(struct engine *eng);
/* Notes a release that has run. */
void release_log_add(struct engine *eng, const struct lock *lock,
                     const struct pending_release *d);
/* Whether a release of release_log_replay() must not be sent now: an op in flight may
 * grant its entry anew. If the entry is known here again, the release is dropped and
 * freed. */
bool release_log_defers(struct engine *eng, struct lock *lock,
                        struct pending_release *d);
/* Makes the releases of those groups (NULL: all) once more, as Redis may have lost
 * them. */
void release_log_replay(struct engine *eng, engine_concerns_fn *concerns, void *ctx);

#endif
