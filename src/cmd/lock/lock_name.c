#include "cmd/lock/lock_name.h"

#include "latchd/protocol.h"

#include <string.h>

bool lock_name_has_one_tag(struct span name)
{
    const char *open = memchr(name.ptr, '{', name.len);
    const char *close = memchr(name.ptr, '}', name.len);
    const char *end = name.ptr + name.len;

    if (open == NULL || close == NULL) {
        return open == close;
    }
    return close > open + 1 &&
           memchr(open + 1, '{', (size_t)(end - open - 1)) == NULL &&
           memchr(close + 1, '}', (size_t)(end - close - 1)) == NULL;
}

bool lock_name_is_of_readers(struct span name)
{
    const struct span middle = SPAN(LATCHD_RESERVED_NAME_MIDDLE);
    size_t end = name.len;

    while (end > 0 && name.ptr[end - 1] >= '0' && name.ptr[end - 1] <= '9') {
        end--;
    }
    return end < name.len && end >= middle.len &&
           span_eq(span_of(name.ptr + end - middle.len, middle.len), middle);
}
