#include "engine/lock/probe.h"
#include "engine/acquire_spec.h"
#include "engine/lock/lock.h"
#include "engine/lock/lock_activity.h"
#include "engine/wait/waiter.h"

void waiter_set_probe(struct waiter *w, enum waiter_probe probe)
{
    w->lock->activity->probes +=
        (uint32_t)(probe != PROBE_NONE) - (uint32_t)(w->probe != PROBE_NONE);
    w->probe = probe;
}

void waiter_probe_later(struct engine *eng, struct waiter *w, enum waiter_probe probe)
{
    if (w->probe == PROBE_NONE) {
        lock_touch(eng, w->lock);
    }
    waiter_set_probe(w, probe);
}

void waiter_ask_again(struct engine *eng, struct waiter *w)
{
    if (waiter_is_head(w)) {
        lock_ask(eng, w->lock);
    } else {
        bool joins = w->spec->lock_kind == KIND_READ && w->lock->activity->writers == 0;

        waiter_probe_later(eng, w, joins ? PROBE_JOIN : PROBE_REENTER);
    }
}
