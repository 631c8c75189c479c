#include "sim/redis/lua_heap.h"

#include "util/alloc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEAP_MAX = 64 << 20,
    GARBAGE_MAX = 1 << 20, /* stays in a processor's cache */
    ALIGN = 16,
};

static char *heap;
static size_t used;
static char *marked;
static size_t marked_size;

void *lua_heap_alloc(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    size_t size = (new_size + ALIGN - 1) / ALIGN * ALIGN;
    void *at;

    (void)ctx;
    if (new_size == 0) {
        return NULL;
    }
    if (ptr != NULL && new_size <= old_size) {
        return ptr;
    }
    if (heap == NULL) {
        heap = xmalloc(HEAP_MAX);
    }
    if (HEAP_MAX - used < size) {
        return NULL;
    }
    at = heap + used;
    used += size;
    if (ptr != NULL) {
        memcpy(at, ptr, old_size);
    }
    return at;
}

void lua_heap_mark(void)
{
    marked = xrealloc(marked, used);
    marked_size = used;
    memcpy(marked, heap, used);
}

bool lua_heap_is_full(void)
{
    return used - marked_size > GARBAGE_MAX;
}

void lua_heap_reset(void)
{
    memcpy(heap, marked, marked_size);
    used = marked_size;
}
