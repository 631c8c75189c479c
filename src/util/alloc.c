#include "util/alloc.h"

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
