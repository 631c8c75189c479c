#include "util/span.h"

static bool cut_at(struct span *rest, const char *at, struct span *ret)
{
    if (at == NULL) {
        return false;
    }
    *ret = span_of(rest->ptr, (size_t)(at - rest->ptr));
    *rest = span_after(*rest, ret->len + 1);
    return true;
}

bool span_cut(struct span *rest, char c, struct span *ret)
{
    return rest->len != 0 && cut_at(rest, memchr(rest->ptr, c, rest->len), ret);
}

bool span_cut_last(struct span *rest, char c, struct span *ret)
{
    return rest->len != 0 && cut_at(rest, memrchr(rest->ptr, c, rest->len), ret);
}

struct span span_next(struct span *rest, char c)
{
    struct span part;

    if (!span_cut(rest, c, &part)) {
        part = *rest;
        *rest = SPAN_NONE;
    }
    return part;
}

struct span span_put(char **at, struct span s)
{
    struct span copy = span_of(*at, s.len);

    if (s.len == 0) {
        return SPAN_NONE;
    }
    memcpy(*at, s.ptr, s.len);
    *at += s.len;
    return copy;
}
