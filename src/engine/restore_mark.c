#include "engine/restore_mark.h"
#include "engine/engine_state.h"
#include "engine/hold.h"
#include "engine/lock.h"
#include "util/list.h"

bool restore_is_idle(const struct hold *h)
{
    return h->restoring == NULL && list_empty(&h->in_queue);
}

void restore_again(struct engine *eng, struct hold *h)
{
    list_append(&eng->restores, &h->in_queue);
}

void hold_mark_restored(struct engine *eng, struct hold *h)
{
    if (h->state == HOLD_RESTORING) {
        hold_set_state(eng, h, HOLD_UNCERTAIN);
        lock_touch(eng, h->lock);
    }
}

void restore_forget(struct engine *eng, struct hold *h)
{
    hold_mark_restored(eng, h);
    if (h->restoring != NULL) {
        h->restoring->hold = NULL;
    }
}
