#include "backend/redis/call_fifo.h"

#include "util/alloc.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

void call_fifo_fini(struct call_fifo *f)
{
    free(f->ring);
    *f = (struct call_fifo){ 0 };
}

static void fifo_grow(struct call_fifo *f)
{
    size_t room = f->room == 0 ? FIRST_ROOM : 2 * f->room;
    struct redis_call *ring = xcalloc(room, sizeof(*ring));

    for (size_t i = 0; i < f->count; i++) {
        ring[i] = f->ring[(f->first + i) & (f->room - 1)];
    }
    free(f->ring);
    f->ring = ring;
    f->room = room;
    f->first = 0;
}

struct redis_call *call_fifo_push(struct call_fifo *f)
{
    struct redis_call *call;

    if (f->count == f->room) {
        fifo_grow(f);
    }
    call = &f->ring[(f->first + f->count++) & (f->room - 1)];
    *call = (struct redis_call){ 0 };
    return call;
}

const struct redis_call *call_fifo_first(const struct call_fifo *f)
{
    return f->count == 0 ? NULL : &f->ring[f->first];
}

bool call_fifo_pop(struct call_fifo *f, struct redis_call *ret)
{
    if (f->count == 0) {
        return false;
    }
    *ret = f->ring[f->first];
    f->first = (f->first + 1) & (f->room - 1);
    f->count--;
    return true;
}
