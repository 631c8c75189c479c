#include "engine/entry_extra.h"
#include "engine/engine_state.h"
#include "engine/entry.h"
#include "util/pool.h"

const struct entry_extra ENTRY_NO_EXTRA = { 0 };

void entry_extra_none(struct entry *e)
{
    e->extra = (struct entry_extra *)&ENTRY_NO_EXTRA;
}

struct entry_extra *entry_open_extra(struct engine *eng, struct entry *e)
{
    if (e->extra == &ENTRY_NO_EXTRA) {
        e->extra = pool_alloc(&eng->pool, sizeof(*e->extra));
        e->extra->entry = e;
    }
    return e->extra;
}

void entry_extra_free(struct engine *eng, struct entry *e)
{
    if (e->extra != &ENTRY_NO_EXTRA) {
        timer_stop(eng, &e->extra->timer);
        pool_free_sized(&eng->pool, e->extra, sizeof(*e->extra));
        entry_extra_none(e);
    }
}
