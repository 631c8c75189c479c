/* engine_priv: what engine.c offers to the other parts of the engine: timers and the
 * scheduler. Private to engine/. */
#ifndef LATCHD_ENGINE_ENGINE_PRIV_H
#define LATCHD_ENGINE_ENGINE_PRIV_H

#include "engine/timer.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

void timer_set(struct engine *eng, struct timer *t, enum timer_kind kind, uint64_t at);
void timer_stop(struct engine *eng, struct timer *t);
/* Whether this tick is so late for a deadline that answers which came in time may not
 * have been read yet; the next tick decides then. */
bool tick_is_too_late(const struct engine *eng, uint64_t deadline);
/* Steps every dirty lock and MLOCK until none is dirty; the last act of each entry. */
void engine_settle(struct engine *eng);

#endif
