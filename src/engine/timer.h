/* timer: the engine's timers. A timer is a field of the object that it is for; the
 * engine's heap contains those that are set. Private to engine/. */
#ifndef LATCHD_ENGINE_TIMER_H
#define LATCHD_ENGINE_TIMER_H

#include "util/heap.h"

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
};

struct timer {
    struct heap_node node; /* its tag is the timer_kind */
};

#endif
