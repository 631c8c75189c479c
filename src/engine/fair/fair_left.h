/* fair_left: names in whose fair queue this instance had places not long ago.
 *
 * A Redis that lost its last writes may have such places again, of waiters that are
 * gone. Because this daemon is alive, all others would wait behind those places until
 * their scores have run out. So after such a loss this instance's leftover places leave
 * those queues. Private to engine/. */
#ifndef LATCHD_ENGINE_FAIR_FAIR_LEFT_H
#define LATCHD_ENGINE_FAIR_FAIR_LEFT_H

#include "engine/engine.h"

struct engine;
struct lock;

enum {
    FAIR_LEFT_MAX = 16384, /* then the oldest name is dropped: scores end its places */
};

/* Notes a name whose last place has left. */
void fair_left_note(struct engine *eng, const struct lock *lock);
/* Redis may have lost what happened to the names of those groups (NULL: all): sweeps
 * their fair queues. */
void fair_left_again(struct engine *eng, engine_concerns_fn *concerns, void *ctx);
void fair_left_free(struct engine *eng);

#endif
