/* fair_left: names in whose fair queue places of ours were, not long ago.
 *
 * A Redis that lost its last writes may have such places again, of waiters that are
 * gone. As this daemon lives, everybody would wait behind them until nobody can have
 * renewed them. So all that is left of ours leaves those queues then. Private to
 * engine/.
 */
#ifndef LATCHD_ENGINE_FAIR_FAIR_LEFT_H
#define LATCHD_ENGINE_FAIR_FAIR_LEFT_H

#include "engine/engine.h"

struct engine;
struct lock;

enum {
    FAIR_LEFT_MAX =
        16384, /* then the oldest name is forgotten: scores end its places */
};

/* Its last place has gone. */
void fair_left_note(struct engine *eng, const struct lock *lock);
/* Redis may have lost what was done to the names of those groups (NULL: all). */
void fair_left_again(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
void fair_left_free(struct engine *eng);

#endif
