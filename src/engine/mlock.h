/* mlock: MLOCK, from its request to its end. Private to engine/. */
#ifndef LATCHD_ENGINE_MLOCK_H
#define LATCHD_ENGINE_MLOCK_H

#include "engine/engine.h"
#include "engine/mlock_member.h"
#include "engine/objects.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>

/* Does what the MLOCK needs next; may free the MLOCK. */
void mlock_step(struct engine *eng, struct mlock *ml);
void mlock_on_timer(struct engine *eng, struct mlock *ml);

void request_mlock(struct engine *eng, const struct mlock_req *req);
/* An UNLOCK has ended the request of that name and ID, which was granted through
 * another daemon: an MLOCK with that ID that has yet to ask for the name is over, too.
 */
void mlock_on_unlocked(struct engine *eng, struct span name, struct span id);
/* Ends the MLOCKs that have this name among theirs; returns how many. */
size_t mlock_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others);

/* Ends an MLOCK that has been answered: releases the members, or retains them for
 * KEEP. */
void mlock_end(struct engine *eng, struct mlock *ml, bool keep);
void mlocks_free(struct engine *eng);
void mlock_conn_closed(struct engine *eng, struct session *s);
bool mlock_unblock(struct engine *eng, struct session *s, bool with_error);
void mlock_stop(struct engine *eng);

#endif
