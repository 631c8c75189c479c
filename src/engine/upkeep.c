#include "engine/upkeep.h"
#include "engine/engine_state.h"
#include "engine/hold.h"
#include "util/pool.h"

const struct upkeep HOLD_NO_UPKEEP = {
    .in_queue = { (struct list *)&HOLD_NO_UPKEEP.in_queue,
                  (struct list *)&HOLD_NO_UPKEEP.in_queue },
};

void hold_upkeep_none(struct hold *h)
{
    h->upkeep = (struct upkeep *)&HOLD_NO_UPKEEP;
}

static bool has_none(const struct hold *h)
{
    return h->upkeep == &HOLD_NO_UPKEEP;
}

struct upkeep *hold_open_upkeep(struct engine *eng, struct hold *h)
{
    if (has_none(h)) {
        h->upkeep = pool_alloc(&eng->pool, sizeof(*h->upkeep));
        h->upkeep->hold = h;
        list_init(&h->upkeep->in_queue);
    }
    return h->upkeep;
}

void hold_leave_queue(struct hold *h)
{
    if (!has_none(h)) {
        list_del(&h->upkeep->in_queue);
    }
}

void hold_free_upkeep(struct engine *eng, struct hold *h)
{
    if (!has_none(h)) {
        list_del(&h->upkeep->in_queue);
        pool_free_sized(&eng->pool, h->upkeep, sizeof(*h->upkeep));
        hold_upkeep_none(h);
    }
}

void hold_close_upkeep(struct engine *eng, struct hold *h)
{
    const struct upkeep *u = h->upkeep;

    if (list_empty(&u->in_queue) && u->renewal == NULL && u->restoring == NULL &&
        u->not_before <= eng->now && u->exact_ms == 0 && h->state != HOLD_RESTORING) {
        hold_free_upkeep(eng, h);
    }
}
