/* The states of holds and of their entries, and which may follow which. */
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "engine/hold.h"
#include "engine/lock.h"

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
    eng->put_back_count += h->is_put_back ? (size_t)restoring : 0;
    h->state = state;
}

void hold_set_put_back(struct engine *eng, struct hold *h, bool is_put_back)
{
    if (h->state == HOLD_RESTORING) {
        eng->put_back_count += (size_t)is_put_back - (size_t)h->is_put_back;
    }
    h->is_put_back = is_put_back;
}

static const char *const ENTRY_NAMES[] = {
    [ENTRY_HELD] = "HELD",
    [ENTRY_OVERDUE] = "OVERDUE",
    [ENTRY_ENDING] = "ENDING",
};

static const uint32_t NEXT_ENTRY_STATES[] = {
    [ENTRY_HELD] = TRANSITION_TO(ENTRY_OVERDUE) | TRANSITION_TO(ENTRY_ENDING),
    [ENTRY_OVERDUE] = TRANSITION_TO(ENTRY_HELD) | TRANSITION_TO(ENTRY_ENDING),
    [ENTRY_ENDING] = TRANSITION_TO(ENTRY_HELD),
};

const struct transitions ENTRY_TRANSITIONS = { "entry", ENTRY_NAMES,
                                               NEXT_ENTRY_STATES };

static const char *const RESTORE_NAMES[] = {
    [ENTRY_KEPT] = "KEPT",
    [ENTRY_UNSURE] = "UNSURE",
    [ENTRY_RESTORING] = "RESTORING",
};

/* An answer is only for what its op has named. */
static const uint32_t NEXT_RESTORES[] = {
    [ENTRY_KEPT] = TRANSITION_TO(ENTRY_UNSURE),
    [ENTRY_UNSURE] = TRANSITION_TO(ENTRY_RESTORING) | TRANSITION_TO(ENTRY_KEPT),
    [ENTRY_RESTORING] = TRANSITION_TO(ENTRY_KEPT) | TRANSITION_TO(ENTRY_UNSURE),
};

const struct transitions ENTRY_RESTORE_TRANSITIONS = { "restore of an entry",
                                                       RESTORE_NAMES, NEXT_RESTORES };

void entry_set_state(struct entry *e, enum entry_state state)
{
    if (e->state != state) {
        transition_check(&ENTRY_TRANSITIONS, e->state, state);
        e->state = state;
    }
}

void entry_set_restore(struct entry *e, enum entry_restore restore)
{
    if (e->restore != restore) {
        transition_check(&ENTRY_RESTORE_TRANSITIONS, e->restore, restore);
        e->restore = restore;
    }
}
