#include "engine/engine_state.h"
#include "engine/hold/hold.h"
#include "engine/lock/lock.h"

static const char *const STATE_NAMES[] = {
    [HOLD_HELD] = "HELD",
    [HOLD_UNCERTAIN] = "UNCERTAIN",
    [HOLD_RESTORING] = "RESTORING",
    [HOLD_ENDED] = "ENDED",
};

static const uint32_t NEXT_STATES[] = {
    [HOLD_HELD] = TRANSITION_TO(HOLD_UNCERTAIN) | TRANSITION_TO(HOLD_ENDED),
    [HOLD_UNCERTAIN] = TRANSITION_TO(HOLD_HELD) | TRANSITION_TO(HOLD_RESTORING) |
                       TRANSITION_TO(HOLD_ENDED),
    [HOLD_RESTORING] = TRANSITION_TO(HOLD_UNCERTAIN) | TRANSITION_TO(HOLD_ENDED),
    [HOLD_ENDED] = 0,
};

const struct transitions HOLD_TRANSITIONS = { "hold", STATE_NAMES, NEXT_STATES };

static bool is_in_doubt(enum hold_state state)
{
    return state == HOLD_UNCERTAIN || state == HOLD_RESTORING;
}

void hold_set_state(struct engine *eng, struct hold *h, enum hold_state state)
{
    int restoring = (state == HOLD_RESTORING) - (h->state == HOLD_RESTORING);
    int in_doubt = is_in_doubt(state) - is_in_doubt(h->state);

    transition_check(&HOLD_TRANSITIONS, h->state, state);
    eng->stats.uncertain += (uint64_t)in_doubt;
    eng->stats.restoring += (uint64_t)restoring;
    h->lock->needs_restore += (uint32_t)restoring;
    h->state = state;
}
