#include "core/effect.h"

#include "util/alloc.h"

#include <stdalign.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 16 * 1024 };

struct chunk {
    struct chunk *next;
    size_t used;
    size_t room;
    alignas(max_align_t) char data[];
};

void effects_init(struct effects *fx)
{
    *fx = (struct effects){ 0 };
}

static void drop_chunks(struct chunk *c)
{
    while (c != NULL) {
        struct chunk *next = c->next;

        free(c);
        c = next;
    }
}

void effects_fini(struct effects *fx)
{
    drop_chunks(fx->chunks);
    free(fx->list);
    *fx = (struct effects){ 0 };
}

void effects_reset(struct effects *fx)
{
    struct chunk *keep = fx->chunks;

    fx->count = 0;
    if (keep != NULL) {
        drop_chunks(keep->next);
        keep->next = NULL;
        keep->used = 0;
    }
}

struct effect *effects_add(struct effects *fx, enum effect_kind kind)
{
    struct effect *e;

    if (fx->count == fx->room) {
        fx->room = fx->room == 0 ? 64 : fx->room * 2;
        fx->list = xrealloc(fx->list, fx->room * sizeof(*fx->list));
    }
    e = &fx->list[fx->count++];
    *e = (struct effect){ .kind = kind };
    return e;
}

void *effects_alloc(struct effects *fx, size_t size)
{
    struct chunk *c = fx->chunks;
    void *ptr;

    size =
        (size + alignof(max_align_t) - 1) / alignof(max_align_t) * alignof(max_align_t);
    if (c == NULL || c->room - c->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;

        c = xmalloc(sizeof(*c) + room);
        *c = (struct chunk){ .next = fx->chunks, .room = room };
        fx->chunks = c;
    }
    ptr = c->data + c->used;
    c->used += size;
    return ptr;
}

struct span effects_copy(struct effects *fx, struct span s)
{
    char *copy;

    if (s.len == 0) {
        return span_of("", 0);
    }
    copy = effects_alloc(fx, s.len);
    memcpy(copy, s.ptr, s.len);
    return span_of(copy, s.len);
}
