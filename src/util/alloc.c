#include "util/alloc.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void alloc_failed(void)
{
    static const char WORDS[] =
        "latchd: out of memory, it ends: holds stay in Redis for their lease; raise "
        "the "
        "limit of memory, or lower maxclients and the limits of buffers\n";

    if (write(STDERR_FILENO, WORDS, sizeof(WORDS) - 1) < 0) {
        abort(); /* no memory to report it */
    }
    abort();
}

static void *require_memory(void *ptr)
{
    if (ptr == NULL) {
        alloc_failed();
    }
    return ptr;
}

void *xmalloc(size_t size)
{
    return require_memory(malloc(size == 0 ? 1 : size));
}

void *xcalloc(size_t count, size_t size)
{
    if (count == 0 || size == 0) {
        count = size = 1;
    }
    return require_memory(calloc(count, size));
}

void *xrealloc(void *ptr, size_t size)
{
    return require_memory(realloc(ptr, size == 0 ? 1 : size));
}

char *xstrdup(const char *text)
{
    return xmemdup0(text, strlen(text));
}

char *xmemdup0(const void *ptr, size_t len)
{
    char *copy = xmalloc(len + 1);

    if (len != 0) {
        memcpy(copy, ptr, len);
    }
    copy[len] = '\0';
    return copy;
}

struct pool_block {
    struct pool_block *next;
};

/* A block of size n has at least n * POOL_STEP - MALLOC_HEAD bytes: just what glibc's
 * malloc() makes of a request, so that nothing is lost by rounding. */
enum { MALLOC_HEAD = 8 };

static size_t size_for(size_t bytes)
{
    return (bytes + MALLOC_HEAD + POOL_STEP - 1) / POOL_STEP;
}

static size_t size_of(void *ptr)
{
    return (malloc_usable_size(ptr) + MALLOC_HEAD) / POOL_STEP;
}

void *pool_take(struct pool *p, size_t size)
{
    size_t n = size_for(size);
    void *block;

    if (ALLOC_KEEPS && n < POOL_SIZES && p->sizes[n].count != 0) {
        block = p->sizes[n].first;
        p->sizes[n].first = p->sizes[n].first->next;
        p->sizes[n].count--;
    } else {
        block = xmalloc(ALLOC_KEEPS ? n * POOL_STEP - MALLOC_HEAD : size);
    }
    return block;
}

void *pool_alloc(struct pool *p, size_t size)
{
    void *block = pool_take(p, size);

    memset(block, 0, size);
    return block;
}

static void keep_block(struct pool *p, void *ptr, size_t n)
{
    struct pool_block *block = ptr;
    struct pool_size *at = p->sizes;

    if (!ALLOC_KEEPS || n >= POOL_SIZES ||
        (at[n].count + 1) * n > POOL_KEEP_BYTES / POOL_STEP) {
        free(ptr);
        return;
    }
    at += n;
    block->next = at->first;
    at->first = block;
    at->count++;
}

void pool_free(struct pool *p, void *ptr)
{
    if (ptr != NULL) {
        keep_block(p, ptr, ALLOC_KEEPS ? size_of(ptr) : 0);
    }
}

void pool_free_sized(struct pool *p, void *ptr, size_t size)
{
    assert(!ALLOC_KEEPS || size_of(ptr) >= size_for(size));
    keep_block(p, ptr, size_for(size));
}

void pool_fini(struct pool *p)
{
    for (size_t i = 0; i < POOL_SIZES; i++) {
        while (p->sizes[i].first != NULL) {
            struct pool_block *block = p->sizes[i].first;

            p->sizes[i].first = block->next;
            free(block);
        }
        p->sizes[i].count = 0;
    }
}
