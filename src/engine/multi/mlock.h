/* mlock: what the files of multi/ offer each other, and the rest of the engine. Private
 * to engine/. */
#ifndef LATCHD_ENGINE_MULTI_MLOCK_H
#define LATCHD_ENGINE_MULTI_MLOCK_H

#include "engine/engine.h"
#include "engine/mlock_member.h"
#include "util/span.h"

#include <stdbool.h>
#include <stddef.h>

struct engine;
struct session;

/* mlock.c */
/* Does what the MLOCK needs next; may free the MLOCK. */
void mlock_step(struct engine *eng, struct mlock *ml);
void mlock_on_timer(struct engine *eng, struct mlock *ml);

/* mlock_acquire.c */
/* The LOCK request of one member. */
struct lock_req mlock_request(const struct engine *eng, const struct mlock_member *p);
void mlock_ask_next(struct engine *eng, struct mlock *ml);
/* Asks Redis whether the member is still held, and for its whole lease again. */
void mlock_confirm(struct engine *eng, struct mlock_member *p);
/* mlock_confirm(), while the last confirmation still counts: the MLOCK does not wait
 * for it. */
void mlock_renew(struct engine *eng, struct mlock_member *p);

/* request_mlock.c */
void request_mlock(struct engine *eng, const struct mlock_req *req);
/* An UNLOCK has ended the request of that name and ID, which was granted through
 * another daemon: an MLOCK with that ID that has yet to ask for the name is over, too.
 */
void mlock_on_unlocked(struct engine *eng, struct span name, struct span id);
/* Ends the MLOCKs that have this name among theirs; returns how many. */
size_t mlock_cancel(struct engine *eng, const struct hold_req *req, bool *ret_others);

/* mlock_end.c */
/* Drops the requests of the members from `first` on, whose answers are not wanted any
 * more. */
void mlock_drop_requests(struct engine *eng, struct mlock *ml, size_t first);
/* Goes back to before `first`: the members behind it are released, so that the order
 * of acquiring is kept. */
void mlock_rewind(struct engine *eng, struct mlock *ml, size_t first);
void mlock_unbind(struct engine *eng, struct mlock *ml);
/* Ends an MLOCK that has been answered: releases the members, or retains them for
 * KEEP. */
void mlock_end(struct engine *eng, struct mlock *ml, bool keep);
void mlock_free(struct engine *eng, struct mlock *ml);
void mlocks_free(struct engine *eng);
void mlock_conn_closed(struct engine *eng, struct session *s);
bool mlock_unblock(struct engine *eng, struct session *s, bool with_error);
void mlock_stop(struct engine *eng);

#endif
