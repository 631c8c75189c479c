/* release: sends pending releases, with the hand-over to a waiter of this daemon, and
 * takes the answers. Private to engine/. */
#ifndef LATCHD_ENGINE_RELEASE_RELEASE_H
#define LATCHD_ENGINE_RELEASE_RELEASE_H

#include <stdbool.h>

struct engine;
struct hold;
struct inflight_op;
struct lock;
struct op_result;
struct pending_release;

/* Gives a release up that it is too late to send, or to send again. */
void pending_release_give_up(struct engine *eng, struct lock *lock,
                             struct pending_release *d);
void release_send(struct engine *eng, struct lock *lock, struct pending_release *d);
/* The first hold, of those known here, that a FORCEUNLOCK means; or NULL. */
struct hold *release_find_forced(const struct lock *lock,
                                 const struct pending_release *d);
void on_release_reply(struct engine *eng, struct inflight_op *w,
                      const struct op_result *r);

#endif
