#include "util/alloc.h"

#include <stdlib.h>
#include <string.h>

static void *need(void *ptr, size_t size)
{
    if (ptr == NULL && size != 0) {
        abort();
    }
    return ptr;
}

void *xmalloc(size_t size)
{
    size = size == 0 ? 1 : size;
    return need(malloc(size), size);
}

void *xcalloc(size_t count, size_t size)
{
    if (count == 0 || size == 0) {
        count = size = 1;
    }
    return need(calloc(count, size), 1);
}

void *xrealloc(void *ptr, size_t size)
{
    size = size == 0 ? 1 : size;
    return need(realloc(ptr, size), size);
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
