/* timer: the engine's timers. A timer is a field of the object that it is for; the
 * engine's heap contains those that are set. Private to engine/. */
#ifndef LATCHD_ENGINE_TIMER_H
#define LATCHD_ENGINE_TIMER_H

#include "util/heap.h"

#include <stdbool.h>
#include <stdint.h>

struct engine;

enum timer_kind {
    TIMER_LOCK,
    TIMER_WAITER,
    TIMER_HOLD,
    TIMER_ENTRY,
    TIMER_PENDING_REQUEST,
    TIMER_OVER,
    TIMER_PULSE,
    TIMER_FAIR,
    TIMER_MLOCK,
    TIMER_PEERS,
    TIMER_LOAN,
    TIMER_DUE_LOANS,
    TIMER_WATCH,
    TIMER_COUNT_LOG,
};

struct timer {
    struct heap_node node; /* its tag is the timer_kind */
};

void timer_set(struct engine *eng, struct timer *t, enum timer_kind kind, uint64_t at);
void timer_stop(struct engine *eng, struct timer *t);
/* Whether this tick is so late for a deadline that answers which came in time may not
 * have been read yet; the next tick decides then. */
bool tick_is_too_late(const struct engine *eng, uint64_t deadline);
/* Until when an answer of Redis is waited for that is due at `deadline`. Nobody waits
 * for longer than redis-timeout after Redis went out of reach: so the outage of a
 * moment is ridden out, and in a long one there is an answer at once. */
uint64_t answer_deadline(const struct engine *eng, uint64_t deadline);

#endif
