#include "util/fifo.h"

#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void fifo_fini(struct fifo *f)
{
    free(f->ring);
    *f = (struct fifo){ 0 };
}

static void fifo_grow(struct fifo *f)
{
    size_t room = f->room == 0 ? FIRST_ROOM : 2 * f->room;
    char *ring = xcalloc(room, f->size);

    for (size_t i = 0; i < f->count; i++) {
        memcpy(ring + i * f->size, fifo_at(f, i), f->size);
    }
    free(f->ring);
    f->ring = ring;
    f->room = room;
    f->first = 0;
}

void *fifo_push(struct fifo *f, size_t size)
{
    f->size = size;
    if (f->count == f->room) {
        fifo_grow(f);
    }
    return memset(fifo_at(f, f->count++), 0, size);
}

bool fifo_pop(struct fifo *f, void *ret)
{
    if (f->count == 0) {
        return false;
    }
    memcpy(ret, fifo_at(f, 0), f->size);
    f->first = (f->first + 1) & (f->room - 1);
    f->count--;
    return true;
}
